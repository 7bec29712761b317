#!/usr/bin/env python3
"""What a call from Python costs over the C API: the same context on the same memory, in turns.

    HONE_BIN=build/release/bin python_calls.py [MODEL.onnx] [--rounds 20] [--calls 2000] [--markdown OUT.md]

The C API is a loop of hone_context_run in C (compiled here by `cc`), called once a round; beside it
stand hone.Model called with NumPy arrays and, where this Python has torch, the package that
torch.compile(backend="hone") calls with tensors. One thread. Without MODEL: mlp of the zoo. A figure is
the median over the rounds of the mean of a round. Exits with 1 where hone.Model takes more than 10 µs
longer than the C API.
"""
import argparse
import ctypes
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
# pylint: disable=wrong-import-position
import hone
import numpy as np

LIMIT_US = 10
LOOP = """
#include <stdint.h>
#include <stddef.h>
typedef int (*run)(void*, const void*, size_t, const void*, size_t);
int loop(run call, void* context, const uint64_t* slots, size_t takes, size_t gives, int count) {
  int status = 0;
  while (count-- > 0 && status == 0) status = call(context, slots, takes, slots + 2 * takes, gives);
  return status;
}
"""


def c_loop(folder):
    source, library = pathlib.Path(folder, "loop.c"), pathlib.Path(folder, "loop.so")
    source.write_text(LOOP, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    loop = ctypes.CDLL(str(library)).loop
    loop.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t] * 2 + [ctypes.c_int]
    return loop


def subjects(model, loop):
    """name -> function that calls the model so many times."""
    arrays = [np.zeros(tensor.shape, tensor.dtype) for tensor in (*model.inputs, *model.outputs)]
    slots = (ctypes.c_uint64 * (2 * len(arrays)))()
    for i, array in enumerate(arrays):
        slots[2 * i], slots[2 * i + 1] = array.ctypes.data, array.nbytes
    run = ctypes.cast(model._hone_context_run, ctypes.c_void_p)
    inputs = arrays[:len(model.inputs)]

    def in_c(count):
        assert loop(run, model._context, slots, len(model.inputs), len(model.outputs), count) == 0

    def in_python(count):
        for _ in range(count):
            model(*inputs)
    told = {"C API": in_c, "hone.Model": in_python}
    if importlib.util.find_spec("torch"):
        import torch
        from hone.pytorch.package import DTYPES, Package
        values = [(tensor.shape, DTYPES[tensor.type]) for tensor in model.outputs]
        tensors = [torch.from_numpy(array) for array in inputs]
        package = Package(model, [tensor.name for tensor in model.inputs], range(len(inputs)), tensors, values)

        def in_torch(count):
            for _ in range(count):
                package(tensors)
        told["package of torch.compile"] = in_torch
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--markdown", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hone-bench-") as folder:
        network = args.model or hone.zoo("mlp", os.path.join(folder, "mlp.onnx"))
        model = hone.compile(network, log=False, threads=1)
        calls = subjects(model, c_loop(folder))
        times = {name: [] for name in calls}
        for _ in range(args.rounds):
            for name, call in calls.items():
                call(args.calls // 10)
                began = time.perf_counter()
                call(args.calls)
                times[name].append(1e6 * (time.perf_counter() - began) / args.calls)
    medians = {name: statistics.median(each) for name, each in times.items()}
    lines = [f"| {model.name}, one thread | a call, µs | over the C API, µs |", "|---|--:|--:|"]
    lines += [f"| {name} | {each:.1f} | {each - medians['C API']:.1f} |" for name, each in medians.items()]
    print("\n".join(lines))
    if args.markdown:
        args.markdown.write_text("\n".join(lines) + "\n", encoding="utf-8")
    over = medians["hone.Model"] - medians["C API"]
    if over > LIMIT_US:
        print(f"hone.Model takes {over:.1f} µs a call over the C API; {LIMIT_US} are allowed")
    return 1 if over > LIMIT_US else 0


if __name__ == "__main__":
    sys.exit(main())
