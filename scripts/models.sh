#!/usr/bin/env bash
# Fills the model skeletons of tests/models with seeded weights:
#     scripts/models.sh OUTDIR [NAME ...]
# Makes a Python virtual environment with pinned packages beside OUTDIR. Models that are there and
# up to date are kept; all of them take about a minute and 2.1 GB.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)

[ $# -ge 1 ] || { echo "usage: scripts/models.sh OUTDIR [NAME ...]" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for skeleton in "$source_dir"/tests/models/skeletons/*.onnx; do
    names+=("$(basename "$skeleton" .onnx)")
  done
fi

requirements=$source_dir/tests/models/requirements.txt
venv=$out/../venv
python=$venv/bin/python
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
  rm -rf "$venv"
  base_python=/usr/bin/python3
  [ -x "$base_python" ] || base_python=python3
  "$base_python" -m venv "$venv" || {
    echo "models.sh: cannot make a Python virtual environment; run scripts/deps.sh test" >&2
    exit 1
  }
  "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
    -r "$requirements" || {
    echo "models.sh: cannot install numpy, onnx and onnxruntime; check the network, or pip's configuration" >&2
    exit 1
  }
  cp "$requirements" "$venv/requirements.txt"
fi

# 22 MB for one test, which is skipped without.
manifests=$source_dir/tests/packaging/requirements.txt
if ! cmp -s "$manifests" "$venv/manifests.txt"; then
  if "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
    -c "$requirements" -r "$manifests"; then
    cp "$manifests" "$venv/manifests.txt"
  else
    echo "models.sh: cannot install kubernetes-validate: the manifests are not checked" >&2
  fi
fi

# A stamp holds the digest of all a model is made from.
todo=()
for name in "${names[@]}"; do
  skeleton=$source_dir/tests/models/skeletons/$name.onnx
  [ -f "$skeleton" ] || { echo "models.sh: no model '$name' in tests/models/skeletons" >&2; exit 2; }
  digest=$(cat "$skeleton" "$source_dir/tests/models/make_models.py" "$requirements" | sha256sum)
  [ -f "$out/$name.expected.npz" ] && [ "$(cat "$out/$name.stamp" 2>/dev/null)" = "$digest" ] && continue
  rm -f "$out/$name.stamp"
  todo+=("$name")
done
[ ${#todo[@]} -gt 0 ] || exit 0
free_kib=$(df -Pk "$out" | awk 'NR == 2 {print $4}')
[ "$free_kib" -ge 3000000 ] || [ ${#todo[@]} -le 3 ] || {
  echo "models.sh: $out has $((free_kib / 1024)) MiB free; the models need 2.1 GB and some room" >&2
  exit 1
}
"$python" "$source_dir/tests/models/make_models.py" "$out" "${todo[@]}"
for name in "${todo[@]}"; do
  cat "$source_dir/tests/models/skeletons/$name.onnx" "$source_dir/tests/models/make_models.py" \
    "$requirements" | sha256sum >"$out/$name.stamp"
done
