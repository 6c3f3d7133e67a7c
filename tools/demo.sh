#!/usr/bin/env bash
# Packs the bundled model, generates a text inside a memory budget that is smaller than the model, generates it again
# without a limit, and compares the two.
#   tools/demo.sh [BUDGET]      default 32MiB; the model's weights alone are 34 MiB
set -euo pipefail
cd "$(dirname "$0")/.."

budget=${1:-32MiB}
sluice=build/sluice
model=models/fable-moe-18m
store=build/demo/fable.sluice
request=(-p "The old king looked at his daughter and said" -n 120 --seed 7)

bold="" plain=""
[[ ! -t 1 || -n ${NO_COLOR:-} ]] || bold=$'\033[1m' plain=$'\033[0m'
columns=200
{ [[ ! -t 3 ]] || columns=$(stty size <&3 | cut -d ' ' -f 2); } 3>&1  # in $( ) descriptor 1 is no terminal
((columns > 0)) || columns=80
folded() { fold -s -w "$columns" <<<"$*"; }
say() { printf '\n%s%s%s\n' "$bold" "$(folded "$*")" "$plain"; }

mkdir -p build/demo

packed() {
  [[ -e $store/manifest.json ]] || return 1
  [[ -z $(find "$model" -type f -newer "$store/manifest.json") ]] || return 1
  "$sluice" inspect "$store" >/dev/null 2>&1  # a store of another format version is made again
}

if packed; then
  say "1. $store is packed already"
else
  say "1. Packing $model; every source file can be restored from the store byte for byte"
  rm -rf "$store" "$store.partial"
  "$sluice" pack "$model" -o "$store"
fi

weights=$(stat -c %s "$model/model.safetensors")
say "2. Running it with --memory $budget, everything included; its weights alone are $((weights >> 20)) MiB"
"$sluice" run "$store" "${request[@]}" --memory "$budget" --show-experts

say "3. The same request without a limit, and once more with it"
"$sluice" run "$store" "${request[@]}" --quiet >build/demo/unlimited.txt
"$sluice" run "$store" "${request[@]}" --quiet --memory "$budget" >build/demo/limited.txt
folded "$(cat build/demo/unlimited.txt)"

say "4. Comparing the texts"
if ! cmp build/demo/limited.txt build/demo/unlimited.txt; then
  folded "They differ. That is a defect; please report it with both texts (build/demo/*.txt)."
  exit 1
fi
folded "They are equal: the budget changed how much memory was used, and no bit of the answer."
