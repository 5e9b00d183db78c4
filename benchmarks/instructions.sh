#!/usr/bin/env bash
# Counts the instructions of a message, by callgrind: a figure that the load of the machine does not move.
#
#   instructions.sh               ours, held against memory/instructions.limits
#   instructions.sh CASE...       any cases of the table, peers among them; held against nothing
#
# A message costs (14,000 messages - 12,000 messages) / 2,000, so that start cancels out, and so do the first 10,000
# messages, which the memory driver records; draining costs what a whole run does less what one does that ends when all
# is published. Needs valgrind. Ends with an error when a budget is over.
#
# Why a script and no harness: gungraun, which succeeds iai-callgrind, needs its runner installed by `cargo install`, which
# takes more than three minutes of two cores; and it would leave the differences to be taken by us all the same.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
few=12000 many=14000
limits=memory/instructions.limits
target=${CARGO_TARGET_DIR:-target}
command -v valgrind >/dev/null || { echo 'instructions.sh needs valgrind: apt-get install -y valgrind' >&2; exit 1; }

features=()
cases=("$@")
if [ $# -gt 0 ]; then features=(--features peers); else cases=(ours-singleton ours-scoped); fi
cargo build --quiet --release "${features[@]}" --bin once

# All instructions of one process.
count() {
  local report
  report=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$target/release/once" "$@" 2>&1) || {
    echo "$report" >&2
    return 1
  }
  awk '/Collected/ { print $4 }' <<<"$report"
}

over=0 measured=()
printf '| case | publish instructions | drain instructions |\n|---|---|---|\n'
for case in "${cases[@]}"; do
  # Each in a statement of its own: a count that fails ends the script.
  publish_few=$(count "$case" $few --publish-only)
  publish_many=$(count "$case" $many --publish-only)
  all_few=$(count "$case" $few)
  all_many=$(count "$case" $many)
  publish=$(((publish_many - publish_few) / (many - few)))
  drain=$(((all_many - all_few) / (many - few) - publish))
  printf '| %s | %d | %d |\n' "$case" "$publish" "$drain"
  measured+=("$drain")
done
[ $# -eq 0 ] || exit 0

echo
for index in "${!cases[@]}"; do
  name=${cases[index]#ours-}
  limit=$(awk -v name="$name" '$1 == name { print $2 }' "$limits")
  [ "$limit" ] || { echo "$limits has no limit for $name" >&2; exit 1; }
  verdict=ok
  [ "${measured[index]}" -le "$limit" ] || { verdict=over; over=1; }
  echo "budget instructions-$name ${measured[index]} <= $limit $verdict"
done
exit $over
