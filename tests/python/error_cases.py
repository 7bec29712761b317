"""Every failure is an exception that says what, where and what to do, and leaves nothing behind."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import hone
import numpy as np
import onnx
from onnx import TensorProto, helper

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def network(operator, shape=(2, 3), **attributes):
    """y = operator(x), with a free first dimension."""
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape[1:]])
               for name in ("x", "y")]
    node = helper.make_node(operator, ["x"], ["y"], name="the_node", **attributes)
    return helper.make_model(helper.make_graph([node], "g", tensors[:1], tensors[1:]),
                             opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


class FakeProgram:
    """A `hone` that ends as it is told to; in the PATH of HONE_BIN."""

    def __init__(self, script):
        self.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self.folder.name, "hone")
        path.write_text("#!/bin/sh\n" + script, encoding="utf-8")
        path.chmod(0o755)

    def __enter__(self):
        self.patch = mock.patch.dict(os.environ, HONE_BIN=self.folder.name)
        self.patch.start()

    def __exit__(self, *_):
        self.patch.stop()
        self.folder.cleanup()


class ErrorsTest(unittest.TestCase):
    def test_one_class_for_each_exit_code(self):
        text = (SOURCE / "client/exit_code.h").read_text(encoding="utf-8")
        codes = {int(code) for code in re.findall(r"^  k\w+ = (\d+),", text, re.M)} - {0}
        self.assertEqual(set(hone.errors.OF_EXIT_CODE), codes)
        for code in codes:
            said = '{"log":"t.db","error":{"code":%d,"message":"what, and what to do"}}' % code
            with FakeProgram(f"echo '{said}'\nexit {code}\n"), \
                    self.assertRaises(hone.HoneError) as raised:
                hone.Log("t.db").stats()
            self.assertIs(type(raised.exception), hone.errors.OF_EXIT_CODE[code])
            self.assertEqual(raised.exception.exit_code, code)
            self.assertEqual(str(raised.exception), "what, and what to do")
            self.assertEqual(raised.exception.result, {"log": "t.db"})

    def test_a_program_that_crashes_is_a_fault(self):
        with FakeProgram("echo hopeless >&2\nkill -SEGV $$\n"), \
                self.assertRaisesRegex(hone.Fault, "killed by SIGSEGV; hopeless"):
            hone.Log("t.db").stats()
        with FakeProgram("echo no words >&2; exit 77\n"), \
                self.assertRaisesRegex(hone.Fault, "no words"):
            hone.Log("t.db").stats()

    def test_what_is_not_installed_says_so(self):
        with mock.patch.dict(os.environ, HONE_BIN="/no/such"), \
                self.assertRaisesRegex(hone.NotInstalled, "'hone' in the folder '/no/such'.*HONE_BIN"):
            hone.zoo("mlp")
        missing = {**os.environ, "HONE_LIBRARY": "libno_such_hone.so"}
        done = subprocess.run([sys.executable, "-c", "import hone; hone.load('model.hone')"],
                              env=missing, capture_output=True, text=True, check=False)
        self.assertRegex(done.stderr, "NotInstalled: libno_such_hone.so.*libhone-runtime")

    def test_models_that_cannot_be_compiled(self):
        for call, kind, words in (
                (lambda: hone.compile("no.onnx"), hone.BadInput, "cannot read 'no.onnx'"),
                (lambda: hone.compile("model.hone"), hone.BadInput, "is a package"),
                (lambda: hone.compile(3), hone.BadInput, "not int"),
                (lambda: hone.compile(network("NoSuchOp"), dims={"batch": 1}), hone.BadInput,
                 "NoSuchOp"),
                (lambda: hone.compile(network("Relu")), hone.BadInput, "batch"),
                (lambda: hone.compile("a.onnx", threads=0), hone.UsageError, "threads=0"),
                (lambda: hone.compile("a.onnx", dims=3), hone.UsageError, "dims=3"),
                (lambda: hone.compile("a.onnx", shapes={"x": 3}), hone.UsageError, "tuple of sizes"),
                (lambda: hone.compile("a.onnx", log=3), hone.UsageError, "log=3 is no path"),
                (lambda: hone.tune("a.onnx", [np.zeros(3)]), hone.UsageError, "by the names.*list"),
                (lambda: hone.compile("--help"), hone.BadInput, "cannot read './--help'"),
                (lambda: hone.compile("a.onnx", colour=3), hone.UsageError, "no argument colour"),
                (lambda: hone.compile(network("Relu"), dims={"batch": 1}, target="cpu:z80"),
                 hone.HoneError, "z80"),
                (lambda: hone.tune("a.onnx", seconds=-1), hone.UsageError, "seconds"),
                (lambda: hone.load("no.hone"), hone.BadInput, "no.hone"),
                (lambda: hone.load("model.hone", threads=0), hone.UsageError, "threads=0"),
                (lambda: hone.load("model.hone", threads=2**32 + 1), hone.UsageError, "threads=4294967297"),
                (lambda: hone.prune("a.onnx", "half"), hone.UsageError, "sparsity='half'"),
                (lambda: hone.tune("a.onnx", {"x": [object()]}), hone.BadInput, r"\['x'\] is an array of obj")):
            with self.assertRaisesRegex(kind, words):
                call()

    def test_a_damaged_package_is_refused(self):
        data = bytearray(pathlib.Path("model.hone").read_bytes())
        data[len(data) // 2] ^= 1
        for damaged in (data, data[:100], b""):
            pathlib.Path("damaged.hone").write_bytes(damaged)
            with self.assertRaises(hone.BadInput):
                hone.load("damaged.hone")

    def test_nothing_is_left_half_written(self):
        pathlib.Path("kept.hone").write_bytes(b"what was here")
        before = set(os.listdir())
        for output in ("fresh.hone", "kept.hone"):
            with self.assertRaises(hone.BadInput):
                hone.compile(network("NoSuchOp"), output=output)
        self.assertEqual(set(os.listdir()), before)
        self.assertEqual(pathlib.Path("kept.hone").read_bytes(), b"what was here")

    def test_an_onnx_object_equals_onnx_runtime(self):
        import onnxruntime  # pylint: disable=import-outside-toplevel
        made = network("LeakyRelu", alpha=0.3)
        onnx.checker.check_model(made)
        model = hone.compile(made, dims={"batch": 4}, log=False)
        x = np.random.default_rng(7).standard_normal((4, 3)).astype(np.float32)
        session = onnxruntime.InferenceSession(made.SerializeToString())
        np.testing.assert_allclose(model(x), session.run(None, {"x": x})[0], rtol=1e-6)

    def test_logs_that_cannot_be_read(self):
        pathlib.Path("damaged.db").write_bytes(b"no log at all" * 1000)
        with self.assertRaisesRegex(hone.BadInput, "damaged.db' is not a tuning log"):
            hone.Log("damaged.db").best()
        with self.assertRaisesRegex(hone.HoneError, "no.db"):
            hone.Log("no.db").stats()

    def test_a_cpu_without_avx2(self):
        """What, where, and what to do; and nothing is left behind."""
        library = os.environ.get("TEST_OLDER_CPU")
        if not library:
            self.skipTest("no --older-cpu was given")
        network = os.path.abspath(hone.zoo("mlp"))
        with tempfile.TemporaryDirectory() as folder:
            script = ("import hone\n"
                      f"for call in (lambda: hone.load({os.path.abspath('model.hone')!r}),\n"
                      f"             lambda: hone.compile({network!r}, log=False),\n"
                      f"             lambda: hone.tune({network!r}, seconds=9, log='t.db')):\n"
                      "    try:\n        call()\n"
                      "    except hone.DeviceError as error:\n        print(error)\n")
            done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, "LD_PRELOAD": library}, timeout=60, check=False)
            if done.returncode == 77:
                self.skipTest("this machine cannot let cpuid fault")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(os.listdir(folder), [])
        said = done.stdout.splitlines()
        self.assertEqual(len(said), 3, done.stdout)
        for line, where in zip(said, ("model.hone", "mlp.hone", "cannot be measured here")):
            self.assertRegex(line, f"{where}.*needs AVX2 with FMA and BMI2, which this host .older than avx2. "
                                   "does not have; use a CPU of 2013 or later")

    def test_a_server_that_is_away(self):
        with self.assertRaisesRegex(hone.ServerError, "127.0.0.1:1'"):
            hone.connect("127.0.0.1:1", insecure_loopback=True)

    def test_a_session_that_ended_before_it_measured(self):
        said = '{"error":{"code":7,"message":"interrupted; nothing was measured"}}'
        with FakeProgram(f"echo '{said}'\nexit 7\n"):
            session = hone.tune("a.onnx", wait=False)
            with self.assertRaises(hone.Interrupted):
                session.wait()
        self.assertEqual((session.verdict, session.tasks, session.log), (None, [], None))
        with self.assertRaisesRegex(hone.Interrupted, "nothing was measured"):
            session.report()

    def test_a_table_goes_to_pandas(self):
        pandas = types.ModuleType("pandas")
        pandas.DataFrame = lambda rows: ("frame", type(rows), rows)
        table = hone.Table([{"a": 1, "b": [2]}, {"a": 3}])
        with mock.patch.dict(sys.modules, pandas=pandas):
            self.assertEqual(table.to_pandas(), ("frame", list, [{"a": 1, "b": [2]}, {"a": 3}]))
            self.assertEqual(table[1:].to_pandas()[2], [{"a": 3}])

    def test_extras_that_are_missing_are_named(self):
        with mock.patch.dict(sys.modules, pandas=None), \
                self.assertRaisesRegex(hone.NotInstalled, "pip install pandas"):
            hone.Table([{"a": 1}]).to_pandas()
