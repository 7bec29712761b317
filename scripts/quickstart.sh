#!/usr/bin/env bash
# From a bare Debian 12 to a network that runs faster because Hone searched for it:
#     scripts/quickstart.sh [--seconds N] [--build-dir DIR]
# Installs what is missing (as root or through sudo), builds, tunes ResNet-18 for about a minute,
# compiles it with and without the log, checks that both give the same answer, and times both. Run
# it again: it builds only what changed and goes on with the same log.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=60
build=build/release
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds) seconds=$2; shift 2 ;;
    --build-dir) build=$2; shift 2 ;;
    *) echo "usage: scripts/quickstart.sh [--seconds N] [--build-dir DIR]" >&2; exit 2 ;;
  esac
done

fail() { printf '\nquickstart: %s\n' "$1" >&2; exit 1; }

number=0
step() { number=$((number + 1)); printf '\n%d. %s\n' "$number" "$1"; }

# attempt "what to do if it fails" command...
attempt() {
  local remedy=$1
  shift
  "$@" || fail "this step failed: $*
$remedy"
}

step "Checking this machine"
mkdir -p "$build" || fail "cannot write to $(pwd); clone Hone into a folder of your own"
free_mib=$(($(df -Pk "$build" | awk 'NR == 2 {print $4}') / 1024))
memory_mib=$(($(awk '/^MemTotal:/ {print $2}' /proc/meminfo) / 1024))
[ "$(uname -m)" = x86_64 ] ||
  fail "this machine is $(uname -m); Hone makes code for x86-64 with AVX2: use such a machine"
grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo ||
  fail "this CPU has no AVX2 and FMA, which the code Hone makes needs; use one that has them (CPUs since about 2015), or let this virtual machine see the host's"
# A build that is there already has taken its share of the disk.
[ -x "$build/bin/hone" ] || [ "$free_mib" -ge 6000 ] ||
  fail "$free_mib MiB of disk are free in $(pwd), 6 GB are needed; free some, or clone elsewhere"
[ "$memory_mib" -ge 3600 ] ||
  fail "this machine has $memory_mib MiB of memory, the build needs 4 GB; give this virtual machine or container more, or use another machine"
printf '   %s MiB of disk free, %s MiB of memory, AVX2: good\n' "$free_mib" "$memory_mib"

step "Installing what is missing"
attempt "Then run this script again." scripts/deps.sh build

step "Building (the first time takes some minutes; log: $build/build.log)"
cmake --preset release -B "$build" >"$build/build.log" 2>&1 ||
  { tail -n 20 "$build/build.log" >&2; fail "CMake failed; the log is $build/build.log"; }
cmake --build "$build" -j "$(scripts/jobs.sh)" >>"$build/build.log" 2>&1 ||
  { tail -n 30 "$build/build.log" >&2
    fail "the build failed; the log is $build/build.log. Out of memory? Close other programs and run this again: it goes on where it stopped."; }

hone=$build/bin/hone
tour=$build/quickstart
model=$tour/resnet18.onnx
log=$tour/tune.db
mkdir -p "$tour"

step "Writing a network: ResNet-18, 224 x 224, seeded weights"
[ -f "$model" ] || attempt "Is the disk full?" "$hone" zoo resnet18 -o "$model"

step "Tuning it for $seconds seconds (Ctrl-C stops early and keeps what was found)"
# Ctrl-C reaches this script too: it waits for hone, which ends with 7 when it was interrupted.
trap : INT
tuned=0
"$hone" tune "$model" --db "$log" --seconds "$seconds" || tuned=$?
trap - INT
[ "$tuned" -eq 0 ] || [ "$tuned" -eq 7 ] ||
  fail "this step failed: $hone tune $model --db $log --seconds $seconds
What was measured is kept in $log; '$hone doctor' says what is wrong with this machine."
[ "$tuned" -eq 0 ] || printf '   stopped early; going on with what was found\n'

step "Compiling it twice: with the default schedules, and from the log"
attempt "Run '$hone doctor'." "$hone" compile "$model" --no-log -o "$tour/default.hone"
attempt "Run '$hone db verify $log'." "$hone" compile "$model" --db "$log" -o "$tour/tuned.hone"

step "Checking that both give the same answer"
inputs=$tour/resnet18.inputs.npz
attempt "Run '$hone check $model'." \
  "$hone" run "$tour/default.hone" --inputs "$inputs" --outputs "$tour/default.npz"
attempt "The tuned package computes something else: run '$hone check $model --db $log' and report what it names." \
  "$hone" run "$tour/tuned.hone" --inputs "$inputs" --outputs "$tour/tuned.npz" --expect "$tour/default.npz"

step "Timing both, in turns"
# field NAME: the number behind "NAME": on standard input
field() { grep -o "\"$1\": *[0-9.]*" | head -n 1 | grep -o '[0-9.]*$'; }
median() {
  "$hone" bench "$tour/$1.hone" --seconds 3 --json --inputs "$inputs" | field median_us ||
    fail "'$hone bench $tour/$1.hone --json' gave no median; run it by itself to see why"
}
default_us=
tuned_us=
for _ in 1 2 3; do
  default_us="$default_us $(median default)"
  tuned_us="$tuned_us $(median tuned)"
done
middle() { tr ' ' '\n' <<<"$1" | grep . | sort -n | sed -n 2p; }
default_us=$(middle "$default_us")
tuned_us=$(middle "$tuned_us")
measured=$("$hone" db stats "$log" --json | field attempts || echo "?")

awk -v default_us="$default_us" -v tuned_us="$tuned_us" -v measured="$measured" \
    -v log_path="$log" -v package_path="$tour/tuned.hone" 'BEGIN {
  printf "\n   ResNet-18 on this machine\n"
  printf "   %-22s %9.2f ms\n", "default schedules", default_us / 1000
  printf "   %-22s %9.2f ms\n", "tuned", tuned_us / 1000
  printf "   %-22s %9.2f x\n", "gain", default_us / tuned_us
  printf "   %-22s %9s\n", "candidates measured", measured
  printf "   %-22s %s\n", "log", log_path
  printf "   %-22s %s\n", "package", package_path
}'
printf '\nRun this script again to search on from the same log, or tune a model of your own:\n'
printf '    export PATH="%s:$PATH"\n    hone tune MODEL.onnx\n    hone compile MODEL.onnx -o MODEL.hone\n' \
  "$(cd "$build/bin" && pwd)"
