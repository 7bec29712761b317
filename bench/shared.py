#!/usr/bin/env python3
"""Two models in one process, and what waiting threads cost a model that runs now and then.

    shared.py MODEL.onnx... [--hone build/release/bin/hone]
              [--runtime build/release/lib/libhone_runtime.so] [--threads 2] [--seconds 2]
              [--rounds 8] [--per-second 10] [--compile --no-log] [--markdown OUT.md]

Two at once: each pair of models that follow each other in the list is loaded into one process and
called by two client threads, on the threads that the process shares; beside it stand two processes,
each with one model and one thread. Both take turns of --seconds, --rounds times. The figure is the
mean over the two models of calls a second in one process over calls a second in two, with the
middle 95 % when rounds are drawn again.

Spinning: a model is called --per-second times a second for --seconds in each round, in a process
whose threads spin as they do by default and in one with HONE_SPIN_US=0, in turns. The figure is the
difference of CPU time, in per cent of one core.

Needs numpy; inputs are those of NAME.inputs.npz beside the model.
"""
import argparse
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types

import steady


def serve(a):
    """Answers each line SECONDS with calls a second of each model and the process's CPU time."""
    calls = []
    for model, package in zip(a.models, a.packages.split(",")):
        one = types.SimpleNamespace(runtime=a.runtime, package=package, threads=a.threads,
                                    inputs=str(model)[:-5] + ".inputs.npz")
        calls += steady.hone_calls(one, 1)
    for call in calls:
        call()
    print("{}", flush=True)
    for line in sys.stdin:
        seconds, counts = float(line), [0] * len(calls)
        pause = 1 / a.per_second if a.per_second else 0
        begin = time.perf_counter()
        cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])

        def client(k):
            while time.perf_counter() < begin + seconds:
                calls[k]()
                counts[k] += 1
                if pause:
                    time.sleep(max(0, begin + counts[k] * pause - time.perf_counter()))
        threads = [threading.Thread(target=client, args=(k,)) for k in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - begin
        cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - cpu
        print(json.dumps({"rates": [n / took for n in counts], "cores": cpu / took}), flush=True)


class Process:
    def __init__(self, a, packages, threads, per_second=0, environment=None):
        words = [sys.executable, __file__, *packages, "--serve", "--threads", str(threads),
                 "--packages", ",".join(packages.values()), "--runtime", a.runtime,
                 "--per-second", str(per_second)]
        self.process = subprocess.Popen(
            words, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **(environment or {})})
        self.answer()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def begin(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def turns(a, groups):
    """For each round a list with the answers of each group, whose processes run together."""
    rounds = []
    try:
        for _ in range(a.rounds):
            rounds.append([])
            for group in groups:
                time.sleep(.02)
                for process in group:
                    process.begin(a.seconds)
                rounds[-1].append([process.answer() for process in group])
    finally:
        for group in groups:
            for process in group:
                process.close()
    return rounds


def drawn(values):
    """The mean, and its middle 95 % when the values are drawn again."""
    draw = random.Random(1)
    seen = sorted(statistics.mean(draw.choices(values, k=len(values))) for _ in range(200))
    return statistics.mean(values), seen[4], seen[195]


def two_at_once(a, packages):
    one = Process(a, packages, a.threads)
    two = [Process(a, {model: package}, 1) for model, package in packages.items()]
    shares = []
    for (both,), apart in turns(a, [[one], two]):
        rates = [process["rates"][0] for process in apart]
        shares.append(statistics.mean(x / y for x, y in zip(both["rates"], rates)))
    return drawn(shares)


def spinning(a, model, package):
    spins = Process(a, {model: package}, a.threads, a.per_second)
    sleeps = Process(a, {model: package}, a.threads, a.per_second, {"HONE_SPIN_US": "0"})
    return drawn([100 * (x["cores"] - y["cores"]) for (x,), (y,) in turns(a, [[spins], [sleeps]])])


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("models", nargs="+")
    p.add_argument("--hone", default="build/release/bin/hone")
    p.add_argument("--runtime", default="build/release/lib/libhone_runtime.so")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--per-second", type=float, default=10)
    p.add_argument("--compile", nargs=argparse.REMAINDER, default=["--no-log"])
    p.add_argument("--markdown")
    p.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--packages", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(a)
    lines, names = [], [pathlib.Path(model).stem for model in a.models]
    with tempfile.TemporaryDirectory() as folder:
        packages = {model: f"{folder}/{name}.hone" for model, name in zip(a.models, names)}
        for model, package in packages.items():
            subprocess.run([a.hone, "compile", model, "-o", package, "--quiet", "--threads",
                            str(a.threads), *a.compile], check=True, stdout=subprocess.DEVNULL)
        lines += ["| two models | throughput, one process over two |", "|---|--:|"]
        for i in range(0, len(a.models) - 1):
            pair = {model: packages[model] for model in a.models[i:i + 2]}
            lines.append("| {} + {} | {:.3f} ({:.3f} to {:.3f}) |".format(
                *names[i:i + 2], *two_at_once(a, pair)))
            print(lines[-1], flush=True)
        lines += ["", "| model | spinning, % of a core |", "|---|--:|"]
        for model, name in zip(a.models, names):
            lines.append("| {} | {:.2f} ({:.2f} to {:.2f}) |".format(
                name, *spinning(a, model, packages[model])))
            print(lines[-1], flush=True)
    if a.markdown:
        pathlib.Path(a.markdown).write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
