#!/usr/bin/env python3
"""Hone's own programs with one more kind of device linked in: tune, compile, run and a farm."""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from xml.sax.saxutils import quoteattr

BIN = pathlib.Path()
TARGET = "abacus:rods=13"


def hone(folder, *words, code=0, **variables):
    done = subprocess.run([BIN / "hone", *map(str, words)], cwd=folder, text=True, timeout=200,
                          env={"HOME": str(folder), "PATH": os.environ["PATH"], **variables},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != code:
        raise AssertionError(f"hone {words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Programs(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="hone-kinds-")
        self.folder = pathlib.Path(self.scratch.name)
        self.started = []
        hone(self.folder, "zoo", "mlp")

    def tearDown(self):
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        self.scratch.cleanup()

    def start(self, program, *words):
        log = open(self.folder / f"{program}.log", "w", encoding="utf-8")
        process = subprocess.Popen([BIN / program, *map(str, words)], cwd=self.folder, stdout=log,
                                   stderr=subprocess.STDOUT)
        log.close()
        self.started.append(process)

    def log_of(self, program):
        return (self.folder / f"{program}.log").read_text(encoding="utf-8")

    def await_line(self, program, pattern):
        for _ in range(300):
            found = re.search(pattern, self.log_of(program))
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"{program} never said '{pattern}':\n{self.log_of(program)}")

    def check_package_of(self, log):
        """Every kernel of a package is of a record, and it computes what the host does."""
        hone(self.folder, "compile", "mlp.onnx", "--target", TARGET, "--db", log, "-o", "m.hone",
             "--require", "exact")
        told = json.loads(hone(self.folder, "inspect", "m.hone", "--json"))
        self.assertEqual(told["target"], TARGET)
        self.assertEqual(told["device_class"], "abacus-8:rods13")
        hone(self.folder, "run", "mlp.onnx", "--no-log", "--inputs", "mlp.inputs.npz", "--outputs",
             "host.npz")
        hone(self.folder, "run", "m.hone", "--inputs", "mlp.inputs.npz", "--expect", "host.npz")

    def bounds_of(self, told):
        """What each kernel needs at least, by the share that it is said to reach, us."""
        bounds = {task["name"]: task["roofline_share"] * task["best_us"] for task in told["tasks"]}
        self.assertTrue(bounds and min(bounds.values()) > 0, told)
        return bounds

    def test_a_model_is_tuned_compiled_and_run(self):
        told = json.loads(hone(self.folder, "tune", "mlp.onnx", "--target", "abacus:native",
                               "--trials", 12, "--db", "t.db", "--json"))
        shown = json.loads(hone(self.folder, "inspect", "mlp.onnx", "--target", TARGET, "--no-log",
                                "--json"))
        for name, bound in self.bounds_of(told).items():
            kernel = [k for k in shown["kernels"] if k["name"] == name][0]
            self.assertAlmostEqual(bound / kernel["bound_us"], 1, 6, name)
        records = [json.loads(line) for line in
                   hone(self.folder, "db", "export", "t.db").splitlines()]
        keys = [r for r in records if "measurement_policy" in r]
        self.assertTrue(keys)
        for record in keys:
            self.assertEqual(record["measurement_policy"], 7, record)
            self.assertEqual(record["target"], TARGET)
        self.check_package_of("t.db")
        self.assertIn("block", hone(self.folder, "explain", "mlp.onnx", "--target", TARGET, "--db",
                                    "t.db"))

    def test_whole_models_are_compared_beside_who_else_uses_the_device(self):
        """The device's own rule says who disturbs it, not what keeps the CPUs busy."""
        for others in (0, 3):
            told = json.loads(hone(self.folder, "tune", "mlp.onnx", "--target", TARGET, "--trials", 24,
                                   "--seconds", 15, "--db", f"{others}.db", "--json",
                                   ABACUS_OTHERS=str(others)))
            model = told["model"]
            self.assertGreater(model["rounds"], 0, model)
            self.assertEqual(model["noisy_cpus"], others, model)
            self.assertEqual(model["verdict"] is None, others > 0, model)

    def test_a_farm_tunes_on_its_worker(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
        self.start("honed", "--listen", address, "--insecure-loopback", "--db", "farm.db")
        self.await_line("honed", re.escape(address))
        self.start("hone-worker", "--connect", address, "--insecure-loopback", "--device",
                   "abacus:1", "--lock-folder", self.folder)
        told = json.loads(hone(self.folder, "tune", "mlp.onnx", "--target", TARGET, "--trials", 12,
                               "--server", address, "--insecure-loopback", "--json"))
        # A kernel's share is of what this machine's own probes say: the same here and there.
        here = json.loads(hone(self.folder, "tune", "mlp.onnx", "--target", TARGET, "--trials", 12,
                               "--db", "here.db", "--json"))
        there = self.bounds_of(told)
        for name, bound in self.bounds_of(here).items():
            self.assertAlmostEqual(there[name] / bound, 1, 6, name)
        devices = json.loads(hone(self.folder, "device", "list", "--server", address, "--insecure-loopback",
                                  "--json"))
        self.assertEqual([d["device_class"] for d in devices["devices"]], ["abacus-8:rods13"])
        self.assertTrue((self.folder / "hone-abacus-1.lock").exists())
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        self.started = []
        self.check_package_of("farm.db")

    def test_one_package_for_several_targets(self):
        def compiled(path, *targets):
            hone(self.folder, "compile", "mlp.onnx", "--no-log", "-o", path, "--target", *targets)
            return (self.folder / path).stat().st_size

        narrow, wide = "cpu:avx2,threads=1", "cpu:avx512,threads=1"
        alone = compiled("cpu.hone", narrow)
        shared = compiled("both.hone", narrow, "--also", "cpu:avx2,threads=2")
        weights = (self.folder / "mlp.onnx").stat().st_size
        self.assertLess(shared, 2 * alone - weights // 2, "what both read is there once")
        compiled("both.hone", narrow, "--also", TARGET)
        told = json.loads(hone(self.folder, "inspect", "both.hone", "--json"))
        self.assertEqual(told["target"], narrow)
        self.assertEqual([also["target"] for also in told["also"]], [TARGET])
        self.assertEqual(told["runs_here"], TARGET)  # of which MostFlopPerNs says more
        hone(self.folder, "run", "cpu.hone", "--inputs", "mlp.inputs.npz", "--outputs", "host.npz")
        for path, runs in (("both.hone", TARGET), ("cpus.hone", narrow)):
            if path == "cpus.hone":
                compiled(path, "abacus:rods=20", "--also", narrow)  # too many rods for this host
            done = subprocess.run([BIN / "hone", "run", path, "--inputs", "mlp.inputs.npz",
                                   "--expect", "host.npz"], cwd=self.folder, text=True, timeout=60,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"; this machine runs {runs}\n", done.stderr)
        refused = subprocess.run([BIN / "hone", "compile", "mlp.onnx", "--target", wide, "--also",
                                  wide], cwd=self.folder, text=True, stderr=subprocess.PIPE)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("is among the targets already", refused.stderr)

    def test_the_doctor_looks_at_it(self):
        done = subprocess.run([BIN / "hone", "doctor"], cwd=self.folder, text=True, timeout=60,
                              env={"HOME": str(self.folder)}, stdout=subprocess.PIPE)
        self.assertIn("ok       rods          13 straight rods\n", done.stdout)
        self.assertIn("warning  beads         three beads are worn\n"
                      "                       to do: turn them\n", done.stdout)
        self.assertIn("instructions", done.stdout)

    def test_other_devices_of_it_are_refused_by_name(self):
        for device, why in (("abacus:10", "only ten of them"), ("quipu:0", "cpu:N or cuda:N or abacus:N")):
            self.start("hone-worker", "--connect", "127.0.0.1:1", "--insecure-loopback", "--device",
                       device)
            self.started[-1].wait(30)
            self.assertIn(why, self.log_of("hone-worker"))
            self.started.pop()


def main():
    global BIN
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--results")
    parser.add_argument("--filter", default="")
    args = parser.parse_args()
    BIN = args.bin.resolve()
    results = []
    for name in unittest.TestLoader().getTestCaseNames(Programs):
        if args.filter not in name:
            continue
        outcome = unittest.TestResult()
        Programs(name).run(outcome)
        faults = [text for _, text in outcome.failures + outcome.errors]
        results.append((name.removeprefix("test_"), "\n".join(faults)))
        print("failed" if faults else "passed", *results[-1])
    if args.results:
        with open(args.results, "w", encoding="utf-8") as out:
            out.write('<testsuites><testsuite name="kinds_programs">\n')
            for name, why in results:
                inside = f"<failure message={quoteattr(why)}/>" if why else ""
                out.write(f'<testcase name="{name}" status="run">{inside}</testcase>\n')
            out.write("</testsuite></testsuites>\n")
    return 1 if any(why for _, why in results) else 0


if __name__ == "__main__":
    sys.exit(main())
