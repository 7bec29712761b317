#!/usr/bin/env bash
# Installs a Python wheel in a bare root of the next Debian, which has another glibc and Python, and
# takes the tour there for so many seconds; takes root and debootstrap:
#     scripts/bare_wheel.sh WHEEL SECONDS
# Says "made a bare root" where that could be made, and "installed and toured" at the end. NumPy is that
# Debian's own, so that nothing is fetched but Debian.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 2 ] || { echo "usage: scripts/bare_wheel.sh WHEEL SECONDS" >&2; exit 2; }
. scripts/bare_root.sh
suite=trixie include=python3-venv,python3-numpy
bare_root
echo "bare_wheel: made a bare root"
cp "$1" "$root/srv"
chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LC_ALL=C.UTF-8 \
  bash -euc '
  cd "$(mktemp -d)"
  ldd --version | head -1
  python3 -m venv --system-site-packages here
  here/bin/pip install --quiet --no-index /srv/hone_search-*.whl
  here/bin/python -m hone.tour --seconds "$1"
  here/bin/hone bench hone-tour/squeezenet.hone --seconds 1' bash "$2"
echo "bare_wheel: installed and toured"
