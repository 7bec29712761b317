#!/usr/bin/env python3
"""Chooses the Traces kept in tests/models/traces from tuning logs (scripts/refresh_traces.sh calls it):

    keep_traces.py --hone PROGRAM --models DIR --out FOLDER --target TARGET --log LOG... MODEL...

For every kernel of the models the log's correct candidate (within 4 times the best) that has the
most of what few chosen ones have: the point is to run many forms of code, not the fastest. Writes
FOLDER/HASH.trace and FOLDER/kept.txt, a line `MODEL HASH` for each kernel that got one.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

# What makes Traces different, found in their text.
FORMS = {
    "winograd 2": r"winograd, 2\)",
    "winograd 4": r"winograd, 4\)",
    "online softmax": r"online_softmax",
    "split-k": r"rfactor\(",
    "blocked reduction": r"split\(s\d+\.r\d+",
    "tile in registers": r"cache_write\(s\d+, register",
    "tile in memory": r"cache_write\(s\d+, memory",
    "peeled borders": r"partition\(",
    "padding at root": r"parallel\(s0\.",
    "padding in a tile": r"compute_at\(s0, [^)]*memory\)",
    "padding inlined": r"inline\(s0\)",
    "two sizes": r"two_sizes",
    "masked tail": r"mask\)",
    "packed": r"pack\(",
    "fused loops": r"fuse\(",
    "aligned rows": r"align\(",
}
SLOWEST = 4


def call(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def kernels(args, model):
    """The workload hashes of a model's kernels."""
    report = json.loads(call(args.hone, "inspect", args.models / f"{model}.onnx",
                             "--target", args.target, "--no-log", "--json"))
    return [kernel["workload"] for kernel in report["kernels"]]


def candidates(args):
    """workload -> Trace -> ns, of correct candidates that are not the default schedule."""
    times, defaults = collections.defaultdict(dict), set()
    for log in args.log:
        for line in call(args.hone, "db", "export", log).splitlines():
            fact = json.loads(line)
            if fact["kind"] == "attempt" and fact["proposer"] == "default":
                defaults.add((fact["workload"], fact["trace"]))
            elif fact["kind"] == "record" and fact["target"] == args.target:
                of = times[fact["workload"]]
                of[fact["trace"]] = min(fact["median_ns"], of.get(fact["trace"], fact["median_ns"]))
    for workload, trace in defaults:
        times[workload].pop(trace, None)
    return times


def forms_of(trace):
    return [name for name, pattern in FORMS.items() if re.search(pattern, trace)]


def choose(times, seen):
    """The Trace with the rarest forms so far; among equals the fastest."""
    limit = SLOWEST * min(times.values())
    fair = [trace for trace, ns in times.items() if ns <= limit]
    return max(fair, key=lambda t: (sum(1 / (1 + seen[f]) for f in forms_of(t)), -times[t], t))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hone", required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--log", action="append", required=True)
    parser.add_argument("model", nargs="+")
    args = parser.parse_args()
    times, seen, kept, listed = candidates(args), collections.Counter(), {}, []
    for model in args.model:
        for workload in kernels(args, model):
            if not times.get(workload):
                continue
            if workload not in kept:
                kept[workload] = choose(times[workload], seen)
                seen.update(forms_of(kept[workload]))
            listed.append(f"{model} {workload}\n")
        if not any(line.startswith(f"{model} ") for line in listed):
            print(f"keep_traces.py: no log has a Trace for {model}", file=sys.stderr)
            return 1
    args.out.mkdir(parents=True, exist_ok=True)
    for old in args.out.glob("*.trace"):
        old.unlink()
    for workload, trace in kept.items():
        (args.out / f"{workload}.trace").write_text(trace, encoding="utf-8")
    (args.out / "kept.txt").write_text("".join(sorted(listed)), encoding="utf-8")
    print(f"kept {len(kept)} Traces: " + ", ".join(f"{n} {form}" for form, n in seen.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
