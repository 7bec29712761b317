#!/usr/bin/env bash
# Prints how many compile jobs this machine carries: one a core, but 1.2 GB of free memory for each
# (a file with LLVM's headers takes 1 GB).
set -euo pipefail

kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
if [ "$limit" != max ] && [ $((limit / 1024)) -lt "$kib" ]; then
  kib=$((limit / 1024))
fi
jobs=$((kib / (1200 * 1024)))
cores=$(nproc)
[ "$jobs" -le "$cores" ] || jobs=$cores
[ "$jobs" -ge 1 ] || jobs=1
printf '%s\n' "$jobs"
