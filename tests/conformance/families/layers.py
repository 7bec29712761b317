"""Normalisation, recurrent and quantised layers, and small networks."""
import numpy as np

from families.windows import window


def normalise(c):
    kind = c.rng.choice(["LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
                         "GroupNormalization", "LRN", "LpNormalization", "MeanVarianceNormalization"])
    if kind == "LayerNormalization":
        shape = c.shape(1, 5)
        axis = c.axis(len(shape))
        inputs = [c.input(c.floats(shape)), c.either(c.floats(shape[axis:]))]
        if c.rng.random() < 0.6:
            inputs.append(c.either(c.floats(shape[axis:])))
        return [c.node(kind, inputs, axis=axis, epsilon=c.rng.choice([1e-5, 1e-3]))]
    channels = c.rng.choice([1, 2, 4, 6])
    shape = [c.rng.choice([1, 2, 3]), channels] + [c.rng.choice([2, 3, 5, 7]) for _ in range(c.rng.randint(1, 3))]
    if kind in ("LRN", "MeanVarianceNormalization"):
        shape = shape[:2] + [5, 3]
    x = c.input(c.floats(shape))
    if kind == "BatchNormalization":
        rest = [c.floats([channels]), c.floats([channels]), c.floats([channels]), c.floats([channels], 0.2, 2)]
        return [c.node(kind, [x] + [c.either(r) for r in rest])]
    if kind == "InstanceNormalization":
        return [c.node(kind, [x, c.either(c.floats([channels])), c.either(c.floats([channels]))])]
    if kind == "GroupNormalization":
        group = c.rng.choice([g for g in (1, 2, 3, 4, 6) if channels % g == 0])
        width = channels if c.opset >= 21 else group
        return [c.node(kind, [x, c.either(c.floats([width])), c.either(c.floats([width]))], num_groups=group)]
    if kind == "LRN":
        return [c.node(kind, [x], size=c.rng.choice([1, 3, 5]), alpha=0.01, beta=0.7, bias=1.3)]
    if kind == "LpNormalization":
        return [c.node(kind, [x], axis=c.axis(len(shape)), p=c.rng.choice([1, 2]))]
    return [c.node(kind, [x], axes=c.rng.choice([[0, 2, 3], [2, 3], [0, 1, 2, 3]]))]


def recurrent(c):
    kind, gates = c.rng.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    length, batch, width, hidden = (c.rng.choice([1, 2, 3, 5, 7]) for _ in range(4))
    direction = c.rng.choice(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    inputs = [c.input(c.floats([length, batch, width])), c.constant(c.floats([d, gates * hidden, width], -1, 1)),
              c.constant(c.floats([d, gates * hidden, hidden], -1, 1))]
    inputs.append(c.constant(c.floats([d, 2 * gates * hidden])) if c.rng.random() < 0.5 else "")
    inputs.append(c.input(c.ints([batch], 1, length + 1, np.int32)) if c.rng.random() < 0.3 else "")
    inputs.append(c.input(c.floats([d, batch, hidden])) if c.rng.random() < 0.5 else "")
    if kind == "LSTM" and inputs[-1]:
        inputs.append(c.input(c.floats([d, batch, hidden])))
    attributes = {"hidden_size": hidden, "direction": direction}
    if kind == "GRU":
        attributes["linear_before_reset"] = c.rng.randint(0, 1)
    return list(c.node(kind, inputs, outputs=3 if kind == "LSTM" else 2, **attributes))


def quantised(c):
    kind = c.rng.choice(["DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear", "MatMulInteger", "ConvInteger",
                         "QLinearMatMul", "QLinearConv"])
    if kind == "DynamicQuantizeLinear":
        return list(c.node(kind, [c.input(c.floats(c.shape(0, 4), -3, 5))], outputs=3))
    unsigned, signed = np.uint8, np.int8
    if kind in ("QuantizeLinear", "DequantizeLinear"):
        shape = c.shape(1, 4)
        axis = c.rng.randrange(len(shape))
        size = [shape[axis]] if c.rng.random() < 0.5 else []
        dtype = c.rng.choice([unsigned, signed])
        scale, zero = c.floats(size, 0.01, 0.1), c.ints(size, 0, 20, dtype)
        x = c.floats(shape, -3, 3) if kind[0] == "Q" else c.ints(shape, 0, 120, dtype)
        return [c.node(kind, [c.input(x), c.either(scale), c.either(zero)], axis=axis)]
    m, n, k = (c.rng.choice([1, 3, 8, 17]) for _ in range(3))
    if kind in ("MatMulInteger", "QLinearMatMul"):
        # For u8 with s8 ONNX Runtime adds pairs of products in i16, which saturates, on CPUs that have AVX2 alone.
        low, high, dtype = c.rng.choice([(-64, 64, signed), (0, 256, unsigned)])
        a, b = c.ints([m, k], 0, 256, unsigned), c.ints([k, n], low, high, dtype)
        zeros = [c.constant(unsigned(c.rng.randint(0, 200))), c.constant(dtype(c.rng.randint(max(low, -3), 3)))]
        if kind == "MatMulInteger":
            return [c.node(kind, [c.input(a), c.either(b)] + (zeros if c.rng.random() < 0.7 else []))]
        scales = [c.constant(np.float32(s)) for s in (0.02, 0.03, 0.11)]
        return [c.node(kind, [c.input(a), scales[0], zeros[0], c.either(b), scales[1], zeros[1], scales[2],
                              c.constant(unsigned(121))])]
    kernel, strides, _, pads, image = window(c, 2, (1, 2, 3))
    ci, co = c.rng.choice([1, 2, 3]), c.rng.choice([1, 2, 5])
    x = c.input(c.ints([c.rng.choice([1, 2]), ci] + image, 0, 256, unsigned))
    attributes = {"strides": strides, "pads": [min(p, k - 1) for p, k in zip(pads, kernel + kernel)]}
    image = [max(e, k) for e, k in zip(image, kernel)]
    if kind == "ConvInteger":
        w = c.constant(c.ints([co, ci] + kernel, 0, 256, unsigned))
        return [c.node(kind, [x, w, c.constant(unsigned(7)), c.constant(unsigned(9))], **attributes)]
    w = c.constant(c.ints([co, ci] + kernel, -64, 64, signed))
    inputs = [x, c.constant(np.float32(0.02)), c.constant(unsigned(13)), w, c.constant(np.float32(0.03)),
              c.constant(signed(0)), c.constant(np.float32(0.4)), c.constant(unsigned(100))]
    if c.rng.random() < 0.5:
        inputs.append(c.constant(c.ints([co], -500, 500, np.int32)))
    return [c.node(kind, inputs, **attributes)]


def chain(c):
    """A few operators one after the other with values that are read twice, so that groups form."""
    shape = c.shape(1, 4, 2000)
    values = [(c.input(c.floats(shape)), shape)]
    for _ in range(c.rng.randint(2, 9)):
        x, shape = c.rng.choice(values[-3:])
        kind = c.rng.randrange(10)
        if kind == 0:
            values.append((c.node(c.rng.choice(["Tanh", "Relu", "Sigmoid", "Abs", "Neg", "Gelu"]), [x]), shape))
        elif kind == 1:
            other = c.rng.choice(values)
            if other[1] == shape:
                values.append((c.node(c.rng.choice(["Add", "Mul", "Max"]), [x, other[0]]), shape))
        elif kind == 2:
            values.append((c.node("Add", [x, c.constant(c.floats(c.broadcasts(shape)))]), shape))
        elif kind == 3:
            perm = list(range(len(shape)))
            c.rng.shuffle(perm)
            values.append((c.node("Transpose", [x], perm=perm), [shape[p] for p in perm]))
        elif kind == 4:
            axis = c.rng.randrange(len(shape))
            y = c.node(c.rng.choice(["ReduceSum", "ReduceMax", "ReduceMean"]),
                       [x, c.constant(np.array([axis], np.int64))])
            values.append((y, shape[:axis] + [1] + shape[axis + 1:]))
        elif kind == 5:
            values.append((c.node("Softmax", [x], axis=c.axis(len(shape))), shape))
        elif kind == 6:
            wide = c.rng.choice([1, 3, 7, 16])
            values.append((c.node("MatMul", [x, c.constant(c.floats([shape[-1], wide], -0.5, 0.5))]),
                           shape[:-1] + [wide]))
        elif kind == 7:
            values.append((c.node("Reshape", [x, c.constant(np.array([-1, shape[-1]], np.int64))]),
                           [int(np.prod(shape[:-1])), shape[-1]]))
        elif kind == 8:
            axis = c.rng.randrange(len(shape))
            if np.prod(shape) <= 2000:
                values.append((c.node("Concat", [x, x], axis=axis),
                               shape[:axis] + [2 * shape[axis]] + shape[axis + 1:]))
        else:
            axis = c.rng.randrange(len(shape))
            if shape[axis] > 1:
                ends = [c.constant(np.array([v], np.int64)) for v in (1, shape[axis], axis)]
                values.append((c.node("Slice", [x] + ends), shape[:axis] + [shape[axis] - 1] + shape[axis + 1:]))
    read = {name for node in c.nodes for name in node.input}
    return [name for name, _ in values[1:] if name not in read or c.rng.random() < 0.2]


def block(c):
    """What networks are made of: attention, squeeze and excite, residual convolutions."""
    kind = c.rng.choice(["attention", "excite", "residual", "layer_norm"])
    if kind == "attention":
        batch, heads, rows, keys, width = c.rng.choice([1, 2]), c.rng.choice([1, 3]), c.rng.choice([1, 5, 13]), \
            c.rng.choice([1, 7, 17]), c.rng.choice([4, 8, 11])
        q, k, v = (c.input(c.floats([batch, heads, n, width], -1, 1)) for n in (rows, keys, keys))
        scores = c.node("MatMul", [q, c.node("Transpose", [k], perm=[0, 1, 3, 2])])
        scores = c.node("Mul", [scores, c.constant(np.float32(width**-0.5))])
        if c.rng.random() < 0.5:
            mask = np.where(c.ints([batch, 1, 1, keys], 0, 3) == 0, np.float32(-1e9), np.float32(0))
            scores = c.node("Add", [scores, c.input(mask)])
        y = c.node("MatMul", [c.node("Softmax", [scores], axis=-1), v])
        y = c.node("Transpose", [y], perm=[0, 2, 1, 3])
        return [c.node("Reshape", [y, c.constant(np.array([batch, rows, heads * width], np.int64))])]
    if kind == "layer_norm":
        rows, width, out = c.rng.choice([1, 5, 9]), c.rng.choice([3, 16, 33]), c.rng.choice([1, 7, 16])
        x = c.input(c.floats([2, rows, width]))
        mean = c.node("ReduceMean", [x, c.constant(np.array([-1], np.int64))])
        centred = c.node("Sub", [x, mean])
        square = c.node("ReduceMean", [c.node("Mul", [centred, centred]), c.constant(np.array([-1], np.int64))])
        y = c.node("Div", [centred, c.node("Sqrt", [c.node("Add", [square, c.constant(np.float32(1e-5))])])])
        y = c.node("Add", [c.node("Mul", [y, c.constant(c.floats([width]))]), c.constant(c.floats([width]))])
        return [c.node("Add", [c.node("MatMul", [y, c.constant(c.floats([width, out]))]), c.constant(c.floats([out]))])]
    channels, image = c.rng.choice([2, 3, 8]), [c.rng.choice([3, 5, 8]), c.rng.choice([4, 7])]
    x = c.input(c.floats([c.rng.choice([1, 2]), channels] + image))
    y = c.node("Conv", [x, c.constant(c.floats([channels, channels, 3, 3], -0.4, 0.4)),
                        c.constant(c.floats([channels]))], pads=[1, 1, 1, 1])
    if kind == "excite":
        s = c.node("GlobalAveragePool", [y])
        s = c.node("Relu", [c.node("Conv", [s, c.constant(c.floats([2, channels, 1, 1]))])])
        s = c.node("HardSigmoid", [c.node("Conv", [s, c.constant(c.floats([channels, 2, 1, 1]))])])
        return [c.node("Mul", [y, s])]
    parts = [channels] * 2 + [channels] * 2
    y = c.node("BatchNormalization", [y] + [c.constant(c.floats([p], 0.5, 1.5)) for p in parts])
    return [c.node("MaxPool", [c.node("Relu", [c.node("Add", [y, x])])], kernel_shape=[2, 2], strides=[2, 2])]
