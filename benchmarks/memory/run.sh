#!/usr/bin/env bash
# The memory broker: the library beside its peers, growth, resident memory, instructions. Called by ../run.sh.
#
#   --quick   fewer messages and rounds, no resident memory of ten million messages
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
quick=
case ${1:-} in
  '') ;;
  --quick) quick=1 ;;
  *) echo "run.sh memory: no such option: $1" >&2; exit 2 ;;
esac

target=${CARGO_TARGET_DIR:-target}
cargo build --quiet --release --features peers

output=$(mktemp)
trap 'rm -f "$output"' EXIT
# The tables at once, the budgets at the end.
part() {
  "$@" | tee -a "$output" | sed -u '/^budget /d'
}

# Quick: only the settings that have budgets.
part "$target/release/throughput" ${quick:+--messages 50000 --runtime ct --concurrency 1}
part "$target/release/growth" ${quick:+--quick}
[ "$quick" ] || part "$target/release/flat"
# Its exit status says that a budget is over, which its line says too; that it could not count is told by a line missing.
part ./instructions.sh || true

grep '^budget ' "$output" || true
status=0
expected=(memory-singleton memory-scoped allocations-singleton allocations-scoped growth-handlers growth-providers
  growth-queues instructions-singleton instructions-scoped)
[ "$quick" ] || expected+=(memory-rss-10m)
for name in "${expected[@]}"; do
  grep -q "^budget $name .* ok$" "$output" && continue
  status=1
  grep -q "^budget $name " "$output" || echo "budget $name was not measured"
done
exit $status
