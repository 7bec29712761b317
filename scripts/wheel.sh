#!/usr/bin/env bash
# Makes the Python wheel, with the programs and libraries of a build, in build/packages:
#     scripts/wheel.sh [--build-dir DIR] [--output DIR]
# --build-dir takes a folder that is built already in place of a new one of preset release.
set -euo pipefail
cd "$(dirname "$0")/.."

build=""
output=build/packages
most_bytes=60000000
while [ $# -gt 0 ]; do
  case "$1" in
    --build-dir) build=$2; shift 2 ;;
    --output) output=$2; shift 2 ;;
    *) echo "usage: scripts/wheel.sh [--build-dir DIR] [--output DIR]" >&2; exit 2 ;;
  esac
done

{ command -v patchelf && /usr/bin/python3 -c 'import ensurepip'; } >/dev/null 2>&1 ||
  scripts/deps.sh package
if [ -z "$build" ]; then
  scripts/deps.sh package
  build=build/release
  cmake --preset release -B "$build"
  cmake --build "$build" -j "$(scripts/jobs.sh)"
fi
# Tests make the wheel and the bundle of one build beside each other.
flock "$build/CMakeCache.txt" \
  cmake --build "$build" -j "$(scripts/jobs.sh)" --target hone-builder-whole -- --quiet

venv=build/wheel-venv
python=$venv/bin/python
tools=(scikit-build-core==1.1.2 auditwheel==6.8.2 packaging==26.3)
if [ "$(cat "$venv/tools" 2>/dev/null)" != "${tools[*]}" ]; then
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv" &&
    "$python" -m pip install --quiet --disable-pip-version-check "${tools[@]}" ||
    { echo "wheel.sh: cannot install ${tools[*]}; check the network, or pip's configuration" >&2; exit 4; }
  echo "${tools[*]}" >"$venv/tools"
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
scripts/relocatable.sh --whole-builder "$build" "$stage/tree" hone hone-builder hone-runner \
  hone-worker libhone-runtime
# A wheel has no links; the module, pages and units have other places.
library=$(find "$stage/tree/lib" -name 'libhone_runtime.so.*.*.*')
mv "$library" "$stage/libhone_runtime.so.0"
rm -rf "$stage"/tree/lib/{systemd,sysusers.d,python3,x86_64-linux-gnu,libhone_runtime.so*} "$stage/tree/share"
mv "$stage/libhone_runtime.so.0" "$stage/tree/lib"
cp -r python "$stage/python"
find "$stage/python" -name __pycache__ -prune -exec rm -rf {} +

"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --config-settings="cmake.define.HONE_TREE=$stage/tree" --wheel-dir "$stage/made" "$stage/python"
# What glibc does not have lies inside; auditwheel looks, and names the oldest that will do.
"$python" -m auditwheel show "$stage"/made/*.whl >"$stage/audit" 2>&1 || true
grep -q 'consistent with the following platform tag: "manylinux_2_36_x86_64"' \
  <(tr '\n' ' ' <"$stage/audit" | tr -s ' ') ||
  { cat "$stage/audit" >&2; echo "wheel.sh: the wheel needs what its tag does not promise (above)" >&2; exit 1; }
mkdir -p "$output"
rm -f "$output"/hone_search-*.whl
mv "$stage"/made/*.whl "$output"

wheel=$(echo "$output"/hone_search-*.whl)
bytes=$(stat -c %s "$wheel")
awk -v bytes="$bytes" -v name="$wheel" 'BEGIN {printf "%10.1f MB  %s\n", bytes / 1e6, name}'
[ "$bytes" -le "$most_bytes" ] ||
  { echo "wheel.sh: $wheel has $bytes bytes, more than $most_bytes" >&2; exit 1; }
