"""Batches of eight, large images and long sequences, which the other networks do not have."""
import numpy as np

from .net import network


@network(13)
def residual_batch(n):
    """Convolutions of every kind over eight images; the head joins what pooling leaves of each."""
    x = n.input("images", [8, 3, 32, 32], dims={0: "batch"})
    x = n.conv_norm(x, 16, 3)
    y = n.conv_norm(n.conv_norm(x, 16, 3), 16, 3, act=False)
    x = n.max_pool(n.relu(n.add(x, y)))
    y = n.conv_norm(n.conv_norm(x, 48), 48, 3, group=48)
    x = n.add(x, n.conv_norm(y, 16, act=False))
    x = n.conv_norm(x, 32, 3, 2, group=4)
    x = n.op("Flatten", n.global_pool(x), axis=1)
    return n.linear(x, 10, rank=2)


@network(17)
def wide_image(n):
    """A large image: strided, plain, depthwise and pointwise convolutions, half the size up again, a mask."""
    x = n.input("image", [1, 3, 200, 312])
    x = n.conv_norm(x, 12, 3, 2)
    y = n.conv_norm(n.max_pool(x, 2, 2, 0), 16, 3)
    y = n.conv(n.conv_norm(y, 16, 5, group=16), 12)
    return n.sigmoid(n.conv(n.add(x, n.resize(y)), 1, 3))


@network(18, "dynamo")
def long_sequences(n):
    """Two sequences of 300 tokens, padded to it; the mask is picked by positions of every sequence."""
    batch, length, width, heads = 2, 300, 16, 2
    x = n.input("tokens", [batch, length, width])
    mask = n.input("mask", [batch, length], dtype=bool,
                   draw=lambda rng: np.arange(length) < np.array([[length], [length - 77]]))
    places = np.stack(np.meshgrid(np.arange(batch), np.arange(length), indexing="ij"), axis=-1)
    seen = n.op("GatherND", mask, n.weight(places.reshape(batch, 1, 1, length, 2).astype(np.int64)))
    hidden = n.op("Where", seen, n.f32(0.0), n.f32(-3.4028234663852886e+38))
    for _ in range(2):
        x = n.add(x, n.self_attention(n.layer_norm(x), batch, length, heads, hidden))
        x = n.add(x, n.feed_forward(n.layer_norm(x), 40))
    return x
