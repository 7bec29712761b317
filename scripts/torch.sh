#!/usr/bin/env bash
# Installs PyTorch for CPUs, and what exports its graphs, into a virtual environment of models.sh:
#     scripts/torch.sh VENV [PACKAGE==VERSION ...]
# Where pip has no PyTorch, or only one that brings gigabytes of CUDA, it says so and ends well: the
# tests that need PyTorch are then skipped, by name.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)

[ $# -ge 1 ] || { echo "usage: scripts/torch.sh VENV [PACKAGE==VERSION ...]" >&2; exit 2; }
venv=$1
shift
requirements=$source_dir/tests/python/torch_requirements.txt
wanted=$(cat "$requirements"; printf '%s\n' "$@")
[ "$(cat "$venv/torch.txt" 2>/dev/null)" != "$wanted" ] || exit 0

pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all:
  -r "$requirements" -c "$source_dir/tests/models/requirements.txt" "$@")
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"${pip[@]}" --dry-run --report "$report" 2>"$report.log" || {
  tail -1 "$report.log" >&2
  rm -f "$report.log"
  echo "torch.sh: pip has no PyTorch here; what needs it is skipped" >&2
  exit 0
}
rm -f "$report.log"
if grep -Eq '"name": "(nvidia|cuda|triton)' "$report"; then
  echo "torch.sh: pip would install PyTorch with CUDA; configure an index that has the CPU's (2.13.0+cpu)," \
    "or what needs PyTorch is skipped" >&2
  exit 0
fi
"${pip[@]}"
printf '%s' "$wanted" >"$venv/torch.txt"
