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
for component in hone hone-builder hone-runner hone-worker honed libhone-runtime libhone-client \
                 libhone-dev hone-doc; do
  cmake --install "$build" --prefix "$tree" --strip --component "$component" >/dev/null
done
rm -rf "$tree/lib/systemd" "$tree/lib/sysusers.d"  # for the paths of the Debian packages
cp LICENSE "$tree"

# The libraries that the programs need, but those of glibc, which must be the machine's own.
mkdir -p "$tree/lib/hone"
programs=("$tree"/bin/* "$tree"/libexec/hone/hone-*)
client=$(find "$tree/lib" -name 'libhone_client.so.*.*.*')
ldd "${programs[@]}" "$client" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|libutil|ld-linux-x86-64)\.so\.' |
  xargs -I{} cp -L {} "$tree/lib/hone/"
chmod 644 "$tree"/lib/hone/*
# DT_RPATH and not DT_RUNPATH: it holds for what the libraries need in turn, unless one has a
# DT_RUNPATH of its own, as LLVM's does.
patchelf --force-rpath --set-rpath "\$ORIGIN" "$tree"/lib/hone/*
patchelf --force-rpath --set-rpath "\$ORIGIN/../lib/hone" "$tree"/bin/*
patchelf --force-rpath --set-rpath "\$ORIGIN/../../lib/hone" "$tree"/libexec/hone/hone-*
patchelf --force-rpath --set-rpath "\$ORIGIN/$(realpath --relative-to="$(dirname "$client")" "$tree/lib/hone")" "$client"
# The same content gives the same bytes.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$stage" -c "$name" |
  zstd -q -19 -T0 -o "$output/$name.tar.zst"

bytes=$(stat -c %s "$output/$name.tar.zst")
(cd "$output" && ls -l ./*.deb ./*.tar.zst | awk '{printf "%10.1f MB  %s\n", $5 / 1e6, $9}')
[ "$bytes" -le "$most_bytes" ] ||
  { echo "package.sh: $name.tar.zst has $bytes bytes, more than $most_bytes" >&2; exit 1; }
