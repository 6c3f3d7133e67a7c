#!/bin/sh
# Builds llama.cpp, from the source package of llama-cpp-python on PyPI, and the runner beside this script.
#   bench/peers/llamacpp/build.sh            everything goes below $SLUICE_PEERS (default: ~/.cache/sluice-peers)
# Settings: VERSION (of llama-cpp-python), JOBS (1: half an hour; more is faster).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${SLUICE_PEERS:-$HOME/.cache/sluice-peers}
version=${VERSION:-0.3.36}
package=llama_cpp_python-$version

mkdir -p "$cache/sdist" "$cache/src"
[ -x "$cache/venv/bin/pip" ] || python3 -m venv "$cache/venv"
"$cache/venv/bin/python" -c "import gguf" 2>/dev/null || "$cache/venv/bin/pip" install --quiet gguf numpy
[ -f "$cache/sdist/$package.tar.gz" ] ||
  "$cache/venv/bin/pip" download --quiet --no-deps --no-binary llama-cpp-python "llama-cpp-python==$version" -d "$cache/sdist"
[ -d "$cache/src/$package" ] || tar xzf "$cache/sdist/$package.tar.gz" -C "$cache/src"

generator=
command -v ninja >/dev/null && generator="-G Ninja"
# shellcheck disable=SC2086  # two words, or none
cmake -S "$here" -B "$cache/build" $generator -DLLAMA_SOURCE="$cache/src/$package/vendor/llama.cpp" >"$cache/configure.log" ||
  { cat "$cache/configure.log" >&2; exit 1; }
nice -n 10 cmake --build "$cache/build" --target llama-runner -j "${JOBS:-1}"
echo "$cache/build/llama-runner"
