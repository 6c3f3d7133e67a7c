#!/bin/sh
# Replays recorded routing through the caches of docs/cache-tournament.md, one cache a layer, at 10, 25, 50 and
# 75 % of a layer's experts.
#   tools/cache_tournament.sh SLUICE TRACE:EXPERTS...
# SLUICE is the program; EXPERTS is how many a layer has, such as 64 for DeepSeek-V2-Lite.
set -eu
if [ $# -lt 2 ]; then
  sed -n '2,5s/^# *//p' "$0" >&2
  exit 2
fi
program=$1
shift
for one in "$@"; do
  experts=${one##*:}
  capacities=
  for percent in 10 25 50 75; do
    capacities=$capacities${capacities:+,}$(((experts * percent + 50) / 100))
  done
  "$program" simulate --trace "${one%:*}" --cache lru,lfu,eam,reuse,belady,belady_bypass --capacity "$capacities"
done
