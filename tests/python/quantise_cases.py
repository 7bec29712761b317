"""Models in fewer bits from Python, held against ONNX Runtime on the same file."""
import pathlib
import unittest

import hone
import numpy as np
import onnxruntime


class QuantiseTest(unittest.TestCase):
    def setUp(self):
        self.network = hone.zoo("mlp")
        rng = np.random.default_rng(3)
        self.x = rng.uniform(-1, 1, (16, 784)).astype(np.float32)

    def run_there(self, path):
        options = onnxruntime.SessionOptions()  # without VNNI u8 * s8 saturates otherwise
        options.add_session_config_entry("session.x64quantprecision", "1")
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return np.concatenate([session.run(None, {"input": row[None]})[0] for row in self.x])

    def test_writes_a_file_that_both_run_alike(self):
        right = self.run_there(self.network).argmax(1)
        made = hone.quantize(self.network, {"input": self.x}, output="q.onnx", labels=right)
        self.assertEqual((made.path, made.scheme, made.top1_in_f32), ("q.onnx", "int8", 1.0))
        self.assertGreater(made.sqnr_db, 20)
        self.assertEqual([layer["kept"] for layer in made.layers], [False] * 3)
        self.assertLess(made.megabytes, 0.3 * made.megabytes_in_f32)
        self.assertIn("int8", repr(made))
        expected = self.run_there("q.onnx")
        model = hone.compile(made.path, threads=1, log=False)
        got = np.concatenate([np.asarray(model(row[None])) for row in self.x])
        signal, noise = (expected ** 2).sum(), ((got - expected) ** 2).sum()
        self.assertGreater(10 * np.log10(signal / noise), made.sqnr_db + 3)

    def test_keeps_and_targets(self):
        first = hone.quantize(self.network, {"input": self.x}, output="q.onnx").layers[0]["name"]
        kept = hone.quantize(self.network, {"input": self.x}, output="q.onnx", keep=first)
        self.assertTrue(kept.layers[0]["kept"])
        met = hone.quantize(self.network, {"input": self.x}, output="q.onnx", seconds=0.05,
                            target_sqnr=kept.predicted_db)
        self.assertGreaterEqual(met.predicted_db, kept.predicted_db)
        self.assertEqual(sum(point["chosen"] for point in met.front), 1)

    def test_bad_calls_say_what_is_wrong(self):
        with self.assertRaisesRegex(hone.BadInput, 'array "y", which is no input'):
            hone.quantize(self.network, {"y": self.x}, output="no.onnx")
        with self.assertRaisesRegex(hone.UsageError, "int8 needs typical inputs"):
            hone.quantize(self.network, output="no.onnx")
        with self.assertRaisesRegex(hone.UsageError, "data is the path"):
            hone.quantize(self.network, 3, output="no.onnx")
        self.assertFalse(pathlib.Path("no.onnx").exists())
