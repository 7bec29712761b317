"""Operators that move, pick and scatter elements."""
import numpy as np


def transpose(c):
    shape = c.shape(1, 6)
    perm = list(range(len(shape)))
    c.rng.shuffle(perm)
    dtype = c.rng.choice([np.float32, np.float16, np.int8, np.int64, np.bool_])
    return [c.node("Transpose", [c.input(c.floats(shape, 0, 90).astype(dtype))], perm=perm)]


def reshape(c):
    shape = c.shape(1, 6)
    x = c.input(c.floats(shape))
    kind = c.rng.choice(["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile"])
    if kind == "Reshape":
        new = shape[:]
        c.rng.shuffle(new)
        if c.rng.random() < 0.5:
            new[c.rng.randrange(len(new))] = -1
        y = c.node(kind, [x, c.constant(np.array(new, np.int64))])
    elif kind == "Flatten":
        y = c.node(kind, [x], axis=c.rng.randint(-len(shape), len(shape)))
    elif kind == "Squeeze":
        ones = [i for i, extent in enumerate(shape) if extent == 1]
        y = c.node(kind, [x] + ([c.constant(np.array(ones, np.int64))] if ones and c.rng.random() < 0.5 else []))
    elif kind == "Unsqueeze":
        if len(shape) == 6:
            return [c.node("Neg", [x])]
        y = c.node(kind, [x, c.constant(np.array([c.rng.randint(-len(shape) - 1, len(shape))], np.int64))])
    elif kind == "Expand":
        bigger = [c.rng.choice([2, 3]) if extent == 1 else extent for extent in shape]
        y = c.node(kind, [x, c.constant(np.array(bigger, np.int64))])
    else:
        y = c.node(kind, [x, c.constant(np.array([c.rng.choice([1, 1, 2]) for _ in shape], np.int64))])
    return [c.node("Neg", [y])] if c.rng.random() < 0.5 else [y]


def slice_(c):
    shape = c.shape(1, 5)
    axes = sorted(c.rng.sample(range(len(shape)), c.rng.randint(1, len(shape))))
    starts, ends, steps = [], [], []
    for axis in axes:
        a, b = sorted((c.rng.randint(0, shape[axis] - 1), c.rng.randint(0, shape[axis] - 1)))
        step = c.rng.choice([1, 1, 2, 3, -1, -2])
        starts.append(a if step > 0 else b)
        ends.append(c.rng.choice([b + 1, 2**31]) if step > 0 else (a - 1 if a else -2**31))
        steps.append(step)
    inputs = [c.input(c.floats(shape))] + [c.constant(np.array(v, np.int64)) for v in (starts, ends, axes, steps)]
    y = c.node("Slice", inputs)
    return [c.node("Sigmoid", [y])] if c.rng.random() < 0.5 else [y]


def pad(c):
    shape = c.shape(1, 5)
    mode = c.rng.choice(["constant", "constant", "reflect", "edge", "wrap"])
    begin = [c.rng.randint(0, 3) if mode in ("constant", "edge") else c.rng.randint(0, extent - 1) for extent in shape]
    end = [c.rng.randint(-1 if mode == "constant" and extent > 1 else 0, 3) if mode in ("constant", "edge")
           else c.rng.randint(0, extent - 1) for extent in shape]
    inputs = [c.input(c.floats(shape)), c.constant(np.array(begin + end, np.int64))]
    if mode == "constant" and c.rng.random() < 0.5:
        inputs.append(c.constant(np.float32(1.5)))
    return [c.node("Pad", inputs, mode=mode)]


def concat(c):
    shape = c.shape(1, 5)
    axis = c.axis(len(shape))
    parts = []
    for _ in range(c.rng.randint(1, 4)):
        part = shape[:]
        part[axis] = c.rng.choice([1, 2, 3, 5])
        value = c.input(c.floats(part)) if c.rng.random() < 0.8 else c.constant(c.floats(part))
        parts.append(c.node("Tanh", [value]) if c.rng.random() < 0.5 else value)
    y = c.node("Concat", parts, axis=axis)
    return [c.node("Neg", [y])] if c.rng.random() < 0.5 else [y]


def split(c):
    shape = c.shape(1, 5)
    axis = c.rng.randrange(len(shape))
    shape[axis] = c.rng.choice([4, 5, 7, 9, 12])
    x = c.input(c.floats(shape))
    if c.rng.random() < 0.5:
        count = c.rng.choice([1, 2, 3, 4])
        parts = c.node("Split", [x], outputs=count, axis=axis, num_outputs=count)
        parts = [parts] if count == 1 else parts
    else:
        cut = c.rng.randint(1, shape[axis] - 1)
        parts = c.node("Split", [x, c.constant(np.array([cut, shape[axis] - cut], np.int64))], outputs=2, axis=axis)
    return [c.node("Exp", [part]) if c.rng.random() < 0.5 else part for part in parts]


def gather(c):
    shape = c.shape(1, 4)
    axis = c.axis(len(shape))
    kind = c.rng.choice(["Gather", "Gather", "GatherElements", "GatherND"])
    x = c.input(c.floats(shape) if c.rng.random() < 0.7 else c.ints(shape, -9, 9, np.int32))
    dtype = c.rng.choice([np.int32, np.int64])
    if kind == "Gather":
        index = c.ints(c.shape(0, 3, 60), -shape[axis], shape[axis], dtype)
        return [c.node(kind, [x, c.either(index)], axis=axis)]
    if kind == "GatherElements":
        other = [c.rng.randint(1, extent) for extent in shape]
        other[axis] = c.rng.choice([1, 2, 5])
        return [c.node(kind, [x, c.either(c.ints(other, -shape[axis], shape[axis], dtype))], axis=axis)]
    batch = c.rng.randint(0, len(shape) - 1)
    depth = c.rng.randint(1, len(shape) - batch)
    lead = shape[:batch] + c.shape(0 if batch else 1, 2, 30)
    index = np.stack([c.ints(lead, -shape[batch + i], shape[batch + i]) for i in range(depth)], -1)
    return [c.node(kind, [x, c.either(index)], batch_dims=batch)]


def scatter(c):
    shape = c.shape(1, 4)
    axis = c.axis(len(shape))
    reduction = c.rng.choice(["none", "add", "mul", "max", "min"])
    x = c.input(c.floats(shape))
    if c.rng.random() < 0.5:
        other = [c.rng.randint(1, extent) for extent in shape]
        index = np.argsort(c.np.random(other + [shape[axis]]), -1)[..., 0] if reduction != "none" else None
        if index is None:  # without duplicates along the axis
            order = np.argsort(c.np.random([e if i != axis % len(shape) else shape[axis]
                                            for i, e in enumerate(other)]), axis)
            index = np.take(order, range(other[axis]), axis)
        return [c.node("ScatterElements", [x, c.either(index.astype(np.int64)), c.input(c.floats(other))], axis=axis,
                       reduction=reduction)]
    depth = c.rng.randint(1, len(shape))
    count = int(np.prod(shape[:depth]))
    picks = c.np.permutation(count)[: c.rng.randint(1, count)]
    index = np.stack(np.unravel_index(picks, shape[:depth]), -1).astype(np.int64)
    return [c.node("ScatterND", [x, c.either(index), c.input(c.floats([len(picks)] + shape[depth:]))],
                   reduction=reduction)]


def selection(c):
    kind = c.rng.choice(["TopK", "OneHot", "Trilu", "ReverseSequence", "Clip", "DepthToSpace", "SpaceToDepth",
                         "EyeLike"])
    if kind == "TopK":
        shape = c.shape(1, 4)
        axis = c.axis(len(shape))
        x = c.np.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)
        k = c.constant(np.array([c.rng.randint(1, shape[axis])], np.int64))
        return list(c.node(kind, [c.input(x), k], outputs=2, axis=axis, largest=c.rng.randint(0, 1), sorted=1))
    if kind == "OneHot":
        depth = c.rng.choice([1, 3, 7])
        index = c.ints(c.shape(0, 3, 100), -depth, depth)
        return [c.node(kind, [c.input(index), c.constant(np.int64(depth)), c.either(np.float32([0.5, 2.0]))],
                       axis=c.rng.randint(-index.ndim - 1, index.ndim))]
    if kind == "Trilu":
        return [c.node(kind, [c.input(c.floats(c.shape(2, 4))), c.constant(np.int64(c.rng.randint(-3, 3)))],
                       upper=c.rng.randint(0, 1))]
    if kind == "ReverseSequence":
        length, batch = c.rng.choice([2, 5, 7]), c.rng.choice([1, 3, 4])
        first = c.rng.randint(0, 1)
        shape = ([batch, length] if first else [length, batch]) + c.shape(0, 2, 20)
        return [c.node(kind, [c.input(c.floats(shape)), c.input(c.ints([batch], 1, length + 1))], time_axis=first,
                       batch_axis=1 - first)]
    if kind == "Clip":
        low = c.constant(np.float32(-0.5)) if c.rng.random() < 0.7 else ""
        high = c.either(np.float32(0.7)) if c.rng.random() < 0.7 else ""
        return [c.node(kind, [c.input(c.floats(c.shape())), low, high])]
    if kind == "EyeLike":
        x = c.input(c.floats(c.shape(2, 2)))
        return [c.node("Add", [c.node(kind, [x], k=c.rng.randint(-2, 2)), x])]
    block, channels = c.rng.choice([1, 2, 3]), c.rng.choice([1, 2, 5])
    image = [c.rng.choice([1, 2, 4]), c.rng.choice([1, 3, 5])]
    if kind == "DepthToSpace":
        return [c.node(kind, [c.input(c.floats([2, channels * block * block] + image))], blocksize=block,
                       mode=c.rng.choice(["DCR", "CRD"]))]
    return [c.node(kind, [c.input(c.floats([2, channels] + [block * e for e in image]))], blocksize=block)]
