#!/usr/bin/env bash
# Builds targets and shows how far the build is: one line that is drawn anew on a terminal, a line for each tenth
# elsewhere. Warnings, errors and the compiler's exit code come through.
#   tools/build.sh DIRECTORY JOBS [TARGET...]      without targets: all of them
set -euo pipefail

directory=$1 jobs=$2
shift 2
targets=("$@")
what=${targets[*]:-"the program and its tests"}

# A dry run of ninja would stop behind the step that makes its own files anew, so missing object files are counted.
missing=$(ninja -C "$directory" -t commands "${targets[@]}" | grep -oE ' -o [^ ]+\.o' | cut -c5- |
  while read -r object; do [[ -e $directory/$object ]] || echo "$object"; done | wc -l)
((missing < 50)) || echo "Building $what: $missing files, for which $jobs jobs take some minutes the first time."

if [[ -t 1 ]]; then
  cd "$directory"  # with -C ninja says so in a line of its own
  NINJA_STATUS="building $what: %f of %t, %p " exec ninja -j "$jobs" "${targets[@]}"
fi
NINJA_STATUS="%f/%t " ninja -C "$directory" -j "$jobs" "${targets[@]}" | awk -v what="$what" '
  /^ninja: (Entering|no work)/ { next }
  match($0, /^ *[0-9]+\/[0-9]+ /) {
    split($1, at, "/")
    tenth = int(10 * at[1] / at[2])
    if (tenth > shown) { shown = tenth; printf "building %s: %d of %d, %d %%\n", what, at[1], at[2], 10 * tenth; fflush() }
    next
  }
  { print; fflush() }'
