"""Tunings: followed, interrupted, left behind; what they leave in the log."""
import fcntl
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

import hone
import numpy as np


def running(log):
    """The processes whose command line names this log."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(log) in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


class TuningTest(unittest.TestCase):
    def setUp(self):
        # Enough kernels that nothing here ends by itself before it is asked to.
        self.network = os.path.abspath(hone.zoo("squeezenet"))
        self.small = os.path.abspath(hone.zoo("mlp"))

    def test_tells_progress_verdict_and_kernels(self):
        session = hone.tune(self.network, seconds=4, threads=1, log="told.db", wait=False)
        progress = list(session)
        counted = [p for p in progress if p.candidates is not None]
        self.assertTrue(counted, progress)
        self.assertEqual({p.budget_seconds for p in counted}, {4})
        self.assertEqual(sorted(p.seconds for p in counted), [p.seconds for p in counted])
        self.assertIn("left", counted[0].text)
        self.assertEqual(list(session), progress)
        verdict = session.verdict
        self.assertIn("model: ", str(verdict))
        self.assertIn(verdict.word, ("won", "keeps_defaults", None))
        kernels = sum(row["count"] for row in session.tasks)
        self.assertGreater(kernels, 25)
        self.assertIn("<table>", session._repr_html_())

        report = session.report()
        self.assertIn("srcdoc=", report._repr_html_())
        self.assertIn("squeezenet", report.page)

        log = hone.Log("told.db")
        self.assertGreater(log.stats()["records"], 0)
        rows = log.query(self.network, threads=1)
        self.assertEqual({row["workload"] for row in rows},
                         {row["workload"] for row in session.tasks})
        best = log.best()[0]
        self.assertIn(best, log.best(best["workload"][:12]))
        self.assertEqual(log.best("no such"), [])

        model = session.compile()
        self.assertEqual(model.threads, 1)
        self.assertEqual(sum(row["count"] for row in model.kernels), kernels)
        self.assertGreater(model.bench(seconds=0.2)[0]["median_us"], 0)
        profile = model.profile(seconds=0.2)
        self.assertEqual(sum(row["count"] for row in profile), kernels)
        self.assertGreater(profile[0]["us"], 0)

    def test_compiled_equals_run_by_the_program(self):
        hone.compile(self.small, output="mlp.hone", log=False)
        subprocess.run([os.path.join(os.environ["HONE_BIN"], "hone"), "run", "mlp.hone", "--inputs",
                        "mlp.inputs.npz", "--outputs", "y.npz"], check=True, capture_output=True)
        with np.load("mlp.inputs.npz") as inputs, np.load("y.npz") as outputs:
            got = hone.load("mlp.hone").run(dict(inputs))
            for name, value in outputs.items():
                np.testing.assert_array_equal(got[name], value)

    def test_compiles_in_bf16(self):
        with np.load("mlp.inputs.npz") as inputs:
            exact, narrow = (hone.compile(self.small, log=False, precision=precision).run(dict(inputs))
                             for precision in ("f32", "bf16"))
        for name, value in exact.items():
            self.assertTrue(np.any(narrow[name] != value), "nothing was rounded")
            self.assertLess(np.linalg.norm(narrow[name] - value), 0.02 * np.linalg.norm(value))

    def test_bench_against_onnx_runtime(self):
        rows = hone.compile(self.small, log=False).bench(against="onnxruntime", seconds=0.2)
        self.assertEqual([row["runtime"] for row in rows], ["hone", "onnxruntime"])
        self.assertGreater(rows[1]["ratio_median"], 0)
        with self.assertRaisesRegex(hone.UsageError, "onnx='model.onnx'"):
            hone.load("model.hone").bench(against="onnxruntime")

    def test_ctrl_c_ends_it_with_what_was_measured(self):
        script = ("import hone\n"
                  "try:\n"
                  f"    hone.tune({self.network!r}, seconds=600, log='ctrl_c.db')\n"
                  "except KeyboardInterrupt as error:\n"
                  "    print(type(error).__name__, error, error.result['reason'])\n"
                  "    session = error.session\n"
                  "    assert session.wait() is session and session.over\n"
                  "    assert session.log.endswith('ctrl_c.db') and len(session.tasks) > 10\n"
                  "    assert 'squeezenet' in session.report().page\n"
                  "    assert session.verdict is None or session.verdict.word is None\n"
                  "    assert len(session.compile().kernels) > 10\n"
                  "    print('kept')\n")
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        self.wait_for_records("ctrl_c.db")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=90)[0]
        self.assertEqual(process.returncode, 0)
        self.assertRegex(said, "Interrupted interrupted; a usable result exists.*interrupted\nkept")
        self.assertEqual(running("ctrl_c.db"), [])
        self.assertGreater(hone.Log("ctrl_c.db").stats()["records"], 0)

    def test_a_cancelled_session_tells_what_it_measured(self):
        session = hone.tune(self.network, seconds=600, log="cancelled.db", wait=False)
        self.wait_for_records("cancelled.db")
        session.cancel()
        self.assertGreater(len(session.tasks), 10)
        self.assertEqual(session.result["reason"], "interrupted")
        self.assertIn("squeezenet", session.report().page)
        self.assertIn("<table>", session._repr_html_())

    def test_a_terminal_shows_a_bar_and_takes_it_away(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        script = f"import hone; hone.tune({self.network!r}, seconds=4, log='bar.db')"
        shown = b""
        with subprocess.Popen([sys.executable, "-c", script], stderr=theirs) as program:
            os.close(theirs)
            try:
                while part := os.read(ours, 4096):
                    shown += part
            except OSError:
                pass  # the other side is closed
            os.close(ours)
        self.assertEqual(program.returncode, 0)
        lines = shown.decode().split("\r\x1b[K")
        bars = [re.match(r"\[(#*)(\.*)\] .*left", line) for line in lines]
        filled = [len(bar[1]) for bar in bars if bar]
        self.assertEqual({len(bar[1] + bar[2]) for bar in bars if bar}, {24}, lines)
        self.assertEqual(filled, sorted(filled), lines)
        self.assertGreater(filled[-1], filled[0], lines)
        self.assertEqual((lines[0], lines[-1]), ("", ""))
        self.assertLess(max(map(len, lines)), 60)

    def test_a_busy_log_and_an_exception_meanwhile(self):
        """While a tuning goes on another writer is refused, a reader is not, and an exception of who
        follows it harms nothing."""
        session = hone.tune(self.network, seconds=600, log="busy.db", wait=False)
        self.wait_for_records("busy.db")
        with self.assertRaisesRegex(hone.LogError, "busy.db.*--db"):
            hone.tune(self.small, seconds=1, log="busy.db")
        with self.assertRaises(ZeroDivisionError):
            for _ in session:
                raise ZeroDivisionError
        self.assertFalse(session.over)
        session.cancel()
        with self.assertRaises(hone.Interrupted) as raised:
            session.wait()
        self.assertIs(raised.exception.session, session)
        self.assertEqual(running("busy.db"), [])

    def test_a_tuning_ends_with_the_interpreter(self):
        script = ("import hone, os, time\n"
                  f"s = hone.tune({self.network!r}, seconds=600, log='left.db', wait=False)\n"
                  "while not any(p.candidates for p in s._progress): time.sleep(0.05)\n"
                  "if os.fork() == 0: raise SystemExit(0)  # a child's end is not the tuning's\n"
                  "os.wait()\n"
                  "assert not s.over\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(running("left.db"), [])
        self.assertGreater(hone.Log("left.db").stats()["records"], 0)

    def test_a_tuning_ends_after_its_interpreter_was_killed(self):
        script = f"import hone; hone.tune({self.network!r}, seconds=600, log='killed.db')"
        with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as program:
            try:
                self.wait_for_records("killed.db")
            finally:
                program.kill()
        deadline = time.monotonic() + 30
        while running("killed.db") and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertEqual(running("killed.db"), [])

    def wait_for_records(self, log):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if hone.Log(log).stats()["records"] > 0:
                    return
            except hone.HoneError:
                pass  # not there yet
            time.sleep(0.2)
        self.fail(f"nothing was measured into {log} within a minute")
