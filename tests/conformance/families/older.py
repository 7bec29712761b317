"""Operator sets 7 to 17 in their own spellings: attributes that became inputs, other defaults and other rules."""
import numpy as np

from families.windows import window


def ints(c, values):
    return c.constant(np.array(values, np.int64))


def older_reduce(c):
    """Axes by attribute, of a sum until operator set 13."""
    op = c.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                       "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"])
    shape = c.shape(1, 5)
    inputs, attributes = [c.input(c.floats(shape, 0.3, 1.4))], {"keepdims": c.rng.randint(0, 1)}
    if c.rng.random() < 0.8:
        axes = c.axes(len(shape))
        axes = axes if c.opset >= 11 else [axis % len(shape) for axis in axes]
        if op == "ReduceSum" and c.opset >= 13:
            inputs.append(ints(c, axes))
        else:
            attributes["axes"] = axes
    return [c.node(op, inputs, **attributes)]


def older_softmax(c):
    """Before operator set 13 of all axes from the first named one on."""
    shape = c.shape(2, 5)
    axis = c.axis(len(shape)) if c.opset >= 11 else c.rng.randrange(len(shape))
    attributes = {"axis": axis} if c.rng.random() < 0.8 else {}
    return [c.node(c.rng.choice(["Softmax", "LogSoftmax", "Hardmax"]), [c.input(c.floats(shape, -5, 5))],
                   **attributes)]


def older_resize(c):
    """Upsample to operator set 9, Resize by scales alone in 10, with its rules from 11 on."""
    rank = c.rng.choice([1, 2, 2, 2])
    mode = c.rng.choice(["nearest", "nearest", "linear"])
    rank = 2 if mode == "linear" else rank
    shape = [c.rng.choice([1, 2]), c.rng.choice([1, 3])] + [c.rng.choice([2, 3, 5, 7, 8]) for _ in range(rank)]
    smaller = [0.5, 0.6, 0.75] if c.opset >= 10 else []
    scales = [1.0, 1.0] + [c.rng.choice([1.0, 1.5, 2.0, 3.0] + smaller) for _ in range(rank)]
    x = c.input(c.floats(shape))
    factors = np.array(scales, np.float32)
    if c.opset < 9:
        return [c.node("Upsample", [x], mode=mode, scales=scales)]
    if c.opset < 11:
        return [c.node("Upsample" if c.opset < 10 else "Resize", [x, c.constant(factors)], mode=mode)]
    attributes = {"mode": mode, "coordinate_transformation_mode": c.rng.choice(
        ["half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"])}
    if mode == "nearest":
        attributes["nearest_mode"] = c.rng.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    nothing = "" if c.opset >= 13 else c.constant(np.zeros(0, np.float32))
    # With a fractional size ONNX Runtime and ONNX's reference differ on aligned corners.
    if attributes["coordinate_transformation_mode"] != "align_corners" and c.rng.random() < 0.5:
        return [c.node("Resize", [x, nothing, c.constant(factors)], **attributes)]
    sizes = shape[:2] + [c.rng.choice([1, 2, 4, 5, 9, 12]) for _ in range(rank)]
    return [c.node("Resize", [x, nothing, nothing, ints(c, sizes)], **attributes)]


def older_pick(c):
    """Slice, Split, Pad, Squeeze and Unsqueeze by attributes and by inputs."""
    shape = c.shape(1, 5)
    kind = c.rng.choice(["Slice", "Split", "Pad", "Squeeze", "Unsqueeze"])
    axis = c.rng.randrange(len(shape))
    if kind == "Split":
        shape[axis] = c.rng.choice([4, 6, 8])
        x = c.input(c.floats(shape))
        cut = c.rng.randint(1, shape[axis] - 1)
        sizes = [cut, shape[axis] - cut]
        if c.rng.random() < 0.4:
            return list(c.node(kind, [x], outputs=2, axis=axis))
        if c.opset < 13:
            return list(c.node(kind, [x], outputs=2, axis=axis, split=sizes))
        return list(c.node(kind, [x, ints(c, sizes)], outputs=2, axis=axis))
    x = c.input(c.floats(shape))
    if kind == "Slice":
        start = c.rng.randint(-shape[axis], shape[axis] - 1)
        end = c.rng.choice([2**31 - 1, shape[axis]])
        if c.opset < 10:
            return [c.node(kind, [x], axes=[axis], starts=[start], ends=[end])]
        return [c.node(kind, [x] + [ints(c, [v]) for v in (start, end, axis - len(shape), c.rng.choice([1, 2]))])]
    if kind == "Pad":
        mode = c.rng.choice(["constant", "reflect", "edge"])
        pads = [c.rng.randint(0, extent - 1 if mode == "reflect" else 2) for extent in shape + shape]
        if c.opset < 11:
            return [c.node(kind, [x], mode=mode, pads=pads, **({"value": 1.5} if mode == "constant" else {}))]
        return [c.node(kind, [x, ints(c, pads)], mode=mode)]
    if kind == "Squeeze":
        axes = [i for i, extent in enumerate(shape) if extent == 1]
    else:
        axes = sorted(c.rng.sample(range(len(shape) + 1), 1))
    if not axes:
        return [c.node(kind, [x])]
    if c.opset < 13:
        return [c.node(kind, [x], axes=axes)]
    return [c.node(kind, [x, ints(c, axes)])]


def older_layer(c):
    """Windows, products and normalisations as they were."""
    kind = c.rng.choice(["MaxPool", "AveragePool", "BatchNormalization", "Clip", "Gemm", "Dropout", "TopK", "Concat",
                         "ConvTranspose", "DynamicQuantizeLinear"])
    if kind in ("MaxPool", "AveragePool"):
        kernel, strides, _, pads, image = window(c, c.rng.choice([1, 2, 2, 3]), (1, 2, 3))
        attributes = {"kernel_shape": kernel, "strides": strides}
        if c.rng.random() < 0.4:
            attributes["auto_pad"] = c.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
            image = [max(e, k) for e, k in zip(image, kernel)]
        else:
            attributes["pads"] = [min(p, k - 1) for p, k in zip(pads, kernel + kernel)]
        return [c.node(kind, [c.input(c.floats([2, 3] + image))], **attributes)]
    if kind == "BatchNormalization":
        channels = c.rng.choice([1, 3, 5])
        rest = [c.floats([channels]), c.floats([channels]), c.floats([channels]), c.floats([channels], 0.2, 2)]
        return [c.node(kind, [c.input(c.floats([2, channels] + c.shape(0, 3, 60)))] + [c.either(r) for r in rest])]
    if kind == "Clip":
        x = c.input(c.floats(c.shape()))
        if c.opset < 11:
            return [c.node(kind, [x], min=-0.5, **({"max": 0.75} if c.rng.random() < 0.5 else {}))]
        return [c.node(kind, [x, c.constant(np.float32(-0.5)), c.either(np.float32(0.75))])]
    if kind == "Gemm":
        added = c.either(c.floats(c.rng.choice([[5], [3, 1], [3, 5]])))
        return [c.node(kind, [c.input(c.floats([3, 7])), c.either(c.floats([5, 7])), added], transB=1, alpha=0.5,
                       beta=2.0)]
    if kind == "Dropout":
        return [c.node("Neg", [c.node(kind, [c.input(c.floats(c.shape()))])])]
    if kind == "TopK":
        shape = c.shape(1, 4)
        axis = c.rng.randrange(len(shape))
        x = c.input(c.np.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32))
        k = c.rng.randint(1, shape[axis])
        if c.opset < 10:
            return list(c.node(kind, [x], outputs=2, axis=axis, k=k))
        return list(c.node(kind, [x, ints(c, [k])], outputs=2, axis=axis))
    if kind == "Concat":
        shape = c.shape(1, 4)
        return [c.node(kind, [c.input(c.floats(shape)), c.either(c.floats(shape))], axis=c.rng.randrange(len(shape)))]
    if kind == "DynamicQuantizeLinear":
        c.opset = max(c.opset, 11)
        low, high = c.rng.choice([(0, 0), (-3, 5), (1, 4), (-4, -1)])
        return list(c.node(kind, [c.input(c.floats(c.shape(1, 4), low, high))], outputs=3))
    x, w = c.input(c.floats([1, 3, 4, 5])), c.either(c.floats([3, 2, 3, 2]))
    how = c.rng.choice([{"pads": [1, 0, 1, 1], "output_padding": [1, 0]}, {"auto_pad": "SAME_UPPER"},
                        {"output_shape": [9, 11]}])
    return [c.node(kind, [x, w], strides=[2, 2], **how)]


for family in (older_reduce, older_softmax, older_resize, older_pick, older_layer):
    family.opsets = list(range(7, 18))
