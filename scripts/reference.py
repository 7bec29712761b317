#!/usr/bin/env python3
"""Writes the pages of docs/reference/ that are made from the code:

    scripts/reference.py --bin build/bin            writes them
    scripts/reference.py --bin build/bin --check    says which are out of date, and ends with 1

commands.md is what --help of every program and command prints; operators.md is the table of ONNX
operators in graph/onnx_import/.
"""
import argparse
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
MADE = "<!-- Made by scripts/reference.py; edit that or the code. -->\n"
HANDLER = re.compile(r'\{"(\w+)", (\d+),\s+\d+,[^{}]*?(\w+)(?:<[^<>{}]*>)?\}')
CONTROL_FLOW = {"If": 1, "Loop": 1, "Scan": 9}  # graph/onnx_import/control_flow.cc has no table
FAMILIES = {
    "activation": "activations", "attention": "attention", "constant": "constants and shapes",
    "control_flow": "control flow", "conv": "convolutions", "elementwise": "element-wise",
    "gather": "gather and scatter", "legacy": "element-wise", "loss": "losses",
    "matmul": "matrix products", "normalise": "norms and softmax", "pool": "pooling",
    "quantise": "quantisation", "recurrent": "recurrent layers", "reduce": "reductions",
    "resize": "resize", "sampling": "sampling", "selection": "selection", "shape": "data movement",
    "signal": "signal", "slice": "data movement"}


def help_of(programs, *words):
    done = subprocess.run([programs / words[0], *words[1:], "--help"], capture_output=True, text=True,
                          check=True, timeout=60, env={"LC_ALL": "C", "HOME": "/nonexistent"})
    return done.stdout.rstrip() + "\n"


def commands_page(programs):
    overview = help_of(programs, "hone")
    page = ["# Commands\n", MADE, "What `--help` prints, in one place. Options of `hone` may stand in "
            "`~/.config/hone/config.toml` under their names, those of the daemons in `/etc/hone/honed.toml` "
            "and `/etc/hone/worker.toml`. [TROUBLESHOOTING.md](../TROUBLESHOOTING.md#what-programs-end-with) "
            "has the exit codes.\n", f"```text\n{overview}```\n"]
    for name in re.findall(r"^  ([a-z]+) ", overview.split("Options:")[0], re.M):
        page.append(f"## hone {name}\n\n```text\n{help_of(programs, 'hone', name)}```\n")
    for name in ("honed", "hone-worker"):
        page.append(f"## {name}\n\n```text\n{help_of(programs, name)}```\n")
    return "\n".join(page)


def operators_page(folder):
    newest = re.search(r"kNewestOpset = (\d+)", (folder / "import.h").read_text(encoding="utf-8"))[1]
    table = {name: [(since, "control flow")] for name, since in CONTROL_FLOW.items()}
    refused, microsoft = [], []
    for path in sorted(folder.glob("*.cc")):
        for name, since, function in HANDLER.findall(path.read_text(encoding="utf-8")):
            if function == "kDataDependent":
                refused.append(f"`{name}`")
                continue
            if path.stem == "microsoft":
                microsoft.append(f"`{name}`")
                continue
            table.setdefault(name, []).append((int(since), FAMILIES[path.stem]))
    rows = []
    for name, entries in sorted(table.items()):
        first = min(entries)[0]
        rows.append(f"| {name} | {first} to {newest} | {max(entries)[1]} |")
    return "\n".join([
        "# ONNX operators", "", MADE,
        f"These {len(rows)} operators of ONNX's default domain can be imported. The second column says from which",
        "operator set on; a model of an older one can be converted with `onnx.version_converter`. A model's own functions",
        "are expanded. `hone inspect MODEL` says what becomes of a model, and every node that cannot be imported is named.",
        "",
        "Three rules hold for all of them:", "",
        "- Shapes are fixed. What decides a shape (the sizes of a Reshape or Slice, the axes of a reduction) must be a",
        "  constant, computed from constants and shapes, or given with `--bind`. The number of results may not depend on",
        f"  data, so {' and '.join(refused)} are refused.",
        "- `If`, `Loop` and `Scan` are written out. The number of iterations (4,096 at most) must be known; a branch that",
        "  depends on data works where both ways can be computed.",
        "- Types are bool, the integers of 8 to 64 bits, f16, bf16, f32 and f64. Strings, sequences, optional values,",
        "  complex numbers, 4-bit and 8-bit floats are refused by name; 4-bit integers may be constants or inputs.", "",
        f"The domain `com.microsoft` of ONNX Runtime: {', '.join(microsoft)}.", "",
        "| operator | operator sets | family |", "|---|---|---|", *rows]) + "\n"


def pages(source, programs):
    """{path: text} of the pages, as they should be."""
    folder = source / "docs/reference"
    return {folder / "commands.md": commands_page(programs),
            folder / "operators.md": operators_page(source / "graph/onnx_import")}


def stale(source, programs):
    """What is out of date, a line each."""
    for path, text in pages(source, programs).items():
        old = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        new = text.split("\n")
        if old != new:
            at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
            shown = new[at] if at < len(new) else "the end"
            yield (f"{path.relative_to(source)}:{at + 1}: the code says `{shown.strip()}`; "
                   "run scripts/reference.py --bin build/ci/bin")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.check:
        lines = list(stale(SOURCE, args.bin.resolve()))
        print("\n".join(lines))
        return 1 if lines else 0
    for path, text in pages(SOURCE, args.bin.resolve()).items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
