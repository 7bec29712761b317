#!/usr/bin/env python3
"""Checks and measures Hone on a machine with a GPU; scripts/gpu_check.sh starts it.

    gpu_check.py [PART...] [--seconds S] [--rows WORD] [--again] [--results DIR]

Parts, each at most 450 seconds; what is left open goes on with the same command:
  correct   TMA's swizzles and wgmma's descriptors against our emulation, ONNX's operator cases, and
            networks under compute-sanitizer where it is installed
  models    the 19 networks: the CPU's outputs, compiling, running, time
  kernels   one operator each: time, share of what the probed device can do
  search    tuning on the device
  peers     the rows of `kernels` in PyTorch: cuBLAS, cuDNN, torch.compile with Triton
  faults    another chip's code, a killed process, a driver that is not there

Prints one table and writes DIR/gpu_check.json: device, driver, clocks, date, versions, rows. Ends
with 0, with 1 when a row failed, with 3 when rows are open. Changes no setting of the device."""
import argparse
import collections
import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent
PARTS = ("correct", "models", "kernels", "search", "peers", "faults")
MODELS = ("resnet50", "bert_base", "mlp", "lenet5", "resnet18", "squeezenet", "mobilenet_v2",
          "mobilenet_v3_small", "efficientnet_b0", "densenet121", "convnext_tiny", "vit_small",
          "bert_small", "gpt2_decode", "gpt2_prefill", "unet", "segformer_b0", "vgg16", "lstm_lm")
SANITIZED = ("mlp", "lenet5", "squeezenet", "bert_small")
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")

Ended = collections.namedtuple("Ended", "code out err seconds")
TIMED_OUT = -1000


class Missing(Exception):
    """This machine lacks what the row needs."""


class Open(Exception):
    """The row is not done: time was over, or what it needs is not there yet."""


class Check:
    def __init__(self, args):
        self.args = args
        self.results = args.results.resolve()
        self.results.mkdir(parents=True, exist_ok=True)
        self.work = self.results / "work"
        self.work.mkdir(exist_ok=True)
        self.state_path = self.results / "state.json"
        self.rows = {} if args.again else self.read_state()
        self.deadline = 0
        # Built kernels of another bundle would be taken for this one's.
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.results / "cache"),
                                XDG_DATA_HOME=str(self.results / "data"))

    def read_state(self):
        try:
            return json.loads(self.state_path.read_text())
        except (OSError, ValueError):
            return {}

    def left(self):
        return self.deadline - time.monotonic()

    def call(self, *command, most=450, environment=None):
        """Runs a program to its end, or until the part's time is over."""
        begin = time.monotonic()
        limit = max(1, min(most, self.left()))
        with subprocess.Popen([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment or self.environment,
                              start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=limit)
                code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                code = TIMED_OUT
        if code == TIMED_OUT and limit < most:
            raise Open("time was over")
        return Ended(code, out, err, time.monotonic() - begin)

    def hone(self, *words, **options):
        return self.call(ROOT / "bin" / "hone", *words, **options)

    def run_part(self, part):
        self.deadline = time.monotonic() + self.args.seconds
        rows = self.rows.setdefault(part, {})
        for name, work in getattr(self, f"rows_of_{part}")():
            if self.args.rows not in name or rows.get(name, {}).get("result") not in (None, "open"):
                continue
            if self.left() < 5:
                rows[name] = {"result": "open", "what": "time was over; the same command goes on"}
                continue
            begin = time.monotonic()
            try:
                row = work()
            except Open as why:
                row = {"result": "open", "what": f"{why}; the same command goes on"}
            except Missing as why:
                row = missing(str(why))
            except (OSError, ValueError, KeyError, IndexError) as error:
                row = {"result": "failed", "what": f"{type(error).__name__}: {error}"}
            row["seconds"] = round(time.monotonic() - begin, 1)
            rows[name] = row
            self.state_path.write_text(json.dumps(self.rows, indent=1))
            print(f"{part}/{name}: {row['result']} {row.get('what', '')}", file=sys.stderr, flush=True)

    # Rows: a name and what gives {"result": passed|failed|missing|measured|open, "what": …}.

    def rows_of_correct(self):
        for table in ("tma", "wgmma"):
            yield f"truth {table}", lambda table=table: self.truth(table)
        yield "operator cases", self.cases
        if shutil.which("compute-sanitizer") is None:
            yield "compute-sanitizer", lambda: missing("compute-sanitizer is not in the PATH")
            return
        for name in SANITIZED:
            for tool in TOOLS:
                yield f"{tool} {name}", lambda name=name, tool=tool: self.sanitize(name, tool)

    def truth(self, table):
        ended = self.call(ROOT / "bin" / "gpu-truth", table, most=60)
        if ended.code == 8:
            return missing(last_line(ended.err))
        lines = ended.out.splitlines()
        differs = [line for line in lines if line.startswith("differs")]
        what = f"{len(lines) - len(differs)} layouts equal our emulation"
        if ended.code == 0 and lines:
            return {"result": "passed", "what": what, "lines": lines}
        return {"result": "failed", "what": "; ".join(differs) or last_line(ended.err), "lines": lines}

    def cases(self):
        done = self.results / "cases.txt"
        if self.args.again:
            done.unlink(missing_ok=True)
        suites = [f"{path.name}={path}" for path in cases_folders()]
        if not suites:
            return missing("the bundle was made without cases")
        for _ in range(50):  # a lost device ends the process; the next one goes on
            ended = self.call(ROOT / "bin" / "gpu-cases", "cuda:native", max(1, int(self.left() - 20)),
                              done, "--stride", self.args.stride, *suites)
            if ended.code in (0, 1, 3):
                break
        if ended.code == 1:
            return {"result": "failed", "what": last_line(ended.err)}
        return summary_of_cases(done, ended.code == 0)

    def sanitize(self, name, tool):
        package, inputs, expected = self.package(name)
        ended = self.call("compute-sanitizer", "--tool", tool, "--error-exitcode", 99,
                          ROOT / "bin" / "hone", "run", package, "--inputs", inputs, "--expect", expected,
                          most=200)
        if ended.code == 0:
            return {"result": "passed", "what": "nothing found"}
        text = ended.out + ended.err
        found = [line for line in text.splitlines() if line.startswith("=========")]
        return {"result": "failed", "what": f"exit {ended.code}: " + " / ".join(found[:4])[:400]}

    def rows_of_models(self):
        for name in MODELS:
            yield name, lambda name=name: self.model(name)

    def model(self, name):
        package, inputs, expected = self.package(name)
        run = self.hone("run", package, "--inputs", inputs, "--expect", expected)
        if run.code != 0:
            return {"result": "failed", "what": last_line(run.err or run.out)}
        bench = self.hone("bench", package, "--inputs", inputs, "--seconds", 2, "--json")
        if bench.code != 0:
            return {"result": "failed", "what": last_line(bench.err)}
        us = json.loads(bench.out)["median_us"]
        self.remove(name)
        return {"result": "measured", "us": us, "what": f"as on the CPU; {last_line(run.out)[-60:]}"}

    def package(self, name):
        """The network for this GPU, its inputs, and what Hone computes of them on the CPU."""
        folder = self.work / name
        model, inputs = folder / f"{name}.onnx", folder / f"{name}.inputs.npz"
        package, expected = folder / f"{name}.hone", folder / "cpu.npz"
        if not (folder / "ready").exists():
            folder.mkdir(exist_ok=True)
            made = self.call(sys.executable, ROOT / "models" / "make_models.py", folder, name,
                             "--no-expected")
            if made.code != 0:  # no numpy or no onnx here: a network of the same name, if there is one
                zoo = self.hone("zoo", name.replace("gpt2_prefill", "gpt2_small"), "-o", model)
                if zoo.code != 0:
                    raise Missing(f"the weights need this python's numpy and onnx: {last_line(made.err)}")
            self.expect(self.hone("run", model, "--inputs", inputs, "--outputs", expected, "--target",
                                  "cpu:native", "--no-log"))
            self.expect(self.hone("compile", model, "--target", "cuda:native", "-o", package, "--no-log"))
            (folder / "ready").touch()
        return package, inputs, expected

    @staticmethod
    def expect(ended):
        if ended.code != 0:
            raise OSError(last_line(ended.err))

    def remove(self, name):
        """Weights take room; those that compute-sanitizer wants stay."""
        if name not in SANITIZED:
            shutil.rmtree(self.work / name, ignore_errors=True)

    def rows_of_kernels(self):
        yield "rates", self.rates
        for path in sorted((ROOT / "kernels").glob("*.onnx")):
            yield path.stem, lambda path=path: self.kernel(path)

    def rates(self):
        ended = self.call(ROOT / "bin" / "gpu-truth", "rates", most=60)
        if ended.code != 0:
            return {"result": "failed", "what": last_line(ended.err)}
        rates = json.loads(ended.out)
        return {"result": "measured", "rates": rates,
                "what": f"copy {rates['memory_bytes_per_second'] / 1e9:.0f} GB/s, L2 "
                        f"{rates['l2_bytes_per_second'] / 1e9:.0f} GB/s, f32 "
                        f"{rates['flop_per_second'] / 1e12:.1f} TFLOP/s; tensor cores not probed"}

    def kernel(self, path):
        ended = self.hone("bench", path, "--target", "cuda:native", "--no-log", "--profile", "--json",
                          "--seconds", 1, most=120)
        if ended.code == TIMED_OUT:
            return {"result": "failed", "what": "two minutes were not enough"}
        if ended.code != 0:
            return {"result": "failed", "what": last_line(ended.err)}
        kernels = json.loads(ended.out)["profile"]
        us = sum(kernel["us"] for kernel in kernels)
        flop, size = (sum(kernel[key] for kernel in kernels) for key in ("flop", "bytes"))
        share = sum(kernel["roofline_share"] * kernel["us"] for kernel in kernels) / us
        return {"result": "measured", "us": us, "share": share,
                "what": f"{flop / us / 1e6:.2f} TFLOP/s, {size / us / 1e3:.0f} GB/s, {100 * share:.0f} % of "
                        "what was probed"}

    def rows_of_search(self):
        yield "search", lambda: missing("not built yet: hone tune measures on CPUs alone")

    def rows_of_peers(self):
        for path in sorted((ROOT / "kernels").glob("*.onnx")):
            yield path.stem, lambda path=path: self.peer(path.stem)

    def peer(self, name):
        ended = self.call(sys.executable, ROOT / "gpu_peers.py", name, most=200)
        if ended.code != 0:
            return {"result": "failed", "what": last_line(ended.err)}
        found = json.loads(ended.out.splitlines()[-1])
        times = {key: found[key] for key in ("cublas", "eager", "compiled") if key in found}
        ours = self.rows.get("kernels", {}).get(name, {}).get("us")
        words = [f"{key} {us:.1f} us" + (f" ({us / ours:.2f} of ours)" if ours else "")
                 for key, us in times.items()]
        if "missing" in found:
            words.append(found["missing"])
        return {"result": "measured" if times else "missing", "peers": found, "what": ", ".join(words)}

    def rows_of_faults(self):
        yield "another chip", self.another_chip
        yield "a killed process", self.killed
        yield "no driver", self.no_driver

    def another_chip(self):
        model, package = self.tiny()
        chip = "sm_90a" if self.capability() == "10.0" else "sm_100a"
        self.expect(self.hone("compile", model, "--target", f"cuda:{chip}", "-o", package, "--no-log"))
        ended = self.hone("run", package, "--inputs", model.with_suffix(".inputs.npz"))
        said = last_line(ended.err)
        good = ended.code == 8 and "compute capability" in said
        return {"result": "passed" if good else "failed", "what": f"exit {ended.code}: {said}"}

    def killed(self):
        model, package = self.tiny()
        inputs = model.with_suffix(".inputs.npz")
        self.expect(self.hone("compile", model, "--target", "cuda:native", "-o", package, "--no-log"))
        for _ in range(3):
            with subprocess.Popen([ROOT / "bin" / "hone", "bench", package, "--seconds", "60"],
                                  env=self.environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as process:
                time.sleep(1)
                process.kill()
        ended = self.hone("run", package, "--inputs", inputs)
        return {"result": "passed" if ended.code == 0 else "failed",
                "what": "three kills, then it runs" if ended.code == 0 else last_line(ended.err)}

    def no_driver(self):
        model, package = self.tiny()
        self.expect(self.hone("compile", model, "--target", "cuda:sm_80", "-o", package, "--no-log"))
        # A driver that shows no device says so.
        hidden = dict(self.environment, CUDA_VISIBLE_DEVICES="")
        ended = self.hone("run", package, "--inputs", model.with_suffix(".inputs.npz"), environment=hidden)
        if ended.code == 0:
            return missing("this driver shows its device whatever CUDA_VISIBLE_DEVICES says")
        return {"result": "passed" if ended.code == 8 else "failed",
                "what": f"exit {ended.code}: {last_line(ended.err)}"}

    def tiny(self):
        model = self.work / "tiny.onnx"
        if not model.exists():
            self.expect(self.hone("zoo", "mlp", "-o", model))
        return model, self.work / "tiny.hone"

    def capability(self):
        ended = self.call(ROOT / "bin" / "gpu-truth", "device", most=60)
        return json.loads(ended.out)["capability"] if ended.code == 0 else ""

    def describe(self):
        """Device, driver, clocks as they are, and what else is installed."""
        self.deadline = time.monotonic() + 60
        ended = self.call(ROOT / "bin" / "gpu-truth", "device", most=60)
        found = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                 "device": json.loads(ended.out) if ended.code == 0 else last_line(ended.err),
                 "versions": {"hone": self.hone("version").out.partition("\n")[0].removeprefix("hone "), "bundle": read(ROOT / "version"),
                              "python": sys.version.split()[0]}}
        columns = ("name", "uuid", "driver_version", "clocks.sm", "clocks.mem", "temperature.gpu",
                   "power.draw", "power.limit", "mig.mode.current")
        if shutil.which("nvidia-smi"):
            smi = self.call("nvidia-smi", "--query-gpu=" + ",".join(columns), "--format=csv,noheader", most=30)
            found["nvidia-smi"] = dict(zip(columns, [word.strip() for word in smi.out.split(",")]))
        for tool in ("compute-sanitizer", "ptxas"):
            if shutil.which(tool):
                found["versions"][tool] = last_line(self.call(tool, "--version", most=30).out)
        return found


def missing(why):
    return {"result": "missing", "what": why}


def read(path):
    return path.read_text().strip() if path.exists() else "unknown"


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:400] if lines else "(nothing was said)"


def cases_folders():
    for path in sorted((ROOT / "cases").glob("*")):
        nested = [path] if path.name != "packaged" else sorted(path.glob("*"))
        yield from (folder for folder in nested if folder.is_dir())


def summary_of_cases(done, complete):
    """What a file of gpu-cases tells; a case that begins and does not end took its process with it."""
    ends, reasons = {}, {}
    for line in done.read_text().splitlines():
        verdict, name, *reason = line.split(" ", 2)
        ends[name] = "crashed" if verdict == "begin" else verdict
        reasons[name] = " ".join(reason)
    counts = collections.Counter(ends.values())
    bad = [f"{name}: {reasons[name]}" for name, end in ends.items() if end in ("failed", "crashed")]
    what = ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))
    result = "open" if not complete else "failed" if bad else "passed"
    return {"result": result, "what": what + ("; first: " + bad[0][:200] if bad else ""), "bad": bad}


def table(check, device):
    lines = [f"Hone {device['versions']['hone']} (bundle {device['versions']['bundle']}), {device['date']}",
             f"device: {json.dumps(device['device'])}"]
    if "nvidia-smi" in device:
        lines.append("nvidia-smi: " + json.dumps(device["nvidia-smi"]))
    lines.append(f"{'part':<8} {'row':<24} {'result':<9} {'us':>10}  what")
    for part in PARTS:
        for name, row in check.rows.get(part, {}).items():
            us = f"{row['us']:.1f}" if "us" in row else "-"
            lines.append(f"{part:<8} {name:<24} {row['result']:<9} {us:>10}  {row.get('what', '')}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="all of them when none is named")
    parser.add_argument("--seconds", type=float, default=450, help="of one part (default: 450)")
    parser.add_argument("--rows", default="", metavar="WORD", help="only rows whose name contains it")
    parser.add_argument("--stride", type=int, default=1, metavar="N", help="one operator case in N")
    parser.add_argument("--again", action="store_true", help="forget what was done")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "results")
    args = parser.parse_args()
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    check = Check(args)
    device = check.describe()
    for part in args.parts or PARTS:
        check.run_part(part)
    text = table(check, device)
    print(text)
    (check.results / "table.txt").write_text(text + "\n")
    (check.results / "gpu_check.json").write_text(json.dumps({**device, "rows": check.rows}, indent=1) + "\n")
    ends = {row["result"] for rows in check.rows.values() for row in rows.values()}
    return 1 if "failed" in ends else 3 if "open" in ends else 0


if __name__ == "__main__":
    sys.exit(main())
