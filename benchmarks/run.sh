#!/usr/bin/env bash
# Runs the benchmarks of one broker: builds, prints the tables, then a line for each budget.
#
#   run.sh memory [--quick]
#
# Ends with 1 when a budget is over. Each broker has a script of its own, <broker>/run.sh. See README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
broker=${1:-}
if [[ ! $broker =~ ^[a-z]+$ || ! -x $here/$broker/run.sh ]]; then
  echo "usage: run.sh BROKER [--quick], where BROKER is one of:$(cd "$here" && printf ' %s' */run.sh | sed 's|/run.sh||g')" >&2
  exit 2
fi
shift
exec "$here/$broker/run.sh" "$@"
