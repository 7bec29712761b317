#!/usr/bin/env python3
"""A farm whose workers measure on GPUs of the mock driver: slices of a card, a worker that only runs,
one that only builds, what everybody sees of them, and a device that stays bad.

    farm_test.py --build DIR [--filter NAME] [--results FILE.xml]
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from xml.sax.saxutils import quoteattr

BUILD = pathlib.Path()
SLICE = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
CLASS = "cuda-1:NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-sm90x1-mem1G-l2.32K"


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % free.getsockname()[1]


class Farm(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="hone-gpus-")
        self.folder = pathlib.Path(self.scratch.name)
        self.drivers = self.folder / "drivers"
        self.drivers.mkdir()
        for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
            # A runner's sandbox looks at where a link leads.
            shutil.copy(BUILD / "tests/mock_cuda" / name, self.drivers / name)
        self.script("time real", f"name {SLICE}", "devices 2")
        self.started = []
        self.address, self.page = free_address(), free_address()
        self.start("honed", "--listen", self.address, "--insecure-loopback", "--db", "farm.db",
                   "--page-listen", self.page)
        self.await_line("honed", re.escape(self.address))
        # One small product: the driver interprets.
        self.hone("zoo", "mlp")
        self.words = ("--server", self.address, "--insecure-loopback")

    def tearDown(self):
        for process in reversed(self.started):
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        self.scratch.cleanup()

    def script(self, *lines):
        (self.drivers / "mock_cuda.script").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def environment(self, driver):
        words = {"HOME": str(self.folder), "PATH": os.environ["PATH"]}
        return {**words, "LD_LIBRARY_PATH": str(self.drivers)} if driver else words

    def hone(self, *words, code=0):
        done = subprocess.run([BUILD / "bin/hone", *map(str, words)], cwd=self.folder, text=True,
                              timeout=200, env=self.environment(False), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode != code:
            logs = "".join(path.read_text() for path in self.folder.glob("*.log"))
            raise AssertionError(f"hone {words}: {done.returncode}\n{done.stdout}\n{done.stderr}\n{logs}")
        return done.stdout

    def start(self, name, *words, driver=True):
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            program = "honed" if name == "honed" else "hone-worker"
            self.started.append(subprocess.Popen(
                [BUILD / "bin" / program, *map(str, words)], cwd=self.folder, stdout=log,
                env=self.environment(driver), stderr=subprocess.STDOUT))

    def worker(self, name, *words, driver=True):
        self.start(name, "--connect", self.address, "--insecure-loopback", "--name", name,
                   "--lock-folder", self.folder / "locks", *words, driver=driver)

    def await_line(self, program, pattern):
        for _ in range(300):
            said = (self.folder / f"{program}.log").read_text(encoding="utf-8")
            if re.search(pattern, said):
                return
            time.sleep(0.1)
        raise AssertionError(f"{program} never said '{pattern}':\n{said}")

    def devices(self):
        return {d["worker"]: d for d in json.loads(self.hone("device", "list", *self.words,
                                                             "--json"))["devices"]}

    def await_device(self, name, **wanted):
        for _ in range(300):
            device = self.devices().get(name, {})
            if all(device.get(key) == value for key, value in wanted.items()):
                return device
            time.sleep(0.2)
        log = (self.folder / f"{name}.log").read_text()
        raise AssertionError(f"{name} is never {wanted}: {device}\n{log}")

    def test_slices_measure_what_cpus_build(self):
        self.worker("runs", "--device", "cuda:0", "--role", "run", "--labels", "rack=7")
        self.worker("both", "--device", "cuda:1")
        # It has no driver, and builds for those that have.
        self.worker("builds", "--role", "build", driver=False)
        for name in ("runs", "both"):  # one could do all of it before the other has come
            self.await_device(name, connected=True)
        told = json.loads(self.hone("tune", "mlp.onnx", "--target", "cuda:sm_90a", "--trials", 6,
                                    *self.words, "--json"))
        self.assertGreaterEqual(told["attempts"], 6, told)
        devices = self.devices()
        self.assertEqual(devices["runs"]["labels"], {"rack": "7"})
        self.assertEqual(devices["runs"]["role"], "run")
        for name, device in (("runs", "cuda:0"), ("both", "cuda:1")):
            self.assertEqual(devices[name]["device"], device)
            self.assertEqual(devices[name]["device_class"], CLASS)
            self.assertEqual(devices[name]["target"], "cuda:sm_90a")
            self.assertEqual(devices[name]["driver"], "NVIDIA 550.54.15, CUDA 12.0")
            self.assertTrue(devices[name]["sandboxed"])
        self.assertGreater(devices["runs"]["results"] + devices["both"]["results"], 0)
        # Slices of one card take turns.
        self.assertEqual([path.name for path in (self.folder / "locks").glob("hone-gpu*")],
                         ["hone-gpu-0000-65-00.0.lock"])
        self.assertIn(CLASS, self.hone("device", "list", *self.words))
        with urllib.request.urlopen(f"http://{self.page}/api/v1/farm", timeout=20) as answer:
            self.assertIn(CLASS, answer.read().decode())
        self.hone("compile", "mlp.onnx", "--target", "cuda:sm_90a", *self.words, "--device-class", CLASS,
                  "-o", "m.hone")

    def test_a_card_that_stays_bad_is_said_to_be(self):
        self.script("time real", "fault cuGraphInstantiateWithFlags 1 46")
        self.worker("bad", "--device", "cuda:0")
        self.await_device("bad", connected=True)
        subprocess.Popen([BUILD / "bin/hone", "tune", "mlp.onnx", "--target", "cuda:sm_90a", "--trials",
                          "6", *self.words], cwd=self.folder, env=self.environment(False),
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        device = self.await_device("bad", state="lost")
        self.assertIn("GPU-00000000-0000-0000-0000-000000000001 is in quarantine", device["reason"])
        self.assertIn("the CUDA driver says 46", device["reason"])
        self.worker("again", "--device", "cuda:0")
        self.assertNotEqual(self.started.pop().wait(30), 0)
        self.await_line("again", "is in quarantine")


def main():
    global BUILD
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--results")
    parser.add_argument("--filter", default="")
    args = parser.parse_args()
    BUILD = args.build.resolve()
    results = []
    for name in unittest.TestLoader().getTestCaseNames(Farm):
        if args.filter not in name:
            continue
        outcome = unittest.TestResult()
        Farm(name).run(outcome)
        faults = [text for _, text in outcome.failures + outcome.errors]
        results.append((name.removeprefix("test_"), "\n".join(faults)))
        print("failed" if faults else "passed", *results[-1])
    if args.results:
        with open(args.results, "w", encoding="utf-8") as out:
            out.write('<testsuites><testsuite name="mock_cuda_farm">\n')
            for name, why in results:
                inside = f"<failure message={quoteattr(why)}/>" if why else ""
                out.write(f'<testcase name="{name}" status="run">{inside}</testcase>\n')
            out.write("</testsuite></testsuites>\n")
    return 1 if any(why for _, why in results) else 0


if __name__ == "__main__":
    sys.exit(main())
