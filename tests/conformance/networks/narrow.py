"""Networks with narrow numbers: eight bits in the ways quantisers write them, and half floats."""
import numpy as np
from onnx import TensorProto, helper

from .net import network


def u8(n, value):
    return n.weight(np.uint8(value))


# Beside u8 operands ONNX Runtime adds pairs of products in i16, which saturates, on CPUs that have AVX2 alone: weights
# of seven bits are exact on all.
SEVEN_BITS = 63


def through(n, x, scale, zero=128):
    """Quantised and back, as one operator after another sees it."""
    s = n.weight(np.float32(scale))
    z = u8(n, zero)
    return n.op("DequantizeLinear", n.op("QuantizeLinear", x, s, z), s, z)


def eight_bits(n, shape, fan, axis=0):
    """A weight in i8 with one scale for each output channel, dequantised in the graph."""
    weight = n.rng.integers(-127, 128, shape).astype(np.int8)
    bound = (3 / fan) ** 0.5 / 127
    scale = (bound * n.rng.uniform(0.7, 1.3, shape[axis])).astype(np.float32)
    zero = np.zeros(shape[axis], np.int8)
    return n.op("DequantizeLinear", n.weight(weight), n.weight(scale), n.weight(zero), axis=axis)


@network(13)
def qdq_resnet_block(n):
    """Quantise and dequantise around everything, weights by channel, biases in i32."""
    x = n.input("input", [1, 3, 18, 18])
    x = through(n, x, 1 / 64)

    def conv(x, width, kernel, stride=1, act=True):
        own = n.width[x]
        shape = [width, own, kernel, kernel]
        w = eight_bits(n, shape, own * kernel * kernel)
        bias = n.op("DequantizeLinear", n.weight(n.rng.integers(-900, 900, width).astype(np.int32)),
                    n.weight(np.full(width, 1e-4, np.float32)), n.weight(np.zeros(width, np.int32)), axis=0)
        y = n.op("Conv", x, w, bias, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
                 width=width)
        y = n.relu(y) if act else y
        return through(n, y, 0.02, 0 if act else 128)

    x = conv(x, 16, 3, 2)
    y = conv(conv(x, 16, 3), 16, 3, act=False)
    x = through(n, n.relu(n.add(y, x)), 0.03, 0)
    y = conv(conv(x, 24, 3, 2), 24, 3, act=False)
    x = through(n, n.relu(n.add(y, conv(x, 24, 1, 2, act=False))), 0.03, 0)
    x = through(n, n.op("GlobalAveragePool", x), 0.02, 0)
    x = n.op("Flatten", x, axis=1)
    w = eight_bits(n, [7, 24], 24)
    return through(n, n.op("Gemm", x, w, transB=1), 0.02)


@network(10)
def qlinear_mobilenet(n):
    """Operators on eight bits from end to end."""
    x = n.input("input", [1, 3, 20, 20])
    scale, zero = n.weight(np.float32(1 / 127)), u8(n, 128)
    x = n.op("QuantizeLinear", x, scale, zero)
    n.width[x] = 3
    state = (x, scale, zero)

    def conv(state, width, kernel, stride=1, group=1, signed=False):
        x, scale, zero = state
        own = n.width[x] // group
        shape = [width, own, kernel, kernel]
        low, high, dtype = (-SEVEN_BITS, SEVEN_BITS + 1, np.int8) if signed else (0, 256, np.uint8)
        w = n.weight(n.rng.integers(low, high, shape).astype(dtype))
        w_scale = n.weight(np.float32((3 / (own * kernel * kernel)) ** 0.5 / (SEVEN_BITS if signed else 127)))
        w_zero = n.weight(dtype(0 if signed else 121))
        out_scale, out_zero = n.weight(np.float32(0.017)), u8(n, 0)
        bias = n.weight(n.rng.integers(-400, 400, width).astype(np.int32))
        y = n.op("QLinearConv", x, scale, zero, w, w_scale, w_zero, out_scale, out_zero, bias, width=width,
                 kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)
        return y, out_scale, out_zero

    state = conv(state, 16, 3, 2, signed=True)
    state = conv(state, 16, 3, 1, 16)
    state = conv(state, 24, 1, signed=True)
    state = conv(state, 24, 3, 2, 24, signed=True)
    state = conv(state, 16, 1)
    x, scale, zero = state
    x = n.op("DequantizeLinear", n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]) if n.opset >= 12 else x,
             scale, zero)
    x = n.op("Flatten", n.global_pool(x), axis=1)
    n.width[x] = 16
    q, q_scale, q_zero = n.op("QuantizeLinear", x, scale, zero), scale, zero
    w = n.weight(n.rng.integers(0, 256, [16, 9]).astype(np.uint8))
    out_scale, out_zero = n.weight(np.float32(0.03)), u8(n, 90)
    y = n.op("QLinearMatMul", q, q_scale, q_zero, w, n.weight(np.float32(0.004)), u8(n, 127), out_scale, out_zero)
    return [n.op("DequantizeLinear", y, out_scale, out_zero), y]


@network(11)
def dynamic_quantised_bert(n):
    """A layer whose products are of integers, with scales found while it runs."""
    batch, length, width, heads = 2, 11, 32, 4
    x = n.input("hidden_states", [batch, length, width], dims={0: "batch", 1: "sequence"})
    b, s = n.dim(x, 0), n.dim(x, 1)

    def linear(x, features):
        own = n.width[x]
        q, scale, zero = n.op("DynamicQuantizeLinear", x, outs=3)
        w = n.weight(n.rng.integers(-SEVEN_BITS, SEVEN_BITS + 1, [own, features]).astype(np.int8))
        y = n.op("MatMulInteger", q, w, zero, n.weight(np.int8(0)))
        y = n.op("Cast", y, to=TensorProto.FLOAT)
        both = n.mul(scale, n.weight(np.float32((3 / own) ** 0.5 / SEVEN_BITS)))
        y = n.add(n.mul(y, both), n.uniform([features], low=-0.1, high=0.1))
        n.width[y] = features
        return y

    q, k, v = (n.heads(linear(x, width), b, s, heads) for _ in range(3))
    y = n.transpose(n.attention(q, k, v), 0, 2, 1, 3)
    y = linear(n.reshape(y, [b, s, width], width=width), width)
    x = n.layer_norm(n.add(y, x))
    y = linear(n.gelu(linear(x, 64)), width)
    return n.layer_norm(n.add(y, x))


@network(21)
def weights_in_blocks(n):
    """Matrices kept in i8 with a scale for each block of rows, dequantised before use."""
    x = n.input("x", [2, 5, 32], dims={0: "batch"})
    for features in (48, 16):
        own = n.width[x]
        w = n.weight(n.rng.integers(-127, 128, [own, features]).astype(np.int8))
        bound = (3 / own) ** 0.5 / 127
        scale = n.weight((bound * n.rng.uniform(0.7, 1.3, [own // 16, features])).astype(np.float32))
        w = n.op("DequantizeLinear", w, scale, axis=0, block_size=16)
        x = n.op("Tanh", n.op("MatMul", x, w, width=features))
    return x


@network(17)
def half_block(n):
    """A transformer's layer in half floats, with the casts that keep its norms in full ones."""
    batch, length, width, heads = 2, 9, 16, 2
    x = n.input("x", [batch, length, width], dims={0: "batch"})
    half = TensorProto.FLOAT16
    x = n.op("Cast", x, to=half)

    def linear(x, features):
        own = n.width[x]
        bound = (3 / own) ** 0.5
        w = n.weight(n.rng.uniform(-bound, bound, [own, features]).astype(np.float16))
        y = n.op("MatMul", x, w, width=features)
        return n.add(y, n.weight(n.rng.uniform(-0.1, 0.1, features).astype(np.float16)))

    def norm(x):
        return n.op("Cast", n.layer_norm(n.op("Cast", x, to=TensorProto.FLOAT)), to=half)

    y = norm(x)
    q, k, v = (n.heads(linear(y, width), batch, length, heads) for _ in range(3))
    scores = n.op("MatMul", q, n.transpose(k, 0, 1, 3, 2))
    scores = n.mul(scores, n.weight(np.float16(8 ** -0.5)))
    share = n.op("Cast", n.softmax(n.op("Cast", scores, to=TensorProto.FLOAT)), to=half)
    y = n.transpose(n.op("MatMul", share, v), 0, 2, 1, 3)
    x = n.add(x, linear(n.reshape(y, [batch, length, width], width=width), width))
    y = linear(norm(x), 32)
    y = n.mul(y, n.sigmoid(y))
    return n.add(x, linear(y, width))


@network(14)
def half_convolutions(n):
    """Weights and activations of half floats around convolutions, full ones outside."""
    x = n.input("x", [1, 3, 15, 15])
    x = n.op("Cast", x, to=TensorProto.FLOAT16)

    def conv(x, width, kernel, stride=1, group=1):
        own = n.width[x] // group
        bound = (3 / (own * kernel * kernel)) ** 0.5
        w = n.weight(n.rng.uniform(-bound, bound, [width, own, kernel, kernel]).astype(np.float16))
        b = n.weight(n.rng.uniform(-0.1, 0.1, width).astype(np.float16))
        return n.op("Conv", x, w, b, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
                    group=group, width=width)

    x = n.relu(conv(x, 8, 3, 2))
    x = n.relu(conv(n.relu(conv(x, 8, 3, 1, 8)), 12, 1))
    x = n.op("Flatten", n.global_pool(x), axis=1)
    w = n.weight(n.rng.uniform(-0.4, 0.4, [5, 12]).astype(np.float16))
    return n.op("Gemm", x, w, transB=1)


@network(13)
def qdq_transformer(n):
    """Products, sums and the softmax between quantisers; norms in full."""
    x = n.input("x", [1, 8, 16])
    x = through(n, x, 1 / 100)

    def linear(x, features):
        own = n.width[x]
        y = n.op("MatMul", x, eight_bits(n, [own, features], own, 1), width=features)
        return through(n, n.add(through(n, y, 0.03), n.uniform([features], low=-0.1, high=0.1)), 0.03)

    q, k, v = (n.heads(linear(x, 16), 1, 8, 2) for _ in range(3))
    scores = through(n, n.op("MatMul", q, n.transpose(k, 0, 1, 3, 2)), 0.06)
    share = through(n, n.softmax(n.op("Div", scores, float(np.sqrt(8)))), 1 / 255, 0)
    y = through(n, n.op("MatMul", share, v), 0.02)
    y = linear(n.reshape(n.transpose(y, 0, 2, 1, 3), [1, 8, 16], width=16), 16)
    x = through(n, n.layer_norm(n.add(x, y)), 0.03)
    y = linear(through(n, n.gelu(linear(x, 32)), 0.02), 16)
    # 0.03 * k / 0.041 stands far from the middle between two steps.
    return through(n, n.add(x, y), 0.041)


@network(17)
def qdq_unet(n):
    """Pools, resizes and joins that keep one scale."""
    x = n.input("x", [1, 3, 16, 16])
    x = through(n, x, 1 / 100)

    def conv(x, width):
        own = n.width[x]
        y = n.op("Conv", x, eight_bits(n, [width, own, 3, 3], own * 9), pads=[1] * 4, kernel_shape=[3, 3], width=width)
        return through(n, n.clip(y, 0.0, 6.0), 6 / 255, 0)

    kept = conv(x, 8)
    x = conv(through(n, n.max_pool(kept, 2, 2, 0), 6 / 255, 0), 12)
    x = through(n, n.resize(x, 2), 6 / 255, 0)
    x = through(n, n.concat([x, kept]), 6 / 255, 0)
    x = conv(x, 8)
    # Nine values: a mean of four would often stand between two steps.
    x = through(n, n.average_pool(x, 3, 2, 1, count_include_pad=1), 6 / 255, 0)
    w = eight_bits(n, [8, 2, 2, 2], 8, 1)
    return through(n, n.op("ConvTranspose", x, w, strides=[2, 2], width=2), 0.05)


@network(13)
def microsoft_bytes(n):
    """Operators of com.microsoft on bytes, as ONNX Runtime's quantiser writes them (QOperator)."""
    own = "com.microsoft"
    f = lambda value: n.weight(np.float32(value))     # odd numbers: no sum lies halfway between two bytes
    x = n.op("QuantizeLinear", n.input("input", [6, 16]), f(0.010133), u8(n, 120))
    z = n.op("QuantizeLinear", n.input("other", [6, 16]), f(0.011071), u8(n, 131))
    y = n.op("QLinearAdd", x, f(0.010133), u8(n, 120), z, f(0.011071), u8(n, 131), f(0.019897), u8(n, 127), domain=own)
    w = n.op("QLinearMul", x, f(0.010133), u8(n, 120), z, f(0.011071), u8(n, 131), f(0.0090907), u8(n, 125), domain=own)
    c = n.op("QLinearConcat", f(0.017311), u8(n, 128), y, f(0.019897), u8(n, 127), w, f(0.0090907), u8(n, 125), axis=1,
             domain=own)
    weight = n.weight(n.rng.integers(-SEVEN_BITS, SEVEN_BITS + 1, [9, 32]).astype(np.int8))
    scales = n.weight(n.rng.uniform(0.002, 0.004, 9).astype(np.float32))
    zeros = n.weight(np.zeros(9, np.int8))
    bias = n.weight(n.rng.integers(-900, 900, 9).astype(np.int32))
    bytes_ = n.op("QGemm", c, f(0.017311), u8(n, 128), weight, scales, zeros, bias, f(0.014207), u8(n, 118), transB=1,
                  domain=own)
    real = n.op("QGemm", c, f(0.017311), u8(n, 128), weight, scales, zeros, bias, transB=1, alpha=0.5, domain=own)
    return [n.op("Cast", value, to=TensorProto.FLOAT) for value in (y, w, c, bytes_, real)]


@network(13)
def microsoft_fused(n):
    """Operators of com.microsoft on floats: what the optimiser joins, and products with narrow weights."""
    own = "com.microsoft"
    x = n.input("rows", [2, 5, 32])
    image = n.input("image", [1, 4, 9, 9])
    weight = n.weight(n.rng.integers(-SEVEN_BITS, SEVEN_BITS + 1, [32, 12]).astype(np.int8))
    scales = n.weight(n.rng.uniform(0.002, 0.004, 12).astype(np.float32))
    dynamic = n.op("DynamicQuantizeMatMul", x, weight, scales, n.weight(np.zeros(12, np.int8)),
                   n.uniform([12], low=-0.1, high=0.1), domain=own)
    q, scale, zero = n.op("DynamicQuantizeLinear", x, outs=3)
    integer = n.op("MatMulIntegerToFloat", q, weight, scale, n.weight(np.float32(0.003)), zero, domain=own)
    fused = n.op("FusedMatMul", x, n.uniform([7, 32]), transB=1, alpha=0.25, domain=own)
    outputs = [dynamic, integer, fused]
    for bits, block, zeros in ((4, 16, True), (4, 32, False), (8, 16, True)):
        k = 24 if bits == 4 and zeros else 32
        blocks = -(-k // block)
        a = x if k == 32 else n.op("Slice", x, n.const([0]), n.const([k]), n.const([2]))
        b = n.weight(n.rng.integers(0, 256, [10, blocks, block * bits // 8]).astype(np.uint8))
        scales = n.weight(n.rng.uniform(0.01, 0.03, 10 * blocks).astype(np.float32))
        packed = n.weight(n.rng.integers(0, 256, [10 * (-(-blocks * bits // 8))]).astype(np.uint8)) if zeros else None
        outputs.append(n.op("MatMulNBits", a, b, scales, *([packed] if zeros else []), K=k, N=10, bits=bits,
                            block_size=block, domain=own))
    w = n.uniform([6, 4, 3, 3], 36)
    bias = n.uniform([6], low=-0.1, high=0.1)
    for activation, params in (("Relu", None), ("LeakyRelu", [0.2]), ("Clip", [-0.3, 0.4]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": params} if params else {}
        outputs.append(n.op("FusedConv", image, w, bias, kernel_shape=[3, 3], pads=[1] * 4, activation=activation,
                            domain=own, **more))
    return [n.op("Cast", value, to=TensorProto.FLOAT) for value in outputs]


@network(13)
def microsoft_attention(n):
    """Attention of com.microsoft on bytes: masks by length, by ends and starts, by key; causal, with a past."""
    own = "com.microsoft"
    batch, length, width, heads = 2, 6, 24, 3
    f = lambda value: n.weight(np.float32(value))
    x = n.op("QuantizeLinear", n.input("rows", [batch, length, width]), f(0.010133), u8(n, 120))
    past = n.input("past", [2, batch, heads, 4, width // heads])
    ends = n.weight(np.array([6, 4], np.int32))
    both = n.weight(np.array([5, 6, 1, 2], np.int32))
    keys = n.weight(np.array([[1, 1, 0, 1, 1, 1], [0, 1, 1, 1, 0, 0]], np.int32))
    single = n.weight((n.rng.uniform(0, 1, [batch, length, length]) < 0.7).astype(np.int32))
    i8 = n.weight(n.rng.integers(-SEVEN_BITS, SEVEN_BITS + 1, [width, 3 * width]).astype(np.int8))
    by_column = n.weight(n.rng.uniform(0.004, 0.006, 3 * width).astype(np.float32))
    bias = n.uniform([3 * width], low=-0.3, high=0.3)
    outputs = []
    for mask, kept, causal in ((None, None, 0), (ends, None, 0), (both, None, 0), (keys, None, 0), (single, None, 0),
                               (None, past, 1)):
        made = n.op("QAttention", x, i8, bias, f(0.010133), by_column, mask, u8(n, 120),
                    n.weight(np.zeros(3 * width, np.int8)), kept, num_heads=heads, unidirectional=causal, domain=own,
                    outs=2 if kept else 1)
        outputs += made if kept else [made]
    return outputs


@network(21)
def weights_of_four_bits(n):
    """Constants of INT4 and UINT4, two in a byte, in blocks and by columns; few rows and many."""
    few, many = n.input("few", [3, 160]), n.input("many", [40, 160])
    outputs = []

    def narrow(kind, shape):
        n.counter += 1
        name = f"narrow_{n.counter}"
        low, high = (-8, 8) if kind == TensorProto.INT4 else (0, 16)
        values = n.rng.integers(low, high, shape)
        n.constants.append(helper.make_tensor(name, kind, shape, values.ravel()))
        return name

    for kind, block, zeros in ((TensorProto.INT4, 32, False), (TensorProto.UINT4, 16, True), (TensorProto.INT4, 0, False)):
        w = narrow(kind, [160, 130])
        scale = n.weight(n.rng.uniform(0.004, 0.006, [160 // block, 130] if block else [130]).astype(np.float32))
        zero = narrow(kind, [160 // block, 130]) if zeros else None
        w = n.op("DequantizeLinear", w, scale, zero, **({"axis": 0, "block_size": block} if block else {"axis": 1}))
        outputs += [n.op("MatMul", x, w, width=130) for x in (few, many)]
    odd = narrow(TensorProto.INT4, [5, 3])
    turned = n.op("Cast", n.op("Transpose", odd, perm=[1, 0]), to=TensorProto.FLOAT)
    return outputs + [n.op("Add", turned, n.op("Slice", few, n.const([0]), n.const([5]), n.const([1])))]
