"""How torch.compile(backend="hone") exports graphs: what takes a second trace, and what goes right without."""
import unittest
import unittest.mock

from torch_backend_cases import MISSING, Case, Small

if not MISSING:
    import torch
    from hone.pytorch import exporter
    from torch import nn
    from torch.nn import functional as F


class Residual(nn.Module if not MISSING else object):
    """What most networks have and PyTorch's exporter would decompose by tracing once more."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.Linear(3, 4)
        self.relu, self.drop = nn.ReLU(inplace=True), nn.Dropout(0.5)

    def forward(self, x):
        y = self.norm(self.conv(x))
        z = y * 2
        y += z
        y = self.relu(self.norm(self.conv(y)) + y)
        y = F.adaptive_avg_pool2d(self.drop(y).contiguous(), 1).flatten(1).to(torch.float32)
        return self.last(y).reshape(-1)


def writes(x):
    """In place, into what a view, another result, or a later operator sees."""
    a = torch.relu(x)
    view = a.view(-1)
    a.add_(1)
    b = x * 3
    b.mul_(b + 1)
    c = torch.relu(x + 1)
    d = c * 2
    c.add_(d)
    e = x.reshape(x.shape).contiguous()  # the argument itself
    return view * 2, a, b, c + d, e.add(1), c


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchExportTest(Case):
    def test_common_networks_are_traced_once(self):
        x = torch.randn(2, 3, 9, 9)
        with torch.no_grad(), unittest.mock.patch.object(torch.export.ExportedProgram, "run_decompositions",
                                                         side_effect=AssertionError("a second trace")):
            for net in (Residual().eval(), Small().eval()):
                self.assert_equal(self.compiled(net)(x), net(x))
                self.assertEqual([row["state"] for row in self.rows()], ["compiled"])

    def test_without_a_second_trace_the_program_is_the_same(self):
        """Operators of ONNX, one by one."""
        made, real = [], exporter.to_onnx

        def kept(program):
            onnx = real(program)
            made.append([node.op_type for node in onnx.model.graph if node.op_type != "Identity"])
            return onnx
        x = torch.randn(2, 3, 9, 9)
        for both in (True, False):
            torch._dynamo.reset()
            with torch.no_grad(), unittest.mock.patch("hone.pytorch.export.to_onnx", kept), \
                    unittest.mock.patch("hone.pytorch.exporter.lower", exporter.lower if both else lambda *_: False):
                self.compiled(Residual().eval())(x)
        self.assertEqual(*made)
        self.assertNotIn("Transpose", made[0])  # a weight of nn.Linear was transposed as a weight

    def test_writes_in_place_that_others_see(self):
        x = torch.randn(3, 4)
        with torch.no_grad():
            for fn in (writes, lambda x: writes(x)[3:], lambda x: F.relu_(F.dropout(x * 1, 0.5, False))):
                torch._dynamo.reset()
                self.assert_equal(self.compiled(fn)(x), fn(x))
                self.assertEqual({row["state"] for row in self.rows()}, {"compiled"})

    def test_sequences_of_tensors(self):
        with torch.no_grad():
            for fn in (lambda x: [y * 2 for y in x.split(2, 1)], lambda x: torch.cat(x.chunk(3, 1)[::-1]) + 1,
                       lambda x: torch.stack([y + 1 for y in x.unbind(0)], 1)):
                torch._dynamo.reset()
                x = torch.randn(3, 6)
                self.assert_equal(self.compiled(fn)(x), fn(x))
                self.assertEqual([row["state"] for row in self.rows()], ["compiled"])
