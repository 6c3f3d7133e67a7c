#!/bin/sh
# Builds BigMoeOnEdge on the llama.cpp that ../llamacpp/build.sh has built, and the runner beside this script.
#   bench/peers/bigmoe/build.sh              everything goes below $SLUICE_PEERS (default: ~/.cache/sluice-peers)
# Settings: BIGMOE_REPOSITORY (URL or folder of its git repository), BIGMOE_REVISION, VERSION (of llama-cpp-python), JOBS (1).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${SLUICE_PEERS:-$HOME/.cache/sluice-peers}
repository=${BIGMOE_REPOSITORY:-https://github.com/Helldez/BigMoeOnEdge.git}
revision=${BIGMOE_REVISION:-2d4f2b11db128cbe32da738ce114c0479542f458}
llama=$cache/src/llama_cpp_python-${VERSION:-0.3.36}/vendor/llama.cpp
source=$cache/src/bigmoe-$revision

[ -d "$llama" ] || { echo "build.sh: $llama: not there; run bench/peers/llamacpp/build.sh first" >&2; exit 1; }
if [ ! -d "$source" ]; then
  [ -d "$cache/bigmoe.git" ] || git clone --quiet --bare "$repository" "$cache/bigmoe.git"
  mkdir -p "$source.partial"
  git -C "$cache/bigmoe.git" archive "$revision" core CMakeLists.txt LICENSE | tar x -C "$source.partial"
  # Drafts of a model's own head call an unstable interface, which differs here. Nothing drafts in this comparison.
  sed -i -e 's/common_speculative_process(im\.mtp\.get(), [a-z_.]*)/false/' -e '/dp\.n_past = n_past;/d' \
    "$source.partial/core/src/engine/session.cpp"
  mv "$source.partial" "$source"
fi

generator=
command -v ninja >/dev/null && generator="-G Ninja"
wait_point=
[ -d "$cache/wait-point" ] && wait_point=$cache/wait-point
# shellcheck disable=SC2086  # two words, or none
cmake -S "$here" -B "$cache/build-bigmoe" $generator -DLLAMA_SOURCE="$llama" -DBIGMOE_SOURCE="$source" -DWAIT_POINT="$wait_point" \
  >"$cache/configure-bigmoe.log" || { cat "$cache/configure-bigmoe.log" >&2; exit 1; }
nice -n 10 cmake --build "$cache/build-bigmoe" --target bigmoe-runner -j "${JOBS:-1}"
echo "$cache/build-bigmoe/bigmoe-runner${wait_point:+, which can overlap}"
