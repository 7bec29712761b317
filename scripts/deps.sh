#!/usr/bin/env bash
# Installs what is missing to build (and with "test", to test) Hone on Debian 12:
#     scripts/deps.sh [build|test|package]
# This file is the one list of packages. Needs root or sudo only if something is missing.
#     scripts/deps.sh nvptx [FOLDER]
# fetches NVIDIA's PTX assembler as a library (20 MB, under NVIDIA's licence) into build/nvptx, where
# CMake looks for it. Optional: Hone builds and passes its tests without.
set -euo pipefail

build_packages=(
  g++-12 g++ cmake ninja-build pkg-config ccache mold
  llvm-22-dev liblld-22-dev zlib1g-dev libzstd-dev
  libxgboost-dev xgboost          # xgboost: its CMake file insists on the program
  libprotobuf-dev protobuf-compiler libgrpc++-dev protobuf-compiler-grpc
  libsqlite3-dev libspdlog-dev libfmt-dev libabsl-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev
  libzip-dev libseccomp-dev libssl-dev
  libmicrohttpd-dev prometheus-cpp-dev
)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev
  python3 python3-venv ca-certificates
  libonnx-testdata                # the operator cases of tests/conformance
  chromium                        # 300 MB: tests/web looks at the farm's page with it
  dpkg-dev file                   # tests/packaging makes the Debian packages
  patchelf debootstrap            # tests/python makes the wheel, and installs it in a bare root
  zsh fish                        # read the completion that we make for them
  prometheus                      # promtool checks the alerts
)
package_packages=(
  dpkg-dev file                   # read what programs need of other packages
  patchelf zstd
  python3-venv ca-certificates    # scripts/wheel.sh
)

fail() { printf 'deps.sh: %s\n' "$1" >&2; exit 1; }

# Needs Python's pip, no root.
fetch_nvptx() {
  local folder=$1 work
  work=$(mktemp -d)
  trap 'rm -rf "$work"' RETURN
  python3 -m venv "$work/venv" >"$work/log" 2>&1 &&
    "$work/venv/bin/pip" download --quiet --no-deps --only-binary :all: --dest "$work/wheel" \
      nvidia-nvptxcompiler==13.5.37 >>"$work/log" 2>&1 ||
    { tail -n 5 "$work/log" >&2; fail "cannot fetch nvidia-nvptxcompiler (see above)"; }
  mkdir -p "$folder"
  "$work/venv/bin/python" -m zipfile -e "$work"/wheel/*.whl "$folder"
  printf 'deps.sh: nvPTXCompiler is in %s; configure again to use it\n' "$folder"
}

case "${1:-build}" in
  nvptx) fetch_nvptx "${2:-$(dirname "$0")/../build/nvptx}"; exit 0 ;;
  build) wanted=("${build_packages[@]}") ;;
  test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  package) wanted=("${build_packages[@]}" "${package_packages[@]}") ;;
  *) fail "usage: scripts/deps.sh [build|test|package] or scripts/deps.sh nvptx [FOLDER]" ;;
esac

command -v dpkg-query >/dev/null ||
  fail "this is not Debian; install the equivalents of these packages by hand: ${wanted[*]}"

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null || true)
  grep -qx installed <<<"$state" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "missing packages: ${missing[*]}; run this as root, or install sudo"
  as_root=(sudo)
fi
printf 'deps.sh: installing %s\n' "${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${as_root[@]}" apt-get update >"$log" 2>&1 ||
  { tail -n 5 "$log" >&2; fail "apt-get update failed (see above); check the network and /etc/apt/sources.list"; }
apt-cache show llvm-22-dev >/dev/null 2>&1 ||
  fail "no package llvm-22-dev: LLVM 22 is in Debian 12's security suite; add 'bookworm-security main' to the apt sources"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2; fail "apt-get install failed (see above)"; }
