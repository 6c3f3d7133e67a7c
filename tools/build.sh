#!/usr/bin/env bash
# Builds targets and shows how far the build is: one line that is drawn anew on a terminal, a line for each tenth
# elsewhere. Warnings, errors and the compiler's exit code come through.
#   tools/build.sh DIRECTORY JOBS [TARGET...]      without targets: all of them
set -euo pipefail

directory=$1 jobs=$2
shift 2
targets=("$@")
what=${targets[*]:-"the program and its tests"}

ninja -C "$directory" build.ninja >/dev/null  # else the first step is that, and nothing behind it is counted
steps=$(ninja -C "$directory" -n "${targets[@]}" | sed -nE 's|^\[[0-9]+/([0-9]+)\].*|\1|p' | tail -1)
[[ -n $steps ]] || exit 0  # everything is up to date
[[ $steps -lt 50 ]] || echo "Building $what: $steps steps, for which $jobs jobs take some minutes the first time."

if [[ -t 1 ]]; then
  NINJA_STATUS="building $what: %f of %t, %p " exec ninja -C "$directory" -j "$jobs" "${targets[@]}"
fi
NINJA_STATUS="%f/%t " ninja -C "$directory" -j "$jobs" "${targets[@]}" | awk -v what="$what" '
  /^ninja: Entering/ { next }
  match($0, /^ *[0-9]+\/[0-9]+ /) {
    split($1, at, "/")
    tenth = int(10 * at[1] / at[2])
    if (tenth > shown) { shown = tenth; printf "building %s: %d of %d, %d %%\n", what, at[1], at[2], 10 * tenth; fflush() }
    next
  }
  { print; fflush() }'
