#!/usr/bin/env bash
# Installs components of a build into a folder that works wherever it lies, with every library that
# the programs need but glibc's, which must be the machine's own (for package.sh and wheel.sh):
#     scripts/relocatable.sh [--whole-builder] BUILD FOLDER COMPONENT ...
# --whole-builder takes the hone-builder that has those parts of LLVM in it that it needs (CMake's
# target hone-builder-whole), in place of the one that shares a library of 140 MB with nobody.
set -euo pipefail
cd "$(dirname "$0")/.."

whole=""
if [ "${1:-}" = --whole-builder ]; then
  whole=yes
  shift
fi
[ $# -ge 3 ] || { echo "usage: scripts/relocatable.sh [--whole-builder] BUILD FOLDER COMPONENT ..." >&2; exit 2; }
build=$1
tree=$2
shift 2
for component; do
  cmake --install "$build" --prefix "$tree" --strip --component "$component" >/dev/null
done
[ -z "$whole" ] || strip -o "$tree/libexec/hone/hone-builder" "$build/bundle/hone-builder"
cp LICENSE "$tree"

mkdir -p "$tree/lib/hone"
programs=("$tree"/bin/* "$tree"/libexec/hone/hone-*)
while IFS= read -r library; do
  programs+=("$library")
done < <(find "$tree/lib" -name 'libhone_client.so.*.*.*')
ldd "${programs[@]}" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|libutil|ld-linux-x86-64)\.so\.' |
  xargs -I{} cp -L {} "$tree/lib/hone/"
chmod 644 "$tree"/lib/hone/*
# DT_RPATH and not DT_RUNPATH: it holds for what the libraries need in turn, unless one has a
# DT_RUNPATH of its own, as LLVM's does.
patchelf --force-rpath --set-rpath "\$ORIGIN" "$tree"/lib/hone/*
for program in "${programs[@]}"; do
  beside=$(realpath --relative-to="$(dirname "$program")" "$tree/lib/hone")
  patchelf --force-rpath --set-rpath "\$ORIGIN/$beside" "$program"
done
