#!/usr/bin/env bash
# Passes all tests: formatting, lints, documentation, tests, doctests, UI tests, and every example with its output.
#
#   scripts/test.sh                everything
#   scripts/test.sh messaging      one crate, for daily work: lints and tests of that package alone
#
# Ends in a line `N passed, N failed, N skipped`, and fails when anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."
packages=("$@")
log=$(mktemp -d)
passed=0 failed=0 skipped=0

say() { printf '\n== %s\n' "$*"; }

# Runs a step that either passes or fails.
step() {
  local name=$1
  shift
  say "$name"
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

# Runs tests and adds up what the test runner counted.
tests() {
  local name=$1 out=$log/tests
  shift
  say "$name"
  "$@" 2>&1 | tee "$out"
  local status=${PIPESTATUS[0]} counts
  counts=$(grep -hE '^test result: ' "$out" |
    awk '{ for (i = 1; i <= NF; i++) { if ($i ~ /^passed/) p += $(i-1); if ($i ~ /^failed/) f += $(i-1); if ($i ~ /^ignored/) s += $(i-1) } } END { print p+0, f+0, s+0 }')
  read -r p f s <<<"$counts"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

# Runs an example and holds its last line against what is expected.
example() {
  local name=$1 expected=$2 out=$log/example
  shift 2
  say "example $name $*"
  cargo run --quiet --example "$name" -- "$@" </dev/null | tee "$out"
  local status=${PIPESTATUS[0]} last
  last=$(tail -n 1 "$out")
  if [ "$status" -eq 0 ] && [ "$last" = "$expected" ]; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo "FAILED: example $name ended with status $status and '$last', expected '$expected'"
  fi
}

need() { command -v "$1" >/dev/null || { echo "scripts/test.sh needs $1: $2"; exit 1; }; }
need cargo 'install Rust with rustup'
need cc 'install a C linker, such as the gcc package'
cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 ||
  rustup component add rustfmt clippy || { echo 'scripts/test.sh needs rustfmt and clippy'; exit 1; }

# What could not be started: its tests show as ignored; in CI that is a failure.
missing=()
started=()

# Runs the RabbitMQ tests on each version that is proven: all are installed first, then started, tested and stopped in turn.
rabbitmq() {
  local version script out
  # Where an address is given, they have run with all the others.
  [ -z "${RABBITMQ_URL:-}" ] || return 0
  say 'installing RabbitMQ 3.10, 4.0 and 4.3'
  # 3.10 is a package of the host, the others bootstrap with it: apt takes one at a time.
  for version in 310 40 43; do scripts/brokers/rabbitmq.sh $version install >"$log/install-$version" 2>&1 || tail -n 20 "$log/install-$version"; done
  for version in 310 40 43; do
    script="$PWD/scripts/brokers/rabbitmq.sh $version"
    out=$log/broker-$version
    if ! $script start >"$out" 2>&1; then
      tail -n 20 "$out"
      missing+=("RabbitMQ $version")
      if [ "${CI:-}" = true ]; then failed=$((failed + 1)); echo "FAILED: no RabbitMQ $version"; fi
      continue
    fi
    started+=("$script")
    tests "RabbitMQ tests on $version" env RABBITMQ_URL="$($script url)" RABBITMQ_SCRIPT="$script" \
      cargo test --no-fail-fast -p messaging-rabbitmq --tests
    $script stop
  done
}
stop_brokers() { for one in "${started[@]:-}"; do [ -z "$one" ] || $one stop >/dev/null 2>&1; done; }
trap 'stop_brokers; rm -rf "$log"' EXIT

if [ ${#packages[@]} -gt 0 ]; then
  scope=()
  for package in "${packages[@]}"; do scope+=(-p "$package"); done
  step 'formatting' cargo fmt --check "${scope[@]}"
  step 'lints' cargo clippy --all-targets "${scope[@]}" -- -D warnings
  tests 'tests' cargo test --no-fail-fast "${scope[@]}"
  case " ${packages[*]} " in *' messaging-rabbitmq '*) rabbitmq ;; esac
else
  step 'formatting' cargo fmt --all --check
  step 'lints' cargo clippy --workspace --all-targets -- -D warnings
  step 'documentation' env RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps
  tests 'tests' cargo test --workspace --no-fail-fast
  rabbitmq
  example quickstart 'sent 9, handled 4, dropped 1, dead-lettered 4, lost 0, retries 4'
  example other_container 'other_container: acme 620, globex 250, dead-lettered 1'
  example soak 'soak: confirmed 2000, handled 1980, dead-lettered 20, lost 0, duplicates 0' --messages 2000 --ledger "$log/soak.ledger"
fi

say 'summary'
[ ${#missing[@]} -eq 0 ] || echo "without a broker, and so ignored: ${missing[*]}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
