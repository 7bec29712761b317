"""Networks that answer at places of an image: segmentation, detection, key points."""
import numpy as np

from .net import network


def grid_of(height, width):
    """[1, h * w, 2]: the columns and rows of places."""
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    return np.stack([columns, rows], -1).reshape(1, height * width, 2).astype(np.float32)


@network(11, large=True)
def deeplab_aspp(n):
    """Dilated branches and a pooled one that is resized back; resizing to the input's extents."""
    size, width = n.pick(33, 321), n.pick(8, 48)
    image = n.input("input", [1, 3, size, size + 4])
    x = n.conv_norm(n.conv_norm(image, width, 3, 2), 2 * width, 3, 2)
    x = n.conv_norm(x, 4 * width, 3, n.pick(1, 2))
    for dilation in (2, 4):
        y = n.conv_norm(n.conv_norm(x, 2 * width, 1), 2 * width, 3, dilation=dilation)
        x = n.relu(n.add(n.conv_norm(y, 4 * width, 1, act=False), x))
    out = 2 * width
    parts = [n.conv_norm(x, out, 1)] + [n.conv_norm(x, out, 3, dilation=d) for d in n.pick((3, 6, 9), (6, 12, 18))]
    pooled = n.conv_norm(n.global_pool(x), out, 1)
    parts.append(n.resize(pooled, like=x, mode="linear", corners="pytorch_half_pixel"))
    x = n.op("Dropout", n.conv_norm(n.concat(parts), out, 1), ratio=0.5)
    x = n.conv(n.conv_norm(x, out, 3), n.pick(5, 21), 1)
    return n.resize(x, like=image, mode="linear", corners="pytorch_half_pixel")


@network(13)
def pspnet(n):
    """Pools of several sizes, resized with aligned corners; the answer is the best class."""
    x = n.input("input", [1, 3, 48, 48])
    x = n.conv_norm(n.conv_norm(x, 12, 3, 2), 16, 3, 2)
    parts = [x]
    for bins in (1, 2, 3, 6):
        extent = 12 // bins
        pooled = n.global_pool(x) if bins == 1 else n.average_pool(x, extent, extent)
        parts.append(n.resize(n.conv_norm(pooled, 4, 1), like=x, mode="linear", corners="align_corners"))
    x = n.conv(n.conv_norm(n.concat(parts), 8, 3), 5, 1)
    x = n.resize(x, 4, mode="linear", corners="align_corners")
    return [n.softmax(x, 1), n.op("ArgMax", x, axis=1, keepdims=0)]


@network(9)
def yolov3(n):
    """Leaky units, the Upsample of old operator sets, raw heads."""
    x = n.input("000_net", [1, 3, 64, 64])

    def block(x, width, kernel=3, stride=1):
        return n.op("LeakyRelu", n.batch_norm(n.conv(x, width, kernel, stride, bias=False)), alpha=0.1)

    x = block(block(x, 8), 16, 3, 2)
    x = n.add(x, block(block(x, 8, 1), 16))
    x = block(x, 24, 3, 2)
    kept = n.add(x, block(block(x, 12, 1), 24))
    x = block(kept, 32, 3, 2)
    x = n.add(x, block(block(x, 16, 1), 32))
    one = n.conv(block(x, 32), 3 * 9, 1)
    up = n.resize(block(x, 12, 1), 2)
    two = n.conv(block(n.concat([up, kept]), 24), 3 * 9, 1)
    return [one, two]


@network(12, large=True)
def yolov5(n):
    """The image cut in four, pools in a row, heads decoded by slices with powers."""
    size, w = n.pick(64, 320), n.pick(8, 32)
    image = n.input("images", [1, 3, size, size])

    def block(x, width, kernel=1, stride=1):
        return n.silu(n.conv(x, width, kernel, stride))

    def csp(x, width, repeats=1):
        y = block(x, width // 2)
        for _ in range(repeats):
            y = n.add(y, block(block(y, width // 2), width // 2, 3))
        return block(n.concat([y, block(x, width // 2)]), width)

    parts = [n.slice(n.slice(image, i, 2**63 - 1, 2, 2), j, 2**63 - 1, 3, 2) for j in (0, 1) for i in (0, 1)]
    x = block(n.concat(parts, width=12), w, 3)
    x = csp(block(x, 2 * w, 3, 2), 2 * w)
    fine = csp(block(x, 4 * w, 3, 2), 4 * w, n.pick(1, 2))
    x = csp(block(fine, 8 * w, 3, 2), 8 * w, n.pick(1, 3))
    x = block(x, 4 * w)
    pools = [x]
    for _ in range(3):
        pools.append(n.max_pool(pools[-1], 5, 1))
    x = block(n.concat(pools), 8 * w)
    coarse = block(x, 4 * w)
    fine = csp(n.concat([n.resize(coarse, 2), fine]), 4 * w)
    coarse = csp(n.concat([block(fine, 4 * w, 3, 2), coarse]), 8 * w)
    classes, found = n.pick(3, 80), []
    for x, stride, anchors in ((fine, 8, [10, 13, 16, 30, 33, 23]), (coarse, 16, [30, 61, 62, 45, 59, 119])):
        side = size // stride
        x = n.op("Reshape", n.conv(x, 3 * (5 + classes), 1), n.const([1, 3, 5 + classes, side, side]))
        x = n.sigmoid(n.transpose(x, 0, 1, 3, 4, 2))
        grid = grid_of(side, side).reshape(1, 1, side, side, 2)
        sizes = np.array(anchors, np.float32).reshape(1, 3, 1, 1, 2)
        xy = n.slice(x, 0, 2, 4)
        xy = n.mul(n.add(n.mul(xy, 2.0), n.weight(grid - 0.5)), float(stride))
        wh = n.mul(n.op("Pow", n.mul(n.slice(x, 2, 4, 4), 2.0), 2.0), n.weight(sizes))
        y = n.concat([xy, wh, n.slice(x, 4, 2**63 - 1, 4)], -1)
        found.append(n.op("Reshape", y, n.const([1, -1, 5 + classes])))
    return n.concat(found, 1)


@network(17, large=True)
def yolov8(n):
    """Parts that feed each other, distances as a softmax over bins, boxes from anchors."""
    size, w = n.pick(64, 320), n.pick(8, 32)
    x = n.input("images", [1, 3, size, size])

    def block(x, width, kernel=1, stride=1):
        return n.silu(n.conv(x, width, kernel, stride))

    def c2f(x, width, repeats=1):
        parts = n.split(block(x, width), [width // 2, width // 2])
        for _ in range(repeats):
            y = block(block(parts[-1], width // 2, 3), width // 2, 3)
            parts.append(n.add(parts[-1], y))
        return block(n.concat(parts), width)

    x = c2f(block(block(x, w, 3, 2), w, 3, 2), w)
    fine = c2f(block(x, 2 * w, 3, 2), 2 * w, n.pick(1, 2))
    coarse = c2f(block(fine, 4 * w, 3, 2), 4 * w, n.pick(1, 2))
    fine = c2f(n.concat([n.resize(coarse, 2), fine]), 2 * w)
    bins, classes, rows = n.pick(4, 16), n.pick(3, 80), []
    for x in (fine, coarse):
        box = n.conv(block(x, n.pick(8, 64), 3), 4 * bins, 1)
        score = n.conv(block(x, n.pick(8, 80), 3), classes, 1)
        rows.append(n.op("Reshape", n.concat([box, score]), n.const([1, 4 * bins + classes, -1])))
    x = n.concat(rows, 2)
    counts = [(size // 8) ** 2, (size // 16) ** 2]
    anchors = np.concatenate([grid_of(size // s, size // s) + 0.5 for s in (8, 16)], 1).transpose(0, 2, 1)
    strides = np.concatenate([np.full(c, s, np.float32) for c, s in zip(counts, (8, 16))]).reshape(1, 1, -1)
    box, score = n.split(x, [4 * bins, classes])
    box = n.op("Reshape", box, n.const([1, 4, bins, sum(counts)]))
    box = n.softmax(n.transpose(box, 0, 2, 1, 3), 1)
    n.width[box] = bins
    box = n.op("Conv", box, n.weight(np.arange(bins, dtype=np.float32).reshape(1, bins, 1, 1)))
    box = n.op("Reshape", box, n.const([1, 4, sum(counts)]))
    near, far = n.split(box, [2, 2])
    low, high = n.op("Sub", n.weight(anchors), near), n.add(n.weight(anchors), far)
    centre, extent = n.op("Div", n.add(low, high), 2.0), n.op("Sub", high, low)
    box = n.mul(n.concat([centre, extent]), n.weight(strides))
    return n.concat([box, n.sigmoid(score)])


@network(11, "tf", large=True)
def ssd_tf(n):
    """Heads of several resolutions joined as rows, boxes decoded, classes by softmax."""
    size, w = n.pick(48, 300), n.pick(8, 64)
    x = n.input("image_tensor:0", [1, size, size, 3])
    n.width[x] = 3
    x = n.mul(n.op("Sub", x, 0.5), 2.0)
    x = n.transpose(x, 0, 3, 1, 2)
    n.width[x] = 3
    classes, levels, shapes, side = n.pick(4, 91), [], [], size

    def block(x, width, stride):
        if side % 2 == 0 and stride == 2:
            x, pad = n.pad(x, [0, 0, 0, 0, 0, 0, 1, 1]), 0
        else:
            pad = 1
        x = n.clip(n.conv(x, n.width[x], 3, stride, pad, group=n.width[x]), 0.0, 6.0)
        return n.clip(n.conv(x, width, 1), 0.0, 6.0)

    x = n.clip(n.conv(x, w // 2, 3, 1), 0.0, 6.0)
    for i in range(n.pick(4, 6)):
        x = block(x, w * min(8, 2 ** i), 2)
        side = (side + 1) // 2
        if i >= n.pick(1, 3):
            levels.append(x)
            shapes.append(side)
    boxes, scores = [], []
    for x in levels:
        for rows, width in ((boxes, 4), (scores, classes)):
            y = n.transpose(n.conv(x, 3 * width, n.pick(3, 1)), 0, 2, 3, 1)
            rows.append(n.op("Reshape", y, n.const([1, -1, width])))
    box, score = n.concat(boxes, 1, 4), n.softmax(n.concat(scores, 1), 2)
    count = 3 * sum(s * s for s in shapes)
    priors = n.rng.uniform(0.1, 0.9, [1, count, 4]).astype(np.float32)
    dx, dy, dw, dh = n.split(box, [1, 1, 1, 1], 2)
    px, py, pw, ph = (n.weight(priors[:, :, i:i + 1]) for i in range(4))
    cx, cy = n.add(n.mul(n.mul(dx, 0.1), pw), px), n.add(n.mul(n.mul(dy, 0.1), ph), py)
    bw, bh = n.mul(n.op("Exp", n.mul(dw, 0.2)), pw), n.mul(n.op("Exp", n.mul(dh, 0.2)), ph)
    half_w, half_h = n.mul(bw, 0.5), n.mul(bh, 0.5)
    corners = [n.op("Sub", cy, half_h), n.op("Sub", cx, half_w), n.add(cy, half_h), n.add(cx, half_w)]
    return [n.clip(n.concat(corners, 2), 0.0, 1.0), score]


@network(11)
def centernet(n):
    """Peaks of a heat map by a pool and a comparison, the best of them, and what stands there."""
    x = n.input("input", [1, 3, 32, 32])
    x = n.conv_norm(n.conv_norm(x, 12, 3, 2), 16, 3, 2)
    x = n.relu(n.batch_norm(n.deconv(x, 12, 4, 2, 1, bias=False)))
    heat = n.sigmoid(n.conv(n.relu(n.conv(x, 8, 3)), 3, 1))
    sizes = n.conv(n.relu(n.conv(x, 8, 3)), 2, 1)
    peaks = n.op("Cast", n.op("Equal", n.max_pool(heat, 3, 1), heat), to=1)
    rows = n.op("Reshape", n.mul(heat, peaks), n.const([1, -1]))
    best, place = n.op("TopK", rows, n.const([9]), axis=1, largest=1, sorted=1, outs=2)
    cls = n.op("Div", place, n.const(256))
    inside = n.op("Sub", place, n.mul(cls, n.const(256)))
    row = n.op("Div", inside, n.const(16))
    column = n.op("Sub", inside, n.mul(row, n.const(16)))
    flat = n.op("Reshape", n.transpose(sizes, 0, 2, 3, 1), n.const([1, -1, 2]))
    where = n.op("Expand", n.unsqueeze(inside, 2), n.const([1, 9, 2]))
    wh = n.op("GatherElements", flat, where, axis=1)
    xy = n.concat([n.unsqueeze(n.op("Cast", v, to=1), 2) for v in (column, row)], 2)
    return [best, n.op("Cast", cls, to=6), n.concat([n.op("Sub", xy, n.mul(wh, 0.5)), wh], 2)]


@network(16)
def detr_decoder(n):
    """Queries that attend to each other and to a padded image with sine positions."""
    width, heads, queries, places = 32, 4, 10, 37
    memory = n.input("memory", [2, places, width], dims={0: "batch", 1: "places"})
    mask = n.input("pixel_mask", [2, places], dtype=np.int64, dims={0: "batch", 1: "places"},
                   draw=lambda rng: np.arange(places) < np.array([[37], [23]]))
    b, s = n.dim(memory, 0), n.dim(memory, 1)
    counted = n.op("CumSum", n.op("Cast", mask, to=1), n.const(1))
    counted = n.op("Div", counted, n.add(n.slice(counted, -1, 2**63 - 1, 1), 1e-6))
    steps = n.mul(n.unsqueeze(counted, 2), n.weight(np.exp(-np.arange(width // 2) / 4).astype(np.float32)))
    parts = [n.unsqueeze(n.op(fn, steps), 3) for fn in ("Sin", "Cos")]
    place = n.reshape(n.op("Concat", *parts, axis=3), [b, s, width], width=width)
    far = n.op("Cast", n.unsqueeze(n.unsqueeze(mask, 1), 1), to=1)
    far = n.mul(n.op("Sub", 1.0, far), -3.4e38)
    embedding = n.weight(n.rng.uniform(-1, 1, [queries, width]).astype(np.float32))
    spread = n.op("Concat", n.unsqueeze(b, 0), n.const([queries]), n.const([width]), axis=0)
    places_q = n.op("Expand", n.unsqueeze(embedding, 0), spread, width=width)
    x = n.op("ConstantOfShape", n.op("Shape", places_q), width=width)
    for _ in range(2):
        q = n.add(x, places_q)
        q1, k1 = (n.heads(n.linear(q, width), b, queries, heads) for _ in range(2))
        y = n.attention(q1, k1, n.heads(n.linear(x, width), b, queries, heads))
        y = n.reshape(n.transpose(y, 0, 2, 1, 3), [b, queries, width], width=width)
        x = n.layer_norm(n.add(x, n.linear(y, width)))
        q2 = n.heads(n.linear(n.add(x, places_q), width), b, queries, heads)
        k2 = n.heads(n.linear(n.add(memory, place), width), b, s, heads)
        y = n.attention(q2, k2, n.heads(n.linear(memory, width), b, s, heads), far)
        y = n.reshape(n.transpose(y, 0, 2, 1, 3), [b, queries, width], width=width)
        x = n.layer_norm(n.add(x, n.linear(y, width)))
        x = n.layer_norm(n.add(x, n.feed_forward(x, 64, n.relu)))
    boxes = n.relu(n.linear(x, width))
    return [n.linear(x, 7), n.sigmoid(n.linear(n.relu(n.linear(boxes, width)), 4))]


@network(13, large=True)
def unet_transposed(n):
    """Up by transposed convolutions of 2×2, crops to the encoder's extents, sigmoid."""
    size, w = n.pick(44, 256), n.pick(6, 32)
    x = n.input("input", [1, 1, size, size])
    kept = []

    def double(x, width):
        return n.conv_norm(n.conv_norm(x, width, 3), width, 3)

    depth = n.pick(2, 4)
    for i in range(depth):
        kept.append(double(x, w * 2 ** i))
        x = n.max_pool(kept[-1], 2, 2, 0)
    x = double(x, w * 2 ** depth)
    for i in reversed(range(depth)):
        x = n.deconv(x, w * 2 ** i, 2, 2)
        x = double(n.concat([x, kept[i]]), w * 2 ** i)
    return n.sigmoid(n.conv(x, 1, 1))


@network(18, "dynamo")
def fpn_keypoints(n):
    """Levels added from coarse to fine by cubic and nearest resizing; the expected place of each key point."""
    x = n.input("x", [2, 3, 40, 24], dims={0: "s0"})
    levels = []
    for width in (8, 12, 16):
        x = n.conv_norm(x, width, 3, 2)
        levels.append(n.conv(x, 10, 1))
    p = levels[2]
    for level in (levels[1], levels[0]):
        p = n.add(level, n.resize(p, like=level, nearest="floor"))
    heat = n.conv(n.conv(p, 10, 3), 5, 1)
    heat = n.resize(heat, 2, "cubic", corners="half_pixel")
    b = n.dim(heat, 0)
    flat = n.softmax(n.mul(n.reshape(heat, [b, 5, 960]), 10.0), 2)
    places = n.weight(grid_of(40, 24)[0])
    at = n.op("MatMul", flat, places)
    score = n.reduce("Max", flat, [2], 0)
    best = n.op("ArgMax", flat, axis=2, keepdims=0)
    return [at, score, best]


@network(16)
def rcnn_box_head(n):
    """Regions of a feature map, two heads, boxes per class chosen by the best class."""
    features = n.input("features", [1, 12, 20, 20])
    rois = n.input("rois", [7, 4], draw=lambda rng: np.sort(rng.uniform(0, 78, [7, 2, 2]), 1).reshape(7, 4))
    rows = n.op("ConstantOfShape", n.slice(n.op("Shape", rois), 0, 1, 0))
    x = n.op("RoiAlign", features, rois, n.op("Cast", rows, to=7), mode="avg", output_height=5, output_width=5,
             sampling_ratio=2, spatial_scale=0.25, width=12)
    x = n.op("Flatten", x, axis=1, width=300)
    x = n.relu(n.linear(n.relu(n.linear(x, 48, rank=2)), 48, rank=2))
    scores = n.softmax(n.linear(x, 4, rank=2), 1)
    deltas = n.op("Reshape", n.linear(x, 16, rank=2), n.const([-1, 4, 4]))
    best = n.op("ArgMax", scores, axis=1, keepdims=0)
    at = n.op("Concat", n.unsqueeze(n.op("Range", n.const(0), n.const(7), n.const(1)), 1), n.unsqueeze(best, 1),
              axis=1)
    chosen = n.op("GatherND", deltas, at)
    size = n.op("Sub", n.slice(rois, 2, 4, 1), n.slice(rois, 0, 2, 1))
    centre = n.add(n.slice(rois, 0, 2, 1), n.mul(size, 0.5))
    centre = n.add(centre, n.mul(n.slice(chosen, 0, 2, 1), size))
    size = n.mul(size, n.op("Exp", n.op("Min", n.slice(chosen, 2, 4, 1), 4.135)))
    half = n.mul(size, 0.5)
    boxes = n.op("Concat", n.op("Sub", centre, half), n.add(centre, half), axis=1)
    return [n.clip(boxes, 0.0, 79.0), best, n.reduce("Max", scores, [1], 0)]
