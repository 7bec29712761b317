#!/usr/bin/env python3
"""Trains three small networks on scikit-learn's digits and writes them as ONNX, with data to
calibrate on and labelled data to judge by:

    train_digits.py FOLDER        NAME.onnx, NAME.calibrate.npz, NAME.test.npz; mlp, cnn, vit

NumPy alone, seeded, in some tens of seconds.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sklearn.datasets import load_digits

BATCH = 64


class Tensor:
    """A value that knows how a change of it reaches those it was made from."""

    def __init__(self, value, parents=(), backward=None):
        self.value, self.parents, self.backward = np.asarray(value, np.float32), parents, backward
        self.grad = np.zeros_like(self.value)

    def take(self, grad):
        while grad.ndim > self.value.ndim:
            grad = grad.sum(0)
        for axis, extent in enumerate(self.value.shape):
            if extent == 1 and grad.shape[axis] != 1:
                grad = grad.sum(axis, keepdims=True)
        self.grad += grad

    def learn(self):
        order, seen = [], set()

        def visit(tensor):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                for parent in tensor.parents:
                    visit(parent)
                order.append(tensor)
        visit(self)
        self.grad = np.ones_like(self.value)
        for tensor in reversed(order):
            if tensor.backward:
                tensor.backward(tensor.grad)


def add(a, b):
    return Tensor(a.value + b.value, (a, b), lambda g: (a.take(g), b.take(g)))


def matmul(a, b):
    def backward(g):
        a.take(g @ np.swapaxes(b.value, -1, -2))
        b.take(np.swapaxes(a.value, -1, -2) @ g)
    return Tensor(a.value @ b.value, (a, b), backward)


def relu(a):
    return Tensor(np.maximum(a.value, 0), (a,), lambda g: a.take(g * (a.value > 0)))


def reshape(a, shape):
    return Tensor(a.value.reshape(shape), (a,), lambda g: a.take(g.reshape(a.value.shape)))


def transpose(a, axes):
    return Tensor(a.value.transpose(axes), (a,), lambda g: a.take(g.transpose(np.argsort(axes))))


def scaled(a, factor):
    return Tensor(a.value * factor, (a,), lambda g: a.take(g * factor))


def mean(a, axis):
    count = a.value.shape[axis]
    return Tensor(a.value.mean(axis), (a,), lambda g: a.take(
        np.repeat(np.expand_dims(g, axis), count, axis) / count))


def softmax(a):
    e = np.exp(a.value - a.value.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    return Tensor(y, (a,), lambda g: a.take(y * (g - (g * y).sum(-1, keepdims=True))))


def normalise(a, gain, shift):
    centred = a.value - a.value.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)
    x = centred * inverse

    def backward(g):
        gain.take(g * x)
        shift.take(g)
        g = g * gain.value
        a.take(inverse * (g - g.mean(-1, keepdims=True) - x * (g * x).mean(-1, keepdims=True)))
    return Tensor(x * gain.value + shift.value, (a, gain, shift), backward)


def windows(a):
    """3 × 3 around each pixel of [n, c, h, w]: [n, h, w, c · 9]."""
    n, c, h, w = a.value.shape
    padded = np.pad(a.value, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = [padded[:, :, i:i + h, j:j + w] for i in range(3) for j in range(3)]
    value = np.stack(parts, 2).transpose(0, 3, 4, 1, 2).reshape(n, h, w, c * 9)

    def backward(g):
        g = g.reshape(n, h, w, c, 9).transpose(0, 3, 4, 1, 2)
        whole = np.zeros_like(padded)
        for k in range(9):
            whole[:, :, k // 3:k // 3 + h, k % 3:k % 3 + w] += g[:, :, k]
        a.take(whole[:, :, 1:-1, 1:-1])
    return Tensor(value, (a,), backward)


def loss(logits, labels):
    p = softmax(Tensor(logits.value)).value
    rows = np.arange(len(labels))

    def backward(_):
        g = p.copy()
        g[rows, labels] -= 1
        logits.take(g / len(labels))
    return Tensor(-np.log(p[rows, labels] + 1e-9).mean(), (logits,), backward)


class Weights(dict):
    """Parameters by name, made on first use."""

    def __init__(self, seed):
        super().__init__()
        self.random = np.random.default_rng(seed)

    def __call__(self, name, *shape, gain=1.0):
        if name not in self:
            fan_in = shape[0] if len(shape) > 1 else 0
            value = self.random.normal(0, gain / np.sqrt(fan_in), shape) if fan_in else np.zeros(shape)
            self[name] = Tensor(value)
        return self[name]


def dense(w, x, name, k, n):
    return add(matmul(x, w(f"{name}.w", k, n, gain=1.4)), w(f"{name}.b", n))


def mlp(w, x):
    h = relu(dense(w, reshape(x, (-1, 64)), "a", 64, 128))
    return dense(w, relu(dense(w, h, "b", 128, 64)), "c", 64, 10)


def cnn(w, x):
    for name, c, n in (("a", 1, 16), ("b", 16, 32), ("c", 32, 32)):
        x = relu(transpose(dense(w, windows(x), name, c * 9, n), (0, 3, 1, 2)))
    return dense(w, mean(reshape(x, (x.value.shape[0], 32, 64)), 2), "d", 32, 10)


WIDTH, HEADS, TOKENS = 48, 4, 16


def norm(w, x, name):
    gain = w(f"{name}.g", WIDTH)
    if not w.get(f"{name}.begun"):
        w[f"{name}.begun"] = True
        gain.value += 1
    return normalise(x, gain, w(f"{name}.s", WIDTH))


def vit(w, x):
    n = x.value.shape[0]
    patches = transpose(reshape(x, (n, 4, 2, 4, 2)), (0, 1, 3, 2, 4))
    x = add(dense(w, reshape(patches, (n, TOKENS, 4)), "patch", 4, WIDTH),
            w("place", TOKENS, WIDTH, gain=0.3))
    for block in ("0", "1"):
        h = norm(w, x, block + ".n1")

        def part(name, axes, block=block, h=h):
            y = dense(w, h, f"{block}.{name}", WIDTH, WIDTH)
            return transpose(reshape(y, (n, TOKENS, HEADS, WIDTH // HEADS)), axes)
        scores = matmul(part("q", (0, 2, 1, 3)), part("k", (0, 2, 3, 1)))
        heads = matmul(softmax(scaled(scores, 1 / np.sqrt(WIDTH // HEADS))),
                       part("v", (0, 2, 1, 3)))
        joined = reshape(transpose(heads, (0, 2, 1, 3)), (n, TOKENS, WIDTH))
        x = add(x, dense(w, joined, block + ".o", WIDTH, WIDTH))
        h = relu(dense(w, norm(w, x, block + ".n2"), block + ".f1", WIDTH, 2 * WIDTH))
        x = add(x, dense(w, h, block + ".f2", 2 * WIDTH, WIDTH))
    return dense(w, mean(norm(w, x, "end"), 1), "head", WIDTH, 10)


def train(network, x, y, epochs, seed):
    w, random = Weights(seed), np.random.default_rng(seed)
    first, second, step = {}, {}, 0
    for epoch in range(epochs):
        order = random.permutation(len(x))
        for at in range(0, len(x) - BATCH + 1, BATCH):
            batch = order[at:at + BATCH]
            made = loss(network(w, Tensor(x[batch])), y[batch])
            made.learn()
            step += 1
            for name, p in w.items():  # Adam
                if isinstance(p, Tensor):
                    first[name] = 0.9 * first.get(name, 0) + 0.1 * p.grad
                    second[name] = 0.999 * second.get(name, 0) + 0.001 * p.grad ** 2
                    rate = 3e-3 * (1 - epoch / epochs) * np.sqrt(1 - 0.999 ** step) / (1 - 0.9 ** step)
                    p.value -= rate * first[name] / (np.sqrt(second[name]) + 1e-8)
                    p.grad[:] = 0
    return {name: p.value for name, p in w.items() if isinstance(p, Tensor)}


class Export:
    """The nodes of a network in ONNX."""

    def __init__(self, weights):
        self.weights, self.nodes = weights, []

    def node(self, op, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def ints(self, name, values):
        self.weights[name] = np.array(values, np.int64)
        return name

    def dense(self, x, name):
        return self.node("Add", self.node("MatMul", x, f"{name}.w", name=f"{name}.product"),
                         f"{name}.b", name=name)

    def mlp(self):
        h = self.node("Flatten", "x", name="flat")
        for name in "ab":
            h = self.node("Relu", self.dense(h, name), name=name + ".relu")
        return self.dense(h, "c")

    def cnn(self):
        h = "x"
        for name in "abc":
            w = self.weights[f"{name}.w"]
            self.weights[f"{name}.w"] = w.T.reshape(w.shape[1], -1, 3, 3).copy()
            h = self.node("Conv", h, f"{name}.w", f"{name}.b", name=name, pads=[1, 1, 1, 1])
            h = self.node("Relu", h, name=name + ".relu")
        h = self.node("GlobalAveragePool", h, name="mean")
        return self.dense(self.node("Flatten", h, name="flat"), "d")

    def heads(self, x, name, axes):
        y = self.node("Reshape", self.dense(x, name), "to_heads", name=name + ".split")
        return self.node("Transpose", y, name=name + ".heads", perm=axes)

    def vit(self):
        self.ints("to_patches", [BATCH, 4, 2, 4, 2])
        self.ints("to_tokens", [BATCH, TOKENS, 4])
        self.ints("to_heads", [BATCH, TOKENS, HEADS, WIDTH // HEADS])
        self.ints("to_width", [BATCH, TOKENS, WIDTH])
        self.weights["scale"] = np.float32(1 / np.sqrt(WIDTH // HEADS))
        p = self.node("Transpose", self.node("Reshape", "x", "to_patches", name="cut"),
                      name="patches", perm=[0, 1, 3, 2, 4])
        x = self.dense(self.node("Reshape", p, "to_tokens", name="tokens"), "patch")
        x = self.node("Add", x, "place", name="placed")
        for b in "01":
            h = self.layer_norm(x, b + ".n1")
            q, k, v = (self.heads(h, f"{b}.{name}", axes) for name, axes in
                       (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))
            s = self.node("Mul", self.node("MatMul", q, k, name=b + ".qk"), "scale", name=b + ".s")
            s = self.node("Softmax", s, name=b + ".p", axis=-1)
            h = self.node("Transpose", self.node("MatMul", s, v, name=b + ".pv"), name=b + ".t",
                          perm=[0, 2, 1, 3])
            h = self.dense(self.node("Reshape", h, "to_width", name=b + ".joined"), b + ".o")
            x = self.node("Add", x, h, name=b + ".r1")
            h = self.node("Relu", self.dense(self.layer_norm(x, b + ".n2"), b + ".f1"),
                          name=b + ".relu")
            x = self.node("Add", x, self.dense(h, b + ".f2"), name=b + ".r2")
        x = self.node("ReduceMean", self.layer_norm(x, "end"), name="mean", axes=[1], keepdims=0)
        return self.dense(x, "head")

    def layer_norm(self, x, name):
        return self.node("LayerNormalization", x, f"{name}.g", f"{name}.s", name=name, axis=-1,
                         epsilon=1e-5)

    def save(self, name, path):
        last = getattr(self, name)()
        kinds = onnx.TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes, name,
            [helper.make_tensor_value_info("x", kinds, [BATCH, 1, 8, 8])],
            [helper.make_tensor_value_info(last, kinds, [BATCH, 10])],
            [numpy_helper.from_array(value, key) for key, value in self.weights.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    x = (digits.images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    y = digits.target
    order = np.random.default_rng(1).permutation(len(x))
    x, y = x[order], y[order]
    held = 9 * BATCH  # 576 of 1,797
    for network, epochs in ((mlp, 30), (cnn, 25), (vit, 40)):
        name = network.__name__
        weights = train(network, x[held:], y[held:], epochs, 2)
        Export(dict(weights)).save(name, folder / f"{name}.onnx")
        np.savez(folder / f"{name}.calibrate.npz", x=x[held:held + 4 * BATCH])
        np.savez(folder / f"{name}.test.npz", x=x[:held], labels=y[:held].astype(np.int64))
        right = (network_outputs(network, weights, x[:held]).argmax(1) == y[:held]).mean()
        print(f"{name}: {100 * right:.1f} % of {held} right", flush=True)


def network_outputs(network, weights, x):
    known = Weights(0)
    known.update({name: Tensor(value) for name, value in weights.items()})
    known.update({name[:-2] + ".begun": True for name in weights if name.endswith(".g")})
    return network(known, Tensor(x)).value


if __name__ == "__main__":
    main()
