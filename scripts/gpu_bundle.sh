#!/usr/bin/env bash
# Makes what travels to a machine with a GPU, in build/bundle:
#     scripts/gpu_bundle.sh [--build-dir DIR] [--output DIR] [--fast]
# One archive of at most 48 MB, hone-gpu.tar.xz: hone with its helpers and every library they need,
# the C library too, so that it starts on any x86-64 Linux; models without weights, operator cases,
# gpu_check.sh. --build-dir takes a folder that is configured already in place of a new one of
# preset release; --fast leaves the operator cases out and compresses little. There:
#     tar xJf hone-gpu.tar.xz && hone-gpu/gpu_check.sh
set -euo pipefail
cd "$(dirname "$0")/.."

build=""
output=build/bundle
fast=""
most_bytes=48000000
while [ $# -gt 0 ]; do
  case "$1" in
    --build-dir) build=$2; shift 2 ;;
    --output) output=$2; shift 2 ;;
    --fast) fast=yes; shift ;;
    *) echo "usage: scripts/gpu_bundle.sh [--build-dir DIR] [--output DIR] [--fast]" >&2; exit 2 ;;
  esac
done
if [ -z "$build" ]; then
  scripts/deps.sh test
  build=build/release
  cmake --preset release -B "$build" -DHONE_BUILD_TESTS=ON  # operator cases and truth tables are in tests/
  scripts/models.sh "$build/models" mlp  # for its Python packages
fi
flock "$build/CMakeCache.txt" cmake --build "$build" -j "$(scripts/jobs.sh)" \
  --target hone hone-runner hone-builder-whole gpu-cases gpu-truth bundle-start -- --quiet

mkdir -p "$output"
tree=$output/hone-gpu
rm -rf "$tree"
mkdir -p "$tree"/{bin,libexec/hone,lib/programs,models,cases}

programs=("$build"/bin/hone "$build"/bundle/{gpu-cases,gpu-truth,hone-builder} "$build"/libexec/hone/hone-runner)
for program in "${programs[@]}"; do
  name=$(basename "$program")
  strip -o "$tree/lib/programs/$name" "$program"
done
strip -o "$tree/bin/hone" "$build/bundle/bundle-start"
for name in bin/gpu-cases bin/gpu-truth libexec/hone/hone-builder libexec/hone/hone-runner; do
  ln "$tree/bin/hone" "$tree/$name"
done

# Libraries, those of glibc among them; libdl, libpthread, librt and libutil are empty in it, but a
# driver asks for them by name, and another glibc's do not fit.
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\/.*ld-linux/ {print $1}' |
  sort -u | xargs -I{} cp -L {} "$tree/lib/"
libc=$(ldd "$build/bin/hone" | awk '$1 == "libc.so.6" {print $3}')
for name in libdl.so.2 libpthread.so.0 librt.so.1 libutil.so.1 libresolv.so.2; do
  cp -L "$(dirname "$libc")/$name" "$tree/lib/"
done
chmod 755 "$tree"/lib/*.so*
strip --strip-unneeded "$tree"/lib/*.so.[0-9]* 2>/dev/null || true

cp -r tests/models/skeletons tests/models/make_models.py "$tree/models"
cp scripts/gpu_check.sh scripts/gpu_check.py scripts/gpu_peers.py "$tree"
cp LICENSE docs/GPU.md "$tree"
[ -x "$build/venv/bin/python" ] ||
  { echo "gpu_bundle.sh: there is no $build/venv; scripts/models.sh $build/models mlp makes it" >&2; exit 1; }
"$build/venv/bin/python" tests/gpu/make_kernels.py "$tree/kernels"
if [ -z "$fast" ]; then
  scripts/cases.sh "$build"
  packaged=/usr/share/libonnx-testdata/data
  [ -d "$packaged" ] && cp -r "$packaged" "$tree/cases/packaged"
  for suite in node random network; do cp -r "$build/${suite}_cases" "$tree/cases/$suite"; done
fi
# What stands in the results: which Hone this is.
git describe --always --dirty >"$tree/version" 2>/dev/null || echo unknown >"$tree/version"

# The same content gives the same bytes.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$output" -c hone-gpu |
  xz -T0 "$([ -n "$fast" ] && echo -0 || echo -6)" >"$output/hone-gpu.tar.xz"
bytes=$(stat -c %s "$output/hone-gpu.tar.xz")
printf '%s: %d.%d MB\n' "$output/hone-gpu.tar.xz" $((bytes / 1000000)) $((bytes % 1000000 / 100000))
[ "$bytes" -le "$most_bytes" ] ||
  { echo "gpu_bundle.sh: the archive has $bytes bytes, more than $most_bytes" >&2; exit 1; }
