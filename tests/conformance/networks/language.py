"""Networks that read words."""
import numpy as np

from .net import network


@network(13, large=True)
def t5_encoder(n):
    """Relative positions put into buckets by logarithms, norms without means, gated GELU by tanh."""
    batch, length, width, heads, size = n.pick((2, 19, 32, 4, 8), (1, 64, 512, 8, 64))
    ids = n.input("input_ids", [batch, length], 0, 70, np.int64, {0: "batch", 1: "sequence"})
    mask = n.input("attention_mask", [batch, length], dtype=np.int64, dims={0: "batch", 1: "sequence"},
                   draw=lambda rng: np.arange(length) < np.array([[length], [length - 6]])[:batch])
    b, s = n.dim(ids, 0), n.dim(ids, 1)
    x = n.op("Gather", n.uniform([70, width], low=-1, high=1), ids, axis=0, width=width)
    places = n.op("Range", n.const(0), s, n.const(1))
    apart = n.op("Sub", n.unsqueeze(places, 0), n.unsqueeze(places, 1))
    after = n.mul(n.op("Cast", n.op("Greater", apart, n.const(0)), to=7), n.const(16))
    distance = n.op("Abs", apart)
    near = n.op("Less", distance, n.const(8))
    ratio = n.op("Log", n.op("Div", n.op("Cast", distance, to=1), 8.0))
    far = n.mul(n.op("Div", ratio, float(np.log(128 / 8))), 8.0)
    far = n.add(n.op("Cast", far, to=7), n.const(8))
    far = n.op("Min", far, n.op("ConstantOfShape", n.op("Shape", far), value=n.tensor(15, np.int64)))
    bucket = n.add(after, n.op("Where", near, distance, far))
    bias = n.op("Gather", n.uniform([32, heads], low=-1, high=1), bucket, axis=0)
    bias = n.unsqueeze(n.transpose(bias, 2, 0, 1), 0)
    hidden = n.op("Sub", 1.0, n.op("Cast", n.unsqueeze(n.unsqueeze(mask, 1), 2), to=1))
    bias = n.add(bias, n.mul(hidden, -3.4028234663852886e+38))

    def norm(x):
        power = n.reduce("Mean", n.op("Pow", n.op("Cast", x, to=1), 2.0), [-1])
        y = n.mul(x, n.op("Div", 1.0, n.op("Sqrt", n.add(power, 1e-6))))
        return n.mul(n.uniform([width], low=0.6, high=1.4), y)

    def tanh_gelu(v):
        cube = n.mul(n.op("Pow", v, 3.0), 0.044715)
        return n.mul(n.mul(v, 0.5), n.add(n.op("Tanh", n.mul(n.add(v, cube), 0.7978845608028654)), 1.0))

    inner = heads * size
    for _ in range(2):
        y = norm(x)
        n.width[y] = width
        q, k, v = (n.heads(n.linear(y, inner, bias=False), b, -1, heads) for _ in range(3))
        scores = n.add(n.op("MatMul", n.mul(q, size ** -0.5), n.transpose(k, 0, 1, 3, 2)), bias)
        y = n.transpose(n.op("MatMul", n.softmax(scores), v), 0, 2, 1, 3)
        x = n.add(x, n.linear(n.reshape(y, [b, -1, inner], width=inner), width, bias=False))
        y = norm(x)
        n.width[y] = width
        y = n.mul(tanh_gelu(n.linear(y, 2 * width, bias=False)), n.linear(y, 2 * width, bias=False))
        x = n.add(x, n.linear(y, width, bias=False))
    return norm(x)


@network(11, sets=3)
def bert_mask(n):
    """The arithmetic of masks: casts, 1 - mask, -10000; token types; a pooled first word. Several inputs."""
    batch, length, width = 3, 37, 32
    dims = {0: "batch_size", 1: "sequence_length"}
    ids = n.input("input_ids", [batch, length], 0, 80, np.int64, dims)

    def draw(rng):
        return np.arange(length) < rng.integers(1, length + 1, [batch, 1])

    mask = n.input("attention_mask", [batch, length], dtype=np.int64, dims=dims, draw=draw)
    types = n.input("token_type_ids", [batch, length], 0, 2, np.int64, dims)
    b, s = n.dim(ids, 0), n.dim(ids, 1)
    far = n.op("Cast", n.unsqueeze(n.unsqueeze(mask, 1), 2), to=1)
    far = n.mul(n.op("Sub", 1.0, far), -10000.0)
    places = n.op("Slice", n.weight(np.arange(64)[None]), n.const([0]), n.unsqueeze(s, 0), n.const([1]))
    x = n.add(n.op("Gather", n.uniform([80, width], low=-1, high=1), ids, width=width),
              n.op("Gather", n.uniform([2, width], low=-1, high=1), types, width=width))
    x = n.add(x, n.op("Gather", n.uniform([64, width], low=-1, high=1), places, width=width))
    x = n.layer_norm(x, 1e-12)
    for _ in range(2):
        x = n.layer_norm(n.add(n.self_attention(x, b, s, 4, far), x), 1e-12)
        x = n.layer_norm(n.add(n.feed_forward(x, 64), x), 1e-12)
    first = n.op("Gather", x, n.const(0), axis=1)
    return [x, n.op("Tanh", n.linear(first, width, rank=2))]


@network(14, large=True)
def roberta(n):
    """Positions counted over the words that are no padding; a mask by Where."""
    batch, length, width, heads = n.pick((2, 23, 24, 3), (1, 96, 768, 12))
    dims = {0: "batch", 1: "sequence"}
    ids = n.input("input_ids", [batch, length], 2, 90, np.int64, dims,
                  draw=lambda rng: np.where(np.arange(length) < np.array([[length], [length - 5]])[:batch],
                                            rng.integers(2, 90, [batch, length]), 1))
    b, s = n.dim(ids, 0), n.dim(ids, 1)
    word = n.op("Cast", n.op("Not", n.op("Equal", ids, n.const(1))), to=6)
    places = n.mul(n.op("CumSum", word, n.const(1)), word)
    places = n.add(n.op("Cast", places, to=7), n.const(1))
    x = n.add(n.op("Gather", n.uniform([90, width], low=-1, high=1), ids, width=width),
              n.op("Gather", n.uniform([514, width], low=-1, high=1), places, width=width))
    x = n.layer_norm(x)
    seen = n.op("Cast", n.unsqueeze(n.unsqueeze(word, 1), 2), to=9)
    seen = n.op("Expand", seen, n.op("Concat", n.unsqueeze(b, 0), n.const([1]), n.unsqueeze(s, 0), n.unsqueeze(s, 0),
                                     axis=0))
    far = n.op("Where", seen, n.f32(0.0), n.f32(-3.4e38))
    for _ in range(2):
        x = n.layer_norm(n.add(n.self_attention(x, b, s, heads, far), x))
        x = n.layer_norm(n.add(n.feed_forward(x, 4 * width), x))
    return n.linear(n.gelu(n.linear(x, width)), 90)


@network(12)
def distilbert(n):
    """Scores that a mask fills with -inf; the mask seen through a reshape and an expansion."""
    batch, length, width, heads = 3, 17, 24, 3
    dims = {0: "batch", 1: "sequence"}
    ids = n.input("input_ids", [batch, length], 0, 40, np.int64, dims)
    mask = n.input("attention_mask", [batch, length], dtype=np.int64, dims=dims,
                   draw=lambda rng: np.arange(length) < np.array([[17], [3], [11]]))
    b, s = n.dim(ids, 0), n.dim(ids, 1)
    x = n.op("Gather", n.uniform([40, width], low=-1, high=1), ids, width=width)
    places = n.op("Slice", n.weight(np.arange(32)[None]), n.const([0]), n.unsqueeze(s, 0), n.const([1]))
    x = n.layer_norm(n.add(x, n.op("Gather", n.uniform([32, width], low=-1, high=1), places, width=width)))
    for _ in range(2):
        q, k, v = (n.heads(n.linear(x, width), b, -1, heads) for _ in range(3))
        scores = n.op("MatMul", n.op("Div", q, float(np.sqrt(8))), n.transpose(k, 0, 1, 3, 2))
        hidden = n.op("Equal", mask, n.const(0))
        hidden = n.reshape(hidden, [b, 1, 1, s])
        hidden = n.op("Expand", hidden, n.op("Shape", scores))
        scores = n.op("Where", n.op("Cast", hidden, to=9), n.f32(-np.inf), scores)
        y = n.op("Dropout", n.softmax(scores), n.f32(0.1), width=8)
        y = n.transpose(n.op("MatMul", y, v), 0, 2, 1, 3)
        y = n.linear(n.reshape(y, [b, -1, width], width=width), width)
        x = n.layer_norm(n.add(y, x))
        x = n.layer_norm(n.add(n.feed_forward(x, 48), x))
    start, end = n.op("Split", n.linear(x, 2), outs=2, axis=-1)
    return [n.squeeze(start, -1), n.squeeze(end, -1)]


@network(10)
def albert(n):
    """One layer's weights used again and again; narrow embeddings; einsum written as reshapes."""
    batch, length, width = 2, 16, 32
    ids = n.input("input_ids", [batch, length], 0, 50, np.int64)
    x = n.op("Gather", n.uniform([50, 8], low=-1, high=1), ids, width=8)
    x = n.linear(n.layer_norm(x), width)
    weights = [n.uniform([width, width]) for _ in range(3)]
    back, scale, shift = n.uniform([4, 8, width], width), n.uniform([width], low=.6, high=1.4), n.uniform([width])
    up, down = n.uniform([width, 64]), n.uniform([64, width])
    for _ in range(3):
        q, k, v = (n.heads(n.op("MatMul", x, w, width=width), 0, 0, 4) for w in weights)
        y = n.transpose(n.attention(q, k, v), 0, 2, 1, 3)
        flat = n.op("Reshape", y, n.const([-1, width]))
        y = n.op("MatMul", flat, n.op("Reshape", back, n.const([width, width])))
        x = n.add(x, n.op("Reshape", y, n.const([batch, length, width]), width=width))
        centred = n.op("Sub", x, n.reduce("Mean", x, [2]))
        power = n.reduce("Mean", n.mul(centred, centred), [2])
        x = n.add(n.mul(n.op("Div", centred, n.op("Sqrt", n.add(power, 1e-12))), scale), shift)
        n.width[x] = width
        y = n.op("MatMul", x, up, width=64)
        tanh = n.op("Tanh", n.mul(n.add(y, n.mul(n.mul(n.mul(y, y), y), 0.044715)), 0.79788456))
        x = n.add(n.op("MatMul", n.mul(n.mul(n.add(tanh, 1.0), y), 0.5), down, width=width), x)
    return x


@network(15)
def clip_text(n):
    """A causal mask, quick GELU, the word with the greatest number pooled, both sides normalised and compared."""
    batch, length, width = 4, 11, 24
    ids = n.input("input_ids", [batch, length], 0, 60, np.int64, {0: "text_batch", 1: "sequence"})
    image = n.input("image_embeds", [3, 16], dims={0: "image_batch"})
    b, s = n.dim(ids, 0), n.dim(ids, 1)
    x = n.op("Gather", n.uniform([60, width], low=-1, high=1), ids, width=width)
    causal = n.op("Trilu", n.op("ConstantOfShape", n.op("Concat", n.unsqueeze(s, 0), n.unsqueeze(s, 0), axis=0),
                                value=n.tensor(-3.4e38)), n.const(1), upper=1)
    causal = n.unsqueeze(n.unsqueeze(causal, 0), 0)
    for _ in range(2):
        x = n.add(x, n.self_attention(n.layer_norm(x), b, s, 3, causal))
        x = n.add(x, n.feed_forward(n.layer_norm(x), 48, lambda v: n.mul(v, n.sigmoid(n.mul(v, 1.702)))))
    x = n.layer_norm(x)
    last = n.op("ArgMax", n.op("Cast", ids, to=6), axis=-1, keepdims=0)
    rows = n.op("Range", n.const(0), b, n.const(1))
    at = n.op("Concat", n.unsqueeze(rows, 1), n.unsqueeze(last, 1), axis=-1)
    text = n.linear(n.op("GatherND", x, at, width=width), 16, bias=False)
    text = n.op("Div", text, n.op("ReduceL2", text, axes=[-1], keepdims=1))
    image = n.op("Div", image, n.op("ReduceL2", image, axes=[-1], keepdims=1))
    logits = n.mul(n.op("MatMul", text, n.transpose(image, 1, 0)), n.op("Exp", n.weight(np.float32(2.6))))
    return [logits, n.op("Transpose", logits), text]


@network(18)
def alibi_xl(n):
    """Slopes of distances per head; keys moved against queries by a pad, a reshape and a slice."""
    batch, length, width, heads, size = 1, 12, 24, 3, 8
    x = n.input("x", [batch, length, width])
    places = np.arange(length)
    slopes = (2.0 ** -np.arange(1, heads + 1)).reshape(heads, 1, 1)
    alibi = n.weight((slopes * -np.abs(places[:, None] - places[None, :])).astype(np.float32))
    q, k, v = (n.heads(n.linear(x, width), batch, length, heads) for _ in range(3))
    relative = n.uniform([heads, size, 2 * length - 1], size)
    b = n.op("MatMul", n.add(q, n.uniform([heads, 1, size])), relative)
    b = n.pad(b, [0, 0, 0, 1, 0, 0, 0, 0])
    b = n.op("Reshape", b, n.const([batch, heads, 2 * length, length]))
    b = n.op("Reshape", n.slice(b, 1, 2**63 - 1, 2), n.const([batch, heads, length, 2 * length - 1]))
    b = n.slice(b, 0, length, 3)
    scores = n.add(n.op("MatMul", q, n.transpose(k, 0, 1, 3, 2)), b)
    scores = n.add(n.mul(scores, size ** -0.5), alibi)
    y = n.transpose(n.op("MatMul", n.softmax(scores), v), 0, 2, 1, 3)
    y = n.linear(n.op("Reshape", y, n.const([batch, length, width]), width=width), width)
    x = n.layer_norm(n.add(x, y))
    return n.add(x, n.feed_forward(x, 48, lambda v: n.op("Pow", n.relu(v), 2.0)))


@network(17)
def einsum_attention(n):
    """Products in letters, as TensorFlow and JAX write them."""
    x = n.input("x", [2, 13, 24])
    memory = n.input("memory", [2, 9, 24])

    def project(x):
        y = n.op("Einsum", x, n.uniform([24, 4, 6], 24), equation="abc,cde->abde")
        return n.add(y, n.uniform([4, 6], low=-0.1, high=0.1))

    q, k, v = project(x), project(memory), project(memory)
    scores = n.op("Einsum", k, n.mul(q, 6 ** -0.5), equation="aecd,abcd->acbe")
    y = n.op("Einsum", n.softmax(scores), v, equation="acbe,aecd->abcd")
    y = n.op("Einsum", y, n.uniform([4, 6, 24], 24), equation="abcd,cde->abe", width=24)
    y = n.layer_norm(n.add(x, n.add(y, n.uniform([24], low=-0.1, high=0.1))), 1e-6)
    bilinear = n.op("Einsum", y, n.uniform([5, 24, 24]), memory, equation="bxi,oij,byj->boxy")
    return [y, bilinear]


@network(16)
def deberta(n):
    """Scores by content, by place to content and by content to place, gathered along clipped distances."""
    length, width, heads, span = 11, 24, 3, 6
    size = width // heads
    x = n.input("hidden", [1, length, width])
    mask = n.input("mask", [1, length], dtype=np.int64, draw=lambda rng: np.arange(length)[None] < 8)
    places = np.arange(length)
    apart = np.clip(places[:, None] - places[None, :] + span, 0, 2 * span - 1).astype(np.int64)
    table = n.uniform([2 * span, width], low=-1, high=1)
    n.width[table] = width
    table = n.layer_norm(table)

    def split(x, rows):
        return n.transpose(n.op("Reshape", x, n.const([rows, heads, size]), width=size), 1, 0, 2)

    flat = n.op("Reshape", x, n.const([length, width]), width=width)
    q, k, v = (split(n.linear(flat, width, rank=2), length) for _ in range(3))
    place_k, place_q = (split(n.linear(table, width, rank=2), 2 * span) for _ in range(2))
    scale = float(np.sqrt(3 * size))
    scores = n.op("MatMul", q, n.op("Div", n.transpose(k, 0, 2, 1), scale))
    index = n.op("Expand", n.weight(apart[None]), n.const([heads, length, length]))
    c2p = n.op("GatherElements", n.op("MatMul", q, n.transpose(place_k, 0, 2, 1)), index, axis=2)
    p2c = n.op("GatherElements", n.op("MatMul", k, n.transpose(place_q, 0, 2, 1)), index, axis=2)
    scores = n.add(scores, n.add(n.op("Div", c2p, scale), n.op("Div", n.transpose(p2c, 0, 2, 1), scale)))
    both = n.mul(n.unsqueeze(mask, 1), n.unsqueeze(mask, 2))
    hidden = n.op("Not", n.op("Cast", both, to=9))
    share = n.softmax(n.op("Where", hidden, n.f32(-3.4e38), scores))
    share = n.op("Where", hidden, n.f32(0.0), share)
    y = n.transpose(n.op("MatMul", share, v), 1, 0, 2)
    y = n.linear(n.op("Reshape", y, n.const([1, length, width]), width=width), width)
    x = n.layer_norm(n.add(y, x))
    return n.layer_norm(n.add(n.feed_forward(x, 48), x))


@network(17)
def fourier_mixing(n):
    """Words mixed by a transform of Fourier over features and over places, its real part kept."""
    x = n.input("x", [2, 12, 16])
    for _ in range(2):
        y = n.op("DFT", n.unsqueeze(x, 3), axis=2)
        y = n.op("DFT", y, axis=1)
        real = n.op("Gather", y, n.const(0), axis=3, width=16)
        x = n.layer_norm(n.add(x, real))
        x = n.layer_norm(n.add(x, n.feed_forward(x, 32)))
    return x


@network(14)
def linear_attention(n):
    """Keys and values summed before queries meet them; a causal form by sums along the sequence."""
    x = n.input("x", [2, 10, 16], dims={0: "batch"})

    def feature(x):
        return n.add(n.op("Elu", x), 1.0)

    q, k, v = (n.linear(x, 16) for _ in range(3))
    q, k = feature(q), feature(k)
    memory = n.op("MatMul", n.transpose(k, 0, 2, 1), v)
    total = n.op("ReduceSum", k, n.const([1]), keepdims=1)
    scale = n.op("Div", 1.0, n.add(n.op("ReduceSum", n.mul(q, total), n.const([-1]), keepdims=1), 1e-6))
    everywhere = n.mul(n.op("MatMul", q, memory), scale)
    outer = n.mul(n.unsqueeze(k, 3), n.unsqueeze(v, 2))
    so_far = n.op("CumSum", outer, n.const(1))
    causal = n.squeeze(n.op("MatMul", n.unsqueeze(q, 2), so_far), 2)
    norm = n.op("ReduceSum", n.mul(q, n.op("CumSum", k, n.const(1))), n.const([-1]), keepdims=1)
    both = n.add(everywhere, n.op("Div", causal, n.add(norm, 1e-6)))
    n.width[both] = 16
    return n.layer_norm(n.add(x, both))


@network(17)
def long_document(n):
    """A prime number of words, more than a cache holds scores of, some of them padding; then a few words ask all."""
    length, asking, width, heads = 521, 70, 24, 3
    x = n.input("document", [1, length, width])
    mask = n.input("attention_mask", [1, length], dtype=np.int64, draw=lambda rng: np.arange(length)[None] < 488)
    y = n.input("questions", [1, asking, width])
    far = n.op("Cast", n.unsqueeze(n.unsqueeze(mask, 1), 2), to=1)
    far = n.mul(n.op("Sub", 1.0, far), -10000.0)
    x = n.layer_norm(n.add(n.self_attention(x, 1, length, heads, far), x))
    q = n.heads(n.linear(y, width), 1, asking, heads)
    k, v = (n.heads(n.linear(x, width), 1, length, heads) for _ in range(2))
    y = n.reshape(n.transpose(n.attention(q, k, v, far), 0, 2, 1, 3), [1, asking, width], width=width)
    return [x, y]
