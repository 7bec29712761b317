#!/usr/bin/env bash
# Formats C++ files by .clang-format (clang-format 14, Debian 12's):
#     scripts/format.sh [PATH ...]        all of them without a path
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format >/dev/null || { echo "format.sh: no clang-format; run apt-get install clang-format" >&2; exit 1; }
[ $# -gt 0 ] || set -- .
find "$@" \( -name build -o -name 'build-*' -o -name .git \) -prune -o \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 -r clang-format -i
