#!/usr/bin/env bash
# Writes the operator cases and the networks that tests/conformance runs:
#     scripts/cases.sh BUILD
# into BUILD/node_cases, BUILD/random_cases and BUILD/network_cases, with the Python packages of
# BUILD/venv, which scripts/models.sh makes. Those that are up to date are kept; all of them take
# about a minute.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: scripts/cases.sh BUILD" >&2; exit 2; }
[ -x "$1/venv/bin/python" ] || {
  echo "cases.sh: there is no $1/venv/bin/python; run scripts/models.sh $1/models, which makes it" >&2
  exit 1
}
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

# A stamp holds the digest of all that cases are made from; make_node_cases.py leaves out those that
# the system's package has.
digest=$({
  cat tests/conformance/make_*_cases.py tests/conformance/{families,networks}/*.py tests/models/requirements.txt
  ls /usr/share/libonnx-testdata/data/node 2>/dev/null || true
} | sha256sum)
for name in node random network; do
  cases=$build/${name}_cases
  [ -d "$cases" ] && [ "$(cat "$cases.stamp" 2>/dev/null)" = "$digest" ] && continue
  # The folder gets its name when it is complete: a run that is stopped leaves no half of it.
  rm -rf "$cases.tmp" "$cases.stamp"
  "$build/venv/bin/python" "tests/conformance/make_${name}_cases.py" "$cases.tmp" || {
    echo "cases.sh: make_${name}_cases.py failed (see above); if a package is missing, remove $build/venv and run scripts/models.sh $build/models" >&2
    exit 1
  }
  rm -rf "$cases"
  mv "$cases.tmp" "$cases"
  echo "$digest" >"$cases.stamp"
done
