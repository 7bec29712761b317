#!/usr/bin/env python3
"""The wheel that scripts/wheel.sh makes of a build, in a virtual environment that has nothing else
and knows nothing of this tree: the tour, the command, the notebook.

    wheel_test.py --source DIR --build DIR [--results FILE.xml]

Skipped, by name, where pip cannot fetch what makes a wheel, or NumPy; the notebook where it cannot
fetch a kernel, the types where it cannot fetch mypy, the bare root where none can be made.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "packaging"))
from units_test import Skipped, write_results  # pylint: disable=wrong-import-position

PYTHON = "/usr/bin/python3"

RIGHT = """import hone
session = hone.tune("m.onnx", seconds=60, threads=2, log="t.db", precision="bf16", dims={"batch": 4}, batch="each")
verdict: hone.Verdict | None = session.verdict
kept: hone.Model = session.compile(threads=1, output="m.hone")
hone.compile("m.onnx", log=False, shapes={"x": (1, 3)}, server="tuner", insecure_loopback=True)
hone.connect("tuner").tune("m.onnx", judge=True, threads=2, project="vision")
hone.Log().query("m.onnx", dims={"batch": 3}, target="cpu:avx2")
hone.quantize("m.onnx", percentile=99.9, seconds=3)
"""
# Each line but the first is refused.
WRONG = """import hone
hone.tune("m.onnx", threads="2")
hone.tune("m.onnx", log=3)
hone.tune("m.onnx", server=1)
hone.compile("m.onnx", dims=3)
hone.compile("m.onnx", precison="bf16")
hone.connect("tuner").tune("m.onnx", judge="yes")
hone.connect("tuner").query("m.onnx", seconds=3)
hone.Log().query("m.onnx", threads=[1])
hone.tune("m.onnx", wait=False).compile(target=8)
hone.prune("m.onnx", 0.5, method="mse")
"""


def run(*words, **options):
    return subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)


class WheelTest:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.home = folder / "home"
        self.python = folder / "venv/bin/python"

    def prepare(self):
        if not pathlib.Path(PYTHON).exists():
            raise Skipped(f"there is no {PYTHON}; scripts/deps.sh test installs it")
        made = run(self.args.source / "scripts/wheel.sh", "--build-dir", self.args.build, "--output",
                   self.folder)
        if made.returncode == 4:
            raise Skipped(made.stdout.strip().splitlines()[-1])
        assert made.returncode == 0, made.stdout
        self.wheel = next(self.folder.glob("*.whl"))
        self.home.mkdir()
        run(PYTHON, "-m", "venv", self.folder / "venv")
        fetched = self.pip("numpy")
        if fetched.returncode != 0:
            raise Skipped("pip cannot install numpy")
        fetched = self.pip(self.wheel)
        assert fetched.returncode == 0, fetched.stdout

    def pip(self, *packages):
        return run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                   *packages)

    def user(self, *words):
        """A program as a user starts it: without a variable of ours."""
        done = run(*words, cwd=self.home, env={"HOME": str(self.home), "PATH": "/usr/bin:/bin"})
        assert done.returncode == 0, done.stdout
        return done.stdout

    def case_holds_what_it_promises(self):
        names = set(zipfile.ZipFile(self.wheel).namelist())
        inside = "hone/_hone/"
        for name in ("bin/hone", "bin/hone-worker", "libexec/hone/hone-builder", "LICENSE",
                     "libexec/hone/hone-runner", "lib/libhone_runtime.so.0"):
            assert inside + name in names, name
        assert "hone/py.typed" in names and "hone/model.py" in names, names
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        needs = zipfile.ZipFile(self.wheel).read(metadata).decode()
        for extra, package in (("onnx", "onnx"), ("onnx", "onnxscript"), ("torch", "torch"), ("pandas", "pandas")):
            assert f"Requires-Dist: {package}; extra == '{extra}'" in needs.replace('"', "'"), needs
        strangers = [name for name in names if "__pycache__" in name or name.endswith((".h", ".a"))]
        assert strangers == [inside + "libexec/hone/libhone_embedded.a"], strangers
        assert "-py3-none-manylinux_2_" in self.wheel.name, self.wheel.name

    def case_the_tour_tells_a_verdict_and_the_next_lines(self):
        said = self.user(self.python, "-m", "hone.tour", "--seconds", "4")
        for words in ("model: ", "a run: ", "import hone, numpy as np", "hone bench"):
            assert words in said, said
        # The lines that it tells to type are right as they stand.
        script = "\n".join(line.strip() for line in said.splitlines()
                           if line.startswith("    ") and "yours" not in line)
        python, command = script.split("hone bench")
        assert "conv" in self.user(self.python, "-c", python)
        self.user(self.folder / "venv/bin/hone", "bench", *command.split(), "--seconds", "0.2")
        assert not (self.home / ".local").exists(), "the tour wrote into the user's own log"

    def case_the_command_works(self):
        assert "hone 0." in self.user(self.folder / "venv/bin/hone", "--version")
        assert "hone-worker" in self.user(self.folder / "venv/bin/hone-worker", "--version")
        done = run(self.folder / "venv/bin/hone", "tune", "no.onnx", cwd=self.home)
        assert done.returncode == 3, done.stdout

    def case_torch_finds_the_backend(self):
        """The entry point, by the tests' own Python, which has torch; the wheel has nothing else here."""
        python = self.args.build / "venv/bin/python"
        script = ("import sys, torch\nassert 'hone' not in sys.modules\n"
                  "assert 'hone' in torch.compiler.list_backends()\n"
                  "y = torch.compile(lambda x: x * 2, backend='hone')(torch.ones(3))\n"
                  "import hone\nprint(y.tolist(), hone.__file__, hone.seen()[0]['state'])\n")
        if not python.exists() or run(python, "-c", "import torch, onnxscript").returncode != 0:
            raise Skipped("the tests' Python has no torch and onnxscript (scripts/torch.sh)")
        place = self.folder / "alone"
        made = self.pip("--no-deps", "--target", place, self.wheel)
        assert made.returncode == 0, made.stdout
        done = run(python, "-c", script, cwd=self.home, env={
            "HOME": str(self.home), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(place)})
        assert done.returncode == 0 and f"[2.0, 2.0, 2.0] {place}" in done.stdout, done.stdout
        assert done.stdout.strip().endswith("compiled"), done.stdout

    def case_the_notebook_runs_in_a_kernel(self):
        if self.pip("nbclient", "ipykernel").returncode != 0:
            raise Skipped("pip cannot install nbclient and ipykernel")
        said = self.user(self.python, pathlib.Path(__file__).parent / "run_notebook.py",
                         self.args.source / "examples/notebook.ipynb")
        assert said.count("text/html") == 3, said
        # The bar is one output, that of the tuning's cell, written over until it has come some way.
        bars = [line for line in said.splitlines() if re.search("displayed=[1-9]", line)]
        assert len(bars) == 1 and "stream" in bars[0] and bars[0].endswith("displayed=1 [#"), said

    def case_installs_in_a_bare_root(self):
        """Another glibc and Python, and nothing of this machine."""
        done = run(self.args.source / "scripts/bare_wheel.sh", self.wheel, "4")
        if "bare_wheel: made a bare root" not in done.stdout:
            raise Skipped(f"no bare root can be made here: {done.stdout.strip().splitlines()[-1]}")
        assert done.returncode == 0 and "model: " in done.stdout, done.stdout
        assert "bare_wheel: installed and toured" in done.stdout, done.stdout

    def case_types_are_checked(self):
        """As an editor or mypy sees the installed module."""
        if self.pip("mypy").returncode != 0:
            raise Skipped("pip cannot install mypy")
        right, wrong = self.home / "right.py", self.home / "wrong.py"
        right.write_text(RIGHT, encoding="utf-8")
        wrong.write_text(WRONG, encoding="utf-8")
        mypy = (self.python, "-m", "mypy", "--strict")
        self.user(*mypy, right)
        said = run(*mypy, wrong, cwd=self.home).stdout
        found = {line.split(":")[1] for line in said.splitlines() if ": error: " in line}
        assert found == {str(n) for n in range(2, WRONG.count("\n") + 1)}, said
        # A name that editors complete.
        assert 'did you mean "precision"?' in said, said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path)
    args = parser.parse_args()
    args.source, args.build = args.source.resolve(), args.build.resolve()
    rows = []
    with tempfile.TemporaryDirectory(prefix="hone-wheel-") as folder:
        test, missing = WheelTest(args, pathlib.Path(folder)), None
        try:
            test.prepare()
        except Skipped as reason:
            missing = ("skipped", str(reason))
        except Exception:  # pylint: disable=broad-except
            missing = ("failed", traceback.format_exc())
        for name in [name for name in dir(test) if name.startswith("case_")]:
            verdict, why = missing or ("passed", "")
            try:
                if not missing:
                    getattr(test, name)()
            except Skipped as reason:
                verdict, why = "skipped", str(reason)
            except Exception:  # pylint: disable=broad-except
                verdict, why = "failed", traceback.format_exc()
            rows.append((name.removeprefix("case_"), verdict, why))
            print(f"{verdict:8} {rows[-1][0]} {why}", flush=True)
    if args.results:
        write_results(args.results, rows)
    return 1 if any(verdict == "failed" for _, verdict, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
