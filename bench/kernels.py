#!/usr/bin/env python3
"""Search Hone's benchmark kernels and compare those without a FMA threshold with ONNX Runtime.

    kernels.py [--bench build/release/bin/bench-kernels] [--case NAME]… [--trials 64] [--rounds 3]
               [--write-traces DIR] [--json OUT.json]

bench-kernels searches every case from an empty log and times the winner on one thread as a share of
the FMA peak; those cases have a threshold of their own. Depthwise convolutions, softmax, layer norm
and GELU are timed in turns with ONNX Runtime (Hone, ONNX Runtime, Hone, …), one thread each, on
buffers bound once. ONNX Runtime changes the layout of a convolution's tensors at the borders of a
graph; inside a model that is not paid. So it runs a convolution once and nine times in a row, and an
eighth of the difference is its time.

Prints a table with met / NOT MET; exit code 1 when one is missed. Needs numpy, onnx, onnxruntime.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
CHAIN = 9


def chain(case, length):
    """`length` copies of the operator one after the other."""
    import onnx
    import operators
    model = operators.build(case)
    graph = model.graph
    nodes = list(graph.node)
    first, last = graph.input[0].name, graph.output[0].name
    del graph.node[:]
    before = first
    for copy in range(length):
        after = last if copy == length - 1 else f"link{copy}"
        for node in nodes:
            made = onnx.NodeProto()
            made.CopyFrom(node)
            rename = {first: before, last: after}
            names = {o: f"{o}_{copy}" for n in nodes for o in n.output if o != last}
            made.name = ""
            made.input[:] = [rename.get(n, names.get(n, n)) for n in node.input]
            made.output[:] = [rename.get(n, names.get(n, n)) for n in node.output]
            graph.node.append(made)
        before = after
    del graph.value_info[:]
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


class OrtRun:
    """A model in ONNX Runtime, one thread, its buffers bound once."""

    def __init__(self, model):
        import numpy as np
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        x, y = self.session.get_inputs()[0], self.session.get_outputs()[0]
        values = np.random.default_rng(0).uniform(-1, 1, x.shape).astype(np.float32)
        out = self.session.run(None, {x.name: values})[0]
        self.binding = self.session.io_binding()
        self.held = [ort.OrtValue.ortvalue_from_numpy(values), ort.OrtValue.ortvalue_from_numpy(out)]
        self.binding.bind_ortvalue_input(x.name, self.held[0])
        self.binding.bind_ortvalue_output(y.name, self.held[1])

    def median_us(self, seconds):
        samples, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(samples) < 5:
            start = time.perf_counter_ns()
            self.session.run_with_iobinding(self.binding)
            samples.append((time.perf_counter_ns() - start) * 1e-3)
        return statistics.median(samples)


def run_bench(bench, *arguments):
    done = subprocess.run([bench, "--json", *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr.strip() or f"{bench} failed with {done.returncode}")
    return {c["case"]: c for c in json.loads(done.stdout)["cases"]}


def compare(bench, traces, name, rounds):
    """{hone_us, ort_us, ratio} of one case, medians over rounds."""
    import operators
    case = next(c for c in operators.SUITE if c["name"] == name)
    one = OrtRun(chain(case, 1))
    many = OrtRun(chain(case, CHAIN)) if case["kind"] == "conv" else None
    hone, ort = [], []
    for _ in range(rounds):
        timed = run_bench(bench, "--traces", traces, "--case", name, "--seconds", "0.2")
        hone.append(timed[name]["direct"]["median_us"])
        ort.append((many.median_us(0.2) - one.median_us(0.1)) / (CHAIN - 1) if many
                   else one.median_us(0.2))
    return {"hone_us": statistics.median(hone), "ort_us": statistics.median(ort),
            "ratio": statistics.median(o / h for o, h in zip(ort, hone)), "rounds": rounds}


def row(name, case):
    lines = []
    for kind in ("direct", "winograd"):
        timed = case[kind]
        if not timed:
            continue
        line = f"{name:20} {timed['sketch']:28} {timed['best_us']:9.1f} us"
        if case["threshold"] > 0:
            line += f" {timed['gflops']:7.1f} GFLOP/s {100 * timed['share']:6.1f} % of the FMA peak"
            if kind == "direct":
                line += f" (at least {100 * case['threshold']:.0f} %)"
        elif kind == "direct" and "ort" in case:
            o = case["ort"]
            line += (f" median {o['hone_us']:.1f} us, ONNX Runtime {o['ort_us']:.1f} us: "
                     f"{o['ratio']:.2f} x as fast")
        if kind == "direct":
            line += "  met" if case["met"] else "  NOT MET"
        lines.append(line)
    return lines or [f"{name:20} nothing but Winograd was measured  NOT MET"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(HERE.parent / "build/release/bin/bench-kernels"))
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--trials", default="64")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write-traces")
    parser.add_argument("--json")
    args = parser.parse_args()
    # One CPU for whoever is timed; the search's builders take the others too, so it is not pinned.
    cases = [word for name in args.case for word in ("--case", name)]
    with tempfile.TemporaryDirectory() as scratch:
        traces = args.write_traces or scratch
        found = run_bench(args.bench, *cases, "--trials", args.trials, "--write-traces", traces)
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        for name, case in found.items():
            if case["threshold"] == 0:
                case["ort"] = compare(args.bench, traces, name, args.rounds)
                case["met"] = case["ort"]["ratio"] > 1
            print("\n".join(row(name, case)), flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(found, indent=1) + "\n")
    missed = [name for name, case in found.items() if not case["met"]]
    print("not met: " + ", ".join(missed) if missed else "all met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
