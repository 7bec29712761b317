"""A model in this process, on the package of tests/runtime/write_test_package, whose answers NumPy
gives: z = x w + table[ids], and what follows from z."""
import copy
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import hone
import numpy as np

PACKAGE = "model.hone"


def resident_bytes():
    pages = pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Known:
    """The package with its weights, which come out of the model itself: unit rows of x give the rows
    of w, since z is linear."""

    def __init__(self):
        self.model = hone.load(PACKAGE, threads=2)
        self.ids = np.arange(5, dtype=np.int64)
        self.table = self.model.run({"x": np.zeros((5, 7), np.float32), "ids": self.ids})["z"]
        self.w = np.zeros((7, 6), np.float32)
        for k in range(7):
            x = np.zeros((5, 7), np.float32)
            x[0, k] = 1
            self.w[k] = self.model.run({"x": x, "ids": self.ids})["z"][0] - self.table[0]

    def z(self, x):
        return x @ self.w + self.table


class Shared:
    """A tensor of another library, on the CPU or, as it says, elsewhere."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.at = array, device
        self.device = "cuda:0"

    def __dlpack__(self, **_):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.at


class Nameless(Shared):
    """One that speaks DLPack and nothing else."""

    def __init__(self, array, device):
        super().__init__(array, device)
        del self.device


class ModelTest(unittest.TestCase):
    def setUp(self):
        self.known = Known()
        self.model, self.ids = self.known.model, self.known.ids
        self.x = np.random.default_rng(5).integers(-8, 8, (5, 7)).astype(np.float32)

    def test_tells_what_it_takes_and_gives(self):
        self.assertEqual([t.name for t in self.model.inputs], ["x", "ids"])
        self.assertEqual([str(t) for t in self.model.inputs], ["f32[5,7]", "i64[5]"])
        self.assertEqual([t.shape for t in self.model.outputs], [(5, 6), (6,), (5, 2), (5, 2)])
        self.assertEqual((self.model.threads, self.model.target), (2, "cpu:avx2,threads=2"))

    def test_equals_numpy_however_inputs_come(self):
        z = self.known.z(self.x)
        carried = np.ones(6, np.float32)
        for row in z:
            carried = np.float32(0.5) * np.roll(carried, -1) + row
        frozen = self.x.copy()
        frozen.flags.writeable = False
        for x in (self.x, np.asfortranarray(self.x), frozen, self.x.tolist(), Shared(self.x),
                  np.repeat(self.x, 2, axis=1)[:, ::2]):
            got = self.model(x, ids=self.ids)
            np.testing.assert_array_equal(got[0], z)
            np.testing.assert_array_equal(got[1], carried)
            np.testing.assert_array_equal(got[2], -np.sort(-z, axis=1)[:, :2])
            np.testing.assert_array_equal(got[3], np.argsort(-z, axis=1, kind="stable")[:, :2])

    def test_copies_no_contiguous_input(self):
        seen, run = [], self.model._hone_context_run

        def watched(context, inputs, *rest):
            seen.append((hone.model.ctypes.c_uint64 * 1).from_address(inputs)[0])
            return run(context, inputs, *rest)
        self.model._hone_context_run = watched
        frozen = self.x.copy()
        frozen.flags.writeable = False
        for x in (self.x, frozen, Shared(self.x)):
            self.model(x, self.ids)
        place = self.x.ctypes.data
        self.assertEqual(seen, [place, frozen.ctypes.data, place])

    def test_the_runtime_writes_into_the_arrays_that_a_call_gives(self):
        """And a call is one call of the library, on slots for each input and output."""
        calls, run = [], self.model._hone_context_run

        def watched(context, inputs, takes, outputs, gives):
            slots = (hone.model.ctypes.c_uint64 * (2 * gives)).from_address(outputs)
            calls.append((takes, list(slots)))
            return run(context, inputs, takes, outputs, gives)
        self.model._hone_context_run = watched
        got = self.model(self.x, self.ids)
        want = [number for y in got for number in (y.ctypes.data, y.nbytes)]
        self.assertEqual(calls, [(2, want)])

    def test_outputs_are_the_callers_alone(self):
        first = self.model(self.x, self.ids)[0]
        kept = first.copy()
        self.model(-self.x, self.ids)
        np.testing.assert_array_equal(first, kept)
        self.assertTrue(first.flags.writeable)

    def test_hundred_threads_call_one_model(self):
        wrong = []

        def call(seed):
            rng = np.random.default_rng(seed)
            for _ in range(20):
                x = rng.integers(-8, 8, (5, 7)).astype(np.float32)
                if not np.array_equal(self.model(x, self.ids)[0], self.known.z(x)):
                    wrong.append(seed)
        threads = [threading.Thread(target=call, args=(seed,)) for seed in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_child_after_fork_goes_on(self):
        z = self.known.z(self.x)
        self.model(self.x, self.ids)
        child = os.fork()
        if child == 0:
            same = all(np.array_equal(self.model(self.x, self.ids)[0], z) for _ in range(50))
            os._exit(0 if same else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        np.testing.assert_array_equal(self.model(self.x, self.ids)[0], z)

    def test_two_models_in_one_process(self):
        other = hone.load(PACKAGE, threads=1, copy_constants=True)
        for model in (self.model, other, self.model):
            np.testing.assert_array_equal(model(self.x, self.ids)[0], self.known.z(self.x))
        del other
        gc.collect()
        np.testing.assert_array_equal(self.model(self.x, self.ids)[0], self.known.z(self.x))

    def test_ten_thousand_calls_leak_nothing(self):
        def calls(count):
            for _ in range(count):
                self.model(self.x, self.ids)
                try:
                    self.model(self.x, self.ids + 100)
                except hone.BadInput:
                    pass
            gc.collect()
        calls(1000)
        before, blocks = resident_bytes(), sys.getallocatedblocks()
        calls(10000)
        self.assertLess(resident_bytes() - before, 1 << 20)
        self.assertLess(sys.getallocatedblocks() - blocks, 1000)

    def test_a_model_is_neither_copied_nor_pickled(self):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(TypeError, r"cannot be copied or pickled: save\(\) it"):
                make(self.model)

    def test_loading_again_and_again_leaks_no_descriptor(self):
        def descriptors():
            return len(os.listdir("/proc/self/fd"))
        before = descriptors()
        for _ in range(50):
            hone.load(PACKAGE, threads=1)
        gc.collect()
        self.assertEqual(descriptors(), before)

    def test_wrong_inputs_say_what_is_wrong(self):
        x, ids = self.x, self.ids
        for call, words in (
                (lambda: self.model(x), "missing ids"),
                (lambda: self.model(x, ids, ids), "3 were given"),
                (lambda: self.model(x, x=x, ids=ids), "given twice x"),
                (lambda: self.model(x, ids, y=x), "unknown y"),
                (lambda: self.model.run({"X": x, "ids": ids}), "unknown X; missing x"),
                (lambda: self.model(x.astype(np.float64), ids), "x.astype(np.float32)"),
                (lambda: self.model(x[:4], ids), "not of shape (4, 7)"),
                (lambda: self.model([["a"]], ids), "could not convert"),
                (lambda: self.model(None, ids), "not object"),
                (lambda: self.model({"x": x}, ids), "not a dict: give inputs by name as model.run"),
                (lambda: self.model(Shared(x, (2, 0)), ids), "cuda:0"),
                (lambda: self.model(Nameless(x, (2, 0)), ids), "on the device"),
                (lambda: self.model(x, ids + 100), "'ids'")):
            with self.assertRaisesRegex(hone.BadInput, words.replace("(", r"\(").replace(")", r"\)")):
                call()
        np.testing.assert_array_equal(self.model(x, ids)[0], self.known.z(x))

    def test_an_exception_of_an_input_passes_through(self):
        class Broken:
            def __array__(self, *_, **__):
                raise ZeroDivisionError("mine")
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            self.model(Broken(), self.ids)
        self.model(self.x, self.ids)

    def test_saves_what_was_loaded_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, "here.hone")
            place.write_bytes(pathlib.Path(PACKAGE).read_bytes())
            model = hone.load(place)
            place.unlink()
            place.write_bytes(b"another")
            model.save(place)
            self.assertEqual(place.read_bytes(), pathlib.Path(PACKAGE).read_bytes())
            with self.assertRaisesRegex(hone.NoSpace, "cannot write .*No such file"):
                model.save(pathlib.Path(folder, "no", "folder.hone"))
            os.mkdir(pathlib.Path(folder, "taken"))
            with self.assertRaises(hone.NoSpace):
                model.save(pathlib.Path(folder, "taken"))
            self.assertEqual(sorted(os.listdir(folder)), ["here.hone", "taken"])

    def test_a_saved_package_has_the_rights_of_any_new_file(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, "saved.hone")
            for mask in (0o022, 0o027, 0o077):
                before = os.umask(mask)
                try:
                    self.model.save(place)
                finally:
                    os.umask(before)
                self.assertEqual(place.stat().st_mode & 0o777, 0o666 & ~mask)
            hone.load(place)

    def test_what_was_there_stays_when_saving_fails_midway(self):
        def fail(source, out):
            out.write(source.read(100))
            raise OSError(28, "No space left on device")
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, "kept.hone")
            place.write_bytes(b"what was here")
            with mock.patch("shutil.copyfileobj", fail), \
                    self.assertRaisesRegex(hone.NoSpace, "cannot write '.*kept.hone': No space"):
                self.model.save(place)
            self.assertEqual(place.read_bytes(), b"what was here")
            self.assertEqual(os.listdir(folder), ["kept.hone"])

    def test_masked_elements_are_refused(self):
        x = np.ma.masked_greater(self.x, 1e9)
        np.testing.assert_array_equal(self.model(x, self.ids)[0], self.known.z(self.x))
        x[1, 2] = np.ma.masked
        with self.assertRaisesRegex(hone.BadInput, r"'x' is a masked array, and 1 of its 35 .*x.filled"):
            self.model(x, self.ids)
        np.testing.assert_array_equal(self.model(x.filled(0), self.ids)[0], self.known.z(x.filled(0)))
        for call in (lambda: hone.tune("a.onnx", {"x": x}), lambda: hone.quantize("a.onnx", {"x": x}),
                     lambda: hone.compile("a.onnx", bind={"x": x})):
            with self.assertRaisesRegex(hone.BadInput, r"\['x'\] is a masked array"):
                call()

    def test_ends_with_the_interpreter_at_any_moment(self):
        """A thread is in a call, and objects are left to the end."""
        script = ("import hone, numpy as np, threading\n"
                  f"m = hone.load({PACKAGE!r})\n"
                  "a = np.zeros((5, 7), np.float32), np.zeros(5, np.int64)\n"
                  "def forever():\n    while True: m(*a)\n"
                  "threading.Thread(target=forever, daemon=True).start()\n"
                  "m(*a)\n")
        for _ in range(5):
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
