#!/usr/bin/env python3
"""What compiling takes in memory, beside the size of the model's external data.

    compile_memory_test.py --hone PROGRAM [--gigabytes 0.5] [--most 1.3] [--folder DIR] [--results FILE.xml]

Writes a chain of matrix products whose weights lie in a sparse file, compiles it and fails where the process' largest
resident size, pages of mapped files among it, is more than --most times the data. The package takes as much disk, and
its constants as much again while they are packed.
"""
import argparse
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
from xml.sax.saxutils import quoteattr

PRODUCTS = 24


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """One field of a protobuf message: an integer, or text, bytes or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, extent, data, offset):
    entries = (("location", data), ("offset", str(offset)), ("length", str(4 * extent * extent)))
    return (field(1, extent) + field(1, extent) + field(2, 1) + field(8, name) +
            b"".join(field(13, field(1, key) + field(2, text)) for key, text in entries) + field(14, 1))


def value(name, extent):
    shape = b"".join(field(1, field(1, n)) for n in (1, extent))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def write_model(path, extent):
    """Weights that differ in one element: equal ones would be stored once."""
    data, step = path.name + ".data", (4 * extent * extent + 4095) // 4096 * 4096
    with open(path.parent / data, "wb") as file:
        file.truncate(PRODUCTS * step)
        for k in range(PRODUCTS):
            file.seek(k * step + 4 * k)
            file.write(struct.pack("<f", 1 + k))
    # What is added is not known, so that nothing between two products is zero and left out.
    nodes = b"".join(field(1, field(1, f"x{k}") + field(1, f"w{k}") + field(2, f"y{k}") + field(4, "MatMul")) +
                     field(1, field(1, f"y{k}") + field(1, "s") + field(2, f"x{k + 1}") + field(4, "Add"))
                     for k in range(PRODUCTS))
    graph = (nodes + field(2, "chain") + b"".join(field(5, tensor(f"w{k}", extent, data, k * step))
                                                  for k in range(PRODUCTS)) +
             field(11, value("x0", extent)) + field(11, value("s", extent)) + field(12, value(f"x{PRODUCTS}", extent)))
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(2, 17)))
    return PRODUCTS * step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hone", required=True)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--most", type=float, default=1.3)
    parser.add_argument("--folder")
    parser.add_argument("--results", type=pathlib.Path)
    arguments = parser.parse_args()
    extent = int((arguments.gigabytes * 1e9 / PRODUCTS / 4) ** 0.5) // 64 * 64
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        model, package = pathlib.Path(folder, "chain.onnx"), pathlib.Path(folder, "chain.hone")
        size = write_model(model, extent)
        subprocess.run([arguments.hone, "compile", model, "-o", package, "--target", "cpu:avx2,threads=1",
                        "--cache-mb", "0"], check=True, env=dict(os.environ, HOME=folder))
        written = package.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"data {size / 1e9:.2f} GB, package {written / 1e9:.2f} GB, largest resident size {peak / 1e9:.2f} GB, "
          f"{peak / size:.2f} x the data")
    fault = ""
    if written < size:
        fault = "the package lacks weights"
    elif peak > arguments.most * size:
        fault = f"compiling takes more than {arguments.most} x the data"
    if arguments.results:
        failure = f"<failure message={quoteattr(fault)}/>" if fault else ""
        arguments.results.write_text('<testsuites><testsuite name="compile_memory"><testcase name="largest_resident_size" '
                                     f'status="run">{failure}</testcase></testsuite></testsuites>\n')
    sys.exit(fault or 0)


if __name__ == "__main__":
    main()
