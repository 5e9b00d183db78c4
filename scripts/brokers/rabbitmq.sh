#!/bin/bash
# RabbitMQ on loopback, one private node per version.
#   rabbitmq.sh <310|40|43> install|start|stop|kill|status|restart|wipe|url|ctl ARGS...
# 310 = Debian 12's 3.10.8 (host packages); 40 = trixie's 4.0.5 and 43 = forky's 4.3.x, each in a debootstrap
# folder entered with chroot inside a private mount namespace (nothing stays mounted afterwards). Needs root on Debian 12;
# state is kept under .brokers/, or BROKERS_BASE.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
V=${1:?version 310|40|43}; CMD=${2:?command}; shift 2
BASE=${BROKERS_BASE:-$(cd "$HERE/../.." && pwd)/.brokers}
case $V in
  310) ROOT=/;            SUITE=;       AMQP=${RMQ310_PORT:-5710};;
  40)  ROOT=$BASE/trixie; SUITE=trixie; AMQP=${RMQ40_PORT:-5740};;
  43)  ROOT=$BASE/forky;  SUITE=forky;  AMQP=${RMQ43_PORT:-5743};;
  *) echo "unknown version $V" >&2; exit 2;;
esac
MGMT=$((AMQP + 10000)) DIST=$((AMQP + 20000)) EPMD=$((AMQP - 1400))   # another port moves them all
DATA=$BASE/run/rmq$V
if [ "$ROOT" = / ]; then IN=$DATA; else IN=/srv/rmq; fi      # the data folder as the node sees it
NODE=rmq$V@localhost

mirror() { # the Debian mirror that apt is configured with
  awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/*.sources 2>/dev/null | grep . ||
    awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) {print $i; exit}}' /etc/apt/sources.list; }
write_conf() {
  mkdir -p "$DATA/log" "$DATA/db"
  cat >"$DATA/rabbitmq.conf" <<C
listeners.tcp.local = 127.0.0.1:$AMQP
management.tcp.ip = 127.0.0.1
management.tcp.port = $MGMT
collect_statistics_interval = 1000
log.file.level = info
log.console = false
disk_free_limit.absolute = 50MB
heartbeat = 60
C
  [ "$V" = 310 ] || echo 'management.rates_mode = basic' >>"$DATA/rabbitmq.conf"
  echo '[rabbitmq_management].' >"$DATA/enabled_plugins"
}
envs() { cat <<E
HOME=$IN
LANG=C.UTF-8
LC_ALL=C.UTF-8
PATH=/usr/sbin:/usr/bin:/sbin:/bin
RABBITMQ_NODENAME=$NODE
RABBITMQ_CONFIG_FILE=$IN/rabbitmq.conf
RABBITMQ_CONF_ENV_FILE=/dev/null
RABBITMQ_ENABLED_PLUGINS_FILE=$IN/enabled_plugins
RABBITMQ_MNESIA_BASE=$IN/db
RABBITMQ_LOG_BASE=$IN/log
RABBITMQ_PID_FILE=$IN/pid
RABBITMQ_DIST_PORT=$DIST
ERL_EPMD_PORT=$EPMD
ERL_EPMD_ADDRESS=127.0.0.1
RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none
E
}
enter() { # enter PROGRAM ARGS...: run it with the node's environment, in the version's root
  local e=(); while IFS= read -r l; do e+=("$l"); done < <(envs)
  if [ "$ROOT" = / ]; then exec env -i "${e[@]}" "$@"; fi
  mkdir -p "$ROOT$IN" "$DATA"
  exec unshare -m --propagation private /bin/sh -c '
    r=$1; d=$2; i=$3; shift 3
    mount --bind /proc "$r/proc"; mount --bind /dev "$r/dev"; mount --bind /etc/hosts "$r/etc/hosts" 2>/dev/null
    mount --bind "$d" "$r$i"; exec chroot "$r" "$@"' sh "$ROOT" "$DATA" "$IN" env -i "${e[@]}" "$@"
}
up() { (exec 3<>/dev/tcp/127.0.0.1/$AMQP) 2>/dev/null; }
gone() { local t; t=$(cat "/proc/${1:-none}/task/"*/stat 2>/dev/null | sed "s/.*) //" | cut -c1); [[ -z ${t//[ZX[:space:]]/} ]]; }   # ended: no thread left that is not a zombie
pid() { cat "$DATA/pid" 2>/dev/null; }
alive() { local p; p=$(pid); [ -n "$p" ] && [ "$(cat /proc/$p/comm 2>/dev/null)" = beam.smp ]; }

installed() { [ -x "${ROOT%/}/usr/sbin/rabbitmqctl" ]; }
case $CMD in install|url|stop|kill|wipe) ;; *) installed || { echo "not installed; run: rabbitmq.sh $V install" >&2; exit 1; };; esac

case $CMD in
  install)
    mkdir -p "$BASE"
    if [ "$ROOT" = / ]; then
      installed || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends rabbitmq-server; }
    elif [ ! -x "$ROOT/usr/sbin/rabbitmqctl" ]; then
      command -v mmdebstrap >/dev/null ||
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends mmdebstrap; }
      # a mirror may hold a frozen copy of the testing suite: the date of its Release file is not checked, its signature is
      mmdebstrap --mode=root --variant=minbase --include=rabbitmq-server,procps \
        --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        "$SUITE" "$ROOT" "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $SUITE main"
    fi;;
  start)
    alive && up && { echo "already up on $AMQP"; exit 0; }
    write_conf; rm -f "$DATA/pid"; touch "$ROOT/etc/hosts" 2>/dev/null
    setsid "$HERE/rabbitmq.sh" $V _run >"$DATA/log/console.log" 2>&1 </dev/null &
    disown
    for _ in $(seq 1 600); do up && { echo "rabbitmq $V up: amqp://guest:guest@127.0.0.1:$AMQP mgmt http://127.0.0.1:$MGMT"; exit 0; }; sleep 0.1; done
    echo "did not start; see $DATA/log" >&2; tail -20 "$DATA/log/console.log" >&2; exit 1;;
  stop|kill)
    p=$(pid); alive || { echo "not running"; exit 0; }
    [ $CMD = stop ] && kill -TERM "$p" || kill -KILL "$p"
    for _ in $(seq 1 300); do gone "$p" && break; sleep 0.1; done; gone "$p" || kill -KILL "$p"
    # its epmd serves this node alone: end it by its own command
    [ $CMD = stop ] && ( enter epmd -kill ) >/dev/null 2>&1
    echo "stopped ($CMD)";;
  _run) enter /usr/lib/rabbitmq/bin/rabbitmq-server;;
  restart) "$HERE/rabbitmq.sh" $V stop; exec "$HERE/rabbitmq.sh" $V start;;
  status) enter /usr/lib/rabbitmq/bin/rabbitmqctl status;;
  ctl) enter /usr/lib/rabbitmq/bin/rabbitmqctl "$@";;
  diag) enter /usr/lib/rabbitmq/bin/rabbitmq-diagnostics "$@";;
  wipe) alive && { echo "stop it first" >&2; exit 1; }; rm -rf "$DATA/db" "$DATA/log" "$DATA/pid";;
  url) echo "amqp://guest:guest@127.0.0.1:$AMQP";;
  rss) p=$(pid); grep -E 'VmRSS|VmHWM' /proc/$p/status;;
  *) echo "unknown command $CMD" >&2; exit 2;;
esac
