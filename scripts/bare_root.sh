#!/usr/bin/env bash
# Root folders for scripts/proof.sh and scripts/bare_wheel.sh, which read this file: bare_root makes one, drop_root ends it.
root="" keep=no
drop_root() {
  trap - EXIT
  umount -q "$root/proc" "$root/sys" "$root/dev" || true
  [ "$keep" = yes ] || rm -rf --one-file-system "$root"
}

# Makes a bare Debian 12 (or $suite) in $root, which is removed at the end unless $keep is yes, with
# $include, the package sources of this machine and what else the arguments name.
suite=bookworm include=""
bare_root() {
  [ "$(id -u)" -eq 0 ] || { echo "bare_root: this takes root, for a root folder of its own" >&2; return 1; }
  command -v debootstrap >/dev/null ||
    { echo "bare_root: no debootstrap; run apt-get install debootstrap" >&2; return 1; }
  local mirror path debian_sources=()
  mirror=$(grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
           grep -E '/debian/?$' | head -n 1 || true)
  mirror=${mirror:-http://deb.debian.org/debian}
  wget --quiet --tries=1 --timeout=20 -O /dev/null "$mirror/dists/$suite/InRelease" ||
    { echo "bare_root: $mirror does not answer; check the network and the sources of apt" >&2; return 1; }
  root=$(mktemp -d "${TMPDIR:-/tmp}/chroot-XXXXXX")
  chmod 755 "$root"  # tests act as nobody, who must be able to reach "/"
  trap drop_root EXIT
  debootstrap --variant=minbase ${include:+"--include=$include"} "$suite" "$root" "$mirror"
  rm -f "$root"/etc/apt/sources.list
  for path in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    # Not those of other vendors: their keys are not in the fresh system.
    if grep -qE 'https?://[^ ]+/debian' "$path" 2>/dev/null; then debian_sources+=("$path"); fi
  done
  for path in "${debian_sources[@]}" /etc/apt/apt.conf.d /etc/resolv.conf /etc/pip.conf \
              /etc/ssl/certs /usr/local/share/ca-certificates \
              /usr/share/keyrings "$@"; do
    [ -e "$path" ] || continue
    mkdir -p "$root$(dirname "$path")"
    cp -rL --remove-destination "$path" "$root$(dirname "$path")/"
  done
  mount -t proc proc "$root/proc"
  mount --bind /sys "$root/sys"
  mount --bind /dev "$root/dev"
}
