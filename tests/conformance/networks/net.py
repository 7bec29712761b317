"""One network while it is written, in the manner of one exporter and operator set."""
import zlib

import numpy as np
from onnx import helper, numpy_helper

NETWORKS = {}
LARGE = []


def network(opset, style="torch", sets=1, large=False):
    """Registers a network. `style` decides names and spellings: torch (TorchScript), dynamo, tf. `sets`: how many
    sets of inputs; `large`: has realistic sizes too."""

    def register(function):
        name = function.__name__.strip("_")
        NETWORKS[name] = (function, opset, style, sets)
        if large:
            LARGE.append(name)
        return function

    return register


class Net:
    """The graph with its inputs' values. Values carry a width: channels of images, features of rows."""

    def __init__(self, name, opset, style, sets, seed, large):
        self.name, self.opset, self.style, self.large = name, opset, style, large
        key = zlib.crc32(f"{seed}/{name}".encode())
        self.rng = np.random.default_rng(key)
        self.drawn = [np.random.default_rng([key, i]) for i in range(sets)]
        self.nodes, self.inputs, self.constants, self.functions = [], [], [], []
        self.values = [{} for _ in range(sets)]
        self.width = {}
        self.counter = 0
        self.place = ""

    def pick(self, small, large):
        return large if self.large else small

    def new(self, op):
        self.counter += 1
        if self.style == "dynamo":
            return f"{op.lower()}_{self.counter}"
        if self.style == "tf":
            return f"{self.name}/{self.place or 'top'}/{op}__{self.counter}:0"
        return f"/{self.place or 'top'}/{op}_{self.counter}_output_0"

    # Inputs and constants.

    def input(self, name, shape, low=-1.0, high=1.0, dtype=np.float32, dims=None, draw=None, width=None):
        """`dims`: names of symbolic dimensions by axis. `draw(rng)` gives the value instead of a uniform one."""
        for rng, values in zip(self.drawn, self.values):
            if draw:
                values[name] = np.asarray(draw(rng)).astype(dtype)
            elif np.issubdtype(dtype, np.floating):
                values[name] = rng.uniform(low, high, shape).astype(dtype)
            else:
                values[name] = rng.integers(low, high, shape).astype(dtype)
        declared = [(dims or {}).get(axis, extent) for axis, extent in enumerate(self.values[0][name].shape)]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, declared))
        self.width[name] = width or (shape[1] if len(shape) == 4 else shape[-1] if shape else 1)
        return name

    def weight(self, array, name=None):
        """An initializer."""
        self.counter += 1
        if name is None:
            name = f"onnx::W_{self.counter}" if self.style == "torch" else f"{self.place}w__{self.counter}"
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def uniform(self, shape, fan=None, low=None, high=None, dtype=np.float32):
        """A weight that keeps the variance of what it multiplies, or uniform in [low, high)."""
        if low is None:
            high = (3.0 / (fan or shape[-1])) ** 0.5
            low = -high
        return self.weight(self.rng.uniform(low, high, shape).astype(dtype))

    def const(self, value, dtype=None):
        """A small constant: a node of its own from TorchScript, else an initializer."""
        if dtype is None:
            first = np.asarray(value)
            dtype = np.int64 if first.dtype.kind == "i" else bool if first.dtype.kind == "b" else np.float32
        array = np.asarray(value, dtype)
        if self.style != "torch":
            return self.weight(array)
        name = self.new("Constant")
        self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        return name

    @staticmethod
    def tensor(value, dtype=np.float32):
        """What a ConstantOfShape repeats."""
        return numpy_helper.from_array(np.array([value], dtype))

    def f32(self, value):
        return self.const(value, np.float32)

    # Nodes.

    def op(self, kind, *inputs, outs=1, width=None, domain=None, **attributes):
        """Numbers among the inputs become constants: floats f32, integers i64."""
        names = [each if isinstance(each, str) else "" if each is None else self.const(each) for each in inputs]
        outputs = [self.new(kind) for _ in range(outs)]
        node = helper.make_node(kind, names, outputs, name=outputs[0].replace("_output_0", "").split(":")[0],
                                **attributes)
        if domain:
            node.domain = domain
        self.nodes.append(node)
        for output in outputs:
            self.width[output] = width or self.width.get(names[0] if names else "", 1)
        return outputs[0] if outs == 1 else outputs

    def both(self, kind, a, b):
        """Either may be the broadcast one."""
        return self.op(kind, a, b, width=max(self.width.get(a, 1), self.width.get(b, 1)))

    def add(self, a, b):
        return self.both("Add", a, b)

    def mul(self, a, b):
        return self.both("Mul", a, b)

    def relu(self, x):
        return self.op("Relu", x)

    def sigmoid(self, x):
        return self.op("Sigmoid", x)

    def silu(self, x):
        return self.mul(x, self.sigmoid(x))

    def transpose(self, x, *perm, width=None):
        return self.op("Transpose", x, perm=list(perm), width=width)

    def unsqueeze(self, x, *axes):
        if self.opset < 13:
            return self.op("Unsqueeze", x, axes=list(axes))
        return self.op("Unsqueeze", x, list(axes))

    def squeeze(self, x, *axes):
        if self.opset < 13:
            return self.op("Squeeze", x, axes=list(axes))
        return self.op("Squeeze", x, list(axes))

    def reduce(self, kind, x, axes, keep=1):
        """kind without Reduce: Mean, Sum, Max …"""
        since = 13 if kind == "Sum" else 18
        if self.opset < since:
            return self.op("Reduce" + kind, x, axes=list(axes), keepdims=keep)
        return self.op("Reduce" + kind, x, list(axes), keepdims=keep)

    def slice(self, x, start, end, axis, step=1, width=None):
        if self.opset < 10:
            return self.op("Slice", x, starts=[start], ends=[end], axes=[axis], width=width)
        return self.op("Slice", x, [start], [end], [axis], [step], width=width)

    def split(self, x, sizes, axis=1):
        if self.opset < 13:
            parts = self.op("Split", x, outs=len(sizes), axis=axis, split=list(sizes))
        else:
            parts = self.op("Split", x, list(sizes), outs=len(sizes), axis=axis)
        for part, size in zip(parts, sizes):
            self.width[part] = size
        return parts

    def chunk(self, x, count, axis):
        """Equal parts; the newest operator sets count them."""
        if self.opset >= 18:
            parts = self.op("Split", x, outs=count, axis=axis, num_outputs=count)
            for part in parts:
                self.width[part] = self.width[x] // count
            return parts
        return self.split(x, [self.width[x] // count] * count, axis)

    def concat(self, parts, axis=1, width=None):
        return self.op("Concat", *parts, axis=axis, width=width or sum(self.width.get(p, 1) for p in parts))

    def pad(self, x, pads, mode="constant"):
        """`pads` in ONNX's order."""
        if self.opset < 11:
            return self.op("Pad", x, pads=list(pads), mode=mode)
        if mode == "constant":
            return self.op("Pad", x, list(pads), 0.0, mode=mode)
        return self.op("Pad", x, list(pads), mode=mode)

    def clip(self, x, low, high):
        if self.opset < 11:
            return self.op("Clip", x, min=low, max=high)
        return self.op("Clip", x, low, high)

    def softmax(self, x, axis=-1):
        return self.op("Softmax", x, axis=axis)

    def dim(self, x, axis):
        """One extent, as an integer scalar read from the running value."""
        return self.op("Gather", self.op("Shape", x), self.const(axis), axis=0)

    def reshape(self, x, shape, width=None):
        """Extents are integers, or scalars of the graph by name."""
        if all(isinstance(extent, int) for extent in shape):
            return self.op("Reshape", x, self.const(list(shape)), width=width)
        parts = [self.const([e]) if isinstance(e, int) else self.unsqueeze(e, 0) for e in shape]
        return self.op("Reshape", x, self.op("Concat", *parts, axis=0), width=width)

    def resize(self, x, scale=2, mode="nearest", like=None, corners="asymmetric", nearest="floor"):
        """By factors, or to the extents of `like` (through its shape)."""
        if self.opset < 10:
            return self.op("Upsample", x, self.f32([1, 1, scale, scale]), mode=mode)
        attributes = {"mode": mode, "coordinate_transformation_mode": corners}
        if mode == "nearest":
            attributes["nearest_mode"] = nearest
        if mode == "cubic":
            attributes["cubic_coeff_a"] = -0.75
        if self.opset < 11:
            return self.op("Resize", x, self.f32([1, 1, scale, scale]), mode=mode)
        roi = None if self.opset >= 13 else self.weight(np.zeros(0, np.float32))
        if like is None:
            return self.op("Resize", x, roi, self.f32([1, 1, scale, scale]), **attributes)
        front = self.slice(self.op("Shape", x), 0, 2, 0)
        back = self.slice(self.op("Shape", like), 2, 4, 0)
        empty = None if self.opset >= 13 else self.weight(np.zeros(0, np.float32))
        return self.op("Resize", x, roi, empty, self.op("Concat", front, back, axis=0), **attributes)

    # Layers.

    def conv(self, x, channels, kernel=1, stride=1, pad=None, group=1, dilation=1, bias=True, rank=2):
        kernel = [kernel] * rank if isinstance(kernel, int) else list(kernel)
        if pad is None:
            pad = [dilation * (k - 1) // 2 for k in kernel] * 2
        elif isinstance(pad, int):
            pad = [pad] * (2 * len(kernel))
        own = self.width[x] // group
        inputs = [x, self.uniform([channels, own] + kernel, own * int(np.prod(kernel)))]
        if bias:
            inputs.append(self.uniform([channels], low=-0.1, high=0.1))
        count = len(kernel)
        return self.op("Conv", *inputs, width=channels, kernel_shape=kernel, strides=[stride] * count, pads=pad,
                       group=group, dilations=[dilation] * count)

    def deconv(self, x, channels, kernel, stride, pad=0, output=0, bias=True):
        own = self.width[x]
        inputs = [x, self.uniform([own, channels, kernel, kernel], own * kernel * kernel // (stride * stride))]
        if bias:
            inputs.append(self.uniform([channels], low=-0.1, high=0.1))
        extra = {"output_padding": [output] * 2} if output else {}
        return self.op("ConvTranspose", *inputs, width=channels, kernel_shape=[kernel] * 2, strides=[stride] * 2,
                       pads=[pad] * 4, group=1, dilations=[1, 1], **extra)

    def batch_norm(self, x):
        size = [self.width[x]]
        extra = {"training_mode": 0} if self.opset >= 14 else {}
        return self.op("BatchNormalization", x, self.uniform(size, low=0.6, high=1.4),
                       self.uniform(size, low=-0.2, high=0.2), self.uniform(size, low=-0.2, high=0.2),
                       self.uniform(size, low=0.6, high=1.4), epsilon=1e-5, momentum=0.9, **extra)

    def instance_norm(self, x, affine=True):
        size = [self.width[x]]
        scale = self.uniform(size, low=0.6, high=1.4) if affine else self.weight(np.ones(size, np.float32))
        shift = self.uniform(size, low=-0.2, high=0.2) if affine else self.weight(np.zeros(size, np.float32))
        return self.op("InstanceNormalization", x, scale, shift, epsilon=1e-5)

    def conv_norm(self, x, channels, kernel=1, stride=1, act=True, **more):
        y = self.batch_norm(self.conv(x, channels, kernel, stride, bias=False, **more))
        return self.relu(y) if act else y

    def group_norm(self, x, groups, spatial):
        """As TorchScript spells it: an instance norm of the groups, then scale and shift."""
        channels = self.width[x]
        rows = self.op("Reshape", x, self.const([0, groups, -1]), width=groups)
        rows = self.instance_norm(rows, affine=False)
        y = self.op("Reshape", rows, self.op("Shape", x), width=channels)
        ones = [1] * spatial
        y = self.mul(y, self.uniform([channels] + ones, low=0.6, high=1.4))
        return self.add(y, self.uniform([channels] + ones, low=-0.2, high=0.2))

    def max_pool(self, x, kernel=3, stride=2, pad=None, **more):
        pad = kernel // 2 if pad is None else pad
        pads = pad if isinstance(pad, list) else [pad] * 4
        return self.op("MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, **more)

    def average_pool(self, x, kernel=3, stride=1, pad=0, **more):
        return self.op("AveragePool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, **more)

    def global_pool(self, x):
        return self.op("GlobalAveragePool", x)

    def linear(self, x, features, bias=True, rank=3):
        """Rows of features: a Gemm for matrices, else a product and a sum whose order is the exporter's."""
        own = self.width[x]
        if rank == 2 and bias:
            return self.op("Gemm", x, self.uniform([features, own]), self.uniform([features], low=-0.1, high=0.1),
                           transB=1, alpha=1.0, beta=1.0, width=features)
        if self.style == "dynamo":
            turned = self.op("Transpose", self.uniform([features, own]), perm=[1, 0])
            y = self.op("MatMul", x, turned, width=features)
        else:
            y = self.op("MatMul", x, self.uniform([own, features], own), width=features)
        if not bias:
            return y
        shift = self.uniform([features], low=-0.1, high=0.1)
        return self.add(shift, y) if self.style == "torch" else self.add(y, shift)

    def layer_norm(self, x, epsilon=1e-5):
        size = [self.width[x]]
        scale, shift = self.uniform(size, low=0.6, high=1.4), self.uniform(size, low=-0.2, high=0.2)
        if self.opset >= 17:
            return self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)
        centred = self.op("Sub", x, self.reduce("Mean", x, [-1]))
        variance = self.reduce("Mean", self.op("Pow", centred, 2.0), [-1])
        rows = self.op("Div", centred, self.op("Sqrt", self.add(variance, epsilon)))
        return self.add(self.mul(rows, scale), shift)

    def gelu(self, x):
        if self.opset >= 20:
            return self.op("Gelu", x, approximate="none")
        erf = self.op("Erf", self.op("Div", x, float(np.sqrt(2))))
        return self.mul(self.mul(x, self.add(erf, 1.0)), 0.5)

    def heads(self, x, batch, length, heads):
        """[b, s, h*d] -> [b, h, s, d]."""
        size = self.width[x] // heads
        return self.transpose(self.reshape(x, [batch, length, heads, size], width=size), 0, 2, 1, 3)

    def attention(self, q, k, v, mask=None):
        """Products of heads; the scores divided by the root of their width."""
        size = self.width[q]
        scores = self.op("MatMul", q, self.transpose(k, 0, 1, 3, 2), width=size)
        scores = self.op("Div", scores, float(np.sqrt(size)))
        if mask:
            scores = self.add(scores, mask)
        return self.op("MatMul", self.softmax(scores), v, width=size)

    def self_attention(self, x, batch, length, heads, mask=None):
        """A layer of four products without the residual."""
        width = self.width[x]
        q, k, v = (self.heads(self.linear(x, width), batch, length, heads) for _ in range(3))
        y = self.transpose(self.attention(q, k, v, mask), 0, 2, 1, 3)
        return self.linear(self.reshape(y, [batch, length, width], width=width), width)

    def feed_forward(self, x, inner, act=None):
        width = self.width[x]
        return self.linear((act or self.gelu)(self.linear(x, inner)), width)
