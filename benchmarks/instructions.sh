#!/usr/bin/env bash
# Counts the instructions of a message, by callgrind: a figure that the load of the machine does not move.
#
#   instructions.sh               ours, held against memory/instructions.limits; what CI runs
#   instructions.sh CASE...       any cases of the table, peers among them; held against nothing
#
# A message costs (2M messages - M messages) / M, so that start and stop cancel out; draining costs what a whole run does
# less what one does that ends when all is published. Needs valgrind. Ends with an error when a budget is over.
#
# Why a script and no harness: gungraun, which succeeds iai-callgrind, needs its runner installed by `cargo install`, which
# takes more than three minutes of two cores; and it would leave the differences to be taken by us all the same.
set -euo pipefail
cd "$(dirname "$0")"
messages=${MESSAGES:-1000}
limits=memory/instructions.limits
command -v valgrind >/dev/null || { echo 'instructions.sh needs valgrind: apt-get install -y valgrind'; exit 1; }

features=()
cases=("$@")
if [ $# -gt 0 ]; then features=(--features peers); else cases=(ours-singleton ours-scoped); fi
cargo build --quiet --release "${features[@]}" --bin once

# All instructions of one process.
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/once "$@" 2>&1 | awk '/Collected/ { print $4 }'
}

over=0 measured=()
printf '| case | publish | drain |\n|---|---|---|\n'
for case in "${cases[@]}"; do
  # Each in a statement of its own: a count that fails ends the script.
  publish_one=$(count "$case" "$messages" --publish-only)
  publish_two=$(count "$case" $((2 * messages)) --publish-only)
  one=$(count "$case" "$messages")
  two=$(count "$case" $((2 * messages)))
  publish=$(((publish_two - publish_one) / messages))
  drain=$(((two - one) / messages - publish))
  printf '| %s | %d | %d |\n' "$case" "$publish" "$drain"
  measured[${#measured[@]}]=$drain
done
[ $# -eq 0 ] || exit 0

echo
for index in "${!cases[@]}"; do
  name=${cases[index]#ours-}
  limit=$(awk -v name="$name" '$1 == name { print $2 }' "$limits")
  verdict=ok
  [ "${measured[index]}" -le "$limit" ] || { verdict=over; over=1; }
  echo "budget instructions-$name ${measured[index]} <= $limit $verdict"
done
exit $over
