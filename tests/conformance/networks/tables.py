"""Networks of points, graphs, tables and sparse features."""
import numpy as np
from onnx import helper

from .net import network


@network(11, large=True)
def pointnet(n):
    """A learned transform of points, shared 1-D convolutions, a maximum over points."""
    points, w = n.pick(53, 1024), n.pick(8, 64)
    x = n.input("points", [n.pick(3, 1), 3, points], dims={0: "batch"}, width=3)

    def shared(x, *widths):
        for width in widths:
            x = n.relu(n.batch_norm(n.conv(x, width, 1, rank=1)))
        return x

    y = n.op("ReduceMax", shared(x, w, 2 * w, 4 * w), axes=[2], keepdims=0)
    y = n.relu(n.linear(n.relu(n.linear(y, 2 * w, rank=2)), w, rank=2))
    y = n.add(n.linear(y, 9, rank=2), n.weight(np.eye(3, dtype=np.float32).reshape(1, 9)))
    y = n.op("Reshape", y, n.const([-1, 3, 3]))
    moved = n.transpose(n.op("MatMul", n.transpose(x, 0, 2, 1), y), 0, 2, 1)
    n.width[moved] = 3
    local = shared(moved, w)
    whole = n.op("ReduceMax", shared(local, 2 * w, n.pick(16, 1024)), axes=[2], keepdims=1)
    spread = n.op("Expand", whole, n.op("Concat", n.const([1, 1]), n.const([points]), axis=0))
    x = shared(n.concat([local, spread]), 4 * w, 2 * w)
    x = n.transpose(n.conv(x, 7, 1, rank=1), 0, 2, 1)
    return n.op("LogSoftmax", x, axis=2)


@network(12, large=True)
def dlrm(n):
    """Bags of embeddings, all pairs of them multiplied, the lower triangle kept."""
    batch, width, tables = n.pick(5, 128), n.pick(8, 64), n.pick(4, 26)
    dense = n.input("dense", [batch, 13])
    sparse = n.input("sparse", [tables, batch, 3], 0, 20, np.int64)
    x = dense
    for features in (n.pick(16, 512), n.pick(16, 256), width):
        x = n.relu(n.linear(x, features, rank=2))
    parts = [n.unsqueeze(x, 1)]
    for i in range(tables):
        ids = n.op("Gather", sparse, n.const(i), axis=0)
        rows = n.op("Gather", n.uniform([n.pick(20, 1000), width], low=-1, high=1), ids, axis=0)
        parts.append(n.unsqueeze(n.reduce("Sum", rows, [1], 0), 1))
    t = n.op("Concat", *parts, axis=1)
    products = n.op("MatMul", t, n.transpose(t, 0, 2, 1))
    count = tables + 1
    rows, columns = np.tril_indices(count, -1)
    flat = n.op("Reshape", products, n.const([batch, count * count]))
    pairs = n.op("Gather", flat, n.weight((rows * count + columns).astype(np.int64)), axis=1, width=len(rows))
    x = n.concat([x, pairs])
    for features in (n.pick(16, 512), n.pick(8, 256)):
        x = n.relu(n.linear(x, features, rank=2))
    return n.sigmoid(n.linear(x, 1, rank=2))


@network(16)
def gcn(n):
    """Degrees of a dense adjacency, messages as products; a second layer with attention between neighbours."""
    nodes = 19
    x = n.input("x", [nodes, 8])
    edges = n.input("adjacency", [nodes, nodes], draw=lambda rng: rng.random([nodes, nodes]) < 0.3)
    eye = n.op("EyeLike", edges)
    a = n.op("Max", edges, eye)
    degree = n.op("Pow", n.reduce("Sum", a, [1]), -0.5)
    a = n.mul(n.mul(a, degree), n.op("Transpose", degree, perm=[1, 0]))
    h = n.relu(n.add(n.op("MatMul", a, n.linear(x, 12, bias=False)), n.uniform([12], low=-0.1, high=0.1)))
    n.width[h] = 12
    h = n.linear(h, 10, bias=False)
    score = n.add(n.linear(h, 1, bias=False), n.op("Transpose", n.linear(h, 1, bias=False), perm=[1, 0]))
    score = n.op("LeakyRelu", score, alpha=0.2)
    score = n.op("Where", n.op("Greater", a, 0.0), score, n.f32(-9e15))
    h = n.op("Elu", n.op("MatMul", n.softmax(score, 1), h))
    n.width[h] = 10
    return n.op("LogSoftmax", n.linear(h, 4, bias=False), axis=1)


@network(16)
def message_passing(n):
    """Messages gathered along edges and scattered to their ends, sums and means."""
    x = n.input("x", [11, 6])
    edges = n.input("edge_index", [2, 40], 0, 11, np.int64)
    source = n.op("Gather", edges, n.const(0), axis=0)
    target = n.op("Gather", edges, n.const(1), axis=0)
    pair = n.op("Concat", n.op("Gather", x, source), n.op("Gather", x, target), axis=1, width=12)
    message = n.relu(n.linear(pair, 9, rank=2))
    zeros = n.op("ConstantOfShape", n.const([11, 9]))
    index = n.op("Expand", n.unsqueeze(target, 1), n.op("Shape", message))
    total = n.op("ScatterElements", zeros, index, message, axis=0, reduction="add")
    ones = n.op("ConstantOfShape", n.const([40]), value=n.tensor(1.0))
    count = n.op("ScatterND", n.op("ConstantOfShape", n.const([11])), n.unsqueeze(target, 1), ones, reduction="add")
    mean = n.op("Div", total, n.unsqueeze(n.clip(count, 1.0, 1e9), 1))
    return n.linear(n.op("Concat", x, mean, axis=1, width=15), 3, rank=2)


@network(13)
def tabnet(n):
    """Features chosen by a sparse maximum: sorted, summed up, compared, thresholded; gated units."""
    width = 12
    x = n.input("features", [7, width], dims={0: "batch"})
    x = n.batch_norm(x)
    prior = n.op("ConstantOfShape", n.op("Shape", x), value=n.tensor(1.0), width=width)
    total = None
    for _ in range(2):
        a = n.mul(n.linear(x, width, rank=2), prior)
        a = n.op("Sub", a, n.reduce("Max", a, [1]))
        ranked, _ = n.op("TopK", a, n.const([width]), axis=1, outs=2)
        summed = n.op("Sub", n.op("CumSum", ranked, n.const(1)), 1.0)
        places = n.weight(np.arange(1, width + 1, dtype=np.float32)[None])
        support = n.op("Greater", n.mul(places, ranked), summed)
        size = n.reduce("Sum", n.op("Cast", support, to=7), [1])
        tau = n.op("GatherElements", summed, n.op("Sub", size, n.const(1)), axis=1)
        tau = n.op("Div", tau, n.op("Cast", size, to=1))
        mask = n.op("Max", n.op("Sub", a, tau), 0.0)
        prior = n.mul(prior, n.op("Sub", 1.5, mask))
        y = n.linear(n.mul(mask, x), 16, rank=2)
        left, right = n.split(y, [8, 8])
        y = n.mul(left, n.sigmoid(right))
        n.width[y] = 8
        total = n.relu(y) if total is None else n.add(total, n.relu(y))
        n.width[total] = 8
    return [n.softmax(n.linear(total, 3, rank=2), 1), mask]


@network(12)
def recommender(n):
    """Factorised pairs, crosses of features, an attention over what was seen before."""
    user = n.input("user", [6], 0, 15, np.int64)
    item = n.input("item", [6], 0, 25, np.int64)
    seen = n.input("seen", [6, 10], 0, 25, np.int64)
    count = n.input("count", [6, 1], 1, 11, np.int64)
    items = n.uniform([25, 8], low=-1, high=1)
    u = n.op("Gather", n.uniform([15, 8], low=-1, high=1), user, width=8)
    i = n.op("Gather", items, item, width=8)
    past = n.op("Gather", items, seen, width=8)
    beside = n.op("Tile", n.unsqueeze(i, 1), n.const([1, 10, 1]))
    pairs = n.op("Concat", past, beside, n.op("Sub", past, beside), n.mul(past, beside), axis=2, width=32)
    score = n.squeeze(n.linear(n.sigmoid(n.linear(pairs, 6)), 1), 2)
    inside = n.op("Less", n.weight(np.arange(10)[None]), count)
    share = n.softmax(n.op("Where", inside, score, n.f32(-4294967295.0)), 1)
    interest = n.squeeze(n.op("MatMul", n.unsqueeze(share, 1), past), 1)
    x0 = n.op("Concat", u, i, interest, axis=1, width=24)
    x = x0
    for _ in range(2):
        cross = n.op("MatMul", x, n.uniform([24, 1]))
        x = n.add(n.add(n.mul(x0, cross), n.uniform([24], low=-0.1, high=0.1)), x)
    n.width[x] = 24
    stacked = n.op("Reshape", x0, n.const([6, 3, 8]))
    square = n.op("Pow", n.reduce("Sum", stacked, [1], 0), 2.0)
    fm = n.mul(n.op("Sub", square, n.reduce("Sum", n.mul(stacked, stacked), [1], 0)), 0.5)
    deep = n.op("PRelu", n.linear(x0, 10, rank=2), n.uniform([10], low=0.1, high=0.3))
    joined = n.op("Concat", x, n.reduce("Sum", fm, [1]), deep, axis=1, width=35)
    return n.sigmoid(n.squeeze(n.linear(joined, 1, rank=2), 1))


@network(17)
def forecast(n):
    """Stacks of a decomposition: moving means with edge pads, seasonal parts, basis functions, undoing a scale."""
    x = n.input("series", [3, 48, 5], dims={0: "batch"})
    mean = n.reduce("Mean", x, [1])
    spread = n.op("Sqrt", n.add(n.reduce("Mean", n.op("Pow", n.op("Sub", x, mean), 2.0), [1]), 1e-5))
    x = n.op("Div", n.op("Sub", x, mean), spread)
    x = n.transpose(x, 0, 2, 1)
    front = n.op("Tile", n.slice(x, 0, 1, 2), n.const([1, 1, 12]))
    back = n.op("Tile", n.slice(x, -1, 2**63 - 1, 2), n.const([1, 1, 12]))
    padded = n.op("Concat", front, x, back, axis=2)
    trend = n.op("AveragePool", padded, kernel_shape=[25], strides=[1])
    season = n.op("Sub", x, trend)
    n.width[trend] = n.width[season] = 48
    y = n.add(n.linear(season, 24), n.linear(trend, 24))
    n.width[season] = 48
    theta = n.linear(n.relu(n.linear(season, 32)), 6)
    t = np.arange(24) / 24
    waves = 2 * np.pi * np.outer(np.arange(3), t)
    basis = np.concatenate([np.cos(waves), np.sin(waves)])
    y = n.add(y, n.op("MatMul", theta, n.weight(basis.astype(np.float32))))
    y = n.transpose(y, 0, 2, 1)
    return n.add(n.mul(y, spread), mean)


@network(19, "dynamo")
def board_game(n):
    """A residual tower with policy and value heads, and a mask of legal moves."""
    x = n.input("board", [2, 17, 9, 9], 0, 2, np.int64, {0: "batch"})
    legal = n.input("legal", [2, 82], dtype=bool, draw=lambda rng: rng.random([2, 82]) < 0.7)
    x = n.op("Cast", x, to=1, width=17)
    x = n.conv_norm(x, 16, 3)
    for _ in range(2):
        y = n.conv_norm(n.conv_norm(x, 16, 3), 16, 3, act=False)
        x = n.relu(n.add(y, x))
    policy = n.op("Flatten", n.conv_norm(x, 2, 1), axis=1, width=162)
    policy = n.linear(policy, 82, rank=2)
    policy = n.op("Where", legal, policy, n.weight(np.float32(-np.inf)))
    value = n.op("Flatten", n.conv_norm(x, 1, 1), axis=1, width=81)
    value = n.op("Tanh", n.linear(n.relu(n.linear(value, 12, rank=2)), 1, rank=2))
    return [n.softmax(policy), value]


@network(11)
def netvlad(n):
    """Residuals to centres weighted by a softmax, normalised within and as a whole."""
    x = n.input("x", [2, 12, 6, 5], dims={0: "batch"})
    n.width[x] = 12

    def normalise(x, axis, shape):
        length = n.op("ReduceL2", x, axes=[axis], keepdims=1)
        return n.op("Div", x, n.op("Expand", n.op("Clip", length, n.f32(1e-12)), n.const(shape)))

    x = normalise(x, 1, [2, 12, 6, 5])
    n.width[x] = 12
    share = n.op("Softmax", n.op("Reshape", n.conv(x, 4, 1, bias=False), n.const([2, 4, 30])), axis=1)
    rows = n.op("Reshape", x, n.const([2, 12, 30]))
    centres = n.uniform([4, 12], low=-1, high=1)
    first = n.op("MatMul", share, n.transpose(rows, 0, 2, 1))
    second = n.mul(n.reduce("Sum", share, [2]), n.unsqueeze(centres, 0))
    v = normalise(n.op("Sub", first, second), 2, [2, 4, 12])
    return normalise(n.op("Reshape", v, n.const([2, 48])), 1, [2, 48])


@network(11)
def sorted_boxes(n):
    """The best of many answers, their boxes gathered, overlaps of all pairs."""
    boxes = n.input("boxes", [1, 40, 4])
    scores = n.input("scores", [1, 40, 3], 0, 1)
    best = n.op("ReduceMax", scores, axes=[2], keepdims=0)
    kind = n.op("ArgMax", scores, axis=2, keepdims=0)
    top, at = n.op("TopK", best, n.const([8]), axis=1, outs=2)
    wide = n.op("Expand", n.unsqueeze(at, 2), n.const([1, 8, 4]))
    chosen = n.op("GatherElements", boxes, wide, axis=1)
    kind = n.op("GatherElements", kind, at, axis=1)
    centre, half = n.slice(chosen, 0, 2, 2), n.op("Abs", n.mul(n.slice(chosen, 2, 4, 2), 0.5))
    low, high = n.op("Sub", centre, half), n.add(centre, half)
    left = n.op("Max", n.unsqueeze(low, 1), n.unsqueeze(low, 2))
    right = n.op("Min", n.unsqueeze(high, 1), n.unsqueeze(high, 2))
    shared = n.op("ReduceProd", n.op("Max", n.op("Sub", right, left), 0.0), axes=[3], keepdims=0)
    area = n.op("ReduceProd", n.op("Sub", high, low), axes=[2], keepdims=0)
    union = n.op("Sub", n.add(n.unsqueeze(area, 1), n.unsqueeze(area, 2)), shared)
    overlap = n.op("Div", shared, n.add(union, 1e-9))
    later = n.weight(np.triu(np.ones([1, 8, 8], np.float32), 1))
    worst = n.op("ReduceMax", n.mul(overlap, later), axes=[1], keepdims=0)
    kept = n.op("Less", worst, n.f32(0.5))
    return [chosen, kind, n.op("Where", kept, top, n.f32(0.0)), kept]


@network(13)
def doubles_and_integers(n):
    """Full precision, whole numbers, bits, and answers of every kind."""
    x = n.input("x", [5, 7], dtype=np.float64)
    codes = n.input("codes", [5], 0, 9, np.int32)
    w = n.weight(n.rng.uniform(-1, 1, [7, 6]))
    y = n.op("MatMul", x, w)
    y = n.op("Div", y, n.op("Sqrt", n.op("ReduceSumSquare", y, axes=[1], keepdims=1)))
    hot = n.op("OneHot", n.op("Cast", codes, to=7), n.const(9), n.f32([0, 1]), axis=-1)
    hot = n.op("Cast", hot, to=11)
    table = n.weight(n.rng.uniform(-1, 1, [9, 6]))
    y = n.add(y, n.op("MatMul", hot, table))
    y = n.op("Tanh", y)
    parity = n.op("Mod", codes, n.weight(np.int32(2)))
    odd = n.op("Equal", parity, n.weight(np.int32(1)))
    count = n.op("ReduceSum", n.op("Cast", odd, to=7), n.const([0]), keepdims=0)
    scaled = n.op("Div", n.mul(codes, n.weight(np.int32(-7))), n.weight(np.int32(4)))
    return [n.op("Where", n.unsqueeze(odd, 1), y, n.op("Neg", y)), count, scaled, odd]


@network(12)
def face_embedding(n):
    """Slopes per channel, norms of rows, a length of one, cosines with known faces."""
    x = n.input("image", [3, 3, 16, 16])

    def prelu(x):
        return n.op("PRelu", x, n.uniform([n.width[x], 1, 1], low=0.1, high=0.4))

    x = prelu(n.batch_norm(n.conv(x, 8, 3, bias=False)))
    y = n.batch_norm(n.conv(prelu(n.batch_norm(n.conv(n.batch_norm(x), 12, 3, bias=False))), 12, 3, 2, bias=False))
    x = n.add(y, n.batch_norm(n.conv(x, 12, 1, 2, bias=False)))
    x = n.op("Dropout", n.op("Flatten", n.batch_norm(x), axis=1, width=768), n.f32(0.4))
    x = n.linear(x, 10, rank=2)
    x = n.batch_norm(x)
    x = n.op("LpNormalization", x, axis=1, p=2)
    known = n.weight((lambda k: k / np.linalg.norm(k, axis=1, keepdims=True))(
        n.rng.normal(size=[6, 10])).astype(np.float32))
    cosine = n.op("Gemm", x, known, transB=1)
    return [x, n.mul(n.clip(cosine, -1.0, 1.0), 64.0)]


@network(18, "dynamo")
def function_library(n):
    """Layers as functions of the model, with attributes of their own, as the first of the newer exporters kept them."""
    def define(name, inputs, outputs, nodes, attributes=()):
        n.functions.append(helper.make_function("pkg.onnxscript.torch_lib", name, inputs, outputs, nodes,
                                                [helper.make_opsetid("", 18)] + ([helper.make_opsetid(
                                                    "pkg.onnxscript.torch_lib", 1)] if name == "block" else []),
                                                list(attributes)))

    def node(kind, inputs, outputs, **attributes):
        return helper.make_node(kind, inputs, outputs, **attributes)

    slope = node("LeakyRelu", ["x"], ["y"])
    slope.attribute.append(onnx_reference("alpha", "negative_slope"))
    define("aten_leaky_relu", ["x"], ["y"], [slope], ["negative_slope"])
    define("aten_addmm", ["bias", "x", "w"], ["y"], [node("MatMul", ["x", "w"], ["product"]),
                                                     node("Add", ["product", "bias"], ["y"])])
    inner = [node("aten_addmm", ["b1", "x", "w1"], ["a"], domain="pkg.onnxscript.torch_lib"),
             node("aten_leaky_relu", ["a"], ["r"], domain="pkg.onnxscript.torch_lib", negative_slope=0.25),
             node("aten_addmm", ["b2", "r", "w2"], ["c"], domain="pkg.onnxscript.torch_lib"),
             node("Add", ["c", "x"], ["y"])]
    define("block", ["x", "w1", "b1", "w2", "b2"], ["y"], inner)
    x = n.input("x", [5, 8], dims={0: "batch"})
    for _ in range(2):
        x = n.op("block", x, n.uniform([8, 12], 8), n.uniform([12]), n.uniform([12, 8], 12), n.uniform([8]),
                 domain="pkg.onnxscript.torch_lib")
    n.width[x] = 8
    return n.linear(x, 3, rank=2)


@network(13)
def many_columns(n):
    """A table whose 450 features of uneven width are put in another order, as wide models do."""
    widths = [1 + i % 3 for i in range(450)]
    columns = n.split(n.input("features", [4, sum(widths)]), widths)
    return n.linear(n.concat(columns[::-1]), 5, rank=2)


def onnx_reference(name, outer):
    """An attribute whose value is the function's."""
    attribute = helper.make_attribute(name, 0.0)
    attribute.ClearField("f")
    attribute.ref_attr_name = outer
    return attribute
