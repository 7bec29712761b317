"""Modules of torch that cannot become a model: what, at which line of the user, and what to do. Skipped
where this Python has no torch and onnxscript."""
import importlib.util
import unittest

import hone

MISSING = [name for name in ("torch", "onnxscript") if importlib.util.find_spec(name) is None]
HERE = r"torch_module_cases.py:\d+ "
WHAT_TO_DO = r'torch.compile\(module, backend="hone"\) compiles what lies around it$'


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchModuleTest(unittest.TestCase):
    def setUp(self):
        import torch  # pylint: disable=import-outside-toplevel

        class Branches(torch.nn.Module):
            def forward(self, x):
                return x * 2 if x.sum() > 0 else x - 1

        class Eigen(torch.nn.Module):
            def forward(self, x):
                return torch.linalg.eigh(x + 1)[0]

        class Gathers(torch.nn.Module):
            def forward(self, x):
                return torch.relu(x).gather(0, torch.tensor([[0, 5]]))

        self.branches, self.eigen, self.gathers = Branches(), Eigen(), Gathers()
        self.x = torch.ones(2, 2)

    def test_control_flow_that_depends_on_data(self):
        with self.assertRaisesRegex(hone.BadInput, "Branches .*depends on data.* at .*" + HERE +
                                    r"\(return x \* 2 if.*; " + WHAT_TO_DO):
            hone.compile(self.branches, self.x)

    def test_an_operator_that_the_exporter_has_not(self):
        with self.assertRaisesRegex(hone.BadInput, "Eigen .*eigh.default at .*" + HERE +
                                    r"\(return torch.linalg.*no ONNX for it; " + WHAT_TO_DO):
            hone.compile(self.eigen, self.x)

    def test_an_operator_that_hone_refuses(self):
        """The command line's message names a file that is gone, and a node that nobody wrote."""
        for call in (lambda: hone.compile(self.gathers, self.x, log=False),
                     lambda: hone.tune(self.gathers, self.x, seconds=9, log="refused.db")):
            with self.assertRaisesRegex(hone.BadInput, "^Gathers: aten.gather.default at .*" + HERE +
                                        r"\(return torch.relu.*index 5.*; " + WHAT_TO_DO) as raised:
                call()
            self.assertNotRegex(str(raised.exception).replace(__file__, ""), r"/tmp/|model\.onnx|--|node_")

    def test_another_fault_gets_no_advice_on_operators(self):
        with self.assertRaises(hone.HoneError) as raised:
            hone.compile(self.gathers, self.x, target="cpu:z80")
        self.assertNotIn("torch.compile", str(raised.exception))

    def test_commands_that_read_onnx_say_so(self):
        for call in (lambda: hone.quantize(self.gathers, {"x": self.x.numpy()}, output="q.onnx"),
                     lambda: hone.prune(self.gathers, 0.5, output="p.onnx")):
            with self.assertRaisesRegex(hone.BadInput, r"^hone.(quantize|prune) reads ONNX, and Gathers .*"
                                        r"export it first \(torch.onnx.export\(module"):
                call()
