"""How torch.compile(backend="hone") exports graphs: what takes a second trace, and what goes right without."""
import unittest
import unittest.mock

import hone
from torch_backend_cases import MISSING, Case, Small

if not MISSING:
    import torch
    from hone.pytorch import exporter
    from hone.pytorch.graph import graphs
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


def themselves(x):
    """In place, into what operators give that give their argument itself or a view of it: it is written. Beside
    each, one that copies."""
    y = torch.relu(x)
    gives = [F.dropout(y, 0.5, False), F.dropout(y, 0.0, True), torch.dropout(y, 0.5, False),
             F.dropout2d(y, 0.5, False), F.alpha_dropout(y, 0.5, False), F.feature_alpha_dropout(y, 0.5, False),
             torch.feature_dropout(y, 0.5, False), nn.Identity()(y), y.contiguous(), y.to(torch.float32),
             y.to("cpu"), y.to(y), y.type(torch.float32), y.type_as(y), y.float(), y.cpu(), y.detach(), y.real,
             y.resolve_conj(), +y, y.expand(y.shape), y.expand_as(y), y.broadcast_to(y.shape), y.reshape(-1),
             y.reshape(y.shape), y.view(-1), y.view_as(y), y.flatten(1), y.flatten(1, 1), y.ravel(), y.squeeze(),
             y.unsqueeze(0), y.mT, y.movedim(0, 1), y[:], y[None], y.chunk(2, 1)[0], y.tensor_split(2, 1)[1],
             y.unbind(1)[0], torch.broadcast_tensors(y, y)[0], torch.atleast_1d(y), y.swapaxes(0, 1).mT,
             torch.einsum("abcd->abcd", y), torch.einsum("abcd->bacd", y), F.dropout(y.view(-1), 0.5, False)[3:9]]
    copies = [y.double(), y.to(torch.float32, copy=True), y.clone(), y.mT.contiguous(), y.mT.reshape(-1),
              y.mT.flatten(), y.mT.ravel(), F.pad(y, (0, 0)), y.repeat(1, 1, 1, 1), torch.einsum("abcd->ab", y)]
    for i, (one, other) in enumerate(zip(gives, copies * len(gives))):
        one.add_(i)
        other.mul_(3)
    return y * 2, *[copy + 1 for copy in copies]


def differences(x):
    """As the mask of GPT-2 takes them, and the other ways."""
    whole = (x * 9).long()
    return (torch.diff(x), torch.diff(x, dim=1, prepend=x[:, :1] - 1), torch.diff(whole, dim=-4, append=whole * 2),
            torch.diff(x, 1, 2, x[:, :, 3:5], x[:, :, :0]))


def written_by_dropout(x):
    y = torch.relu(x)
    F.dropout(y, 0.5, False).add_(1)
    return y * 2


def written_before_it_is_read(x):
    y = torch.relu(x)
    dropped = F.dropout(y, 0.5, False)
    y.add_(1)
    a, b = y.chunk(2, 1)
    F.dropout(a, 0.5, False).mul_(2)
    torch.add(b, 1, out=F.dropout(b, 0.5, False))
    return dropped * 2, y, b


def written_argument(x):
    F.dropout(x, 0.5, False).add_(1)
    torch.einsum("abcd->bacd", x.contiguous())[0] = 3
    return x * 2, F.dropout(x, 0.5, False)


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchExportTest(Case):
    def test_common_networks_are_traced_once(self):
        x = torch.randn(2, 3, 9, 9)
        with torch.no_grad(), unittest.mock.patch.object(torch.export.ExportedProgram, "run_decompositions",
                                                         side_effect=AssertionError("a second trace")):
            for net in (Residual().eval(), Small().eval(), differences):
                self.assert_equal(self.compiled(net)(x), net(x))
                self.assertEqual([row["state"] for row in self.rows()], ["compiled"])

    def test_without_a_second_trace_the_program_is_the_same(self):
        """Operators of ONNX, one by one, and how many constants, which have no order."""
        made, real = [], exporter.to_onnx

        def kept(program):
            onnx = real(program)
            operators = [node.op_type for node in onnx.model.graph if node.op_type != "Identity"]
            made.append(([each for each in operators if each != "Constant"], operators.count("Constant")))
            return onnx
        x = torch.randn(2, 3, 9, 9)
        for net in (differences, Residual().eval()):
            made.clear()
            for both in (True, False):
                torch._dynamo.reset()
                with torch.no_grad(), unittest.mock.patch("hone.pytorch.export.to_onnx", kept), \
                        unittest.mock.patch("hone.pytorch.exporter.lower",
                                            exporter.lower if both else lambda *_: False):
                    self.compiled(net)(x)
            self.assertEqual(*made)
        self.assertNotIn("Transpose", made[0][0])  # a weight of nn.Linear was transposed as a weight

    def test_a_bias_of_zeros_is_none(self):
        """Nor has a convolution without one, to which the exporter gives zeros, a kernel that adds them."""
        kernels = []
        x = torch.randn(1, 3, 9, 9)
        for bias in (None, 0, 1):
            torch._dynamo.reset()
            net = nn.Conv2d(3, 4, 3, bias=bias is not None)
            compiled = self.compiled(net)
            with torch.no_grad():
                if bias is not None:
                    net.bias.fill_(bias)
                self.assert_equal(compiled(x), net(x))
                [graph] = [graph for graph in graphs if graph.number > self.last]
                kernels.append([kernel["workload"] for kernel in graph.rows()[0].package.model.kernels])
                if bias is not None:
                    net.bias[1] = 2
                    self.assert_equal(compiled(x), net(x))
        without, zero, one = kernels
        self.assertEqual(without, zero)
        self.assertNotEqual(without, one)

    def test_writes_in_place_that_others_see(self):
        x = torch.randn(3, 4)
        with torch.no_grad():
            for fn in (writes, lambda x: writes(x)[3:], lambda x: F.relu_(F.dropout(x * 1, 0.5, False))):
                torch._dynamo.reset()
                self.assert_equal(self.compiled(fn)(x), fn(x))
                self.assertEqual({row["state"] for row in self.rows()}, {"compiled"})

    def test_writes_in_place_into_what_operators_give_of_their_argument(self):
        x = torch.randn(2, 4, 4, 4)
        with torch.no_grad():
            for fn in (written_by_dropout, written_before_it_is_read, written_argument, themselves,
                       nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.Hardtanh(-1, 1, inplace=True)).eval()):
                torch._dynamo.reset()
                with self.subTest(fn=fn):
                    given, kept = x.clone(), x.clone()
                    self.assert_equal(self.compiled(fn)(given), fn(kept))
                    self.assert_equal(given, kept)
                    self.assertEqual([row["state"] for row in self.rows()], ["compiled"])
        self.assertEqual(self.fallbacks(), [])

    def test_modules_are_written_through_as_well(self):
        class Written(nn.Module):
            def forward(self, x):
                y = torch.relu(x)
                F.dropout(y, 0.5, False).add_(1)
                torch.einsum("abcd->bacd", y).add_(x.mT)
                return y * 2
        x = torch.randn(2, 2, 4, 4)
        with torch.no_grad():
            torch.testing.assert_close(torch.as_tensor(hone.compile(Written(), x, log=False)(x)), Written()(x))

    def test_sequences_of_tensors(self):
        with torch.no_grad():
            for fn in (lambda x: [y * 2 for y in x.split(2, 1)], lambda x: torch.cat(x.chunk(3, 1)[::-1]) + 1,
                       lambda x: torch.stack([y + 1 for y in x.unbind(0)], 1)):
                torch._dynamo.reset()
                x = torch.randn(3, 6)
                self.assert_equal(self.compiled(fn)(x), fn(x))
                self.assertEqual([row["state"] for row in self.rows()], ["compiled"])
