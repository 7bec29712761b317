"""torch.compile(backend="hone") beside eager PyTorch where operators have corners: indices that are
refused, reductions of nothing, infinities and NaN, what does not fit an integer."""
import contextlib
import io
import math
import re
import unittest

from torch_backend_cases import MISSING, Case

if not MISSING:
    import torch
    from torch.nn import functional as F

    NAN, INF = math.nan, math.inf
    VALUES = torch.tensor([NAN, INF, -INF, 0., -0., 1., -1., 88.8, -104., 1e38, -1e38, 20., -20., 0.5])
    LARGE = torch.tensor([NAN, INF, -INF, 1e30, -1e30, 2.**63, -2.**63, 2.**31, -2.**31, 3e9, -3e9, 300.,
                          -1.5, 0., -0., 1.7])
    SOME = torch.arange(12.).view(3, 4)
    ONES = torch.ones(2, 4)

    # What eager PyTorch refuses with some data: name -> (function, good argument, bad arguments).
    INDEX, WRONG = [0, 2], ([0, 3], [0, -1])
    REFUSED = {
        "one_hot": (lambda i: F.one_hot(i, 3), INDEX, WRONG),
        "embedding": (lambda i: F.embedding(i, SOME), INDEX, WRONG),
        "index_select": (lambda i: SOME.index_select(0, i), INDEX, WRONG),
        "gather": (lambda i: SOME.t().gather(1, i[None]), INDEX, WRONG),
        "scatter": (lambda i: SOME.scatter(0, i[:, None], 7.), INDEX, WRONG),
        "scatter_": (lambda i: SOME.clone().scatter_(0, i[:, None], ONES), INDEX, WRONG),
        "scatter_add": (lambda i: SOME.scatter_add(0, i[:, None], ONES), INDEX, WRONG),
        "scatter_reduce": (lambda i: SOME.scatter_reduce(0, i[:, None], ONES[:, :1], "amax"), INDEX, WRONG),
        "index_add": (lambda i: SOME.index_add(0, i, ONES), INDEX, WRONG),
        "index_copy": (lambda i: SOME.index_copy(0, i, ONES), INDEX, WRONG),
        "index": (lambda i: SOME[i], [0, -3], ([0, 3], [0, -4])),
        # Computed in the kernel that looks up, not by a map of an input alone.
        "a sum": (lambda i: SOME[:, 0].index_select(0, i.expand(2, 2).sum(0) - i), INDEX, WRONG),
        "a place": (lambda x: SOME[:, 0][x.argmax(1)], [[1, 0, 0, 0], [0, 0, 2, 0]], ([[0, 0, 0, 1], [0, 1, 0, 0]],)),
        "a product": (lambda x: SOME[:, :2].t().gather(1, (x @ ONES.t()).long()), [[.5] * 4] * 2,
                      ([[1.] * 4] * 2,)),
        "a norm": (lambda x: F.binary_cross_entropy(x.softmax(1) * x.sum(), ONES[:, :2]), [[.5, 0.], [0., .5]],
                   ([[.5, 0.], [0., 3.]],)),
        "nll_loss": (lambda i: F.nll_loss(SOME[:2, :3], i), [0, 2], WRONG),
        "cross_entropy": (lambda i: F.cross_entropy(SOME[:2, :3], i), [0, -100], WRONG),
        "binary_cross_entropy": (lambda x: F.binary_cross_entropy(x, ONES[0, :2]), [0., 1.],
                                 ([0., 1.5], [NAN, 1.], [0.5, -0.5])),
    }
    # What eager PyTorch refuses without elements.
    OF_NOTHING = {"max": lambda x: x.max(), "max of a dimension": lambda x: x.max(1)[0],
                  "min": lambda x: x.min(1)[0], "amax": lambda x: x.amax(1), "argmin": lambda x: x.argmin(1)}


def casts(x):
    return [x.to(to) for to in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)]


@unittest.skipIf(MISSING, f"this Python has no {', '.join(MISSING)}")
class TorchCornerTest(Case):
    def check(self, fn, *arguments, zeros=False):
        """Equal, zeros with their signs if asked for, and compiled."""
        torch._dynamo.reset()
        compiled = self.compiled(fn)
        with torch.no_grad():
            got, want = compiled(*arguments), fn(*arguments)
        for number, (one, other) in enumerate(zip(got, want, strict=True)):
            with self.subTest(number):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
                if zeros:
                    zero = other == 0
                    self.assertTrue(torch.equal(one[zero].signbit(), other[zero].signbit()), f"{one} {other}")
        self.assertEqual([row["state"] for row in self.rows()], ["compiled"])

    def test_what_eager_refuses_raises_the_same(self):
        said = self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        with torch.no_grad():
            for name, (fn, good, bad) in REFUSED.items():
                with self.subTest(name):
                    torch._dynamo.reset()
                    compiled = self.compiled(fn)
                    good = torch.tensor(good)
                    self.assert_equal(compiled(good), fn(good))
                    for each in map(torch.tensor, bad):
                        with self.assertRaises((IndexError, RuntimeError)) as raised:
                            fn(each)
                        with self.assertRaisesRegex(type(raised.exception), re.escape(str(raised.exception)[:20])):
                            compiled(each)
                    self.assertEqual([row["state"] for row in self.rows()], ["compiled"])
        self.assertEqual((self.fallbacks(), said.getvalue()), ([], ""))

    def test_nothing_has_no_maximum(self):
        with torch.no_grad():
            for name, fn in OF_NOTHING.items():
                with self.subTest(name):
                    torch._dynamo.reset()
                    with self.assertRaises((IndexError, RuntimeError)):
                        fn(torch.zeros(3, 0))
                    with self.assertRaises((IndexError, RuntimeError)):
                        self.compiled(fn)(torch.zeros(3, 0))
            torch._dynamo.reset()
            x = torch.zeros(3, 0, dtype=torch.bool)
            self.warned.clear()
            self.assert_equal(self.compiled(lambda x: x.any(1))(x), x.any(1))
            [told] = self.fallbacks()
            self.assertRegex(told, r"aten.any.dim at .*torch_corner_cases.py:\d+.*without elements")
        self.check(lambda x: (x.sum(1), x.amax(0), x.max(0)[0], torch.maximum(x, x + 1)), torch.zeros(3, 0))

    def test_what_does_not_fit_an_integer(self):
        for x in (LARGE, LARGE.double(), LARGE.half()):
            self.check(casts, x)
            self.check(casts, x.repeat(16))

    def test_infinities_and_nan(self):
        self.check(lambda x: [F.gelu(x[i:i + 1]) for i in range(9)], VALUES)
        self.check(lambda x: (F.gelu(x, approximate="tanh"), torch.tanh(x), F.silu(x), F.logsigmoid(x), x.sign(),
                              x.sgn(), x.signbit(), x.softmax(0), x.amax(0), x.clamp(-1, 1), x.sort()[0]), VALUES)
        self.check(lambda x, y: (torch.atan2(x, y), torch.logaddexp(x, y), torch.logaddexp2(x, y),
                                 torch.heaviside(x, y), torch.maximum(x, y), torch.fmod(x, y)),
                   VALUES[:, None].repeat(1, 14), VALUES.repeat(14, 1))

    def test_quotients_that_a_rounding_decides(self):
        x = torch.tensor([1., 6., -1., 0.3, 1e30, -1e30, INF, NAN, 0., -0., 7.])
        whole = torch.tensor([2**40 + 5, -2**40 - 5, 7, -7])
        self.check(lambda x: (x // 0.1, x // -0.1, x % 0.1, x % -3., x % 3., x // x.flip(0), x % x.flip(0),
                              torch.div(x, 0.1, rounding_mode="floor"), torch.div(x, 0.1, rounding_mode="trunc")), x,
                   zeros=True)
        self.check(lambda x: (x // 3, x % 3, torch.div(x, 3, rounding_mode="trunc"),
                              torch.div(x, 3, rounding_mode="floor")), whole)

    def test_other_kinds_of_tensors_and_modes(self):
        class Named(torch.Tensor):
            pass
        layer = torch.nn.Linear(4, 4).eval()

        def fn(x):
            return layer(x.to_dense() if x.is_sparse else x).relu() * 2
        sparse = SOME.to_sparse()
        with torch.inference_mode():
            inference = SOME.clone()

        def call(given, mode):
            with mode():
                return fn(given), torch.compile(fn, backend="hone", options={"log": False})(given)
        for name, given, mode in (
                ("autocast", SOME, lambda: torch.autocast("cpu", torch.bfloat16)),
                ("inference mode", SOME, torch.inference_mode), ("a tensor of it", inference, torch.no_grad),
                ("both", inference, torch.inference_mode), ("sparse", sparse, torch.no_grad),
                ("a subclass", SOME.as_subclass(Named), torch.no_grad)):
            with self.subTest(name):
                torch._dynamo.reset()
                for _ in range(2):
                    want, got = call(given, mode)
                    self.assertEqual((type(got), got.dtype, got.is_inference()),
                                     (type(want), want.dtype, want.is_inference()))
                    torch.testing.assert_close(got, want, rtol=1e-2 if name == "autocast" else 1e-4, atol=1e-4)

    def test_attention_to_nothing_is_zero(self):
        x = torch.randn(1, 2, 3, 4)
        mask = torch.tensor([[True, False, True], [False] * 3, [True] * 3])
        self.check(lambda x, mask: (F.scaled_dot_product_attention(x, x, x, attn_mask=mask),), x, mask)
        self.check(lambda x, mask: (F.scaled_dot_product_attention(x, x, x, attn_mask=mask),), x,
                   torch.zeros(3, 3).masked_fill(~mask, -INF))
