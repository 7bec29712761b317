"""Networks that write words."""
import numpy as np

from .net import network


@network(16, large=True)
def llama(n):
    """RMS norms spelled out, rotated halves, heads shared by groups of queries, a causal mask from positions."""
    batch, length, width, heads, shared = n.pick((2, 13, 32, 4, 2), (1, 64, 768, 12, 4))
    ids = n.input("input_ids", [batch, length], 0, 50, np.int64, {0: "batch_size", 1: "sequence_length"})
    mask = n.input("attention_mask", [batch, length], dtype=np.int64, dims={0: "batch_size", 1: "sequence_length"},
                   draw=lambda rng: np.ones([batch, length]))
    size = width // heads
    b, s = n.dim(ids, 0), n.dim(ids, 1)
    x = n.op("Gather", n.uniform([50, width], low=-1, high=1), ids, axis=0, width=width)
    place = n.unsqueeze(n.op("Range", n.const(0), s, n.const(1)), 0)
    causal = n.op("Trilu", n.op("Expand", n.f32(-3.4e38), n.op("Concat", n.unsqueeze(s, 0), n.unsqueeze(s, 0),
                                                              axis=0)), n.const(1), upper=1)
    padding = n.op("Cast", n.unsqueeze(n.unsqueeze(mask, 1), 1), to=1)
    hidden = n.op("Equal", n.add(padding, 0.0), 0.0)
    causal = n.op("Where", hidden, n.f32(-3.4e38), n.unsqueeze(n.unsqueeze(causal, 0), 0))
    inverse = n.weight((1e4 ** (-np.arange(0, size, 2) / size)).astype(np.float32).reshape(1, -1, 1))
    angles = n.op("MatMul", inverse, n.op("Cast", n.unsqueeze(place, 1), to=1))
    angles = n.transpose(angles, 0, 2, 1)
    angles = n.op("Concat", angles, angles, axis=-1)
    cos, sin = n.unsqueeze(n.op("Cos", angles), 1), n.unsqueeze(n.op("Sin", angles), 1)

    def norm(x):
        power = n.reduce("Mean", n.op("Pow", x, 2.0), [-1])
        y = n.mul(x, n.op("Div", 1.0, n.op("Sqrt", n.add(power, 1e-6))))
        y = n.mul(n.uniform([width], low=0.6, high=1.4), y)
        n.width[y] = width
        return y

    def rotate(x):
        low, high = n.slice(x, 0, size // 2, 3), n.slice(x, size // 2, 2**63 - 1, 3)
        turned = n.op("Concat", n.op("Neg", high), low, axis=-1)
        return n.add(n.mul(x, cos), n.mul(turned, sin))

    def repeat(x):
        shape = n.op("Concat", n.unsqueeze(b, 0), n.const([shared]), n.const([heads // shared]), n.unsqueeze(s, 0),
                     n.const([size]), axis=0)
        return n.reshape(n.op("Expand", n.unsqueeze(x, 2), shape), [b, heads, s, size], width=size)

    for _ in range(2):
        y = norm(x)
        q = rotate(n.heads(n.linear(y, width, bias=False), b, s, heads))
        k = rotate(n.heads(n.linear(y, size * shared, bias=False), b, s, shared))
        v = n.heads(n.linear(y, size * shared, bias=False), b, s, shared)
        n.width[q] = size
        y = n.transpose(n.attention(q, repeat(k), repeat(v), causal), 0, 2, 1, 3)
        x = n.add(x, n.linear(n.reshape(y, [b, s, width], width=width), width, bias=False))
        y = norm(x)
        gated = n.mul(n.silu(n.linear(y, 3 * width, bias=False)), n.linear(y, 3 * width, bias=False))
        x = n.add(x, n.linear(gated, width, bias=False))
    return n.linear(norm(x), 50, bias=False)


@network(18, "dynamo")
def llama_decode(n):
    """One step with past keys and values, in the newer exporter's words."""
    heads, size, past, width = 4, 8, 11, 32
    x = n.input("hidden", [3, 1, width], dims={0: "batch"})
    place = n.input("position_ids", [3, 1], dtype=np.int64, draw=lambda rng: [[past]] * 3)
    old_k = n.input("past_k", [3, heads, past, size], dims={0: "batch", 2: "past"})
    old_v = n.input("past_v", [3, heads, past, size], dims={0: "batch", 2: "past"})
    table = np.outer(np.arange(32), 1e4 ** (-np.arange(0, size, 2) / size))
    table = np.concatenate([table, table], 1).astype(np.float32)
    cos = n.op("Unsqueeze", n.op("Gather", n.weight(np.cos(table)), place, axis=0), n.const([1]))
    sin = n.op("Unsqueeze", n.op("Gather", n.weight(np.sin(table)), place, axis=0), n.const([1]))

    def rotate(x):
        low, high = n.op("Split", x, outs=2, axis=-1, num_outputs=2)
        return n.add(n.mul(x, cos), n.mul(n.op("Concat", n.op("Neg", high), low, axis=-1), sin))

    y = n.op("LayerNormalization", x, n.uniform([width], low=0.6, high=1.4), axis=-1, epsilon=1e-6)
    packed = n.linear(y, 3 * width, bias=False)
    packed = n.reshape(packed, [0, 0, 3, heads, size])
    q, k, v = (n.op("Squeeze", part, n.const([2])) for part in n.op("Split", packed, outs=3, axis=2, num_outputs=3))
    q, k, v = (n.transpose(each, 0, 2, 1, 3) for each in (q, k, v))
    k = n.op("Concat", old_k, rotate(k), axis=2, width=size)
    v = n.op("Concat", old_v, v, axis=2, width=size)
    q = rotate(q)
    n.width[q] = size
    y = n.reshape(n.transpose(n.attention(q, k, v), 0, 2, 1, 3), [0, 0, width], width=width)
    x = n.add(x, n.linear(y, width, bias=False))
    return [x, k, v]


@network(17)
def gpt_neox(n):
    """Parallel attention and feed-forward, a quarter of each head rotated, a mask kept as a constant."""
    batch, length, width, heads = 1, 37, 32, 2
    size, turned = 16, 4
    ids = n.input("input_ids", [batch, length], 0, 60, np.int64, {1: "sequence"})
    s = n.dim(ids, 1)
    x = n.op("Gather", n.uniform([60, width], low=-1, high=1), ids, axis=0, width=width)
    table = np.outer(np.arange(64), 1e4 ** (-np.arange(0, turned, 2) / turned)).astype(np.float32)
    table = np.concatenate([table, table], 1)[None, None]
    cos = n.op("Slice", n.weight(np.cos(table)), n.const([0]), n.unsqueeze(s, 0), n.const([2]))
    sin = n.op("Slice", n.weight(np.sin(table)), n.const([0]), n.unsqueeze(s, 0), n.const([2]))
    allowed = n.weight(np.tril(np.ones([1, 1, 64, 64], bool)))
    allowed = n.op("Slice", allowed, n.const([0]), n.unsqueeze(s, 0), n.const([2]))
    allowed = n.op("Slice", allowed, n.const([0]), n.unsqueeze(s, 0), n.const([3]))

    def rotate(x):
        front, back = n.slice(x, 0, turned, 3), n.slice(x, turned, 2**63 - 1, 3)
        low, high = n.slice(front, 0, turned // 2, 3), n.slice(front, turned // 2, 2**63 - 1, 3)
        spun = n.op("Concat", n.op("Neg", high), low, axis=-1)
        return n.op("Concat", n.add(n.mul(front, cos), n.mul(spun, sin)), back, axis=-1, width=size)

    for _ in range(2):
        packed = n.reshape(n.linear(n.layer_norm(x), 3 * width), [batch, s, heads, 3 * size])
        q, k, v = (n.transpose(p, 0, 2, 1, 3) for p in n.split(packed, [size] * 3, 3))
        scores = n.op("MatMul", rotate(q), n.transpose(rotate(k), 0, 1, 3, 2))
        scores = n.op("Where", allowed, n.mul(scores, 0.25), n.f32(-3.4e38))
        y = n.transpose(n.op("MatMul", n.softmax(scores), v), 0, 2, 1, 3)
        y = n.linear(n.reshape(y, [batch, s, width], width=width), width)
        cube = n.feed_forward(n.layer_norm(x), 64, lambda v: n.mul(n.mul(v, 0.5), n.add(1.0, n.op("Tanh", n.mul(
            n.add(v, n.mul(n.op("Pow", v, 3.0), 0.044715)), 0.7978845608)))))
        x = n.add(n.add(cube, y), x)
    return n.linear(n.layer_norm(x), 60, bias=False)


@network(18)
def mixture_of_experts(n):
    """Each word's two best experts, their weights scattered back, every expert computed."""
    batch, length, width, experts = 2, 9, 24, 5
    x = n.input("hidden_states", [batch, length, width], dims={0: "batch", 1: "sequence"})
    flat = n.op("Reshape", x, n.const([-1, width]))
    scores = n.softmax(n.linear(flat, experts, bias=False), 1)
    best, chosen = n.op("TopK", scores, n.const([2]), axis=1, outs=2)
    best = n.op("Div", best, n.reduce("Sum", best, [-1]))
    zeros = n.op("ConstantOfShape", n.op("Shape", scores))
    gates = n.op("ScatterElements", zeros, chosen, best, axis=1, width=experts)
    result = None
    for i in range(experts):
        y = n.mul(n.silu(n.linear(flat, 32, bias=False)), n.linear(flat, 32, bias=False))
        y = n.linear(y, width, bias=False)
        y = n.mul(y, n.unsqueeze(n.op("Gather", gates, n.const(i), axis=1), -1))
        result = y if result is None else n.add(result, y)
    return [n.add(n.op("Reshape", result, n.op("Shape", x)), x), chosen]


@network(13)
def seq2seq_attention(n):
    """A GRU that reads, one step of a GRU that writes, and additive attention between them."""
    source = n.input("source", [7, 2], 0, 30, np.int64)
    word = n.input("word", [2], 0, 30, np.int64)
    state = n.input("state", [1, 2, 16])
    table = n.uniform([30, 12], low=-1, high=1)

    def gru(x, hidden, initial, direction="forward"):
        d = 2 if direction == "bidirectional" else 1
        width = n.width[x]
        return n.op("GRU", x, n.uniform([d, 3 * hidden, width]), n.uniform([d, 3 * hidden, hidden]),
                    n.uniform([d, 6 * hidden], low=-0.1, high=0.1), None, initial, outs=2, hidden_size=hidden,
                    direction=direction, linear_before_reset=1, width=hidden)

    seen, _ = gru(n.op("Gather", table, source, width=12), 16, n.weight(np.zeros([2, 2, 16], np.float32)),
                  "bidirectional")
    seen = n.op("Reshape", n.transpose(seen, 0, 2, 1, 3), n.const([0, 0, -1]), width=32)
    seen = n.transpose(seen, 1, 0, 2)
    keys = n.linear(seen, 16)
    query = n.linear(n.transpose(state, 1, 0, 2), 16, bias=False)
    score = n.linear(n.op("Tanh", n.add(query, keys)), 1, bias=False)
    share = n.softmax(n.squeeze(score, 2), 1)
    context = n.op("MatMul", n.unsqueeze(share, 1), seen)
    step = n.concat([n.transpose(context, 1, 0, 2), n.op("Gather", table, n.unsqueeze(word, 0), width=12)], 2, 44)
    out, last = gru(step, 16, state)
    out = n.squeeze(out, 1)
    logits = n.linear(n.squeeze(out, 0), 30, rank=2)
    return [n.op("LogSoftmax", logits, axis=1), last, share]


@network(23, "dynamo")
def newest_attention(n):
    """The newest operators: attention, rotary embedding, RMS norm."""
    x = n.input("x", [2, 10, 32], dims={0: "batch"})
    table = np.outer(np.arange(10), 1e4 ** (-np.arange(4) / 4))
    cos, sin = (n.weight(np.broadcast_to(f(table), [2, 10, 4]).astype(np.float32)) for f in (np.cos, np.sin))

    def norm(x):
        return n.op("RMSNormalization", x, n.uniform([32], low=0.6, high=1.4), axis=-1, epsilon=1e-6)

    for _ in range(2):
        y = norm(x)
        q, k, v = n.linear(y, 32, bias=False), n.linear(y, 16, bias=False), n.linear(y, 16, bias=False)
        q = n.op("RotaryEmbedding", q, cos, sin, num_heads=4)
        k = n.op("RotaryEmbedding", k, cos, sin, num_heads=2)
        y = n.op("Attention", q, k, v, q_num_heads=4, kv_num_heads=2, is_causal=1, width=32)
        x = n.add(x, n.linear(y, 32, bias=False))
        gate, up = n.op("Split", n.linear(norm(x), 96, bias=False), outs=2, axis=-1, num_outputs=2, width=48)
        x = n.add(x, n.linear(n.mul(n.silu(gate), up), 32, bias=False))
    return norm(x)


@network(13)
def bart_decoder(n):
    """A step with keys and values of the past and of another text; both are answers too."""
    width, heads, past, words = 24, 3, 5, 7
    size = width // heads
    ids = n.input("input_ids", [2, 1], 0, 30, np.int64, {0: "batch"})
    seen = n.input("encoder_hidden_states", [2, words, width], dims={0: "batch", 1: "encoder_sequence"})
    mask = n.input("encoder_attention_mask", [2, words], dtype=np.int64, dims={0: "batch", 1: "encoder_sequence"},
                   draw=lambda rng: np.arange(words) < np.array([[7], [4]]))
    old = [n.input(f"past_{i}", [2, heads, past, size], dims={0: "batch", 2: "past"}) for i in range(2)]
    b = n.dim(ids, 0)
    table = n.uniform([30, width], low=-1, high=1)
    x = n.mul(n.op("Gather", table, ids, width=width), float(np.sqrt(width)))
    at = n.add(n.op("Range", n.dim(old[0], 2), n.add(n.dim(old[0], 2), n.const(1)), n.const(1)), n.const(2))
    x = n.layer_norm(n.add(x, n.op("Gather", n.uniform([40, width], low=-1, high=1), at)))
    q = n.heads(n.mul(n.linear(x, width), size ** -0.5), b, 1, heads)
    k, v = (n.op("Concat", o, n.heads(n.linear(x, width), b, -1, heads), axis=2, width=size) for o in old)
    y = n.op("MatMul", n.softmax(n.op("MatMul", q, n.transpose(k, 0, 1, 3, 2))), v)
    y = n.reshape(n.transpose(y, 0, 2, 1, 3), [b, 1, width], width=width)
    x = n.layer_norm(n.add(x, n.linear(y, width)))
    far = n.op("Sub", 1.0, n.op("Cast", n.unsqueeze(n.unsqueeze(mask, 1), 2), to=1))
    far = n.op("Where", n.op("Cast", far, to=9), n.f32(-3.4e38), far)
    q = n.heads(n.mul(n.linear(x, width), size ** -0.5), b, 1, heads)
    ck, cv = (n.heads(n.linear(seen, width), b, -1, heads) for _ in range(2))
    y = n.op("MatMul", n.softmax(n.add(n.op("MatMul", q, n.transpose(ck, 0, 1, 3, 2)), far)), cv)
    y = n.reshape(n.transpose(y, 0, 2, 1, 3), [b, 1, width], width=width)
    x = n.layer_norm(n.add(x, n.linear(y, width)))
    x = n.layer_norm(n.add(x, n.feed_forward(x, 48)))
    logits = n.add(n.op("MatMul", x, n.op("Transpose", table, perm=[1, 0])), n.uniform([1, 30]))
    return [logits, k, v, ck, cv]
