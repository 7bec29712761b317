"""Networks that classify images."""
import numpy as np

from .net import network


def head(n, x, classes):
    """Mean over the image, then one matrix."""
    x = n.op("Flatten", n.global_pool(x), axis=1)
    return n.linear(x, classes, rank=2)


@network(11, large=True)
def shufflenet_v2(n):
    """Channel shuffle by a reshape whose extents TorchScript reads from the running value."""
    size, widths = n.pick(32, 224), n.pick([16, 32], [116, 232, 464])
    batch = n.pick(3, 1)
    x = n.input("images", [batch, 3, size, size], dims={0: "batch"})
    x = n.relu(n.conv(x, n.pick(8, 24), 3, 2))
    x = n.max_pool(x, 3, 2)

    def shuffle(x, width):
        b, h, w = n.dim(x, 0), n.dim(x, 2), n.dim(x, 3)
        x = n.transpose(n.reshape(x, [b, 2, width // 2, h, w]), 0, 2, 1, 3, 4)
        return n.reshape(x, [b, width, h, w], width=width)

    def branch(x, half, stride):
        x = n.relu(n.conv(x, half, 1))
        return n.relu(n.conv(n.conv(x, half, 3, stride, group=half), half, 1))

    for width, repeats in zip(widths, n.pick([2, 2], [4, 8, 4])):
        half = width // 2
        left = n.relu(n.conv(n.conv(x, n.width[x], 3, 2, group=n.width[x]), half, 1))
        x = shuffle(n.concat([left, branch(x, half, 2)]), width)
        for _ in range(repeats - 1):
            left, right = n.split(x, [half, half])
            x = shuffle(n.concat([left, branch(right, half, 1)]), width)
    x = n.reduce("Mean", n.relu(n.conv(x, n.pick(40, 1024), 1)), [2, 3], 0)
    return n.linear(x, n.pick(11, 1000), rank=2)


@network(9, large=True)
def googlenet(n):
    """Local response norm, uneven pads of pools, the softmax of old operator sets."""
    size = n.pick(47, 224)
    small = n.pick(8, 1)
    x = n.input("data_0", [1, 3, size, size])
    x = n.max_pool(n.relu(n.conv(x, 64 // small, 7, 2, 3)), 3, 2, [0, 0, 1, 1])
    x = n.op("LRN", x, size=5, alpha=1e-4, beta=0.75, bias=1.0)
    x = n.relu(n.conv(n.relu(n.conv(x, 64 // small, 1)), 192 // small, 3))
    x = n.max_pool(n.op("LRN", x, size=5, alpha=1e-4, beta=0.75, bias=1.0), 3, 2, [0, 0, 1, 1])

    def inception(x, a, b, c, d):
        parts = [n.relu(n.conv(x, a, 1)), n.relu(n.conv(n.relu(n.conv(x, b[0], 1)), b[1], 3)),
                 n.relu(n.conv(n.relu(n.conv(x, c[0], 1)), c[1], 5)), n.relu(n.conv(n.max_pool(x, 3, 1), d, 1))]
        return n.concat(parts)

    modules = [(64, (96, 128), (16, 32), 32), (128, (128, 192), (32, 96), 64), None, (192, (96, 208), (16, 48), 64),
               (160, (112, 224), (24, 64), 64), (128, (128, 256), (24, 64), 64), (112, (144, 288), (32, 64), 64),
               (256, (160, 320), (32, 128), 128), None, (256, (160, 320), (32, 128), 128),
               (384, (192, 384), (48, 128), 128)]
    for module in n.pick(modules[1:4], modules):
        if module is None:
            x = n.max_pool(x, 3, 2, [0, 0, 1, 1])
            continue
        a, b, c, d = module
        x = inception(x, a // small, tuple(v // small for v in b), tuple(v // small for v in c), d // small)
    extent = n.pick(3, 7)
    x = n.op("Dropout", n.average_pool(x, extent), ratio=0.4)
    x = n.linear(n.op("Reshape", x, n.const([1, -1])), n.pick(10, 1000), rank=2)
    return n.op("Softmax", x)


@network(12, large=True)
def inception_v3(n):
    """Input channels rescaled one by one, long thin kernels, pools that count their padding."""
    small = n.pick(16, 1)
    size = n.pick(63, 299)
    x = n.input("input", [1, 3, size, size])
    channels = []
    for i, (scale, shift) in enumerate([(0.458, -0.030), (0.448, -0.088), (0.45, -0.188)]):
        one = n.unsqueeze(n.op("Gather", x, n.const(i), axis=1), 1)
        channels.append(n.add(n.mul(one, scale), shift))
    x = n.concat(channels, width=3)

    def block(x, width, kernel, stride=1, pad=None):
        return n.relu(n.conv(x, width // small, kernel, stride, pad))

    x = block(block(block(x, 32, 3, 2, 0), 32, 3, 1, 0), 64, 3)
    x = n.max_pool(x, 3, 2, 0)
    x = n.max_pool(block(block(x, 80, 1), 192, 3, 1, 0), 3, 2, 0)

    def pooled(x, width):
        return block(n.average_pool(x, 3, 1, 1, count_include_pad=1), width, 1)

    def first(x, width):
        tall = block(block(block(x, 64, 1), 96, 3), 96, 3)
        return n.concat([block(x, 64, 1), block(block(x, 48, 1), 64, 5), tall, pooled(x, width)])

    def middle(x, c):
        one = block(block(block(x, c, 1), c, (1, 7)), 192, (7, 1))
        two = block(block(block(block(block(x, c, 1), c, (7, 1)), c, (1, 7)), c, (7, 1)), 192, (1, 7))
        return n.concat([block(x, 192, 1), one, two, pooled(x, 192)])

    for width in n.pick([32], [32, 64, 64]):
        x = first(x, width)
    x = n.concat([block(x, 384, 3, 2, 0), block(block(block(x, 64, 1), 96, 3), 96, 3, 2, 0), n.max_pool(x, 3, 2, 0)])
    for c in n.pick([128], [128, 160, 160, 192]):
        x = middle(x, c)
    return head(n, x, n.pick(10, 1000))


@network(13, large=True)
def resnext(n):
    """Groups of four channels; batch norms that were not folded; a batch that is a symbol."""
    size, blocks = n.pick(32, 224), n.pick([1, 1], [3, 4, 6, 3])
    x = n.input("input", [n.pick(3, 1), 3, size, size], dims={0: "batch_size"})
    x = n.max_pool(n.conv_norm(x, n.pick(16, 64), 7, 2), 3, 2)
    groups, width = n.pick(4, 32), n.pick(16, 128)
    for stage, repeats in enumerate(blocks):
        for i in range(repeats):
            stride = 2 if stage and i == 0 else 1
            y = n.conv_norm(n.conv_norm(x, width, 1), width, 3, stride, group=groups)
            y = n.conv_norm(y, 2 * width, 1, act=False)
            if i == 0:
                x = n.conv_norm(x, 2 * width, 1, stride, act=False, pad=0)
            x = n.relu(n.add(y, x))
        width *= 2
    return head(n, x, n.pick(10, 1000))


@network(18, "dynamo", large=True)
def regnet_y(n):
    """Groups with squeeze and excitation, as the newer exporter spells means."""
    size = n.pick(32, 224)
    x = n.input("x", [n.pick(2, 1), 3, size, size], dims={0: "s77"})
    x = n.conv_norm(x, n.pick(8, 32), 3, 2)
    own = 8
    for width, repeats in zip(n.pick([16, 24], [48, 104, 208, 440]), n.pick([1, 2], [1, 3, 6, 6])):
        for i in range(repeats):
            stride = 2 if i == 0 else 1
            squeezed = max(4, n.width[x] // 4)
            y = n.conv_norm(x, width, 1)
            y = n.conv_norm(y, width, 3, stride, group=width // own)
            gate = n.relu(n.conv(n.reduce("Mean", y, [-1, -2]), squeezed, 1))
            y = n.mul(n.sigmoid(n.conv(gate, width, 1)), y)
            y = n.conv_norm(y, width, 1, act=False)
            if stride == 2:
                x = n.conv_norm(x, width, 1, stride, act=False, pad=0)
            x = n.relu(n.add(x, y))
    return head(n, x, n.pick(10, 1000))


@network(13, "tf", large=True)
def mobilenet_v1_tf(n):
    """Channels last outside, first inside, with explicit pads where strides are two."""
    size = n.pick(33, 224)
    x = n.input("input_1:0", [n.pick(2, 1), size, size, 3], dims={0: "unk__95"})
    n.place = "conv1"
    n.width[x] = 3
    x = n.transpose(x, 0, 3, 1, 2)

    def relu6(x):
        return n.clip(x, 0.0, 6.0)

    wide = n.pick(4, 1)
    x = relu6(n.conv(n.pad(x, [0, 0, 0, 0, 0, 0, 1, 1]), 32 // wide, 3, 2, 0))
    layers = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    for i, (width, stride) in enumerate(layers[:n.pick(4, 13)]):
        n.place = f"conv_dw_{i + 1}"
        if stride == 2:
            x = n.pad(x, [0, 0, 0, 0, 0, 0, 1, 1])
        x = relu6(n.conv(x, n.width[x], 3, stride, 0 if stride == 2 else 1, group=n.width[x]))
        n.place = f"conv_pw_{i + 1}"
        x = relu6(n.conv(x, width // wide, 1))
    x = n.transpose(x, 0, 2, 3, 1)
    x = n.reduce("Mean", x, [1, 2], 0)
    x = n.linear(x, n.pick(10, 1000))
    return n.softmax(x)


@network(10, "tf")
def nasnet_tf(n):
    """Cells of separable convolutions; a path halved by two shifted pools; a channel-last end."""
    x = n.input("input:0", [1, 32, 32, 3])
    n.width[x] = 3
    x = n.conv_norm(n.transpose(x, 0, 3, 1, 2), 8, 3, 2, act=False, pad=0)

    def separable(x, width, kernel, stride=1):
        for s in (stride, 1):
            x = n.relu(x)
            x = n.conv(x, n.width[x], kernel, s, group=n.width[x], bias=False)
            x = n.batch_norm(n.conv(x, width, 1, bias=False))
        return x

    def halve(x, width):
        one = n.conv(n.average_pool(x, 1, 2), width // 2, 1, bias=False)
        moved = n.op("Slice", n.pad(x, [0, 0, 0, 0, 0, 0, 1, 1]), [1, 1], [2**31 - 1, 2**31 - 1], [2, 3])
        two = n.conv(n.average_pool(moved, 1, 2), width // 2, 1, bias=False)
        return n.batch_norm(n.concat([one, two]))

    previous = x
    for width, stride in ((8, 1), (16, 2)):
        if stride == 2:
            previous = halve(n.relu(previous), width)
        else:
            previous = n.batch_norm(n.conv(n.relu(previous), width, 1, bias=False))
        x2 = n.batch_norm(n.conv(n.relu(x), width, 1, bias=False))
        a = n.add(separable(x2, width, 5, stride), separable(x, width, 3, stride))
        kept = n.average_pool(x2, 3, stride, 1)
        b = n.add(kept, previous)
        c = n.add(n.max_pool(x2, 3, stride, 1), separable(x2, width, 3, stride))
        previous, x = x, n.concat([previous, a, b, c])
    x = n.transpose(n.relu(x), 0, 2, 3, 1)
    return n.reduce("Mean", x, [1, 2], 0)


@network(12)
def hrnet(n):
    """Two resolutions that meet each other."""
    x = n.input("input", [1, 3, 32, 48])
    x = n.conv_norm(n.conv_norm(x, 8, 3, 2), 8, 3)
    high, low = n.conv_norm(x, 8, 3), n.conv_norm(x, 16, 3, 2)

    def basic(x):
        y = n.conv_norm(n.conv_norm(x, n.width[x], 3), n.width[x], 3, act=False)
        return n.relu(n.add(y, x))

    for _ in range(2):
        high, low = basic(high), basic(low)
        up = n.resize(n.conv_norm(low, 8, 1, act=False), 2)
        down = n.conv_norm(high, 16, 3, 2, act=False)
        high, low = n.relu(n.add(high, up)), n.relu(n.add(down, low))
    both = n.concat([high, n.resize(low, like=high, mode="linear", corners="align_corners")])
    return [n.conv(n.conv_norm(both, 24, 1), 5, 1), low]


@network(14, large=True)
def mobilevit(n):
    """Images unfolded to patches for a transformer, and back."""
    size = n.pick(16, 256)
    x = n.input("pixel_values", [n.pick(2, 1), 3, size, size], dims={0: "batch"})
    x = n.silu(n.conv_norm(x, n.pick(8, 16), 3, n.pick(1, 2), act=False))
    for _ in range(n.pick(0, 2)):
        x = n.silu(n.conv(x, 4 * n.width[x], 1))
        x = n.silu(n.conv(x, n.width[x], 3, 2, group=n.width[x]))
        x = n.conv(x, n.width[x] // 2, 1)
    rows = n.pick(16, 32)
    kept, channels, width = x, n.width[x], n.pick(16, 144)
    x = n.conv(n.silu(n.conv(x, channels, 3)), width, 1, bias=False)
    b, tiles = n.dim(x, 0), rows // 2
    # [b, c, h, w] -> [b * 4, patches, c]
    x = n.reshape(x, [n.mul(b, width * tiles), 2, tiles, 2])
    x = n.reshape(n.transpose(x, 0, 2, 1, 3), [b, width, tiles * tiles, 4])
    x = n.reshape(n.transpose(x, 0, 3, 2, 1), [n.mul(b, 4), tiles * tiles, width], width=width)
    for _ in range(n.pick(1, 2)):
        x = n.add(n.self_attention(n.layer_norm(x), -1, tiles * tiles, 4), x)
        x = n.add(n.feed_forward(n.layer_norm(x), 2 * width, n.silu), x)
    x = n.reshape(n.layer_norm(x), [b, 4, tiles * tiles, width])
    x = n.transpose(x, 0, 3, 2, 1)
    x = n.reshape(x, [n.mul(n.mul(b, width), tiles), tiles, 2, 2])
    x = n.reshape(n.transpose(x, 0, 2, 1, 3), [b, width, rows, rows], width=width)
    x = n.concat([kept, n.silu(n.conv(x, channels, 1))])
    return head(n, n.silu(n.conv(x, channels, 3)), n.pick(7, 1000))


@network(16, large=True)
def swin(n):
    """Shifted windows, their masks and tables of relative positions, merged patches."""
    side, window, heads = n.pick(8, 56), n.pick(4, 7), n.pick(2, 3)
    width = n.pick(24, 96)
    size = 4 * side
    x = n.input("pixel_values", [1, 3, size, size])
    x = n.conv(x, width, 4, 4, 0)
    x = n.transpose(n.op("Reshape", x, n.const([1, width, side * side]), width=width), 0, 2, 1)
    n.width[x] = width
    x = n.layer_norm(x)
    grid = np.stack(np.meshgrid(np.arange(window), np.arange(window), indexing="ij")).reshape(2, -1)
    apart = grid[:, :, None] - grid[:, None, :] + window - 1
    index = (apart[0] * (2 * window - 1) + apart[1]).astype(np.int64)

    def roll(x, shift):
        for axis in (1, 2):
            x = n.concat([n.slice(x, -shift, 2**63 - 1, axis), n.slice(x, 0, -shift, axis)], axis, n.width[x])
        return x

    def windows(x, side, width):
        x = n.op("Reshape", x, n.const([1, side // window, window, side // window, window, width]))
        return n.op("Reshape", n.transpose(x, 0, 1, 3, 2, 4, 5), n.const([-1, window * window, width]), width=width)

    def mask(side):
        zones = np.zeros([side, side])
        for i, rows in enumerate([slice(0, -window), slice(-window, -(window // 2)), slice(-(window // 2), None)]):
            for j, columns in enumerate([slice(0, -window), slice(-window, -(window // 2)),
                                         slice(-(window // 2), None)]):
                zones[rows, columns] = 3 * i + j
        zones = zones.reshape(side // window, window, side // window, window).transpose(0, 2, 1, 3)
        zones = zones.reshape(-1, window * window)
        return np.where(zones[:, None] == zones[:, :, None], 0, -100).astype(np.float32)

    def block(x, side, heads, shift):
        width, count, area = n.width[x], (side // window) ** 2, window * window
        kept = x
        x = n.op("Reshape", n.layer_norm(x), n.const([1, side, side, width]), width=width)
        x = windows(roll(x, -shift) if shift else x, side, width)
        q, k, v = (n.heads(n.linear(x, width), count, area, heads) for _ in range(3))
        scores = n.op("MatMul", n.mul(q, (width // heads) ** -0.5), n.transpose(k, 0, 1, 3, 2))
        table = n.uniform([(2 * window - 1) ** 2, heads], low=-0.5, high=0.5)
        bias = n.op("Gather", table, n.const(index.reshape(-1)), axis=0)
        bias = n.transpose(n.op("Reshape", bias, n.const([area, area, -1])), 2, 0, 1)
        scores = n.add(scores, n.unsqueeze(bias, 0))
        if shift:
            scores = n.op("Reshape", scores, n.const([1, count, heads, area, area]))
            scores = n.add(scores, n.unsqueeze(n.unsqueeze(n.weight(mask(side)), 1), 0))
            scores = n.op("Reshape", scores, n.const([-1, heads, area, area]))
        x = n.transpose(n.op("MatMul", n.softmax(scores), v), 0, 2, 1, 3)
        x = n.linear(n.op("Reshape", x, n.const([count, area, width]), width=width), width)
        x = n.op("Reshape", x, n.const([1, side // window, side // window, window, window, width]))
        x = n.op("Reshape", n.transpose(x, 0, 1, 3, 2, 4, 5), n.const([1, side, side, width]), width=width)
        x = roll(x, shift) if shift else x
        x = n.add(kept, n.op("Reshape", x, n.const([1, side * side, width]), width=width))
        return n.add(x, n.feed_forward(n.layer_norm(x), 4 * width))

    for stage in range(n.pick(2, 3)):
        x = block(block(x, side, heads, 0), side, heads, window // 2 if side > window else 0)
        if stage == n.pick(1, 2):
            break
        x = n.op("Reshape", x, n.const([1, side, side, n.width[x]]), width=n.width[x])
        corners = [n.slice(n.slice(x, i, 2**63 - 1, 1, 2), j, 2**63 - 1, 2, 2) for j in (0, 1) for i in (0, 1)]
        x = n.concat(corners, -1)
        side, heads = side // 2, heads * 2
        x = n.op("Reshape", x, n.const([1, side * side, n.width[x]]), width=n.width[x])
        x = n.linear(n.layer_norm(x), n.width[x] // 2, bias=False)
    x = n.transpose(n.layer_norm(x), 0, 2, 1)
    x = n.op("Flatten", n.op("GlobalAveragePool", x), axis=1, width=n.pick(48, 384))
    return n.linear(x, n.pick(9, 1000), rank=2)


@network(17)
def convmixer_cbam(n):
    """Patches, wide depthwise kernels with GELU, attention over channels and over places."""
    x = n.input("input", [1, 3, 30, 26], dims={2: "height", 3: "width"})
    x = n.batch_norm(n.gelu(n.conv(x, 20, 2, 2, 0)))
    y = n.batch_norm(n.gelu(n.conv(x, 20, 9, group=20)))
    x = n.batch_norm(n.gelu(n.conv(n.add(y, x), 20, 1)))
    inner, outer = n.uniform([5, 20, 1, 1], 20), n.uniform([20, 5, 1, 1], 5)

    def gate(pooled):
        return n.op("Conv", n.relu(n.op("Conv", pooled, inner)), outer)

    x = n.mul(n.sigmoid(n.add(gate(n.global_pool(x)), gate(n.op("GlobalMaxPool", x)))), x)
    places = n.concat([n.reduce("Max", x, [1]), n.reduce("Mean", x, [1])], width=2)
    x = n.mul(x, n.sigmoid(n.conv(places, 1, 7, bias=False)))
    return head(n, x, 6)


@network(21, "dynamo")
def ghostnet_hardswish(n):
    """Half of the channels made by cheap depthwise convolutions, then cut; hard activations."""
    x = n.input("x", [2, 3, 24, 24], dims={0: "batch"})
    x = n.op("HardSwish", n.conv_norm(x, 8, 3, 2, act=False))

    def ghost(x, width, act=True):
        first = n.conv_norm(x, (width + 1) // 2, 1, act=act)
        cheap = n.conv_norm(first, (width + 1) // 2, 3, act=act, group=(width + 1) // 2)
        return n.slice(n.concat([first, cheap]), 0, width, 1, width=width)

    y = ghost(x, 21)
    y = n.conv_norm(y, 21, 5, 2, act=False, group=21)
    gate = n.relu(n.conv(n.op("GlobalAveragePool", y), 8, 1))
    y = n.mul(y, n.op("HardSigmoid", n.conv(gate, 21, 1), alpha=1 / 6))
    y = ghost(y, 13, False)
    short = n.conv_norm(n.conv_norm(x, 8, 5, 2, act=False, group=8), 13, 1, act=False)
    return head(n, n.op("HardSwish", n.add(y, short)), 10)


@network(9)
def alexnet_caffe(n):
    """Groups of two, norms across channels, a flatten by reshape, old style."""
    x = n.input("data", [2, 3, 67, 67])
    x = n.relu(n.conv(x, 24, 11, 4, 0))
    x = n.max_pool(n.op("LRN", x, size=5, alpha=2e-4, beta=0.75, bias=2.0), 3, 2, 0)
    x = n.relu(n.conv(x, 32, 5, group=2))
    x = n.max_pool(n.op("LRN", x, size=5, alpha=2e-4, beta=0.75), 3, 2, 0)
    x = n.op("Reshape", x, n.const([0, -1]), width=32 * 3 * 3)
    x = n.op("Dropout", n.relu(n.linear(x, 40, rank=2)), ratio=0.5)
    return n.op("LogSoftmax", n.linear(x, 10, rank=2), axis=1)


@network(13)
def standardised_weights(n):
    """Weights normalised by a training batch norm of five outputs (TorchScript's scaled standardised convolutions)."""
    x = n.input("images", [2, 3, 14, 14])

    def standardised(x, channels, stride):
        own = n.width[x]
        rows = n.uniform([1, channels, own * 9], own)
        mean = n.op("ReduceMean", rows, axes=[0, 2], keepdims=0)
        offset = n.op("Sub", rows, n.op("ReduceMean", rows, axes=[0, 2], keepdims=1))
        variance = n.op("ReduceMean", n.mul(offset, offset), axes=[0, 2], keepdims=0)
        gain = n.uniform([channels], low=0.5, high=1.5)
        y = n.op("BatchNormalization", rows, gain, n.weight(np.zeros(channels, np.float32)), mean, variance, outs=5,
                 epsilon=1e-5, momentum=1.0)
        weight = n.op("Reshape", y[0], n.const([channels, own, 3, 3]))
        y = n.op("Conv", x, weight, n.uniform([channels], low=-0.1, high=0.1), width=channels, kernel_shape=[3, 3],
                 strides=[stride] * 2, pads=[1] * 4, group=1, dilations=[1, 1])
        return n.mul(y, n.op("Sigmoid", y))

    return head(n, standardised(standardised(x, 12, 2), 20, 1), 7)


@network(12)
def batch_statistics(n):
    """A batch norm that was exported while it trained: its own statistics, all five outputs."""
    x = n.conv(n.input("x", [3, 2, 7, 5]), 4, 3)
    y = n.op("BatchNormalization", x, n.uniform([4], low=0.6, high=1.4), n.uniform([4]), n.uniform([4]),
             n.uniform([4], low=0.6, high=1.4), outs=5, epsilon=1e-3, momentum=0.7)
    return [n.relu(y[0])] + [n.op("Neg", each) for each in y[1:]]


@network(13)
def critic(n):
    """A score without axes, behind a stride whose padding stands on the right alone."""
    x = n.op("Sigmoid", n.input("images", [1, 3, 9, 13]), width=3)
    x = n.max_pool(x, 2, 2, [0, 0, 1, 1])
    x = n.op("Softplus", n.conv(x, 4, 3), width=4)
    x = n.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1], width=4)
    return n.op("Sigmoid", n.op("Squeeze", n.linear(n.op("Flatten", n.global_pool(x), axis=1), 1, rank=2)))
