"""torch.compile(backend="hone") beside eager PyTorch: values, weights, memory, gradients, and what
falls back. Skipped where this Python has no torch, onnx and onnxscript."""
import importlib.util
import os
import subprocess
import sys
import unittest
import warnings

import hone

MISSING = [name for name in ("torch", "onnxscript") if importlib.util.find_spec(name) is None]
if not MISSING:
    import hone.pytorch
    import torch
    from torch import nn


class Small(nn.Module if not MISSING else object):
    """A convolution, its normalisation, and a linear layer with a buffer."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x):
        return torch.relu(self.linear(self.norm(self.conv(x)).mean((2, 3)))) + self.shift


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(7)
        torch.set_num_threads(2)
        self.warned = self.enterContext(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")

    def compiled(self, fn, **options):
        self.last = self.newest()
        return torch.compile(fn, backend="hone", options={"log": False, **options})

    def newest(self):
        return max((row["graph"] for row in hone.seen()), default=-1)

    def rows(self):
        """What was seen since compiled()."""
        return [row for row in hone.seen() if row["graph"] > self.last]

    def fallbacks(self):
        return [str(w.message) for w in self.warned if w.category is hone.FallbackWarning]

    def assert_equal(self, got, want):
        """Values, types, shapes and strides."""
        if isinstance(want, (tuple, list)):
            self.assertEqual((type(got), len(got)), (type(want), len(want)))
            for one, other in zip(got, want):
                self.assert_equal(one, other)
        elif isinstance(want, torch.Tensor):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
            self.assertEqual((got.stride(), got.storage_offset(), got.requires_grad),
                             (want.stride(), want.storage_offset(), want.requires_grad))
        else:
            self.assertEqual(got, want)


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchBackendTest(Case):
    def test_networks_equal_eager(self):
        mlp = nn.Sequential(nn.Linear(64, 128), nn.Dropout(), nn.ReLU(), nn.Linear(128, 10)).eval()
        with torch.no_grad():
            for net, shape in ((mlp, (4, 64)), (Small().eval(), (2, 3, 9, 9))):
                compiled = self.compiled(net)
                for _ in range(2):
                    x = torch.randn(shape)
                    self.assert_equal(compiled(x), net(x))
                self.assertEqual([row["state"] for row in self.rows()], ["compiled"])
        self.assertEqual(self.fallbacks(), [])

    def test_each_shape_has_a_package_until_the_bound(self):
        net = Small().eval()
        compiled = self.compiled(net, packages=2)
        with torch.no_grad():
            for batch in (1, 2, 3, 4, 2, 3, 1):
                x = torch.randn(batch, 3, 9, 9)
                self.assert_equal(compiled(x), net(x))
        self.assertEqual([row["state"] for row in self.rows()], ["compiled"] * 3 + ["eager"])
        [told] = self.fallbacks()
        self.assertIn("options={'packages': N}", told)
        with torch.no_grad():
            net.linear.weight.mul_(2)  # one change, for both packages
            for batch in (2, 3):
                x = torch.randn(batch, 3, 9, 9)
                self.assert_equal(compiled(x), net(x))
        self.assertEqual(self.rows()[-1]["changes"], 1)

    def test_changed_weights_are_never_answered_old(self):
        net, other = Small().eval(), Small().eval()
        compiled = self.compiled(net)
        x = torch.randn(2, 3, 9, 9)

        def replace(p, value):
            p.data = value
        changes = (lambda: net.linear.weight.mul_(2),
                   lambda: net.load_state_dict(other.state_dict()),
                   lambda: net.linear.weight.data.mul_(-3),
                   lambda: net.shift.add_(1),
                   lambda: replace(net.linear.bias, torch.randn(4)),
                   lambda: net.load_state_dict(Small().state_dict(), assign=True),
                   lambda: setattr(net.linear, "weight", nn.Parameter(torch.randn(4, 8))))
        with torch.no_grad():
            self.assert_equal(compiled(x), net(x))
            for change in changes:
                change()
                self.assert_equal(compiled(x), net(x))
        # After some changes weights are inputs, and changing them costs nothing more.
        self.assertEqual(self.rows()[-1]["inputs"].count("f32"), 10)
        self.assertEqual(self.fallbacks(), [])

    def test_weights_may_be_inputs_from_the_start(self):
        net = Small().eval()
        compiled = self.compiled(net, freeze=False)
        x = torch.randn(2, 3, 9, 9)
        with torch.no_grad():
            for _ in range(3):
                self.assert_equal(compiled(x), net(x))
                net.linear.weight.data[0, 0] += 1
        self.assertEqual(len(self.rows()), 1)

    def test_two_modules_of_one_class_keep_their_weights(self):
        nets = [Small().eval(), Small().eval()]
        compiled = [self.compiled(net) for net in nets]
        x = torch.randn(2, 3, 9, 9)
        with torch.no_grad():
            for _ in range(2):
                for net, call in zip(nets, compiled):
                    self.assert_equal(call(x), net(x))

    def test_memory_is_shared_as_in_eager(self):
        def fn(x, y):
            z, w = x.t(), x + 1
            x.add_(2)
            top, rest = torch.sort(y)[0].repeat(4, 1).split([1, 3])
            return x, z, w, w[0], w.t(), y.expand(3, 4), 7, None, top, rest, (y * 2).expand(3, 4)
        compiled = self.compiled(fn)
        x, y = torch.randn(3, 8)[:, 1::2], torch.randn(1, 4)
        mine = x.clone()
        with torch.no_grad():
            for _ in range(2):
                mine = torch.empty_strided(x.shape, x.stride()).copy_(x)
                got, want = compiled(mine, y), fn(x, y)
                for one, other in zip(got, want):
                    if isinstance(other, torch.Tensor) and other._base is not x:
                        torch.testing.assert_close(one, other)
                        self.assertEqual(one.stride(), other.stride())
                torch.testing.assert_close(mine, x)
                self.assertIs(got[0], mine)
                got[2].zero_()
                self.assertEqual(float(got[3].abs().sum() + got[4].abs().sum()), 0)
                got[1].fill_(5)
                self.assertEqual(float(mine[0, 0]), 5)
                torch.testing.assert_close(got[9].untyped_storage().data_ptr(),
                                           got[8].untyped_storage().data_ptr())
        self.assertEqual({row["state"] for row in self.rows()}, {"compiled"})

    def test_arguments_in_one_memory_that_is_written(self):
        def fn(x, y):
            x.mul_(2)
            return x + y
        compiled = self.compiled(fn)
        with torch.no_grad():
            for offset in (4, 2):  # apart, then one in the other
                base = torch.arange(8.)
                self.assert_equal(compiled(base[:4], base[offset:offset + 4]),
                                  fn((other := torch.arange(8.))[:4], other[offset:offset + 4]))
                self.assert_equal(base, other)
        [told] = self.fallbacks()
        self.assertRegex(told, "a call of the graph torch_backend_cases-.*shares memory")
        self.assertIn("shares memory", self.rows()[0]["why"])

    def test_a_call_that_fails_where_pytorch_has_a_result_is_told_once(self):
        compiled, x = self.compiled(Small().eval()), torch.ones(2, 3, 9, 9)

        class Failing:
            def __init__(self, model):
                self.model = model

            def __call__(self, _):
                raise hone.NoSpace("no space for 7 bytes")
        with torch.no_grad():
            want = compiled(x)
            [graph] = [graph for graph in hone.pytorch.graph.graphs if graph.number > self.last]
            variant = graph.rows()[0]
            variant.package = Failing(variant.package.model)
            for _ in range(2):
                torch.testing.assert_close(compiled(x), want, rtol=1e-4, atol=1e-5)
        [told] = self.fallbacks()
        self.assertRegex(told, "a call of the graph .* runs as PyTorch runs it: NoSpace: no space for 7 bytes")
        self.assertIn("no space for 7 bytes", self.rows()[0]["why"])

    def test_layouts_types_and_empty_tensors(self):
        def fn(x):
            return torch.where(x > 0, x, x * 2).transpose(0, -1)
        compiled = self.compiled(fn)
        image = torch.randn(2, 3, 4, 5)
        inputs = [image, image.to(memory_format=torch.channels_last), image.transpose(1, 3),
                  image[..., ::2], image[:1].expand(4, 3, 4, 5)]
        inputs += [image.to(dtype) for dtype in (torch.float64, torch.int64, torch.uint8,
                                                 torch.bfloat16)]
        inputs += [image[:0], image.to(torch.complex64).real]
        with torch.no_grad():
            for x in inputs:
                torch._dynamo.reset()
                self.assert_equal(compiled(x), fn(x))

    def test_gradients_equal_eager(self):
        net = Small().eval()
        compiled = self.compiled(net)
        x = torch.randn(2, 3, 9, 9, requires_grad=True)
        for wanted in ([x], [x, *net.parameters()]):
            got, want = (torch.autograd.grad(f(x).square().sum(), wanted) for f in (compiled, net))
            torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)
        got, want = (torch.autograd.grad(torch.autograd.grad(f(x).square().sum(), x, create_graph=True)[0]
                                         .sum(), net.linear.weight) for f in (compiled, net))
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)
        self.assertEqual([row["state"] for row in self.rows()], ["compiled"])

        def detached(x):
            y = x * 2
            return y, y.detach() + 1, x.view(-1), x.detach()
        self.assert_equal(self.compiled(detached)(x), detached(x))

    def test_training_is_left_to_pytorch(self):
        def train(call, net):
            steps = torch.optim.SGD(net.parameters(), 0.1)
            torch.manual_seed(1)
            for _ in range(3):
                steps.zero_grad()
                call(torch.randn(4, 16)).square().mean().backward()
                steps.step()
            return [p.detach() for p in net.parameters()]
        made = []
        for compile_it in (True, False):
            torch.manual_seed(5)
            net = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
            made.append(train(self.compiled(net) if compile_it else net, net))
        torch.testing.assert_close(*made)
        [told] = self.fallbacks()
        self.assertIn("weights are being trained", told)

    def test_what_falls_back_is_right_and_told_once(self):
        net = Small().train()
        for fn, x, words in (
                (lambda x: x + torch.randn(3), torch.zeros(3), r"aten.randn.*randn\(3\).*random"),
                (nn.Dropout(), torch.zeros(3), "aten.native_dropout|aten.rand|bernoulli"),
                (net, torch.randn(2, 3, 9, 9), "batch_norm.*it is training"),
                (lambda x: x * 2, torch.zeros(3, device="meta"), "device meta.*x.cpu"),
                (lambda x: x * 2, torch.zeros(3, dtype=torch.complex64), "torch.complex64"),
                (lambda x: torch.linalg.qr(x)[1].abs(), torch.eye(3), r"qr.*torch_backend_cases.py")):
            self.warned.clear()
            torch._dynamo.reset()
            compiled = self.compiled(fn)
            with torch.no_grad():
                for _ in range(2):
                    torch.manual_seed(2)
                    got = compiled(x)
                    torch.manual_seed(2)
                    want = fn(x)
                    if x.device.type == "cpu":
                        torch.testing.assert_close(got, want)
            self.assertEqual(self.rows()[0]["state"], "in parts" if fn is net else "eager", words)
            [told] = self.fallbacks()
            self.assertRegex(told, words)

    def test_a_graph_is_parted_by_what_is_refused(self):
        class Parted(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = Small(), nn.Linear(4, 4)

            def forward(self, x):
                y = self.one(x)
                z = y.view(-1)  # of what the next piece computes anew, in place
                q = torch.linalg.qr(y.add_(1) @ y.t())[1]
                z.mul_(2)
                return self.two(y + q.abs().sum()).relu() * 2, z, q
        net = Parted().eval()
        compiled = self.compiled(net)
        with torch.no_grad():
            for batch in (2, 2, 3):
                x = torch.randn(batch, 3, 9, 9)
                for got, want in zip(compiled(x), net(x)):
                    self.assert_equal(got, want)
            net.two.weight.mul_(2)  # weights of parts are watched as those of graphs
            for got, want in zip(compiled(x), net(x)):
                self.assert_equal(got, want)
            told = hone.explain(net, x)
        [warning] = self.fallbacks()[:1]
        self.assertRegex(warning, "qr.*This operator of the graph")
        self.assertEqual({row["state"] for row in self.rows()}, {"compiled", "in parts"})
        self.assertEqual([row["state"] for row in told.graphs], ["in parts", "compiled", "compiled"])
        self.assertIn("2 of 3 graphs compiled", str(told))

    def test_numbers_and_sizes_that_change(self):
        def fn(x, count, factor):
            return x[:count] * factor + count, x.shape[0] * count
        compiled = torch.compile(fn, backend="hone", options={"log": False}, dynamic=True)
        with torch.no_grad():
            for size, count, factor in ((4, 2, 0.5), (5, 3, 0.5), (5, 3, 0.25)):
                x = torch.randn(size, 3)
                self.assert_equal(compiled(x, count, factor), fn(x, count, factor))
        self.assertEqual(self.fallbacks(), [])

    def test_graphs_of_others_watch_their_weights_too(self):
        class Held(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(3))

            def forward(self, x):
                return x * self.weight
        x, calls = torch.ones(3), []
        for net, state in ((Held(), "compiled"), (nn.Sequential(nn.Linear(3, 3)), "eager")):
            self.last = self.newest()
            calls.append(hone.pytorch.backend(torch.fx.symbolic_trace(net), [x], options={"log": False}))
            with torch.no_grad():
                for _ in range(2):
                    self.assert_equal(calls[-1](x), net(x))
                    next(net.parameters()).mul_(2)
            self.assertEqual({row["state"] for row in self.rows()}, {state})

    def test_errors_are_those_of_pytorch(self):
        table = nn.Embedding(5, 4)
        compiled = self.compiled(table)
        ids = torch.tensor([1, 2])
        with torch.no_grad():
            self.assert_equal(compiled(ids), table(ids))
            with self.assertRaises(IndexError) as raised:
                compiled(ids + 9)
            self.assertIsNone(raised.exception.__context__)  # ours is no part of it
            self.assert_equal(compiled(ids), table(ids))

    def test_integers_divided_by_zero_raise_as_in_eager(self):
        x, zero = torch.tensor([4, 5]), torch.tensor([1, 0])
        with torch.no_grad():
            for fn in (lambda x, y: x // y, lambda x, y: x % y, torch.fmod,
                       lambda x, y: torch.div(x, y, rounding_mode="trunc")):
                torch._dynamo.reset()
                self.warned.clear()
                compiled = self.compiled(fn)
                for y in (zero + 1, zero):
                    for call in (fn, compiled):
                        if y is zero:
                            with self.assertRaisesRegex(RuntimeError, "ZeroDivision"):
                                call(x, y)
                        else:
                            self.assert_equal(call(x, y), fn(x, y))
                [told] = self.fallbacks()
                self.assertIn("divides integers", told)
            torch._dynamo.reset()
            compiled = self.compiled(lambda x: (x // 2, x % 3, x / (x - 4), x.float() // x.float()))
            self.assert_equal(compiled(x + 1), (x.new_tensor([2, 3]), x.new_tensor([2, 0]),
                                                torch.tensor([5., 3.]), torch.ones(2)))
            self.assertEqual([row["state"] for row in self.rows()], ["compiled"])

    def test_lines_of_ours_are_not_the_users(self):
        with torch.no_grad():
            self.compiled(nn.BatchNorm1d(4).train())(torch.randn(5, 4))
        [told] = self.fallbacks()
        self.assertRegex(told, "batch_norm.*it is training")
        self.assertNotIn("hone/pytorch", told)

    def test_refusals_of_the_compiler_speak_of_the_program(self):
        """They name no file that is gone, and no option of the command line."""
        def fn(x):
            return x.gather(0, torch.tensor([0, 5]))
        with torch.no_grad(), self.assertRaises(RuntimeError):
            self.compiled(fn)(torch.ones(2))
        [told] = self.fallbacks()
        self.assertRegex(told, r"hone: aten.gather.default at .*torch_backend_cases.py:\d+ \(return x.gather.*index 5")
        self.assertNotRegex(told, "/tmp/|--")

    def test_explains_graphs_and_breaks(self):
        def fn(x):
            y = torch.relu(x) * 2
            if y.sum() > 0:
                y = y + torch.randn(3)
            return torch.sin(y)
        with torch.no_grad():
            told = hone.explain(fn, torch.ones(3))
        self.assertEqual([row["state"] for row in told.graphs], ["compiled", "eager"])
        self.assertEqual(told.graphs[1]["operator"], "aten.randn.default")
        self.assertIn("torch_backend_cases.py", told.graphs[1]["line"])
        [row] = told.breaks
        self.assertIn("torch_backend_cases.py", row["line"])
        self.assertIn("1 of 2 graphs compiled", str(told))
        self.assertIn("<table>", told._repr_html_())

    def test_wrong_options_are_named(self):
        for given, words in (({"options": {"thread": 1}}, "no option thread; known are threads"),
                             ({"mode": "max-autotune"}, "HONE_TUNE")):
            with self.assertRaisesRegex(Exception, words):
                torch.compile(lambda x: x + 1, backend="hone", **given)(torch.zeros(1))

    def test_without_torch_the_module_is_light(self):
        script = ("import sys, time\nbegan = time.process_time()\nimport hone\n"
                  "assert time.process_time() - began < 0.15\n"
                  "hone.HoneError, hone.__version__\n"
                  "assert not {'torch', 'numpy', 'onnx'} & set(sys.modules), sorted(sys.modules)\n"
                  "sys.modules['torch'] = None\n"
                  "try:\n    hone.explain\n"
                  "except hone.NotInstalled as error:\n    print(error)\n")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              env=dict(os.environ), check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("pip install torch", done.stdout)
