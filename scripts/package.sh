#!/usr/bin/env bash
# Makes what users install, in build/packages:
#     scripts/package.sh [--build-dir DIR] [--output DIR]
# Debian packages (packaging/debian.cmake says which), and hone-VERSION-x86_64.tar.zst for other
# distributions with glibc 2.36 or later: unpack it anywhere; it brings every library but glibc's.
# --build-dir takes a folder that is built already in place of a new one of preset release.
set -euo pipefail
cd "$(dirname "$0")/.."

build=""
output=build/packages
most_bytes=80000000
while [ $# -gt 0 ]; do
  case "$1" in
    --build-dir) build=$2; shift 2 ;;
    --output) output=$2; shift 2 ;;
    *) echo "usage: scripts/package.sh [--build-dir DIR] [--output DIR]" >&2; exit 2 ;;
  esac
done

scripts/deps.sh package
if [ -z "$build" ]; then
  build=build/package
  # Units name their programs by whole paths.
  cmake --preset release -B "$build" -DCMAKE_INSTALL_PREFIX=/usr
  cmake --build "$build" -j "$(scripts/jobs.sh)"
fi
mkdir -p "$output"
output=$(cd "$output" && pwd)
rm -f "$output"/*.deb "$output"/*.tar.zst

cpack --config "$build/CPackConfig.cmake" -G DEB -B "$output/cpack" >"$output/cpack.log" 2>&1 ||
  { tail -n 20 "$output/cpack.log" >&2; exit 1; }
mv "$output"/cpack/*.deb "$output"
rm -rf "$output/cpack"

version=$(sed -n 's/^set(CPACK_PACKAGE_VERSION "\(.*\)")$/\1/p' "$build/CPackConfig.cmake")
name=hone-$version-x86_64
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tree=$stage/$name
scripts/relocatable.sh "$build" "$tree" hone hone-builder hone-runner hone-worker honed \
  libhone-runtime libhone-client libhone-dev hone-doc
rm -rf "$tree/lib/systemd" "$tree/lib/sysusers.d"  # for the paths of the Debian packages
# The same content gives the same bytes.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$stage" -c "$name" |
  zstd -q -19 -T0 -o "$output/$name.tar.zst"

bytes=$(stat -c %s "$output/$name.tar.zst")
(cd "$output" && ls -l ./*.deb ./*.tar.zst | awk '{printf "%10.1f MB  %s\n", $5 / 1e6, $9}')
[ "$bytes" -le "$most_bytes" ] ||
  { echo "package.sh: $name.tar.zst has $bytes bytes, more than $most_bytes" >&2; exit 1; }
