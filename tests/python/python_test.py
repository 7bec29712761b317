#!/usr/bin/env python3
"""The module `hone` as a user's program meets it: models in process, tunings, errors, bad input, and
the blocks of docs/PYTHON.md; part torch: modules of PyTorch, and torch.compile.

    python_test.py --source DIR --build DIR --write-package PROGRAM --python PYTHON
                   [--older-cpu LIBRARY] [--part python|torch] [--whole] [--only REGEX]
                   [--results FILE.xml]

Runs itself again with PYTHON, which has numpy, onnx and onnxruntime; without it everything is
skipped, by name. --older-cpu: the library of older_cpu.cc. --whole: what takes long too (scripts/proof.sh torch).
"""
import argparse
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "packaging"), str(HERE.parent / "guides"),
                str(HERE.parents[1] / "python")]
from units_test import write_results  # pylint: disable=wrong-import-position

SUITES = {"python": ("model_cases", "error_cases", "tuning_cases", "quantise_cases", "prune_cases",
                     "farm_cases", "guide_cases"),
           "torch": ("torch_cases", "torch_module_cases", "torch_backend_cases", "torch_corner_cases",
                     "torch_process_cases", "torch_export_cases",
                     "torch_network_cases", "torch_operator_cases")}


class Results(unittest.TestResult):
    """(case, verdict, why) of each."""

    def __init__(self):
        super().__init__()
        self.rows, self.began = [], 0.0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def tell(self, test, verdict, why=""):
        case = f"{type(test).__name__}.{getattr(test, '_testMethodName', 'setUpClass')}"
        print(f"{verdict:8} {time.monotonic() - self.began:5.1f} s {case} {why}", flush=True)
        self.rows.append((case, verdict, why))

    def addSuccess(self, test):
        self.tell(test, "passed")

    def addFailure(self, test, err):
        self.tell(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.tell(test, "failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.tell(test, "failed", f"{subtest._subDescription()} {self._exc_info_to_string(err, test)}")

    def addSkip(self, test, reason):
        self.tell(test, "skipped", reason)


def flat(suite):
    for each in suite:
        yield from flat(each) if isinstance(each, unittest.TestSuite) else [each]


def prepare(args, folder):
    """The world of a user without a home folder of before, and a package with known answers."""
    for name in [name for name in os.environ if name.startswith(("HONE_", "XDG_"))]:
        del os.environ[name]
    os.environ.update(HOME=str(folder), HONE_BIN=str(args.build / "bin"))
    os.environ["PYTHONPATH"] = str(args.source / "python")
    subprocess.run([args.write_package, folder / "model.hone"], check=True)
    os.chdir(folder)


def skip_all(suites):
    """Every case, without what they import."""
    for suite in suites:
        text = (HERE / f"{suite}.py").read_text(encoding="utf-8")
        for case in re.findall(r"^    def (test_\w+)", text, re.M):
            yield case, "skipped", "there is no Python with numpy, onnx and onnxruntime (scripts/test.sh makes one)"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--source", "--build", "--write-package", "--python", "--results"):
        parser.add_argument(name, type=pathlib.Path, required=name != "--results")
    parser.add_argument("--older-cpu", type=pathlib.Path)
    parser.add_argument("--part", choices=SUITES, default="python")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    for name in ("source", "build", "write_package"):
        setattr(args, name, getattr(args, name).resolve())
    if pathlib.Path(sys.prefix) != args.python.absolute().parents[1] and args.python.exists():
        os.execv(args.python, [str(args.python), *sys.argv])
    if any(importlib.util.find_spec(name) is None for name in ("numpy", "onnx", "onnxruntime")):
        rows = list(skip_all(SUITES[args.part]))
    else:
        with tempfile.TemporaryDirectory(prefix="hone-python-") as folder:
            prepare(args, pathlib.Path(folder).resolve())
            os.environ["TEST_WHOLE"] = "1" if args.whole else ""
            os.environ["TEST_OLDER_CPU"] = str(args.older_cpu.resolve()) if args.older_cpu else ""
            results = Results()
            for suite in SUITES[args.part]:
                for test in flat(unittest.defaultTestLoader.loadTestsFromName(suite)):
                    if re.search(args.only, test.id()):
                        test.run(results)
            rows = results.rows
    if args.results:
        write_results(args.results, rows)
    failed = sum(verdict == "failed" for _, verdict, _ in rows)
    print(f"{len(rows)} cases, {failed} failed")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
