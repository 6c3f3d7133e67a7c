#!/bin/sh
# A synthetic model in both forms, below $SLUICE_PEERS/models: NAME.sluice, packed, and NAME.gguf, with the same weights.
#   bench/peers/llamacpp/prepare.sh CONFIG.json NAME [options of sluice synth: --layers 4 --embedding-scale 64]
# Never more than two copies lie on the disk: while the GGUF file is written, what it is made of is removed.
set -eu

root=$(cd "$(dirname "$0")/../../.." && pwd)
sluice=${SLUICE:-$root/build/sluice}
cache=${SLUICE_PEERS:-$HOME/.cache/sluice-peers}
[ $# -ge 2 ] || { echo "prepare.sh: expected CONFIG.json NAME [options of sluice synth]" >&2; exit 2; }
[ -x "$sluice" ] || { echo "prepare.sh: $sluice: not there; build it, or say SLUICE=PROGRAM" >&2; exit 1; }
config=$1
name=$cache/models/$2
shift 2

mkdir -p "$cache/models"
"$sluice" synth "$config" -o "$name" "$@"
"$sluice" pack "$name" -o "$name.sluice" --codec native
"$cache/venv/bin/python" "$root/tools/write_gguf.py" "$name" "$name.gguf" --consume
rm -r "$name"
