#!/bin/sh
# Checks and measures Hone on a machine with a GPU, from the folder that gpu_bundle.sh packed:
#     ./gpu_check.sh [PART...] [--help]
# Needs NVIDIA's driver and a python3; everything else it uses where it is there.
command -v python3 >/dev/null ||
  { echo "gpu_check.sh: there is no python3; without it run bin/hone by hand" >&2; exit 2; }
exec python3 "$(dirname "$0")/gpu_check.py" "$@"
