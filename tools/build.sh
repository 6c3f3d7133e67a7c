#!/usr/bin/env bash
# Builds targets and shows how far the build is: on a terminal one line that is drawn anew and goes at the end, elsewhere a
# line for each tenth. Warnings, errors and the compiler's exit code come through.
#   tools/build.sh DIRECTORY JOBS [TARGET...]      without targets: all of them
set -euo pipefail

directory=$1 jobs=$2
shift 2
targets=("$@")
what=${targets[*]:-"the program and its tests"}

# A dry run of ninja would stop behind the step that makes its own files anew, so missing object files tell a long build.
# Their number is not shown: the progress counts steps, which are more.
missing=$(ninja -C "$directory" -t commands "${targets[@]}" | grep -oE ' -o [^ ]+\.o' | cut -c5- |
  while read -r object; do [[ -e $directory/$object ]] || echo "$object"; done | wc -l)
((missing < 50)) || echo "Building $what: $jobs jobs take some minutes the first time."

terminal=0
[[ ! -t 1 ]] || terminal=1
NINJA_STATUS="%f/%t " ninja -C "$directory" -j "$jobs" "${targets[@]}" | awk -v what="$what" -v terminal="$terminal" '
  function clear() { if (drawn) printf "\r\033[K"; drawn = 0 }
  /^ninja: (Entering|no work)/ { next }
  match($0, /^ *[0-9]+\/[0-9]+ /) {
    split($1, at, "/")
    percent = int(100 * at[1] / at[2])
    if (terminal) {
      printf "\r\033[Kbuilding %s: step %d of %d, %d %%", what, at[1], at[2], percent
      drawn = 1
    } else if (int(percent / 10) > shown) {
      shown = int(percent / 10)
      printf "building %s: step %d of %d, %d %%\n", what, at[1], at[2], 10 * shown
    }
    fflush()
    next
  }
  { clear(); print; fflush() }
  END { clear() }'
