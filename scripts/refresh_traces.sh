#!/usr/bin/env bash
# Chooses anew the Traces of tests/models/traces, which the test `models` compiles with:
#     scripts/refresh_traces.sh [--build-dir DIR] [--trials N] [--log LOG]...
# Needed when a pass, the grouping or a primitive changed, so that kernels have another hash or a
# Trace is no longer legal. Tunes each model for a few candidates (quality does not matter), or with
# --log chooses from these logs.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/ci
trials=80
logs=()
while [ $# -gt 0 ]; do
  case "$1" in
    --build-dir) build=$2; shift 2 ;;
    --trials) trials=$2; shift 2 ;;
    --log) logs+=("$2"); shift 2 ;;
    *) echo "usage: scripts/refresh_traces.sh [--build-dir DIR] [--trials N] [--log LOG]..." >&2; exit 2 ;;
  esac
done
models=(mlp lenet5 lstm_lm squeezenet mobilenet_v2 resnet18 bert_small vgg16)
# The grouping depends on the Target; the test compiles for this one.
target=cpu:avx512,threads=2
hone=$build/bin/hone
[ -x "$hone" ] || { echo "refresh_traces.sh: no $hone; run scripts/test.sh, or say --build-dir" >&2; exit 1; }
scripts/models.sh "$build/models" "${models[@]}"

if [ ${#logs[@]} -eq 0 ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  for model in "${models[@]}"; do
    "$hone" tune "$build/models/$model.onnx" --target "$target" --trials "$trials" --db "$work/$model.db"
    logs+=("$work/$model.db")
  done
fi
arguments=()
for log in "${logs[@]}"; do arguments+=(--log "$log"); done
python3 tests/models/keep_traces.py --hone "$hone" --models "$build/models" --target "$target" \
  --out tests/models/traces "${arguments[@]}" "${models[@]}"
