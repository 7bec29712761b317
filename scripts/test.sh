#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test:
#     scripts/test.sh [--preset ci] [--build-dir DIR] [--only REGEX]
# The last line is "N passed, N failed", counting GoogleTest cases. --only runs the CTest entries
# that match and says so; everything else is as in .ci/run.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=ci
build=
only=
while [ $# -gt 0 ]; do
  case "$1" in
    --preset) preset=$2; shift 2 ;;
    --build-dir) build=$2; shift 2 ;;
    --only) only=$2; shift 2 ;;
    *) echo "usage: scripts/test.sh [--preset NAME] [--build-dir DIR] [--only REGEX]" >&2; exit 2 ;;
  esac
done
build=${build:-build/$preset}

started=$SECONDS
stage() { printf '== %s (%d s)\n' "$1" $((SECONDS - started)); }

stage "packages"
scripts/deps.sh test

stage "configure"
mkdir -p "$build"
log=$build/configure.log
cmake --preset "$preset" -B "$build" >"$log" 2>&1 ||
  { cat "$log"; echo "test.sh: CMake failed (see above)" >&2; exit 1; }

# With ccache every checkout shares what another has compiled.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}

stage "build"
jobs=$(scripts/jobs.sh)
quiet=(-- --quiet)
[ ! -t 1 ] || quiet=()
cmake --build "$build" -j "$jobs" "${quiet[@]}" || {
  echo "test.sh: the build failed (see above)" >&2
  exit 1
}

stage "models"
scripts/models.sh "$build/models"
scripts/torch.sh "$build/venv"
scripts/cases.sh "$build"

stage "tests"
rm -rf "$build/test-results"
mkdir -p "$build/test-results"
select=()
[ -z "$only" ] || select=(-R "$only")
status=0
ctest --test-dir "$build" -j "$(nproc)" --output-on-failure --no-tests=error \
  --output-junit "test-results.junit.xml" "${select[@]}" || status=$?

stage "done"
# Prints the last line and fails if a case failed or none ran.
/usr/bin/env python3 scripts/count_tests.py "$build" "$status"
