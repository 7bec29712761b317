#!/usr/bin/env bash
# Proofs that take longer than scripts/test.sh:
#     scripts/proof.sh NAME [OPTIONS]     (without a name: the list)
set -euo pipefail
cd "$(dirname "$0")/.."

# Every proof is a function proof_NAME whose first line of help stands here.
declare -A about=(
  [asan]="every test under the address and undefined-behaviour sanitizers"
  [memory]="compiles 10 GB of weights within 1.3 x their size, pages of files among it: [--gigabytes G]"
  [models]="tunes every model of tests/models and times it beside ONNX Runtime: [--seconds N] [MODEL]..."
  [mutate]="breaks lines of the lowering in turn; each must fail a test: [--only WORD]..."
  [tsan]="the tests of our own thread code (label threads) under the thread sanitizer"
  [quantise]="int8 models of hone quantize beside ONNX Runtime's static quantiser, and trained networks: [--without-digits] [MODEL]..."
  [packages]="the Debian packages and the archive, each installed, used and removed in a bare root: [--build-dir DIR | --made]"
  [torch]="torch.compile: every network and every operator of PyTorch's samples beside eager: [--write]"
  [wheel]="the Python wheel in a bare root of the next Debian, which has another glibc and Python: [--build-dir DIR | --made]"
  [containers]="the Containerfiles, followed in a chroot, with packages of build/packages"
  [chroot]="quickstart.sh and test.sh in a fresh Debian 12: [--copy PATH]... [--keep] [--only quickstart|test]"
)

# The sanitized build of preset $1, tests chosen by the CTest arguments that follow, counted.
sanitized() {
  local preset=$1
  shift
  local build=build/$preset status=0
  scripts/deps.sh test
  cmake --preset "$preset" -B "$build"
  # The programs of the tests that are asked for; without a test that is a script, which needs all.
  local programs
  programs=$(ctest --test-dir "$build" -N --show-only=json-v1 "$@" |
    python3 scripts/test_programs.py "$build")
  # shellcheck disable=SC2086
  cmake --build "$build" -j "$(scripts/jobs.sh)" ${programs:+--target $programs}
  scripts/models.sh "$build/models"
  scripts/cases.sh "$build"
  rm -rf "$build/test-results"
  mkdir -p "$build/test-results"
  ctest --test-dir "$build" -j "$(nproc)" --output-on-failure --no-tests=error \
    --output-junit test-results.junit.xml "$@" || status=$?
  python3 scripts/count_tests.py "$build" "$status"
}

proof_asan() {
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  sanitized asan -LE speed
}

proof_tsan() {
  # Libraries that are not instrumented (LLVM, XGBoost's OpenMP) would report false races; what the
  # sanitizer is told stands in cmake/HoneBuild.cmake.
  local reports=$PWD/build/tsan/reports status=0
  rm -rf "$reports"
  mkdir -p "$reports"
  sanitized tsan -L threads || status=$?
  python3 scripts/tsan_reports.py "$reports" || {
    echo "proof.sh tsan: races were reported; see build/tsan/reports" >&2
    return 1
  }
  return "$status"
}

# Two minutes a model unless told otherwise; the log stays for the next run, the table is printed
# and kept in build/release/models.md. The machine should have nothing else to do.
proof_models() {
  local seconds=120 names=()
  while [ $# -gt 0 ]; do
    case "$1" in
      --seconds) seconds=$2; shift 2 ;;
      *) names+=("$1"); shift ;;
    esac
  done
  scripts/deps.sh test
  cmake --preset release
  cmake --build build/release -j "$(scripts/jobs.sh)"
  scripts/models.sh build/release/models
  local hone=build/release/bin/hone log=build/release/models.db files=() path
  if [ ${#names[@]} -eq 0 ]; then
    for path in build/release/models/*.onnx; do names+=("$(basename "$path" .onnx)"); done
  fi
  for path in "${names[@]}"; do
    files+=("build/release/models/$path.onnx")
    "$hone" tune "build/release/models/$path.onnx" --db "$log" --seconds "$seconds" --threads 2
  done
  local bench="$hone bench {model} --threads {threads} --seconds {seconds} --json"
  build/release/venv/bin/python bench/peers/bench_peers.py "${files[@]}" --threads 2 \
    --engines onnxruntime --external "default=$bench --no-log" --external "tuned=$bench --db $log" \
    --markdown build/release/models.md
  cat build/release/models.md
}

# Weights in a sparse file under build/release; the disk must have room for three times as many bytes.
proof_memory() {
  scripts/deps.sh test
  cmake --preset release
  cmake --build build/release -j "$(scripts/jobs.sh)" --target hone hone-builder
  python3 tests/client/compile_memory_test.py --hone build/release/bin/hone --folder build/release \
    --gigabytes 10 "$@"
}

# In a copy under build/mutate, which stays for the next run.
proof_mutate() {
  scripts/deps.sh test
  python3 tests/mutate/mutate.py --source . --work build/mutate --jobs "$(scripts/jobs.sh)" "$@"
}

. scripts/bare_root.sh
. scripts/python_proofs.sh

# A fresh system from this machine's own package sources, with the committed tree in /root/hone.
proof_chroot() {
  local copies=() only=all
  while [ $# -gt 0 ]; do
    case "$1" in
      --copy) copies+=("$2"); shift 2 ;;
      --keep) keep=yes; shift ;;
      --only) only=$2; shift 2 ;;
      *) echo "proof.sh chroot: unknown option $1" >&2; return 2 ;;
    esac
  done
  bare_root "${copies[@]}"
  mkdir -p "$root/root/hone"
  git archive HEAD | tar x -C "$root/root/hone"
  local clean=(env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb)
  if [ "$only" != test ]; then
    chroot "$root" "${clean[@]}" bash -c 'cd /root/hone && time scripts/quickstart.sh'
    chroot "$root" "${clean[@]}" bash -c 'cd /root/hone && time scripts/quickstart.sh --seconds 20'
  fi
  if [ "$only" != quickstart ]; then
    chroot "$root" "${clean[@]}" bash -c 'cd /root/hone && time scripts/test.sh'
  fi
}

# What every installed Hone must do; $1 is the command, $2 the folder of its programs.
use_in_root() {
  chroot "$root" "${clean[@]}" bash -euc '
    hone=$1; cd "$(mktemp -d)"
    "$hone" version; "$2/honed" --version; "$2/hone-worker" --version
    "$hone" zoo mlp
    "$hone" tune mlp.onnx --seconds 8
    "$hone" compile mlp.onnx -o tuned.hone
    "$hone" compile mlp.onnx --no-log -o default.hone
    "$hone" run default.hone --inputs mlp.inputs.npz --outputs y.npz
    "$hone" run tuned.hone --inputs mlp.inputs.npz --expect y.npz' use "$@"
}

# --made takes those of build/packages as they are.
proof_packages() {
  local made=build/packages clean
  [ "${1:-}" = --made ] || scripts/package.sh --output "$made" "$@"
  clean=(env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb DEBIAN_FRONTEND=noninteractive)
  bare_root

  # The archive first: nothing of ours is installed, and nobody knows where it will lie.
  # The root's own shell expands the names of packages in its /srv.
  apt_in_root() { chroot "$root" "${clean[@]}" sh -c "cd /srv && apt-get -qq $*" >"$made/apt.log" 2>&1 || { tail "$made/apt.log" >&2; return 1; }; }
  mkdir "$root/srv/any where"
  zstd -dcq "$made"/hone-*.tar.zst | tar x -C "$root/srv/any where" --strip-components=1
  use_in_root "/srv/any where/bin/hone" "/srv/any where/bin"
  rm -rf "$root/srv/any where" "$root/root/.local" "$root/root/.cache"

  cp "$made"/*.deb "$root/srv"
  apt_in_root update
  apt_in_root install -y --no-install-recommends './hone_*.deb' './hone-builder_*.deb' \
    './hone-runner_*.deb' './hone-worker_*.deb' './honed_*.deb' './libhone-*.deb'
  use_in_root /usr/bin/hone /usr/bin
  chroot "$root" getent passwd hone
  apt_in_root purge -y --auto-remove hone hone-builder hone-runner hone-worker honed libhone-runtime libhone-client libhone-dev
  local left
  left=$(find "$root/usr" "$root/etc" \( -path '*hone*' -o -name 'honed*' \) -not -path '*phone*' | sed "s#^$root##")
  [ -z "$left" ] || { printf 'proof.sh packages: left behind:\n%s\n' "$left" >&2; return 1; }
  # A machine that only runs what others build does without LLVM.
  apt_in_root install -y --no-install-recommends './hone-worker_*.deb' './hone-runner_*.deb'
  chroot "$root" dpkg -s libllvm22 >/dev/null 2>&1 && { echo "proof.sh packages: hone-worker brings LLVM" >&2; return 1; }
  chroot "$root" "${clean[@]}" hone-worker --version
  echo "packages: installed, used and removed"
}

proof_wheel() {
  local made=build/packages
  [ "${1:-}" = --made ] || scripts/wheel.sh --output "$made" "$@"
  scripts/bare_wheel.sh "$made"/hone_search-*.whl 20
}

# What a builder of images would do, line by line.
proof_containers() {
  local image line user clean
  ls build/packages/honed_*.deb >/dev/null || scripts/package.sh
  clean=(env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb)
  for image in honed hone-worker; do
    bare_root
    user=root
    while read -r line; do
      case "$line" in
        "" | "#"* | "FROM scratch" | "ADD root.tar /" | VOLUME* | EXPOSE*) ;;
        "COPY *.deb /srv/") cp build/packages/*.deb "$root/srv/" ;;
        RUN*) chroot "$root" "${clean[@]}" /bin/sh -ec "${line#RUN }" >build/packages/container.log 2>&1 </dev/null ||
          { tail build/packages/container.log >&2; return 1; } ;;
        USER*) user=${line#USER } ;;
        "ENTRYPOINT [\"/usr/bin/$image\"]") chroot --userspec="$user:$user" "$root" "/usr/bin/$image" --version ;;
        *) echo "proof.sh containers: $image.Containerfile: what is '$line'?" >&2; return 1 ;;
      esac
    done <"packaging/containers/$image.Containerfile"
    drop_root
  done
  echo "containers: both images were made and start"
}

name=${1:-}
if [ -z "$name" ] || [ -z "${about[$name]:-}" ]; then
  echo "usage: scripts/proof.sh NAME [OPTIONS]"
  for each in $(printf '%s\n' "${!about[@]}" | sort); do
    printf '  %-10s %s\n' "$each" "${about[$each]}"
  done
  [ -z "$name" ] && exit 0 || exit 2
fi
shift
"proof_$name" "$@"
