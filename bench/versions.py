#!/usr/bin/env python3
"""Time models by two builds of Hone in turns: is the second one slower anywhere?

    versions.py BEFORE/bin/hone AFTER/bin/hone MODEL.onnx... [--threads 2] [--seconds 1] [--rounds 8]
                [--markdown OUT.md] [--compile OPTIONS]

Each build compiles each model, with no log but with the options after --compile, and times its own package by
`hone bench --unpinned`, one build after the other in each round. A figure is the median of all runs
of all rounds; a ratio is that of the medians, the second build's over the first one's, and its
interval is the middle 95 % when the rounds are drawn again, with replacement. Below 1 the second
build is faster. The geometric mean's interval draws the rounds of each model again, apart from the
others'.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import steady


def turn(hone, package, a):
    """Times of the runs in us."""
    ran = subprocess.run([hone, "bench", package, "--threads", str(a.threads), "--unpinned",
                          "--seconds", str(a.seconds), "--json"],
                         check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)["samples_us"]


def measure(model, folder, a):
    """Times of all rounds of each build."""
    packages, times = [], ([], [])
    for at, hone in enumerate((a.before, a.after)):
        packages.append(str(pathlib.Path(folder) / f"{at}.hone"))
        subprocess.run([hone, "compile", model, "-o", packages[-1], "--threads",
                        str(a.threads), *a.compile], check=True, capture_output=True,
                       env={**os.environ, "XDG_DATA_HOME": folder})
    for number in range(a.rounds):
        for at in (0, 1) if number % 2 == 0 else (1, 0):
            times[at].append(turn((a.before, a.after)[at], packages[at], a))
    return times


def geometric_mean(measured):
    """Mean of the models' ratios, with an interval; each model has its times before and after."""
    mean = lambda ratios: math.exp(statistics.mean(map(math.log, ratios)))
    ratios = [steady.median(after) / steady.median(before) for before, after in measured]
    drawn = [steady.drawn_ratios(after, before, seed)
             for seed, (before, after) in enumerate(measured)]
    return steady.with_interval(mean(ratios), map(mean, zip(*drawn)))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("before")
    p.add_argument("after")
    p.add_argument("models", nargs="+")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--compile", nargs=argparse.REMAINDER, default=[])
    p.add_argument("--markdown")
    a = p.parse_args()
    lines = ["| model | before, us | after, us | after / before |", "|---|--:|--:|--:|"]
    print("\n".join(lines), flush=True)
    measured = []
    for model in a.models:
        with tempfile.TemporaryDirectory() as folder:
            measured.append(measure(model, folder, a))
        before, after = map(steady.median, measured[-1])
        value, low, high = steady.ratio(*reversed(measured[-1]))
        lines.append(f"| {pathlib.Path(model).stem} | {before:,.1f} | {after:,.1f} "
                     f"| {value:.3f} ({low:.3f} to {high:.3f}) |")
        print(lines[-1], flush=True)
    value, low, high = geometric_mean(measured)
    lines.append(f"| geometric mean | | | {value:.3f} ({low:.3f} to {high:.3f}) |")
    print(lines[-1])
    if a.markdown:
        pathlib.Path(a.markdown).write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
