#!/usr/bin/env python3
"""Holds `hone quantize` to what it must reach (scripts/proof.sh quantise):

    proof.py --hone PROGRAM --models FOLDER --work FOLDER [--without-digits] [MODEL ...]

Each model of FOLDER is quantised to int8 from the same four batches by Hone and by ONNX Runtime's
static quantiser (QDQ, per channel); on four other batches Hone's file must be at least as near to f32.
Both files are run by ONNX Runtime without its optimisations, so that it is the files that are
compared. Then the networks of train_digits.py: top-1 may drop by one point at most.
"""
import argparse
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime as ort

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "bench/peers"))
import narrow  # pylint: disable=wrong-import-position

MOST_DROP = 1.0  # points
LEAST_GAIN = -0.3  # dB: what rounding alone moves from one set of batches to the next


def hone(program, *words):
    done = subprocess.run([program, *map(str, words), "--json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"hone {' '.join(map(str, words))}: {done.stderr}")
    return json.loads(done.stdout)


def session(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def outputs(path, batches):
    made = session(path)
    names = [output.name for output in made.get_outputs()]
    return [dict(zip(names, made.run(None, feeds))) for feeds in batches]


def compare(program, model, work):
    """The row of a model: SQNR of both files in dB."""
    feeds = dict(np.load(model.with_suffix(".inputs.npz")))
    data = work / f"{model.stem}.data"
    data.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(narrow.CALIBRATION):
        np.savez(data / f"{number}.npz", **narrow.drawn(feeds, seed))
    ours = work / f"{model.stem}.int8.onnx"
    told = hone(program, "quantize", model, "--calibrate", data, "-o", ours)
    theirs = narrow.quantised(model, "static", feeds, work)
    batches = [narrow.drawn(feeds, seed) for seed in narrow.EVALUATION]
    reference = outputs(model, batches)
    mine, other = (narrow.accuracy(reference, outputs(path, batches)) for path in (ours, theirs))
    kept = sum(layer["kept"] for layer in told["layers"])
    print(f"| {model.stem} | {mine[0]:.1f} | {told['written']['sqnr_db']:.1f} | {other[0]:.1f} | "
          f"{mine[0] - other[0]:+.1f} | {len(told['layers']) - kept} of {len(told['layers'])} |", flush=True)
    return mine[0] - other[0]


def judge_digits(program, work):
    subprocess.run([sys.executable, str(HERE / "train_digits.py"), str(work)], check=True)
    print("\n| network | top-1 in f32 | as int8 | SQNR, dB |\n|---|---|---|---|")
    worst = 0.0
    for name in ("mlp", "cnn", "vit"):
        told = hone(program, "quantize", work / f"{name}.onnx", "--calibrate", work / f"{name}.calibrate.npz",
                    "--labels", work / f"{name}.test.npz", "-o", work / f"{name}.int8.onnx")
        before, after = 100 * told["top1_in_f32"], 100 * told["written"]["top1"]
        worst = max(worst, before - after)
        print(f"| {name} | {before:.2f} % | {after:.2f} % | {told['written']['sqnr_db']:.1f} |", flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hone", required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--without-digits", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    names = given.names or sorted(path.stem for path in given.models.glob("*.onnx"))
    given.work.mkdir(parents=True, exist_ok=True)
    failed = []
    print("SQNR against f32 in dB, higher is nearer.\n\n| model | Hone's file | as Hone compiles it | "
          "ONNX Runtime's file | gain | layers in int8 |\n|---|---|---|---|---|---|", flush=True)
    for name in names:
        gain = compare(given.hone, given.models / f"{name}.onnx", given.work)
        if gain < LEAST_GAIN:
            failed.append(f"{name} is {-gain:.1f} dB below ONNX Runtime's static quantiser")
    if not given.without_digits:
        drop = judge_digits(given.hone, given.work / "digits")
        if drop > MOST_DROP:
            failed.append(f"top-1 drops by {drop:.2f} points")
    for line in failed:
        print(f"proof.sh quantise: {line}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
