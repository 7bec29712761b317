"""Models with fewer weights from Python, held against ONNX Runtime on the same file."""
import pathlib
import unittest

import hone
import numpy as np
import onnx
import onnxruntime


class PruneTest(unittest.TestCase):
    def setUp(self):
        self.network = hone.zoo("mlp")
        rng = np.random.default_rng(3)
        self.x = rng.uniform(-1, 1, (16, 784)).astype(np.float32)

    def test_takes_channels_out_of_a_file_that_both_run_alike(self):
        made = hone.prune(self.network, 0.5, {"input": self.x}, structure="channel",
                          output="p.onnx")
        self.assertEqual((made.path, made.structure), ("p.onnx", "channel"))
        self.assertIn("channel", repr(made))
        self.assertLess(made.megabytes, 0.6 * made.megabytes_in_f32)
        shapes = {tuple(tensor.dims) for tensor in onnx.load("p.onnx").graph.initializer}
        self.assertTrue({(128, 784), (64, 128), (10, 64)} <= shapes, shapes)
        session = onnxruntime.InferenceSession("p.onnx", providers=["CPUExecutionProvider"])
        model = hone.compile(made.path, threads=1, log=False)
        for row in self.x:
            expected = session.run(None, {"input": row[None]})[0]
            np.testing.assert_allclose(np.asarray(model(row[None])), expected, rtol=1e-4, atol=1e-5)

    def test_keeps_and_says_what_is_zero(self):
        first = hone.prune(self.network, 0.25, output="p.onnx").layers[0]["name"]
        made = hone.prune(self.network, 0.25, {"input": self.x}, output="p.onnx", keep=first)
        self.assertEqual([layer["kept"] for layer in made.layers], [True, False, False])
        self.assertEqual([round(layer["sparsity"], 2) for layer in made.layers], [0, 0.25, 0.25])

    def test_takes_heads_out_and_says_which(self):
        rng = np.random.default_rng(4)
        shapes = {"w": (8, 36), "o": (12, 8)}
        tensors = [onnx.numpy_helper.from_array(rng.uniform(-1, 1, shape).astype(np.float32), name)
                   for name, shape in shapes.items()]
        tensors += [onnx.numpy_helper.from_array(np.array(ints, np.int64), name)
                    for name, ints in (("apart", (1, 5, 4, 3)), ("joined", (1, 5, 12)))]
        node = onnx.helper.make_node
        nodes = [node("MatMul", ["x", "w"], ["qkv"]), node("Split", ["qkv"], ["q", "k", "v"], axis=2)]
        for name, perm in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
            nodes += [node("Reshape", [name, "apart"], [name + "s"]),
                      node("Transpose", [name + "s"], [name + "h"], perm=perm)]
        nodes += [node("MatMul", ["qh", "kh"], ["scores"]), node("Softmax", ["scores"], ["shares"]),
                  node("MatMul", ["shares", "vh"], ["mixed"]),
                  node("Transpose", ["mixed"], ["turned"], perm=(0, 2, 1, 3)),
                  node("Reshape", ["turned", "joined"], ["all"]), node("MatMul", ["all", "o"], ["y"])]
        info = onnx.helper.make_tensor_value_info
        graph = onnx.helper.make_graph(nodes, "g", [info("x", onnx.TensorProto.FLOAT, (1, 5, 8))],
                                       [info("y", onnx.TensorProto.FLOAT, (1, 5, 8))], tensors)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)],
                                       ir_version=8)
        made = hone.prune(model, 0.5, structure="head", output="h.onnx")
        self.assertEqual([head["gone"] for head in made.heads].count(True), 2)
        self.assertAlmostEqual(sum(head["saliency"] for head in made.heads), 1)
        written = {t.name: tuple(t.dims) for t in onnx.load("h.onnx").graph.initializer}
        self.assertEqual((written["w"], written["o"]), ((8, 18), (6, 8)))
        with self.assertRaisesRegex(hone.BadInput, "no head can be pruned"):
            hone.prune(self.network, 0.5, structure="head", output="no.onnx")

    def test_bad_calls_say_what_is_wrong(self):
        with self.assertRaisesRegex(hone.UsageError, "is not from 0 to below 1"):
            hone.prune(self.network, 1, output="no.onnx")
        with self.assertRaisesRegex(hone.BadInput, "block:3x1: Gemm .* 784 terms"):
            hone.prune(self.network, 0.5, structure="block:3x1", output="no.onnx")
        with self.assertRaisesRegex(hone.UsageError, "sparsity S is needed"):
            hone.prune(self.network, output="no.onnx")
        self.assertFalse(pathlib.Path("no.onnx").exists())
