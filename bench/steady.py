#!/usr/bin/env python3
"""Time models beside busy processes: Hone with two threads and with one, and ONNX Runtime with two.

    steady.py MODEL.onnx... [--hone build/release/bin/hone]
              [--runtime build/release/lib/libhone_runtime.so] [--loads 0,1,2,4] [--threads 2]
              [--clients 1,2,4,8] [--quotas 0.5,1,1.5 --cgroup FOLDER] [--seconds 2.5] [--calls 250]
              [--rounds 8] [--pinned] [--pause 0]
              [--compile --no-log] [--json OUT.json] [--markdown OUT.md]

Each model is compiled by `hone compile` with the options after --compile. Every subject stays loaded
in a process of its own, threads unpinned, and takes its turns: in each round each subject calls the
model for --seconds, or --calls times a client if that is sooner, one after the other, beside so
many processes that loop (--loads). ONNX Runtime is there twice, its threads spinning between calls
or not; the one with the lower median counts. Rows that --json holds already are not measured again.

A cell is the median and the 99th percentile of all calls of all rounds, in microseconds. A ratio is
that of the medians, and its interval is the middle 95 % when the rounds are drawn again, with
replacement. With --clients so many threads of one process call the model at once, each call timed:
Hone with a context each, ONNX Runtime with one session. With --quotas the subjects start and run, one
at a time, in a control group of version 1 or 2 below FOLDER, which must be writable, with so many
CPUs; Hone then has as many threads as it takes by itself. With --pinned both engines run once more,
each of their threads bound to a CPU of its own; their medians are two more columns. With --pause
each client sleeps for so many milliseconds before every call: threads are asleep when it comes.

Needs numpy, onnxruntime; inputs are those of NAME.inputs.npz beside the model.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
BUSY = """import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(10 ** 6): pass
"""
SUBJECTS = ("hone", "hone-1", "ort", "ort-still")
PINNED = ("hone-pinned", "ort-pinned")


# ---- a subject, in a process of its own ----

def aligned(shape, dtype):
    """An array that the runtime uses in place."""
    import numpy as np
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + size].view(dtype).reshape(shape)


def pinned_context(model, threads):
    """A context of the model whose workers have CPUs of their own; the caller takes the first."""
    import ctypes
    import hone.runtime
    library, context = hone.runtime.loaded(), ctypes.c_void_p()
    options = hone.runtime.ContextOptions()
    library.hone_context_options_fill(options, ctypes.sizeof(options))
    options.threads, options.pin = threads, 1
    hone.runtime.check(library.hone_context_create(model._model, options, ctypes.byref(context)))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return context


def hone_calls(a, clients):
    sys.path.insert(0, str(HERE.parent / "python"))
    os.environ["HONE_LIBRARY"] = a.runtime
    import ctypes
    import hone.model
    import hone.runtime
    import numpy as np

    def buffers(arrays):   # struct hone_input, hone_output
        numbers = [n for array in arrays for n in (array.ctypes.data, array.nbytes)]
        return (ctypes.c_uint64 * len(numbers))(*numbers), len(arrays)
    feeds, calls = dict(np.load(a.inputs)), []
    for _ in range(clients):
        model = hone.model.Model(a.package, threads=a.threads or None)
        given = [aligned(tensor.shape, tensor.dtype) for tensor in model.inputs]
        for tensor, array in zip(model.inputs, given):
            array[...] = feeds[tensor.name]
        results = [aligned(tensor.shape, tensor.dtype) for tensor in model.outputs]
        run, context = hone.runtime.loaded().hone_context_run, model._context
        if a.serve in PINNED:
            context = pinned_context(model, a.threads)
        arguments = *buffers(given), *buffers(results)

        def call(run=run, context=context, arguments=arguments, keep=(model, given, results)):
            hone.runtime.check(run(context, *arguments))
        calls.append(call)
    return calls


def ort_calls(a, clients):
    import numpy as np
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = a.threads, 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning",
                                     "0" if a.serve == "ort-still" else "1")
    if a.serve in PINNED:   # processors count from one; the caller has the first
        first, *rest = sorted(os.sched_getaffinity(0))[:a.threads]
        options.add_session_config_entry("session.intra_op_thread_affinities",
                                         ";".join(str(cpu + 1) for cpu in rest))
        os.sched_setaffinity(0, {first})
    session = ort.InferenceSession(a.models[0], options, providers=["CPUExecutionProvider"])
    feeds, calls = dict(np.load(a.inputs)), []
    names = [i.name for i in session.get_inputs()]
    for _ in range(clients):
        binding = session.io_binding()
        values = [ort.OrtValue.ortvalue_from_numpy(feeds[n]) for n in names]
        for name, value in zip(names, values):
            binding.bind_ortvalue_input(name, value)
        results = session.run(None, {n: feeds[n] for n in names})
        outputs = [ort.OrtValue.ortvalue_from_numpy(r) for r in results]
        for output, value in zip(session.get_outputs(), outputs):
            binding.bind_ortvalue_output(output.name, value)

        def call(b=binding, keep=(values, outputs)):
            session.run_with_iobinding(b)
        calls.append(call)
    return calls


def sample(calls, seconds, most, pause=0):
    """Times of the calls in us, of all clients together."""
    end, samples = time.perf_counter() + seconds, [[] for _ in calls]

    def client(call, times):
        while len(times) < 3 or time.perf_counter() < end and len(times) < most:
            if pause:
                time.sleep(pause)
            begin = time.perf_counter()
            call()
            times.append((time.perf_counter() - begin) * 1e6)
    threads = [threading.Thread(target=client, args=each) for each in zip(calls, samples)]
    if len(threads) == 1:
        client(calls[0], samples[0])
    else:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return [t for times in samples for t in times]


def serve(a):
    """Answers each line SECONDS with one line of JSON."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    calls = (hone_calls if a.serve.startswith("hone") else ort_calls)(a, a.client_threads)
    sample(calls, 0.05, a.calls)
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        times = sample(calls, float(line), a.calls, a.pause / 1e3)
        answer = [time.perf_counter() - begin, [round(t, 2) for t in times]]
        print(json.dumps(answer), file=answers, flush=True)


class Subject:
    def __init__(self, name, model, package, a, clients, group):
        threads = 1 if name == "hone-1" else 0 if group and name == "hone" else a.threads
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(model), "--serve", name, "--package", package,
             "--inputs", str(model)[:-5] + ".inputs.npz", "--runtime", a.runtime,
             "--threads", str(threads), "--client-threads", str(clients),
             "--calls", str(a.calls), "--pause", str(a.pause)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            preexec_fn=group and group.enter)
        if not self.process.stdout.readline():
            raise RuntimeError(f"{name} cannot run {model}")

    def turn(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- the measurement ----

class Quota:
    """A control group for one process at a time."""

    def __init__(self, folder, cpus):
        self.group = pathlib.Path(folder) / f"hone-steady-{os.getpid()}"
        self.group.mkdir()
        if (self.group / "cpu.max").exists():
            (self.group / "cpu.max").write_text(f"{int(cpus * 100_000)} 100000")
        else:
            (self.group / "cpu.cfs_period_us").write_text("100000")
            (self.group / "cpu.cfs_quota_us").write_text(str(int(cpus * 100_000)))

    def enter(self):
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        self.group.rmdir()


def cell(rounds):
    pooled = sorted(t for r in rounds for t in r)
    at = lambda share: round(pooled[round(share * (len(pooled) - 1))], 1)
    return {"median_us": at(.5), "p90_us": at(.9), "p99_us": at(.99), "calls": len(pooled)}


def median(rounds):
    return statistics.median(t for r in rounds for t in r)


def drawn_ratios(rounds, others, seed=1):
    """200 ratios of the medians, of rounds that are drawn again."""
    draw, pairs = random.Random(seed), list(zip(rounds, others))
    again = ([draw.choice(pairs) for _ in pairs] for _ in range(200))
    return [median(a for a, _ in drawn) / median(b for _, b in drawn) for drawn in again]


def with_interval(value, seen):
    """With the middle 95 % of 200 values."""
    seen = sorted(seen)
    return [round(x, 3) for x in (value, seen[4], seen[195])]


def ratio(rounds, others):
    """The ratio of the medians, with the middle 95 % of rounds drawn again."""
    return with_interval(median(rounds) / median(others), drawn_ratios(rounds, others))


def measure(model, package, a, load, clients, quota):
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(load)]
    names = SUBJECTS + (PINNED if a.pinned else ())
    subjects, group, times = {}, None, {name: [] for name in names}
    seconds = dict.fromkeys(names, 0)
    try:
        group = Quota(a.cgroup, quota) if quota else None
        for name in names:
            subjects[name] = Subject(name, model, package, a, clients, group)
        for _ in range(a.rounds):
            for name, subject in subjects.items():
                time.sleep(.02)   # the last one's idle threads stop spinning
                took, calls = subject.turn(a.seconds)
                seconds[name] += took
                times[name].append(calls)
    finally:
        for process in busy:
            process.kill()
            process.wait()
        for subject in subjects.values():
            subject.close()
        if group:
            group.close()
    best = min(("ort", "ort-still"), key=lambda n: cell(times[n])["median_us"])
    rival = min(("hone-1", best), key=lambda n: cell(times[n])["median_us"])
    return {"model": pathlib.Path(model).stem, "load": load, "clients": clients, "quota": quota,
            "pause_ms": a.pause,
            "cells": {name: cell(rounds) for name, rounds in times.items()}, "ort": best,
            "calls_per_second": {name: round(sum(map(len, rounds)) / seconds[name], 1)
                                 for name, rounds in times.items()},
            "to_one_thread": ratio(times["hone"], times["hone-1"]),
            "to_best": ratio(times["hone"], times[rival]), "best": rival}


def table(rows, threads):
    head = (f"| model | busy | clients | CPUs | Hone, {threads} threads | p99 | Hone, 1 thread | p99 "
            f"| ONNX Runtime, {threads} threads | p99 | to {{}} | met |")
    asked = "one thread" if any(r["quota"] for r in rows) else "the better of the others"
    pinned = all(PINNED[0] in r["cells"] for r in rows)
    extra = " Hone, pinned | ONNX Runtime, pinned |" if pinned else ""
    lines = [head.format(asked) + extra, "|---|" + "--:|" * 10 + "---|" + "--:|--:|" * pinned]
    number = lambda x: f"{x:,.0f}" if x >= 100 else f"{x:.1f}"
    for r in rows:
        cells = [r["cells"]["hone"], r["cells"]["hone-1"], r["cells"][r["ort"]]]
        figures = " | ".join(f"{number(c['median_us'])} | {number(c['p99_us'])}" for c in cells)
        # Within a quota nothing is asked but that two threads are no worse than one.
        value, low, high = r["to_one_thread" if r["quota"] else "to_best"]
        met = [low <= 1.10 if r["load"] or r["quota"] else None,
               cells[0]["p99_us"] <= cells[2]["p99_us"] if r["load"] else None]
        words = ["" if m is None else w if m else f"not {w}" for m, w in zip(met, ("median", "p99"))]
        both = [number(r["cells"][name]["median_us"]) for name in PINNED] if pinned else []
        lines.append(f"| {r['model']} | {r['load']} | {r['clients']} | {r['quota'] or ''} | {figures} "
                     f"| {value:.2f} ({low:.2f} to {high:.2f}) | {', '.join(filter(None, words))} |"
                     + "".join(f" {median} |" for median in both))
    return "\n".join(lines) + "\n"


def numbers(text, kind=int):
    return [kind(n) for n in text.split(",") if n]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("models", nargs="+")
    p.add_argument("--hone", default="build/release/bin/hone")
    p.add_argument("--runtime", default="build/release/lib/libhone_runtime.so")
    p.add_argument("--loads", default="0,1,2,4")
    p.add_argument("--clients", default="1")
    p.add_argument("--quotas", default="")
    p.add_argument("--cgroup", default="/sys/fs/cgroup")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=2.5)
    p.add_argument("--calls", type=int, default=250)
    p.add_argument("--rounds", type=int, default=8)
    p.add_argument("--compile", nargs=argparse.REMAINDER, default=["--no-log"])
    p.add_argument("--pinned", action="store_true")
    p.add_argument("--pause", type=float, default=0)
    p.add_argument("--json")
    p.add_argument("--markdown")
    for hidden in ("--serve", "--package", "--inputs"):
        p.add_argument(hidden, help=argparse.SUPPRESS)
    p.add_argument("--client-threads", type=int, default=1, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(a)
    if a.pinned and a.clients != "1":
        p.error("--pinned is for one client: several would share its CPUs")
    kept = pathlib.Path(a.json) if a.json else None
    rows = json.loads(kept.read_text()) if kept and kept.exists() else []
    there = {(r["model"], r["load"], r["clients"], r["quota"]) for r in rows
             if r.get("pause_ms", 0) == a.pause}
    with tempfile.TemporaryDirectory() as folder:
        cases = [(load, clients, 0) for load in numbers(a.loads) for clients in numbers(a.clients)]
        cases += [(0, 1, quota) for quota in numbers(a.quotas, float)]
        for model in a.models:
            name = pathlib.Path(model).stem
            todo = [case for case in cases if (name, *case) not in there]
            package = str(pathlib.Path(folder) / f"{name}.hone")
            if todo:
                subprocess.run([a.hone, "compile", model, "-o", package, "--quiet", "--threads",
                                str(a.threads), *a.compile], check=True, stdout=subprocess.DEVNULL)
            for case in todo:
                rows.append(measure(model, package, a, *case))
                print(table(rows[-1:], a.threads).splitlines()[-1], flush=True)
                if kept:
                    kept.write_text(json.dumps(rows, indent=1) + "\n")
    if a.markdown:
        pathlib.Path(a.markdown).write_text(table(rows, a.threads))
    return 0


if __name__ == "__main__":
    sys.exit(main())
