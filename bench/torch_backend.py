#!/usr/bin/env python3
"""Networks of PyTorch by torch.compile: the backend hone, untuned and tuned, in turns with Inductor.

    HONE_BIN=build/release/bin torch_backend.py [NETWORK...] [--threads 2] [--tune 60] [--rounds 10]
        [--seconds 1] [--log FILE.db] [--json OUT.json] [--markdown OUT.md]

Needs torch (its CPU wheel), onnx, onnxscript and transformers, whose architectures have random
weights here. Each subject is a process of its own with --threads threads that compiles the network
and then waits; in each round each subject calls it for --seconds. Inductor runs with
mode="max-autotune" and freezing, its caches empty; the subject hone finds an empty log, hone-tuned
the log that HONE_TUNE=--tune filled before: a new one, unless --log names one to go on with.

A row: median of a call over all rounds in ms, ratios to Inductor with the range of the rounds'
ratios, and the seconds of the first call. Exits with 1 where a threshold is missed: tuned at most
0.50 × Inductor over the first four networks, 0.60 over all (geometric means), none above 1, the first
call untuned in a quarter of Inductor's.
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
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
SUBJECTS = ("hone", "hone-tuned", "inductor")
SMALL = {"hidden_size": 384, "num_attention_heads": 6, "intermediate_size": 1536}  # ViT-S
NETWORKS = {  # class of transformers, its config, shape of the input: words or an image
    "bert_base": ("BertModel", {}, (1, 128)),
    "vit_small": ("ViTModel", SMALL, (1, 3, 224, 224)),
    "resnet50": ("ResNetModel", {}, (1, 3, 224, 224)),
    "mobilenet_v2": ("MobileNetV2Model", {}, (1, 3, 224, 224)),
    "distilbert": ("DistilBertModel", {}, (1, 128)),
    "gpt2": ("GPT2Model", {"use_cache": False}, (1, 64)),
    "convnext_tiny": ("ConvNextModel", {}, (1, 3, 224, 224)),
    "regnet": ("RegNetModel", {}, (1, 3, 224, 224)),
    "segformer_b0": ("SegformerModel", {}, (1, 3, 256, 256)),
    "swin_tiny": ("SwinModel", {}, (1, 3, 224, 224)),
}


def make(name):
    """(module, keyword arguments), the same in every process."""
    import torch
    import transformers
    kind, told, shape = NETWORKS[name]
    torch.manual_seed(5)
    config = getattr(transformers, kind.removesuffix("Model") + "Config")(**told)
    module = getattr(transformers, kind)(config).eval()
    if len(shape) == 2:
        return module, {"input_ids": torch.randint(0, 1000, shape)}
    return module, {"pixel_values": torch.randn(shape)}


def subject(name, kind, threads, log):
    """Prints the seconds of the first call, then for each line of standard input, seconds, the times
    of calls in them."""
    import torch
    torch.set_num_threads(threads)
    module, inputs = make(name)
    if kind == "inductor":
        import torch._inductor.config as inductor
        inductor.freezing = True
        inductor.force_disable_caches = True
        compiled = torch.compile(module, mode="max-autotune")
    else:
        import hone.pytorch
        compiled = torch.compile(module, backend=hone.pytorch.backend, options={"log": log})
    with torch.no_grad():
        began = time.perf_counter()
        got = compiled(**inputs)
        first = time.perf_counter() - began
        want = module(**inputs)
        error = float((got[0] - want[0]).abs().max() / want[0].abs().max())
        fell = [row["why"] for row in hone.seen() if row["state"] == "eager"] if kind != "inductor" else []
        print(json.dumps({"first_seconds": first, "error": error, "fell_back": fell}), flush=True)
        for line in sys.stdin:
            until, times = time.perf_counter() + float(line), []
            while time.perf_counter() < until:
                began = time.perf_counter()
                compiled(**inputs)
                times.append(time.perf_counter() - began)
            print(json.dumps(times), flush=True)


class Subject:
    def __init__(self, args, name, kind, log):
        environment = {key: value for key, value in os.environ.items() if key != "HONE_TUNE"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, name, "--subject", kind, "--threads", str(args.threads), "--log",
             str(log)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.told = json.loads(self.process.stdout.readline())
        self.medians, self.times = [], []

    def turn(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        times = json.loads(self.process.stdout.readline())
        self.medians.append(statistics.median(times))
        self.times += times


def measure(args, name, log):
    with tempfile.TemporaryDirectory(prefix="hone-bench-") as folder:
        log = log.resolve() if log else pathlib.Path(folder, "tuned.db")
        subprocess.run([sys.executable, __file__, name, "--subject", "hone", "--threads", str(args.threads),
                        "--log", str(log)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
                       env={**os.environ, "HONE_TUNE": str(args.tune)})
        logs = {"hone": pathlib.Path(folder, "empty.db"), "hone-tuned": log, "inductor": log}
        subjects = {kind: Subject(args, name, kind, logs[kind]) for kind in SUBJECTS}
        for _ in range(args.rounds):
            for each in subjects.values():
                each.turn(args.seconds)
    row = {"network": name}
    rival = subjects["inductor"]
    for kind, each in subjects.items():
        each.process.stdin.close()
        each.process.wait()
        ratios = [mine / theirs for mine, theirs in zip(each.medians, rival.medians)]
        row[kind] = {"ms": 1e3 * statistics.median(each.times), "ratio": statistics.median(ratios),
                     "ratio_low": min(ratios), "ratio_high": max(ratios), **each.told}
    return row


def table(rows):
    lines = ["| network | Inductor, ms | hone, ms | hone tuned, ms | untuned ÷ Inductor | tuned ÷ Inductor | "
             "first call, s: hone | Inductor |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        plain, tuned, rival = (row[kind] for kind in SUBJECTS)
        lines.append(f"| {row['network']} | {rival['ms']:.2f} | {plain['ms']:.2f} | {tuned['ms']:.2f} | "
                     f"{plain['ratio']:.2f} | {tuned['ratio']:.2f} ({tuned['ratio_low']:.2f} to "
                     f"{tuned['ratio_high']:.2f}) | {plain['first_seconds']:.1f} | "
                     f"{rival['first_seconds']:.1f} |")
    return "\n".join(lines) + "\n"


def missed(rows):
    """The thresholds that the rows do not meet."""
    def mean(chosen):
        return math.exp(statistics.mean(math.log(row["hone-tuned"]["ratio"]) for row in chosen))
    four = [row for row in rows if row["network"] in list(NETWORKS)[:4]]
    if four and mean(four) > 0.5:
        yield f"tuned takes {mean(four):.2f} × Inductor over the first four"
    if mean(rows) > 0.6:
        yield f"tuned takes {mean(rows):.2f} × Inductor over all"
    for row in rows:
        if row["hone-tuned"]["ratio"] > 1:
            yield f"{row['network']} is slower than by Inductor"
        if row["hone"]["first_seconds"] > 0.25 * row["inductor"]["first_seconds"]:
            yield f"{row['network']}: the first call takes more than a quarter of Inductor's"
        for kind in SUBJECTS:
            if row[kind]["error"] > 1e-3 or row[kind]["fell_back"]:
                yield f"{row['network']}: {kind} differs from eager or fell back: {row[kind]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tune", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--subject", choices=SUBJECTS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.subject:
        subject(args.networks[0], args.subject, args.threads, args.log)
        return 0
    rows = []
    for name in args.networks or NETWORKS:
        rows.append(measure(args, name, args.log))
        print(table(rows[-1:]).splitlines()[-1], flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if args.markdown:
        args.markdown.write_text(table(rows), encoding="utf-8")
    failures = list(missed(rows))
    print("\n".join([table(rows), *failures]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
