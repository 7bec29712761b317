"""torch modules and tensors; skipped where this Python has no torch, onnx and onnxscript."""
import gc
import importlib.util
import unittest

import guide_cases
import hone
import numpy as np

MISSING = [name for name in ("torch", "onnxscript") if importlib.util.find_spec(name) is None]


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchTest(unittest.TestCase):
    def setUp(self):
        import torch  # pylint: disable=import-outside-toplevel
        self.torch = torch
        torch.manual_seed(3)
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Dropout(), torch.nn.ReLU(),
                                       torch.nn.Linear(128, 10))
        self.x = torch.randn(4, 64)

    def test_a_module_equals_eager_and_keeps_its_mode(self):
        model = hone.compile(self.net, (self.x,), log=False)
        self.assertTrue(self.net.training)
        expected = self.net.eval()(self.x).detach().numpy()
        for x in (self.x, self.x.clone().requires_grad_(), self.x.numpy(),
                  self.x.t().contiguous().t()):
            np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5)
        session = hone.tune(self.net, (self.x,), seconds=4, log="torch.db")
        np.testing.assert_allclose(session.compile()(self.x), expected, rtol=1e-3, atol=1e-4)

    def test_what_cannot_be_exported_or_read_says_why(self):
        torch = self.torch

        class Branches(torch.nn.Module):
            def forward(self, x):
                return x * 2 if x.sum() > 0 else x - 1

        model = hone.compile(self.net, self.x, log=False)
        for call, words in (
                (lambda: hone.compile(self.net), "inputs="),
                (lambda: hone.compile(Branches(), self.x), "Branches.*depends on data"),
                (lambda: hone.compile(self.net.to("meta"), self.x), "are on meta.*module.cpu"),
                (lambda: model(self.x.to("meta")), "device meta.*x.cpu"),
                (lambda: model(self.x.bfloat16()), "bfloat16"),
                (lambda: model(self.x.double()), "not float64")):
            with self.assertRaisesRegex(hone.BadInput, words):
                call()

    def test_the_blocks_of_the_page_about_torch_run(self):
        self.torch._dynamo.reset()
        gc.collect()  # hone.tune_seen would tune the graphs of other tests
        self.assertEqual(guide_cases.run_blocks(torch=True), 2)
