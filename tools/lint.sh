#!/usr/bin/env bash
# clang-tidy (checks: .clang-tidy) over our sources, with the compile commands of a build directory.
#   tools/lint.sh BUILD_DIRECTORY [FILE.cc...]      default: every .cc file of ours
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1
shift
if (($#)); then
  files=("$@")
else
  mapfile -t files < <(find apps bench src tests -name '*.cc' | sort)
fi
# Only what this build compiles can be checked with its flags.
checked=()
for file in "${files[@]}"; do
  grep -qF "$PWD/$file" "$build/compile_commands.json" && checked+=("$file")
done
echo "clang-tidy over ${#checked[@]} files"
printf '%s\0' "${checked[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy-16 -p "$build" --quiet --warnings-as-errors='*' \
  --extra-arg=-Wno-unknown-warning-option
