#!/usr/bin/env bash
# Runs every fuzz target for a while. New inputs grow in build/fuzz/corpus; an input that fails is kept in
# build/fuzz/failures, and belongs into tests/fuzz/corpus once the defect is mended (tools/fuzz_corpus.py add).
#   tools/fuzz.sh SECONDS [NAME...]      per target; default: all targets
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=$1
shift
programs=build/fuzz/fuzz
names=("$@")
if ((${#names[@]} == 0)); then
  for program in "$programs"/fuzz_*; do names+=("${program##*/fuzz_}"); done
fi
mkdir -p build/fuzz/failures
failed=()
for name in "${names[@]}"; do
  grown=build/fuzz/corpus/$name
  mkdir -p "$grown"
  seeds=("build/fuzz/seeds/$name")
  rm -rf "${seeds[0]}"
  tools/fuzz_corpus.py unpack "$name" "${seeds[0]}"
  [[ -d tests/fuzz/corpus/$name ]] && seeds+=("tests/fuzz/corpus/$name")
  echo "== $name, $seconds s"
  "$programs/fuzz_$name" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="build/fuzz/failures/$name-" "$grown" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1 || failed+=("$name")
  grep -E '^stat::(number_of_executed_units|average_exec)|ERROR|SUMMARY' "build/fuzz/$name.log" || true
done
if ((${#failed[@]})); then
  for name in "${failed[@]}"; do tail -n 40 "build/fuzz/$name.log"; done
  echo "fuzz targets that failed: ${failed[*]}; logs are build/fuzz/NAME.log" >&2
  exit 1
fi
echo "${#names[@]} fuzz targets, no failure"
