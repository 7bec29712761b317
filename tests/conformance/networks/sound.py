"""Networks of sounds and of other sequences."""
import numpy as np

from .net import network


def recurrent(n, kind, x, hidden, direction="forward", lengths=None, initial=True, batch=2, **more):
    """Outputs [time, batch, directions * hidden] in TorchScript's way, and the last states."""
    d, gates, width = (2 if direction == "bidirectional" else 1), {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], n.width[x]
    inputs = [x, n.uniform([d, gates * hidden, width]), n.uniform([d, gates * hidden, hidden]),
              n.uniform([d, 2 * gates * hidden], low=-0.1, high=0.1), lengths]
    if initial:
        zero = n.op("ConstantOfShape", n.const([d, batch, hidden]))
        inputs += [zero] * (2 if kind == "LSTM" else 1)
    outs = n.op(kind, *inputs, outs=3 if kind == "LSTM" else 2, hidden_size=hidden, direction=direction, width=hidden,
                **more)
    if d == 1:
        return n.squeeze(outs[0], 1), outs[1:]
    y = n.op("Reshape", n.transpose(outs[0], 0, 2, 1, 3), n.const([0, 0, -1]), width=2 * hidden)
    return y, outs[1:]


@network(17, large=True)
def whisper_encoder(n):
    """1-D convolutions over a spectrogram, positions added, keys without a bias."""
    bins, frames, width, heads = n.pick((8, 74, 24, 3), (80, 1500, 384, 6))
    x = n.input("input_features", [n.pick(3, 1), bins, frames], dims={0: "batch_size"}, width=bins)
    x = n.gelu(n.conv(x, width, 3, rank=1))
    x = n.gelu(n.conv(x, width, 3, 2, rank=1))
    x = n.transpose(x, 0, 2, 1)
    n.width[x] = width
    b, s = n.dim(x, 0), frames // 2
    x = n.add(x, n.uniform([s, width], low=-0.5, high=0.5))
    size = width // heads
    for _ in range(n.pick(1, 2)):
        y = n.layer_norm(x)
        q = n.heads(n.mul(n.linear(y, width), size ** -0.5), b, s, heads)
        k = n.heads(n.linear(y, width, bias=False), b, -1, heads)
        v = n.heads(n.linear(y, width), b, -1, heads)
        q, k, v = (n.reshape(each, [n.mul(b, heads), -1, size], width=size) for each in (q, k, v))
        share = n.softmax(n.op("MatMul", q, n.transpose(k, 0, 2, 1)))
        y = n.reshape(n.op("MatMul", share, v), [b, heads, s, size])
        y = n.reshape(n.transpose(y, 0, 2, 1, 3), [b, s, width], width=width)
        x = n.add(x, n.linear(y, width))
        x = n.add(x, n.feed_forward(n.layer_norm(x), 4 * width))
    return n.layer_norm(x)


@network(14)
def wav2vec2(n):
    """Raw sound by strided 1-D convolutions with a group norm, grouped positions with an even kernel."""
    x = n.input("input_values", [2, 811], dims={0: "batch"})
    x = n.unsqueeze(x, 1)
    n.width[x] = 1
    x = n.gelu(n.group_norm(n.conv(x, 16, 10, 5, 0, bias=False, rank=1), 16, 1))
    x = n.gelu(n.conv(x, 16, 3, 2, 0, bias=False, rank=1))
    x = n.gelu(n.conv(x, 16, 2, 2, 0, bias=False, rank=1))
    x = n.transpose(x, 0, 2, 1)
    n.width[x] = 16
    x = n.linear(n.layer_norm(x), 24)
    y = n.transpose(x, 0, 2, 1)
    n.width[y] = 24
    y = n.conv(y, 24, 16, 1, [8, 8], group=4, rank=1)
    y = n.gelu(n.slice(y, 0, -1, 2))
    x = n.add(x, n.transpose(y, 0, 2, 1))
    n.width[x] = 24
    x = n.layer_norm(x)
    b, s = n.dim(x, 0), n.dim(x, 1)
    x = n.layer_norm(n.add(x, n.self_attention(x, b, s, 3)))
    x = n.layer_norm(n.add(x, n.feed_forward(x, 48)))
    return n.linear(x, 13)


@network(16, large=True)
def conformer(n):
    """Half feed-forwards, gated units, depthwise 1-D convolutions, Swish, attention."""
    batch, frames, width, heads, kernel = n.pick((2, 37, 24, 3, 15), (1, 256, 256, 4, 31))
    x = n.input("features", [batch, frames, width], dims={0: "batch", 1: "frames"})
    b, s = n.dim(x, 0), n.dim(x, 1)
    for _ in range(n.pick(1, 2)):
        x = n.add(x, n.mul(n.feed_forward(n.layer_norm(x), 4 * width, n.silu), 0.5))
        x = n.add(x, n.self_attention(n.layer_norm(x), b, s, heads))
        y = n.transpose(n.layer_norm(x), 0, 2, 1)
        n.width[y] = width
        value, gate = n.split(n.conv(y, 2 * width, 1, rank=1), [width, width])
        y = n.mul(value, n.sigmoid(gate))
        y = n.silu(n.batch_norm(n.conv(y, width, kernel, group=width, rank=1)))
        y = n.transpose(n.conv(y, width, 1, rank=1), 0, 2, 1)
        n.width[y] = width
        x = n.add(x, y)
        x = n.add(x, n.mul(n.feed_forward(n.layer_norm(x), 4 * width, n.silu), 0.5))
        x = n.layer_norm(x)
    return x


@network(10, large=True)
def wavenet(n):
    """Dilated causal convolutions, tanh times sigmoid, skips summed."""
    frames, width = n.pick(61, 4096), n.pick(12, 64)
    x = n.input("wave", [1, 1, frames], width=1)
    x = n.conv(x, width, 1, rank=1)
    skips = None
    for i in range(n.pick(4, 8)):
        d = 2 ** i
        y = n.conv(n.op("Pad", x, pads=[0, 0, d, 0, 0, 0], mode="constant"), 2 * width, 2, 1, 0, dilation=d, rank=1)
        a, b = n.split(y, [width, width])
        y = n.mul(n.op("Tanh", a), n.sigmoid(b))
        skip = n.conv(y, width, 1, rank=1)
        skips = skip if skips is None else n.add(skips, skip)
        x = n.add(n.conv(y, width, 1, rank=1), x)
    y = n.conv(n.relu(n.conv(n.relu(skips), width, 1, rank=1)), n.pick(16, 256), 1, rank=1)
    return n.op("LogSoftmax", n.transpose(y, 0, 2, 1), axis=2)


@network(12, large=True)
def tcn(n):
    """Temporal blocks whose pads are cut away again; the last step answers."""
    frames, width = n.pick(50, 1024), n.pick(10, 64)
    x = n.input("x", [n.pick(3, 1), 5, frames], dims={0: "batch"}, width=5)
    for i in range(n.pick(3, 6)):
        d, y = 2 ** i, x
        for _ in range(2):
            y = n.conv(y, width, 3, 1, [2 * d, 2 * d], dilation=d, rank=1)
            y = n.relu(n.slice(y, 0, -2 * d, 2))
        x = n.conv(x, width, 1, rank=1) if n.width[x] != width else x
        x = n.relu(n.add(y, x))
    last = n.op("Gather", x, n.const(-1), axis=2)
    return n.linear(last, 4, rank=2)


@network(11)
def tagger_lstm(n):
    """Two bidirectional layers over rows of different lengths, and a score for each tag."""
    ids = n.input("ids", [9, 3], 0, 40, np.int64)
    lengths = n.input("lengths", [3], dtype=np.int32, draw=lambda rng: [9, 4, 7])
    x = n.op("Gather", n.uniform([40, 10], low=-1, high=1), ids, width=10)
    for _ in range(2):
        x, last = recurrent(n, "LSTM", x, 12, "bidirectional", lengths, batch=3)
    tags = n.linear(x, 6)
    forward = n.op("Gather", last[0], n.const(0), axis=0)
    return [n.op("LogSoftmax", tags, axis=2), forward]


@network(14, large=True)
def tagger_gru(n):
    """Bidirectional GRU layers, batch first outside, without lengths."""
    batch, frames, hidden = n.pick((2, 11, 9), (1, 128, 256))
    x = n.input("x", [batch, frames, hidden], dims={})
    x = n.transpose(x, 1, 0, 2)
    n.width[x] = hidden
    for _ in range(2):
        x, last = recurrent(n, "GRU", x, hidden, "bidirectional", batch=batch, linear_before_reset=1)
    x = n.linear(n.transpose(x, 1, 0, 2), 7)
    return [n.softmax(x), last[0]]


@network(9)
def crnn(n):
    """Text in images: pools of uneven strides, columns as steps of LSTMs."""
    x = n.input("input", [2, 1, 32, 60])
    x = n.max_pool(n.relu(n.conv(x, 8, 3)), 2, 2, 0)
    x = n.max_pool(n.relu(n.conv(x, 12, 3)), 2, 2, 0)
    x = n.relu(n.batch_norm(n.conv(x, 16, 3)))
    x = n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 1], pads=[0, 1, 0, 1])
    x = n.op("MaxPool", n.relu(n.conv(x, 16, 3)), kernel_shape=[2, 2], strides=[2, 1], pads=[0, 1, 0, 1])
    x = n.relu(n.conv(x, 16, 2, 1, 0))
    x = n.transpose(n.squeeze(x, 2), 2, 0, 1)
    n.width[x] = 16
    for _ in range(2):
        x, _ = recurrent(n, "LSTM", x, 10, "bidirectional")
        t = n.dim(x, 0)
        rows = n.linear(n.op("Reshape", x, n.const([-1, 20])), 14, rank=2)
        x = n.reshape(rows, [t, 2, 14], width=14)
    return n.op("LogSoftmax", x, axis=2)


@network(13)
def deepspeech(n):
    """Convolutions over time and frequency with hard tanh, then recurrent layers whose directions are added."""
    x = n.input("spectrogram", [1, 1, 21, 47])
    x = n.clip(n.batch_norm(n.op("Conv", x, n.uniform([6, 1, 11, 5], 55), strides=[2, 2], pads=[5, 2, 5, 2], width=6)),
               0.0, 20.0)
    x = n.clip(n.batch_norm(n.op("Conv", x, n.uniform([6, 6, 7, 5], 210), strides=[2, 1], pads=[3, 2, 3, 2], width=6)),
               0.0, 20.0)
    x = n.op("Reshape", x, n.const([1, 36, 24]), width=36)
    x = n.transpose(x, 2, 0, 1)
    n.width[x] = 36
    for _ in range(2):
        width = n.width[x]
        outs = n.op("RNN", x, n.uniform([2, 16, width]), n.uniform([2, 16, 16]), n.uniform([2, 32], low=-.1, high=.1),
                    outs=2, hidden_size=16, direction="bidirectional", activations=["Relu", "Relu"])
        x = n.reduce("Sum", outs[0], [1], 0)
        n.width[x] = 16
    return n.softmax(n.linear(x, 9))


@network(17)
def spectrogram_front(n):
    """A spectrogram by a convolution with cosines, power, mel bands, logarithm, mean and deviation over time."""
    size, hop = 64, 16
    wave = n.input("wave", [2, 400], -0.5, 0.5, dims={0: "batch"})
    x = n.unsqueeze(wave, 1)
    x = n.pad(x, [0, 0, 32, 0, 0, 32], "reflect")
    t, f = np.arange(size), np.arange(33)
    window = np.hanning(size)
    basis = np.concatenate([np.cos(2 * np.pi * np.outer(f, t) / size), np.sin(2 * np.pi * np.outer(f, t) / size)])
    x = n.op("Conv", x, n.weight((basis * window)[:, None].astype(np.float32)), strides=[hop], width=66)
    real, imaginary = n.split(x, [33, 33])
    power = n.add(n.op("Pow", real, 2.0), n.op("Pow", imaginary, 2.0))
    mel = n.op("MatMul", n.weight(np.abs(n.rng.normal(size=[10, 33])).astype(np.float32)), power, width=26)
    x = n.op("Div", n.op("Log", n.op("Max", mel, 1e-10)), 2.302585)
    x = n.op("Max", x, n.op("Sub", n.reduce("Max", x, [1, 2]), 8.0))
    centred = n.op("Sub", x, n.reduce("Mean", x, [2]))
    spread = n.op("Sqrt", n.reduce("Mean", n.mul(centred, centred), [2]))
    return n.op("Div", centred, n.add(spread, 1e-5))


@network(15, "tf")
def keyword_lstm_tf(n):
    """A Keras classifier: an LSTM whose gates were reordered, its last state, dense layers."""
    x = n.input("lstm_input:0", [3, 12, 8], dims={0: "unk__3"})
    n.width[x] = 8
    x = n.transpose(x, 1, 0, 2)
    n.width[x] = 8
    outs = n.op("LSTM", x, n.uniform([1, 40, 8]), n.uniform([1, 40, 10]), n.uniform([1, 80], low=-0.1, high=0.1),
                outs=3, hidden_size=10)
    x = n.squeeze(outs[1], 0)
    n.width[x] = 10
    return n.softmax(n.linear(n.relu(n.linear(x, 12)), 5))


@network(13, large=True)
def vocoder(n):
    """Up by long 1-D transposed convolutions, sums of dilated branches."""
    frames, width, bins = n.pick((9, 16, 10), (32, 256, 80))
    x = n.input("mel", [1, bins, frames], dims={2: "frames"}, width=bins)
    x = n.conv(x, width, 7, rank=1)
    for kernel, stride in ((16, 8), (4, 2)):
        own = n.width[x]
        x = n.op("LeakyRelu", x, alpha=0.1)
        x = n.op("ConvTranspose", x, n.uniform([own, own // 2, kernel], own * kernel // stride),
                 n.uniform([own // 2], low=-0.1, high=0.1), kernel_shape=[kernel], strides=[stride],
                 pads=[(kernel - stride) // 2] * 2, dilations=[1], group=1, width=own // 2)
        branches = None
        for k in (3, 7):
            y = x
            for d in (1, 3):
                y = n.add(n.conv(n.op("LeakyRelu", y, alpha=0.1), own // 2, k, dilation=d, rank=1), y)
            branches = y if branches is None else n.add(branches, y)
        x = n.op("Div", branches, 2.0)
    return n.op("Tanh", n.conv(n.op("LeakyRelu", x, alpha=0.01), 1, 7, rank=1))


@network(16)
def stream_with_state(n):
    """A detector of voices that hands its states on."""
    wave = n.input("input", [1, 96])
    h, c = n.input("h", [2, 1, 8]), n.input("c", [2, 1, 8])
    x = n.pad(n.unsqueeze(wave, 1), [0, 0, 8, 0, 0, 8], "reflect")
    n.width[x] = 1
    x = n.relu(n.conv(x, 12, 16, 8, 0, rank=1))
    x = n.transpose(n.relu(n.conv(x, 8, 3, 2, rank=1)), 2, 0, 1)
    n.width[x] = 8
    last_h, last_c = [], []
    for i in range(2):
        first = n.slice(h, i, i + 1, 0)
        cell = n.slice(c, i, i + 1, 0)
        outs = n.op("LSTM", x, n.uniform([1, 32, 8]), n.uniform([1, 32, 8]), n.uniform([1, 64], low=-.1, high=.1),
                    None, first, cell, outs=3, hidden_size=8, width=8)
        x = n.squeeze(outs[0], 1)
        last_h.append(outs[1])
        last_c.append(outs[2])
    y = n.sigmoid(n.reduce("Mean", n.linear(n.relu(x), 1), [0], 0))
    return [y, n.op("Concat", *last_h, axis=0), n.op("Concat", *last_c, axis=0)]
