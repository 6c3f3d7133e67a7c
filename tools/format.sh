#!/bin/sh
# Formats our sources with clang-format, or with --check lists those that are not formatted, and fails.
set -eu
cd "$(dirname "$0")/.."

sources() { find apps bench src tests \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.js' \) -type f -print0; }

case "${1:-}" in
  "") sources | xargs -0 -r clang-format -i --style=file ;;
  --check)
    if ! sources | xargs -0 -r clang-format --style=file --dry-run --Werror; then
      echo "tools/format.sh: not formatted; run: make format" >&2
      exit 1
    fi ;;
  *) echo "usage: $0 [--check]" >&2; exit 2 ;;
esac
