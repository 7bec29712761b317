#!/usr/bin/env bash
# Makes the images honed and hone-worker from packaging/containers, with podman, buildah or docker:
#     scripts/containers.sh [--packages DIR]
# DIR has the Debian packages (build/packages, by scripts/package.sh). Takes root, for debootstrap.
# Without any of the three, `scripts/proof.sh containers` follows the same files in a chroot.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=build/packages
case "${1:-}" in
  "") ;;
  --packages) packages=$2 ;;
  *) echo "usage: scripts/containers.sh [--packages DIR]" >&2; exit 2 ;;
esac
ls "$packages"/honed_*.deb >/dev/null || { echo "containers.sh: no packages in $packages; run scripts/package.sh" >&2; exit 1; }
for builder in podman buildah docker none; do
  command -v "$builder" >/dev/null && "$builder" info >/dev/null 2>&1 && break
done
[ "$builder" != none ] || { echo "containers.sh: no podman, buildah or docker works here; try scripts/proof.sh containers" >&2; exit 1; }

context=build/containers
mkdir -p "$context"
cp "$packages"/*.deb "$context"
if [ ! -e "$context/root.tar" ]; then
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
  debootstrap --variant=minbase bookworm "$root"
  # LLVM 22 is in the security suite.
  echo 'deb http://deb.debian.org/debian-security bookworm-security main' >>"$root/etc/apt/sources.list"
  tar -C "$root" --one-file-system -cf "$context/root.tar" .
fi
for image in honed hone-worker; do
  "$builder" build -f "packaging/containers/$image.Containerfile" -t "$image" "$context"
done
