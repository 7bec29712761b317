"""Networks written out, small and with random weights: name -> (module, inputs). The families are
those of the papers that the names say; some choose their way in Python, as research code does."""
import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    """x + body(x), or side(x) where shapes differ; then the activation."""

    def __init__(self, body, side=None, last=None):
        super().__init__()
        self.body, self.side, self.last = body, side, last

    def forward(self, x):
        y = self.body(x)
        if self.side is not None:
            x = self.side(x)
        elif y.shape != x.shape:
            x = F.pad(F.avg_pool2d(x, 2), (0, 0, 0, 0, 0, y.shape[1] - x.shape[1]))
        y = x + y
        return y if self.last is None else self.last(y)


def conv(i, o, k=3, s=1, g=1, act=nn.ReLU, norm=nn.BatchNorm2d, d=1):
    layers = [nn.Conv2d(i, o, k, s, (k + (k - 1) * (d - 1)) // 2, groups=g, dilation=d, bias=False),
              norm(o)]
    return nn.Sequential(*layers, *([act()] if act else []))


def head(body, channels, classes=5):
    return nn.Sequential(body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class SqueezeExcite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.down, self.up = nn.Conv2d(c, c // 2, 1), nn.Conv2d(c // 2, c, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.silu(self.down(x.mean((2, 3), keepdim=True)))))


def inverted(i, o, s=1, act=nn.ReLU6, squeeze=False, k=3):
    middle = [SqueezeExcite(2 * i)] if squeeze else []
    body = nn.Sequential(conv(i, 2 * i, 1, act=act), conv(2 * i, 2 * i, k, s, g=2 * i, act=act), *middle,
                         conv(2 * i, o, 1, act=None))
    return Residual(body) if s == 1 and i == o else body


class Dense(nn.Module):
    def __init__(self, c, growth, count):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(c + i * growth), nn.ReLU(),
                                                  nn.Conv2d(c + i * growth, growth, 3, padding=1))
                                    for i in range(count))

    def forward(self, x):
        seen = [x]
        for layer in self.layers:
            seen.append(layer(torch.cat(seen, 1)))
        return torch.cat(seen, 1)


class Branches(nn.Module):
    """Inception's block, a fire module, ASPP: branches side by side."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        size = x.shape[-2:]
        made = []
        for branch in self.branches:
            y = branch(x)
            if y.shape[-2:] != size:  # a pooled branch of ASPP
                y = F.interpolate(y, size, mode="bilinear", align_corners=False)
            made.append(y)
        return torch.cat(made, 1)


class Shuffle(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(conv(c // 2, c // 2, 1), conv(c // 2, c // 2, 3, g=c // 2, act=None),
                                  conv(c // 2, c // 2, 1))

    def forward(self, x):
        kept, y = x.chunk(2, 1)
        y = torch.cat((kept, self.body(y)), 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([conv(3, 8), conv(8, 16), conv(16, 32)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.join = nn.ModuleList([conv(32, 16), conv(16, 8)])

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, join, skip in zip(self.up, self.join, kept[-2::-1]):
            x = join(torch.cat((up(x), skip), 1))
        return x


class Mixer(nn.Module):
    def __init__(self, tokens, c):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(c), nn.LayerNorm(c)])
        self.tokens = nn.Sequential(nn.Linear(tokens, 24), nn.GELU(), nn.Linear(24, tokens))
        self.channels = nn.Sequential(nn.Linear(c, 24), nn.GELU(), nn.Linear(24, c))

    def forward(self, x):
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norms[1](x))


class RepVgg(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.wide, self.narrow, self.same = conv(c, c, 3, act=None), conv(c, c, 1, act=None), nn.BatchNorm2d(c)

    def forward(self, x):
        return F.relu(self.wide(x) + self.narrow(x) + self.same(x))


class Ghost(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.first, self.cheap = conv(i, o // 2, 1), conv(o // 2, o // 2, 3, g=o // 2)

    def forward(self, x):
        y = self.first(x)
        return torch.cat((y, self.cheap(y)), 1)


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class LastStep(nn.Module):
    """An LSTM or GRU's results at the last step."""

    def __init__(self, layer, c, scores):
        super().__init__()
        self.embed, self.layer, self.scores = nn.Embedding(30, c), layer, nn.Linear(scores, 30)

    def forward(self, ids):
        y, state = self.layer(self.embed(ids))
        state = state[0] if isinstance(state, tuple) else state
        return self.scores(y[:, -1]), state


class EarlyExit(nn.Module):
    """Goes on with the second half only where the first is not sure: a graph break."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(conv(3, 8), conv(8, 8))
        self.second = nn.Sequential(conv(8, 8), conv(8, 8))
        self.score = nn.Linear(8, 5)

    def forward(self, x):
        x = self.first(x)
        y = self.score(x.mean((2, 3)))
        if y.softmax(1).max() < 0.99:
            y = y + self.score(self.second(x).mean((2, 3)))
        return y


class Part(nn.Module):
    """Layers that are a graph of their own where a loop around them cannot be one."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


class Adaptive(nn.Module):
    """One block again and again until its result is large enough, as adaptive computation time does."""

    def __init__(self):
        super().__init__()
        self.block, self.halt = Part(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)), nn.Linear(16, 1)

    def forward(self, x):
        left, steps = 1.0, 0
        while left > 0.2 and steps < 6:
            x = x + self.block(x)
            left = left * (1 - torch.sigmoid(self.halt(x)).mean().item())
            steps += 1
        return x, steps


class Experts(nn.Module):
    """A mixture whose experts run only where some row chose them."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.experts = nn.ModuleList(Part(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 16)) for _ in range(4))

    def forward(self, x):
        share, chosen = self.gate(x).softmax(-1).max(-1)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = chosen == number
            if mine.any():
                y = y + expert(x) * (mine * share)[:, None]
        return y


class SkippedLayers(nn.Module):
    """SkipNet: each block has a gate that leaves it out, so that further graphs begin in every block."""

    def __init__(self):
        super().__init__()
        self.first = conv(3, 8)
        self.gates = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
        self.blocks = nn.ModuleList(Part(conv(8, 8), conv(8, 8, act=None)) for _ in range(3))

    def forward(self, x):
        x = self.first(x)
        for gate, block in zip(self.gates, self.blocks):
            if gate(x.mean((2, 3))).mean() > 0:
                x = F.relu(x + block(x))
            else:
                x = x * 0.5
        return x.mean((2, 3))


class Greedy(nn.Module):
    """Writes words until the one that ends, each the likeliest after those before."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix, self.score = nn.Embedding(30, 16), nn.Linear(16, 16), nn.Linear(16, 30)

    def next(self, ids):
        return self.score(torch.tanh(self.mix(self.embed(ids).mean(1)))).argmax(-1)

    def forward(self, ids):
        for _ in range(4):
            word = self.next(ids)
            if word[0].item() == 0:
                break
            ids = torch.cat((ids, word[:, None]), 1)
        return ids


class Bisection(nn.Module):
    """A routine within a network that halves an interval by what it computed, and a tree of layers."""

    def __init__(self):
        super().__init__()
        self.leaves = nn.ModuleList(Part(nn.Linear(8, 8), nn.ReLU()) for _ in range(4))
        self.turns = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))

    def forward(self, x):
        at = 0
        while at < 3:
            at = 2 * at + (1 if self.turns[at](x).sum() > 0 else 2)
        x = self.leaves[at - 3](x)
        low, high = -4.0, 4.0
        for _ in range(5):  # the threshold that half of the sum lies above
            middle = (low + high) / 2
            if F.relu(x - middle).sum() > x.abs().sum() / 2:
                low = middle
            else:
                high = middle
        return torch.where(x > low, x, x * 0.1)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn, self.points = nn.Linear(3, 9), nn.Sequential(nn.Conv1d(3, 16, 1), nn.ReLU(),
                                                                nn.Conv1d(16, 32, 1))
        self.scores = nn.Linear(32, 5)

    def forward(self, x):
        x = torch.bmm(self.turn(x.mean(2)).view(-1, 3, 3), x)
        return self.scores(self.points(x).max(2)[0])


class Recommender(nn.Module):
    """Embeddings and features that meet in all pairs."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(20, 8) for _ in range(4))
        self.dense, self.top = nn.Linear(6, 8), nn.Linear(18, 1)

    def forward(self, ids, x):
        x = F.relu(self.dense(x))
        every = torch.stack([x, *(table(ids[:, i]) for i, table in enumerate(self.tables))], 1)
        pairs = every @ every.transpose(1, 2)
        i, j = torch.tril_indices(5, 5, -1).unbind()
        return torch.sigmoid(self.top(torch.cat((x, pairs[:, i, j]), 1)))


class Attention(nn.Module):
    """Written out, with a causal mask."""

    def __init__(self, c, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (y.view(n, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(30, 16), nn.Embedding(12, 16)
        self.blocks = nn.ModuleList(nn.ModuleList([nn.LayerNorm(16), Attention(16, 2), nn.LayerNorm(16),
                                                   nn.Sequential(nn.Linear(16, 32), nn.GELU("tanh"),
                                                                 nn.Linear(32, 16))]) for _ in range(2))

    def forward(self, ids):
        x = self.embed(ids) + self.place(torch.arange(ids.shape[1]))
        for norm, attend, other, feed in self.blocks:
            x = x + attend(norm(x))
            x = x + feed(other(x))
        return x @ self.embed.weight.t()


def image(*shape):
    return torch.randn(shape or (2, 3, 16, 16))


def stack(*layers):
    return nn.Sequential(*layers)


def words(n=2, t=9):
    return torch.randint(0, 30, (n, t))


NETWORKS = {
    "mlp": lambda: (stack(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 5)), image(4, 32)),
    "lenet": lambda: (stack(nn.Conv2d(1, 6, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 8, 3), nn.Tanh(),
                            nn.Flatten(), nn.Linear(8 * 16, 5), nn.Softmax(1)), image(2, 1, 16, 16)),
    "alexnet": lambda: (head(stack(nn.Conv2d(3, 8, 5, 2, 2), nn.ReLU(), nn.LocalResponseNorm(3),
                                   nn.MaxPool2d(3, 2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()), 16), image()),
    "vgg": lambda: (head(stack(conv(3, 8), conv(8, 8), nn.MaxPool2d(2), conv(8, 16)), 16), image()),
    "resnet": lambda: (head(stack(conv(3, 8), Residual(stack(conv(8, 8), conv(8, 8, act=None)), last=nn.ReLU()),
                                  Residual(stack(conv(8, 16, s=2), conv(16, 16, act=None)),
                                           conv(8, 16, 1, 2, act=None), nn.ReLU())), 16), image()),
    "resnet_padded": lambda: (head(stack(conv(3, 8), Residual(stack(conv(8, 16, s=2), conv(16, 16, act=None)))),
                                   16), image()),
    "resnext": lambda: (head(stack(conv(3, 16), Residual(stack(conv(16, 16, 1), conv(16, 16, g=4),
                                                               conv(16, 16, 1, act=None)))), 16), image()),
    "densenet": lambda: (head(stack(conv(3, 8), Dense(8, 4, 3), nn.AvgPool2d(2), Dense(20, 4, 2)), 28), image()),
    "squeezenet": lambda: (head(stack(conv(3, 8), nn.MaxPool2d(3, 2, ceil_mode=True), conv(8, 4, 1), Branches(
        conv(4, 8, 1), conv(4, 8, 3))), 16), image()),
    "inception": lambda: (head(Branches(conv(3, 4, 1), stack(conv(3, 4, 1), conv(4, 8)),
                                        stack(nn.MaxPool2d(3, 1, 1), conv(3, 4, 1))), 16), image()),
    "mobilenet_v1": lambda: (head(stack(conv(3, 8), conv(8, 8, g=8), conv(8, 16, 1)), 16), image()),
    "mobilenet_v2": lambda: (head(stack(conv(3, 8), inverted(8, 8), inverted(8, 16, 2)), 16), image()),
    "mobilenet_v3": lambda: (head(stack(conv(3, 8, act=nn.Hardswish), inverted(
        8, 8, act=nn.Hardswish, squeeze=True, k=5)), 8), image()),
    "efficientnet": lambda: (head(stack(conv(3, 8, act=nn.SiLU), inverted(8, 8, act=nn.SiLU, squeeze=True)),
                                  8), image()),
    "shufflenet": lambda: (head(stack(conv(3, 8), Shuffle(8), Shuffle(8)), 8), image()),
    "ghostnet": lambda: (head(stack(Ghost(3, 8), Ghost(8, 16)), 16), image()),
    "repvgg": lambda: (head(stack(conv(3, 8), RepVgg(8), RepVgg(8)), 8), image()),
    "convnext": lambda: (head(stack(nn.Conv2d(3, 8, 4, 4), Residual(stack(
        nn.Conv2d(8, 8, 7, padding=3, groups=8), LayerNorm2d(8), nn.Conv2d(8, 32, 1), nn.GELU(),
        nn.Conv2d(32, 8, 1)))), 8), image(2, 3, 32, 32)),
    "convmixer": lambda: (head(stack(nn.Conv2d(3, 8, 2, 2), nn.GELU(), nn.BatchNorm2d(8), Residual(stack(
        nn.Conv2d(8, 8, 5, groups=8, padding="same"), nn.GELU(), nn.BatchNorm2d(8)))), 8), image()),
    "mlp_mixer": lambda: (stack(nn.Conv2d(3, 12, 4, 4), nn.Flatten(2), nn.Unflatten(1, (12,)), Mixer(12, 16)),
                          image()),
    "unet": lambda: (UNet(), image()),
    "deeplab": lambda: (stack(conv(3, 8), Branches(conv(8, 4, 1), conv(8, 4, d=2), conv(8, 4, d=3), stack(
        nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1))), nn.Conv2d(16, 5, 1),
        nn.Upsample(scale_factor=2, mode="bilinear")), image()),
    "super_resolution": lambda: (stack(conv(3, 8), nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2)), image()),
    "generator": lambda: (stack(nn.ConvTranspose2d(16, 8, 4), nn.BatchNorm2d(8), nn.ReLU(),
                                nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh()), image(2, 16, 1, 1)),
    "style": lambda: (stack(nn.ReflectionPad2d(2), nn.Conv2d(3, 8, 5), nn.InstanceNorm2d(8, affine=True),
                            nn.PReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(8, 3, 3)), image()),
    "group_norm": lambda: (head(stack(conv(3, 8, norm=lambda c: nn.GroupNorm(2, c), act=nn.LeakyReLU),
                                      conv(8, 8, act=nn.ELU)), 8), image()),
    "video": lambda: (stack(nn.Conv3d(3, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2),
                            nn.AdaptiveAvgPool3d(1), nn.Flatten()), image(1, 3, 4, 8, 8)),
    "wavenet": lambda: (stack(nn.Conv1d(2, 8, 2, dilation=2), nn.GLU(1), nn.Conv1d(4, 8, 2, dilation=4), nn.Mish()),
                        image(2, 2, 20)),
    "lstm": lambda: (LastStep(nn.LSTM(12, 16, 2, batch_first=True), 12, 16), words()),
    "gru": lambda: (LastStep(nn.GRU(12, 16, batch_first=True, bidirectional=True), 12, 32), words()),
    "rnn": lambda: (LastStep(nn.RNN(12, 16, batch_first=True), 12, 16), words()),
    "early_exit": lambda: (EarlyExit(), image()),
    "adaptive": lambda: (Adaptive(), image(3, 16)),
    "experts": lambda: (Experts(), image(6, 16)),
    "skipped_layers": lambda: (SkippedLayers(), image()),
    "greedy": lambda: (Greedy(), words(2, 5)),
    "bisection": lambda: (Bisection(), image(4, 8)),
    "pointnet": lambda: (PointNet(), image(2, 3, 24)),
    "recommender": lambda: (Recommender(), torch.randint(0, 20, (3, 4)), image(3, 6)),
    "decoder": lambda: (Decoder(), words()),
    "encoder": lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(
        16, 2, 32, batch_first=True, norm_first=True), 2, enable_nested_tensor=False), image(2, 7, 16)),
    "transformer": lambda: (nn.Transformer(16, 2, 1, 1, 32, batch_first=True), image(2, 5, 16), image(2, 4, 16)),
}


def make(name):
    """(module, its inputs), with the weights of the seed that the caller set. Norms of batches have
    statistics that are not those of a new one."""
    module, *inputs = NETWORKS[name]()
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.running_mean.uniform_(-0.5, 0.5)
            part.running_var.uniform_(0.5, 2)
    return module.eval(), inputs
