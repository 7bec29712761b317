"""Images in unusual ways: volumes, weights made while running, places looked up, old and odd spellings."""
import numpy as np
from onnx import helper

from .net import network


def same(n, op, x, channels, kernel, stride=1, group=1):
    """A layer whose pads follow from its extents (auto_pad)."""
    if op == "MaxPool":
        return n.op(op, x, kernel_shape=[kernel] * 2, strides=[stride] * 2, auto_pad="SAME_UPPER")
    own = n.width[x] // group
    shape = [own, channels, kernel, kernel] if op == "ConvTranspose" else [channels, own, kernel, kernel]
    return n.op(op, x, n.uniform(shape, own * kernel * kernel), n.uniform([channels], low=-0.1, high=0.1),
                kernel_shape=[kernel] * 2, strides=[stride] * 2, auto_pad="SAME_UPPER", group=group, width=channels)


@network(8, "tf")
def keras_autopad(n):
    """Pads named, not numbered; an old operator set."""
    x = n.input("input_1", [2, 3, 19, 22])
    x = n.op("Elu", same(n, "Conv", x, 8, 3, 2), alpha=1.0)
    x = n.relu(n.batch_norm(same(n, "Conv", x, 8, 5, 2, 8)))
    x = n.concat([same(n, "MaxPool", x, 8, 2, 1), same(n, "Conv", x, 6, 1)])
    x = same(n, "ConvTranspose", x, 5, 3, 2)
    x = n.op("Upsample", x, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0]) if n.opset < 9 else n.resize(x, 2)
    return n.sigmoid(same(n, "Conv", x, 1, 3))


@network(15, "tf")
def efficientnet_tf(n):
    """Uneven pads, Swish, squeeze and excitation with a mean over channels-last axes."""
    x = n.input("input:0", [1, 34, 34, 3], 0, 255)
    n.width[x] = 3
    x = n.mul(x, float(1 / 255))
    x = n.op("Div", n.op("Sub", x, n.weight(np.array([.485, .456, .406], np.float32))),
             n.weight(np.array([.229, .224, .225], np.float32)))
    x = n.transpose(x, 0, 3, 1, 2)
    n.width[x] = 3
    x = n.silu(n.conv(n.pad(x, [0, 0, 0, 0, 0, 0, 1, 1]), 8, 3, 2, 0))
    for width, kernel, stride in ((12, 3, 1), (16, 5, 2), (16, 5, 1)):
        kept, inner = x, 3 * n.width[x]
        y = n.silu(n.conv(x, inner, 1))
        if stride == 2:
            y = n.pad(y, [0, 0, 1, 1, 0, 0, 2, 2])
        y = n.silu(n.conv(y, inner, kernel, stride, 0 if stride == 2 else None, group=inner))
        rows = n.transpose(y, 0, 2, 3, 1)
        gate = n.transpose(n.reduce("Mean", rows, [1, 2]), 0, 3, 1, 2)
        n.width[gate] = inner
        gate = n.sigmoid(n.conv(n.silu(n.conv(gate, 3, 1)), inner, 1))
        x = n.conv(n.mul(y, gate), width, 1)
        x = n.add(x, kept) if n.width[kept] == width and stride == 1 else x
    x = n.squeeze(n.global_pool(n.silu(n.conv(x, 24, 1))), 2, 3)
    n.width[x] = 24
    return n.softmax(n.linear(x, 10))


@network(13)
def video_volumes(n):
    """3-D convolutions, apart in space and time too; pools and norms of volumes."""
    x = n.input("clip", [1, 3, 8, 20, 20])
    n.width[x] = 3
    x = n.relu(n.batch_norm(n.op("Conv", x, n.uniform([8, 3, 1, 5, 5], 75), strides=[1, 2, 2], pads=[0, 2, 2] * 2,
                                 width=8)))
    x = n.relu(n.op("Conv", x, n.uniform([12, 8, 3, 1, 1], 24), n.uniform([12]), pads=[1, 0, 0] * 2, width=12))
    x = n.op("MaxPool", x, kernel_shape=[1, 3, 3], strides=[1, 2, 2], pads=[0, 1, 1] * 2)
    y = n.op("Conv", x, n.uniform([12, 12, 3, 3, 3], 324), pads=[1] * 6, width=12)
    x = n.relu(n.add(x, n.batch_norm(y)))
    up = n.op("ConvTranspose", x, n.uniform([12, 4, 2, 2, 2], 12), strides=[2, 2, 2], width=4)
    up = n.op("LeakyRelu", n.instance_norm(up), alpha=0.01)
    x = n.op("AveragePool", x, kernel_shape=[4, 5, 5], strides=[2, 1, 1])
    x = n.op("Flatten", n.op("GlobalAveragePool", x), axis=1)
    return [n.linear(x, 6, rank=2), up]


@network(11)
def segnet(n):
    """Places of maxima kept for the way up."""
    x = n.input("input", [1, 3, 16, 24])
    x = n.conv_norm(x, 8, 3)
    down, first = n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], outs=2)
    x = n.conv_norm(down, 12, 3)
    down, second = n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], outs=2)
    x = n.conv_norm(down, 12, 3)
    x = n.op("MaxUnpool", x, second, kernel_shape=[2, 2], strides=[2, 2])
    x = n.conv_norm(x, 8, 3)
    x = n.op("MaxUnpool", x, first, kernel_shape=[2, 2], strides=[2, 2])
    return n.op("ArgMax", n.conv(x, 4, 3), axis=1, keepdims=1), n.conv(x, 4, 3)


@network(16)
def modulated_convolutions(n):
    """Weights scaled by a style and normalised, one group for each image; up by a blur."""
    batch, width = 2, 8
    x = n.input("x", [batch, width, 6, 6])
    style = n.input("style", [batch, 12])
    noise = n.input("noise", [batch, 1, 12, 12])

    def modulated(x, out, up):
        own = n.width[x]
        s = n.add(n.linear(style, own, rank=2), 1.0)
        w = n.mul(n.uniform([1, out, own, 3, 3], own * 9), n.op("Reshape", s, n.const([batch, 1, own, 1, 1])))
        power = n.op("ReduceSum", n.op("Pow", w, 2.0), n.const([2, 3, 4]), keepdims=0)
        scale = n.op("Div", 1.0, n.op("Sqrt", n.add(power, 1e-8)))
        w = n.mul(w, n.op("Reshape", scale, n.const([batch, out, 1, 1, 1])))
        side = 12 if up else 6
        flat = n.op("Reshape", x, n.const([1, batch * own, 6, 6]))
        if up:
            w = n.op("Reshape", n.op("Transpose", w, perm=[0, 2, 1, 3, 4]), n.const([batch * own, out, 3, 3]))
            y = n.op("ConvTranspose", flat, w, strides=[2, 2], pads=[0, 0, 0, 0], group=batch)
            blur = np.outer([1, 3, 3, 1], [1, 3, 3, 1]).astype(np.float32) / 16
            y = n.op("Conv", n.pad(y, [0, 0, 1, 1, 0, 0, 1, 1]),
                     n.weight(np.tile(blur, [batch * out, 1, 1, 1])), group=batch * out)
        else:
            w = n.op("Reshape", w, n.const([batch * out, own, 3, 3]))
            y = n.op("Conv", flat, w, pads=[1, 1, 1, 1], group=batch)
        return n.op("Reshape", y, n.const([batch, out, side, side]), width=out)

    x = n.op("LeakyRelu", n.add(modulated(x, width, False), n.uniform([1, width, 1, 1])), alpha=0.2)
    x = n.add(modulated(x, 6, True), n.mul(noise, 0.3))
    return n.mul(n.op("LeakyRelu", x, alpha=0.2), float(np.sqrt(2)))


@network(12)
def siamese(n):
    """A template's features slide over another image's, all channels and channel by channel."""
    template, search = n.input("template", [1, 3, 17, 17]), n.input("search", [1, 3, 33, 33])
    weights = [n.uniform([8, 3, 3, 3], 27), n.uniform([10, 8, 3, 3], 72)]

    def features(x):
        for w in weights:
            x = n.relu(n.op("Conv", x, w, strides=[2, 2]))
        return x

    t, s = features(template), features(search)
    score = n.op("Conv", s, t)
    kernel = n.op("Reshape", t, n.const([10, 1, 3, 3]))
    deep = n.op("Conv", n.op("Reshape", s, n.const([1, 10, 7, 7])), kernel, group=10, width=10)
    return [n.add(n.mul(score, 0.001), 0.1), n.conv(deep, 4, 1)]


@network(20, "dynamo")
def spatial_transformer(n):
    """An image turned by what a small network says of it."""
    x = n.input("x", [2, 1, 14, 14], dims={0: "batch"})
    y = n.relu(n.max_pool(n.conv(x, 4, 5, 1, 0), 2, 2, 0))
    y = n.op("Flatten", y, axis=1, width=100)
    theta = n.op("Gemm", y, n.uniform([6, 100], low=-0.02, high=0.02),
                 n.weight(np.array([1, 0, 0, 0, 1, 0], np.float32)), transB=1)
    theta = n.op("Reshape", theta, n.const([-1, 2, 3]))
    grid = n.op("AffineGrid", theta, n.const([2, 1, 14, 14]), align_corners=0)
    x = n.op("GridSample", x, grid, mode="linear", padding_mode="zeros", align_corners=0)
    n.width[x] = 1
    x = n.op("Flatten", n.relu(n.conv(x, 5, 3, 2)), axis=1, width=245)
    return n.op("LogSoftmax", n.linear(x, 10, rank=2), axis=1)


@network(12)
def involution_unfold(n):
    """Patches unfolded by two gathers, as TorchScript writes it, weighted by kernels made on the way."""
    x = n.input("x", [1, 8, 9, 9])
    kernel = n.conv(n.relu(n.batch_norm(n.conv(x, 4, 1))), 9 * 2, 1)
    kernel = n.unsqueeze(n.op("Reshape", kernel, n.const([1, 2, 9, 9, 9])), 2)
    padded = n.pad(x, [0, 0, 1, 1, 0, 0, 1, 1])
    index = n.weight((np.arange(3)[:, None] + np.arange(9)[None, :]).astype(np.int64))
    patches = n.op("Gather", n.op("Gather", padded, index, axis=2), index, axis=4)
    patches = n.op("Reshape", n.op("Transpose", patches, perm=[0, 1, 2, 4, 3, 5]), n.const([1, 72, 81]))
    patches = n.op("Reshape", patches, n.const([1, 2, 4, 9, 9, 9]))
    y = n.reduce("Sum", n.mul(patches, kernel), [3], 0)
    return n.add(n.op("Reshape", y, n.const([1, 8, 9, 9])), x)


@network(18)
def fold_overlaps(n):
    """Overlapping patches through a matrix and back onto the image, divided by how often each place was hit."""
    x = n.input("patches", [2, 5, 20])
    x = n.linear(x, 27)
    rows = n.transpose(x, 0, 2, 1)
    ones = n.weight(np.ones([2, 27, 5], np.float32))
    image, size = n.const([3, 7]), n.const([3, 3])
    y = n.op("Col2Im", rows, image, size, strides=[1, 1], pads=[0, 0, 0, 0])
    count = n.op("Col2Im", ones, image, size, strides=[1, 1], pads=[0, 0, 0, 0])
    return n.op("Div", y, count)


@network(11)
def conv_lstm(n):
    """A recurrent network of images whose loop the exporter unrolled."""
    frames = n.input("frames", [1, 3, 2, 10, 10])
    n.width[frames] = 2
    w, b, width = n.uniform([32, 10, 3, 3], 90), n.uniform([32], low=-0.1, high=0.1), 8
    zero = n.op("ConstantOfShape", n.const([1, width, 10, 10]))
    h = c = zero
    seen = []
    for t in range(3):
        x = n.op("Gather", frames, n.const(t), axis=1)
        gates = n.op("Conv", n.op("Concat", x, h, axis=1), w, b, pads=[1, 1, 1, 1], kernel_shape=[3, 3], width=32)
        i, f, o, g = n.split(gates, [width] * 4)
        c = n.add(n.mul(n.sigmoid(f), c), n.mul(n.sigmoid(i), n.op("Tanh", g)))
        h = n.mul(n.sigmoid(o), n.op("Tanh", c))
        n.width[h] = width
        seen.append(n.unsqueeze(h, 1))
    return [n.op("Concat", *seen, axis=1), c]


@network(14)
def cost_volume(n):
    """One image's features against another's shifted ones, and a warp by the flow."""
    a, b = n.input("a", [1, 8, 10, 12]), n.input("b", [1, 8, 10, 12])
    padded = n.pad(b, [0, 0, 2, 2, 0, 0, 2, 2])
    costs = []
    for dy in range(0, 5, 2):
        for dx in range(0, 5, 2):
            moved = n.slice(n.slice(padded, dy, dy + 10, 2), dx, dx + 12, 3)
            costs.append(n.reduce("Mean", n.mul(a, moved), [1]))
    costs = n.op("LeakyRelu", n.concat(costs, width=9), alpha=0.1)
    x = n.concat([costs, a], width=17)
    return n.conv(n.op("LeakyRelu", n.conv(x, 12, 3), alpha=0.1), 2, 3)


@network(17)
def radiance_field(n):
    """Frequencies of points, a skip in the middle, light summed along rays by products of what is left."""
    points = n.input("points", [6, 9, 3])
    steps = n.input("steps", [6, 9], 0.05, 0.2)
    parts = [points]
    for i in range(4):
        scaled = n.mul(points, float(2 ** i))
        parts += [n.op("Sin", scaled), n.op("Cos", scaled)]
    code = n.op("Concat", *parts, axis=-1, width=27)
    x = n.relu(n.linear(n.relu(n.linear(code, 32)), 32))
    x = n.op("Concat", code, x, axis=-1, width=59)
    x = n.relu(n.linear(x, 32))
    density = n.squeeze(n.op("Softplus", n.linear(x, 1)), -1)
    colour = n.sigmoid(n.linear(x, 3))
    alpha = n.op("Sub", 1.0, n.op("Exp", n.op("Neg", n.mul(density, steps))))
    left = n.op("Log", n.add(n.op("Sub", 1.0, alpha), 1e-10))
    through = n.op("Exp", n.op("CumSum", left, n.const(1), exclusive=1))
    weight = n.mul(alpha, through)
    return [n.reduce("Sum", n.mul(n.unsqueeze(weight, -1), colour), [1], 0), n.reduce("Sum", weight, [1], 0)]


@network(16)
def segment_anything(n):
    """Attention in both directions, positions of rows and columns apart, masks as products."""
    side, width, heads = 6, 16, 2
    x = n.input("embedding", [1, side, side, width], width=width)
    tokens = n.input("tokens", [1, 5, width])
    size = width // heads
    packed = n.op("Reshape", n.linear(x, 3 * width), n.const([1, side * side, 3, heads, size]))
    packed = n.op("Reshape", n.transpose(packed, 2, 0, 3, 1, 4), n.const([3, heads, side * side, size]))
    q, k, v = (n.op("Gather", packed, n.const(i), axis=0, width=size) for i in range(3))
    scores = n.op("MatMul", n.mul(q, size ** -0.5), n.transpose(k, 0, 2, 1))
    index = (np.arange(side)[:, None] - np.arange(side)[None, :] + side - 1).astype(np.int64)
    rows = n.op("Gather", n.uniform([2 * side - 1, size], low=-.5, high=.5), n.weight(index), axis=0)
    columns = n.op("Gather", n.uniform([2 * side - 1, size], low=-.5, high=.5), n.weight(index), axis=0)
    grid = n.op("Reshape", q, n.const([heads, side, side, size]))
    down = n.op("Einsum", grid, rows, equation="bhwc,hkc->bhwk")
    right = n.op("Einsum", grid, columns, equation="bhwc,wkc->bhwk")
    scores = n.op("Reshape", scores, n.const([heads, side, side, side, side]))
    scores = n.add(n.add(scores, n.unsqueeze(down, 4)), n.unsqueeze(right, 3))
    scores = n.op("Reshape", scores, n.const([heads, side * side, side * side]))
    y = n.op("Reshape", n.op("MatMul", n.softmax(scores), v), n.const([1, heads, side, side, size]))
    y = n.op("Reshape", n.transpose(y, 0, 2, 3, 1, 4), n.const([1, side, side, width]), width=width)
    x = n.add(x, n.linear(y, width))
    places = n.op("Reshape", x, n.const([1, side * side, width]), width=width)
    qh = n.heads(n.linear(tokens, width), 1, 5, heads)
    kh, vh = (n.heads(n.linear(places, width), 1, side * side, heads) for _ in range(2))
    t = n.op("Reshape", n.transpose(n.attention(qh, kh, vh), 0, 2, 1, 3), n.const([1, 5, width]), width=width)
    tokens = n.layer_norm(n.add(tokens, t))
    x = n.transpose(x, 0, 3, 1, 2)
    n.width[x] = width
    x = n.gelu(n.deconv(x, 8, 2, 2))
    flat = n.op("Reshape", x, n.const([1, 8, 4 * side * side]))
    hyper = n.linear(n.relu(n.linear(n.slice(tokens, 1, 4, 1), width)), 8)
    masks = n.op("Reshape", n.op("MatMul", hyper, flat), n.const([1, 3, 2 * side, 2 * side]))
    return [masks, n.linear(n.op("Gather", tokens, n.const(0), axis=1, width=width), 3, rank=2)]


@network(13)
def vit_positions(n):
    """Positions resized to another grid, a class token spread over the batch, kept tokens gathered."""
    batch, width = 2, 24
    x = n.input("pixel_values", [batch, 3, 20, 28], dims={0: "batch"})
    keep = n.input("ids_keep", [batch, 9], dtype=np.int64,
                   draw=lambda rng: np.stack([rng.permutation(35)[:9] for _ in range(batch)]), dims={0: "batch"})
    x = n.conv(x, width, 4, 4, 0)
    b = n.dim(x, 0)
    x = n.transpose(n.reshape(x, [b, width, 35]), 0, 2, 1)
    table = n.uniform([1, 26, width], low=-.5, high=.5)
    square = n.transpose(n.op("Reshape", n.slice(table, 1, 26, 1), n.const([1, 5, 5, width])), 0, 3, 1, 2)
    square = n.op("Resize", square, None, n.f32([1, 1, 1.0, 1.4]), mode="cubic", cubic_coeff_a=-0.75,
                  coordinate_transformation_mode="pytorch_half_pixel")
    places = n.op("Reshape", n.transpose(square, 0, 2, 3, 1), n.const([1, -1, width]))
    x = n.add(x, places)
    n.width[x] = width
    at = n.op("Expand", n.unsqueeze(keep, 2), n.op("Concat", n.const([1, 1]), n.const([width]), axis=0))
    x = n.op("GatherElements", x, at, axis=1, width=width)
    first = n.add(n.uniform([1, 1, width]), n.slice(table, 0, 1, 1))
    first = n.op("Expand", first, n.op("Concat", n.unsqueeze(b, 0), n.const([1, 1]), axis=0))
    x = n.op("Concat", first, x, axis=1, width=width)
    x = n.add(x, n.self_attention(n.layer_norm(x), b, 10, 3))
    x = n.add(x, n.feed_forward(n.layer_norm(x), 48))
    return n.linear(n.op("Gather", n.layer_norm(x), n.const(0), axis=1, width=width), 5, rank=2)


@network(13)
def assigned_in_place(n):
    """Parts of a value overwritten, which TorchScript writes as ScatterND with constant places."""
    x = n.input("x", [1, 2, 4, 4, 6])
    y = n.sigmoid(x)
    grid = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(1, 1, 4, 4, 2).astype(np.float32)
    xy = n.mul(n.add(n.op("Sub", n.mul(n.slice(y, 0, 2, 4), 2.0), 0.5), n.weight(grid)), 8.0)
    index = np.stack(np.meshgrid(*[np.arange(e) for e in (1, 2, 4, 4, 2)], indexing="ij"), -1).astype(np.int64)
    y = n.op("ScatterND", y, n.weight(index), xy)
    wh = n.op("Pow", n.mul(n.slice(y, 2, 4, 4), 2.0), 2.0)
    shifted = index.copy()
    shifted[..., 4] += 2
    y = n.op("ScatterND", y, n.weight(shifted), wh)
    return n.op("Reshape", y, n.const([1, -1, 6]))


@network(13)
def decided_branches(n):
    """Squeezes behind an If on an extent, as TorchScript writes them for dynamic shapes."""
    x = n.input("x", [2, 3, 8, 5], dims={0: "batch", 3: "columns"})
    x = n.op("MaxPool", n.relu(n.conv(x, 6, 3)), kernel_shape=[8, 1], strides=[8, 1])
    is_one = n.op("Equal", n.dim(x, 2), n.const(1))

    def branch(name, op, inputs):
        out = helper.make_empty_tensor_value_info(name)
        return helper.make_graph([helper.make_node(op, inputs, [name])], name + "_graph", [], [out])

    axes = n.weight(np.array([2], np.int64))
    y = n.op("If", is_one, then_branch=branch("squeezed", "Squeeze", [x, axes]),
             else_branch=branch("kept", "Identity", [x]))
    y = n.transpose(y, 2, 0, 1)
    n.width[y] = 6
    return n.softmax(n.linear(y, 4))


@network(13)
def key_points(n):
    """Heat maps decoded to where their maxima stand: an arg max that is read as a row and as a column."""
    width = 24
    heat = n.conv(n.input("image", [2, 3, 16, width]), 17, 3, pad=1)
    best = n.op("ArgMax", n.op("Reshape", heat, n.const([2, 17, -1])), axis=-1, keepdims=0)
    row, column = n.op("Div", best, n.const(width)), n.op("Mod", best, n.const(width))
    points = [n.op("Unsqueeze", n.op("Cast", each, to=1), n.const([-1])) for each in (column, row)]
    return n.op("Concat", *points, axis=-1)
