"""Networks that make images or compress them."""
import numpy as np

from .net import network


@network(10, large=True)
def espcn(n):
    """Sub-pixel convolution."""
    size = n.pick(17, 224)
    x = n.input("input", [1, 1, size, size], dims={0: "batch_size"})
    x = n.relu(n.conv(x, n.pick(16, 64), 5))
    x = n.relu(n.conv(x, n.pick(16, 64), 3))
    x = n.conv(n.relu(n.conv(x, n.pick(8, 32), 3)), 9, 3)
    # Older exporters write the shuffle out.
    b, h, w = n.dim(x, 0), n.dim(x, 2), n.dim(x, 3)
    x = n.transpose(n.reshape(x, [b, 1, 3, 3, h, w]), 0, 1, 4, 2, 5, 3)
    return n.reshape(x, [b, 1, n.mul(h, 3), n.mul(w, 3)])


@network(13)
def edsr(n):
    """Residual blocks without norms, DepthToSpace in both of its orders."""
    x = n.input("lr", [1, 3, 11, 14], 0, 255, dims={2: "h", 3: "w"})
    mean = n.weight(np.array([114.4, 111.4, 103.0], np.float32).reshape(1, 3, 1, 1))
    first = n.conv(n.op("Sub", x, mean), 12, 3)
    x = first
    for _ in range(2):
        x = n.add(n.mul(n.conv(n.relu(n.conv(x, 12, 3)), 12, 3), 0.1), x)
    x = n.conv(n.add(n.conv(x, 12, 3), first), 48, 3)
    x = n.op("DepthToSpace", x, blocksize=2, mode="CRD", width=12)
    x = n.op("DepthToSpace", n.conv(x, 48, 3), blocksize=2, mode="DCR", width=12)
    return n.add(n.conv(x, 3, 3), mean)


@network(11, large=True)
def dcgan(n):
    """4×4 transposed convolutions from a point to an image."""
    w, batch = n.pick(8, 64), n.pick(3, 1)
    x = n.input("noise", [batch, n.pick(10, 100), 1, 1])
    x = n.relu(n.batch_norm(n.deconv(x, 8 * w, 4, 1, 0, bias=False)))
    for i in n.pick((2, 1), (4, 2, 1)):
        x = n.relu(n.batch_norm(n.deconv(x, i * w, 4, 2, 1, bias=False)))
    return n.op("Tanh", n.deconv(x, 3, 4, 2, 1, bias=False))


@network(11, large=True)
def cyclegan(n):
    """Reflected borders, instance norms, 3×3 transposed convolutions with output padding."""
    size, w = n.pick(20, 256), n.pick(4, 32)
    x = n.input("real_A", [1, 3, size, size])

    def norm(x):
        return n.relu(n.instance_norm(x, affine=False))

    x = norm(n.conv(n.pad(x, [0, 0, 3, 3, 0, 0, 3, 3], "reflect"), w, 7, 1, 0))
    x = norm(n.conv(norm(n.conv(x, 2 * w, 3, 2)), 4 * w, 3, 2))
    for _ in range(n.pick(2, 6)):
        y = norm(n.conv(n.pad(x, [0, 0, 1, 1, 0, 0, 1, 1], "reflect"), 4 * w, 3, 1, 0))
        y = n.conv(n.pad(y, [0, 0, 1, 1, 0, 0, 1, 1], "reflect"), 4 * w, 3, 1, 0)
        x = n.add(x, n.instance_norm(y, affine=False))
    x = norm(n.deconv(norm(n.deconv(x, 2 * w, 3, 2, 1, 1)), w, 3, 2, 1, 1))
    x = n.conv(n.pad(x, [0, 0, 3, 3, 0, 0, 3, 3], "reflect"), 3, 7, 1, 0)
    return n.op("Tanh", x)


@network(9)
def srgan(n):
    """One slope a channel, 9×9 kernels, the shuffle in six dimensions."""
    x = n.input("lr", [1, 3, 12, 9])

    def prelu(x):
        return n.op("PRelu", x, n.uniform([n.width[x], 1, 1], low=0.1, high=0.4))

    first = prelu(n.conv(x, 16, 9))
    x = first
    for _ in range(2):
        x = n.add(n.batch_norm(n.conv(prelu(n.batch_norm(n.conv(x, 16, 3))), 16, 3)), x)
    x = n.add(n.batch_norm(n.conv(x, 16, 3)), first)
    x = n.op("Reshape", n.conv(x, 64, 3), n.const([-1, 16, 2, 2, 12, 9]))
    x = n.op("Reshape", n.transpose(x, 0, 1, 4, 2, 5, 3), n.const([-1, 16, 24, 18]), width=16)
    return n.op("Tanh", n.conv(prelu(x), 3, 9))


@network(12, large=True)
def pix2pix(n):
    """Down and up by 4×4 kernels of stride 2 with skips."""
    w, size = n.pick(4, 32), n.pick(32, 256)
    x = n.input("input", [1, 3, size, size])
    kept = []
    depth = n.pick(3, 6)
    widths = [w * min(8, 2 ** i) for i in range(depth)]
    for i, width in enumerate(widths):
        y = x if i == 0 else n.op("LeakyRelu", x, alpha=0.2)
        x = n.conv(y, width, 4, 2, 1, bias=i == 0)
        x = n.batch_norm(x) if 0 < i < depth - 1 else x
        kept.append(x)
    for i in reversed(range(depth)):
        x = n.deconv(n.relu(x), widths[i - 1] if i else 3, 4, 2, 1, bias=i == 0)
        if i:
            x = n.concat([kept[i - 1], n.op("Dropout", n.batch_norm(x), n.f32(0.5))])
    return n.op("Tanh", x)


@network(17, large=True)
def diffusion_block(n):
    """A residual block with its time step, then attention to itself and to a text."""
    size, width, words, text = n.pick(8, 32), n.pick(16, 320), n.pick(7, 77), n.pick(12, 768)
    groups, heads = n.pick(4, 32), n.pick(2, 8)
    sample = n.input("sample", [n.pick(2, 1), width, size, size], dims={0: "batch"})
    step = n.input("timestep", [1], 0, 1000, np.int64)
    hidden = n.input("encoder_hidden_states", [n.pick(2, 1), words, text], dims={0: "batch", 1: "sequence"})
    b = n.dim(sample, 0)
    half = n.pick(8, 160)
    t = n.mul(n.unsqueeze(n.op("Cast", step, to=1), 1),
              n.weight(np.exp(-np.log(1e4) * np.arange(half) / half).astype(np.float32).reshape(1, -1)))
    t = n.op("Concat", n.op("Cos", t), n.op("Sin", t), axis=-1, width=2 * half)
    t = n.linear(n.silu(n.linear(t, 4 * width, rank=2)), 4 * width, rank=2)
    y = n.conv(n.silu(n.group_norm(sample, groups, 2)), width, 3)
    t = n.linear(n.silu(t), width, rank=2)
    y = n.add(y, n.unsqueeze(n.unsqueeze(t, 2), 3))
    y = n.conv(n.silu(n.group_norm(y, groups, 2)), width, 3)
    x = n.op("Div", n.add(sample, y), 1.0)
    kept = x
    x = n.conv(n.group_norm(x, groups, 2), width, 1)
    places = size * size
    x = n.reshape(n.transpose(x, 0, 2, 3, 1), [b, places, width], width=width)

    def attend(x, other, length):
        q = n.heads(n.linear(x, width, bias=False), b, places, heads)
        k, v = (n.heads(n.linear(other, width, bias=False), b, length, heads) for _ in range(2))
        y = n.transpose(n.attention(q, k, v), 0, 2, 1, 3)
        return n.linear(n.reshape(y, [b, places, width], width=width), width)

    normed = n.layer_norm(x)
    x = n.add(attend(normed, normed, places), x)
    x = n.add(attend(n.layer_norm(x), hidden, n.dim(hidden, 1)), x)
    gated = n.linear(n.layer_norm(x), 8 * width)
    one, two = n.split(gated, [4 * width, 4 * width], -1)
    x = n.add(n.linear(n.mul(one, n.gelu(two)), width), x)
    x = n.transpose(n.reshape(x, [b, size, size, width], width=width), 0, 3, 1, 2)
    n.width[x] = width
    return n.add(n.conv(x, width, 1), kept)


@network(13, large=True)
def stylegan(n):
    """Convolutions whose weights every style of the batch scales: one group for each of it."""
    batch, width, size = n.pick(3, 4), n.pick(8, 256), n.pick(4, 16)
    style = n.input("style", [batch, n.pick(6, 128)])
    x = n.input("constant", [batch, width, size, size])

    def modulated(x, channels, size, kernel=3, demodulate=True, up=False):
        inside = n.width[x]
        scale = n.unsqueeze(n.linear(style, inside, rank=2), 1, 3, 4)
        w = n.mul(n.uniform([1, channels, inside, kernel, kernel], inside * kernel * kernel), scale)
        if demodulate:
            w = n.mul(w, n.op("Reciprocal", n.op("Sqrt", n.add(n.reduce("Sum", n.op("Pow", w, 2.0), [2, 3, 4]), 1e-8))))
        grouped = n.op("Reshape", x, n.const([1, batch * inside, size, size]))
        if up:
            w = n.transpose(w, 0, 2, 1, 3, 4)
            w = n.op("Reshape", w, n.const([batch * inside, channels, kernel, kernel]))
            y = n.op("ConvTranspose", grouped, w, group=batch, strides=[2, 2], pads=[0, 0, 1, 1])
        else:
            w = n.op("Reshape", w, n.const([batch * channels, inside, kernel, kernel]))
            y = n.op("Conv", grouped, w, group=batch, pads=[kernel // 2] * 4, kernel_shape=[kernel, kernel])
        size *= 2 if up else 1
        return n.op("Reshape", y, n.const([batch, channels, size, size]), width=channels)

    x = n.op("LeakyRelu", modulated(x, width, size), alpha=0.2, width=width)
    x = n.op("LeakyRelu", modulated(x, width // 2, size, up=True), alpha=0.2, width=width // 2)
    x = n.op("LeakyRelu", modulated(x, width // 2, 2 * size), alpha=0.2, width=width // 2)
    return modulated(x, 3, 2 * size, 1, demodulate=False)


@network(18, "dynamo")
def vae(n):
    """Encoder and decoder of images; the noise is an input; group norms of the new operator."""
    x = n.input("x", [1, 3, 16, 16])
    noise = n.input("noise", [1, 4, 4, 4], -2, 2)

    def norm(x):
        size = [4]
        return n.op("GroupNormalization", x, n.uniform(size, low=0.6, high=1.4), n.uniform(size, low=-0.2, high=0.2),
                    num_groups=4, epsilon=1e-6)

    def block(x, width):
        y = n.conv(n.silu(norm(x)), width, 3)
        y = n.conv(n.silu(norm(y)), width, 3)
        return n.add(n.conv(x, width, 1) if n.width[x] != width else x, y)

    x = block(n.conv(x, 8, 3), 8)
    x = n.conv(n.pad(x, [0, 0, 0, 0, 0, 0, 1, 1]), 8, 3, 2, 0)
    x = n.conv(n.pad(block(x, 16), [0, 0, 0, 0, 0, 0, 1, 1]), 16, 3, 2, 0)
    mean, log_variance = n.chunk(n.conv(x, 8, 3), 2, 1)
    deviation = n.op("Exp", n.mul(n.clip(log_variance, -30.0, 20.0), 0.5))
    x = n.conv(n.add(mean, n.mul(deviation, noise)), 16, 3)
    for width in (16, 8):
        x = n.conv(n.resize(block(x, width), 2), width, 3)
    return [n.conv(n.silu(norm(x)), 3, 3), mean]


@network(13, "tf")
def autoencoder_tf(n):
    """Dense layers around a code, then transposed convolutions that TensorFlow crops."""
    x = n.input("x:0", [5, 49], dims={0: "unk__12"})
    x = n.relu(n.linear(x, 32))
    code = n.linear(n.relu(n.linear(x, 16)), 3)
    x = n.relu(n.linear(code, 7 * 7 * 4))
    b = n.dim(code, 0)
    x = n.reshape(x, [b, 7, 7, 4], width=4)
    x = n.transpose(x, 0, 3, 1, 2)
    n.width[x] = 4
    x = n.deconv(x, 6, 3, 2)
    x = n.op("Slice", x, [0, 0], [14, 14], [2, 3])
    x = n.relu(x)
    x = n.deconv(x, 1, 5, 2)
    x = n.sigmoid(n.op("Slice", x, [1, 1], [29, 29], [2, 3]))
    return [n.transpose(x, 0, 2, 3, 1), code]


@network(20, "dynamo")
def nafnet(n):
    """Layer norms over channels of images, gates by halves, sub-pixel up-sampling, a grid sampled by a flow."""
    x = n.input("x", [1, 3, 18, 14])
    flow = n.input("flow", [1, 2, 18, 14], -2, 2)

    def norm(x):
        centred = n.op("Sub", x, n.reduce("Mean", x, [1]))
        variance = n.reduce("Mean", n.op("Pow", centred, 2.0), [1])
        y = n.op("Div", centred, n.op("Sqrt", n.add(variance, 1e-6)))
        width = n.width[x]
        return n.add(n.mul(n.uniform([width, 1, 1], low=0.6, high=1.4), y), n.uniform([width, 1, 1], low=-.2, high=.2))

    rows, columns = np.meshgrid(np.arange(18), np.arange(14), indexing="ij")
    base = np.stack([columns, rows]).astype(np.float32)[None]
    at = n.add(flow, n.weight(base))
    at = n.op("Sub", n.mul(at, n.weight(np.array([2 / 13, 2 / 17], np.float32).reshape(1, 2, 1, 1))), 1.0)
    x = n.op("GridSample", x, n.transpose(at, 0, 2, 3, 1), mode="linear", padding_mode="border", align_corners=1)
    x = n.conv(x, 8, 3)
    y = norm(x)
    y = n.conv(n.conv(y, 16, 1), 16, 3, group=16)
    a, b = n.chunk(y, 2, 1)
    y = n.mul(a, b)
    y = n.mul(y, n.conv(n.global_pool(y), 8, 1))
    x = n.add(x, n.mul(n.conv(y, 8, 1), n.uniform([1, 8, 1, 1], low=0.5, high=1)))
    a, b = n.chunk(n.conv(norm(x), 16, 1), 2, 1)
    x = n.add(x, n.conv(n.mul(a, b), 8, 1))
    x = n.op("SpaceToDepth", n.conv(x, 8, 3), blocksize=2, width=32)
    return n.conv(n.op("DepthToSpace", n.conv(x, 12, 1), blocksize=2, mode="CRD", width=3), 3, 3)
