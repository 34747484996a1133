"""An encoder and a decoder in the manner of T5: one program writes the decoder's view of the source into caches."""

import math

import torch
from torch import nn

FAR = -1e9


def buckets(distance, both_ways, count=32, furthest=128):
    """Return the bucket of each distance between a key and a query."""
    base = 0
    if both_ways:
        count //= 2
        base = (distance > 0).long() * count
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = count // 2
    steps = torch.log(distance.float().clamp(min=1) / exact) / math.log(furthest / exact) * (count - exact)
    return base + torch.where(distance < exact, distance, (exact + steps.long()).clamp(max=count - 1))


class Norm(nn.Module):
    """A norm by the root mean square."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    """Attention without a scale, as in T5."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def keys(self, x):
        return self.split(self.k(x)), self.split(self.v(x))

    def forward(self, x, keys, values, bias):
        mixed = torch.softmax(self.split(self.q(x)) @ keys.transpose(2, 3) + bias, -1) @ values
        return self.o(mixed.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """Self attention, attention to the source if `cross`, and a feed-forward layer."""

    def __init__(self, width, heads, cross):
        super().__init__()
        self.norm = Norm(width)
        self.own = Attention(width, heads)
        self.cross_norm, self.cross = (Norm(width), Attention(width, heads)) if cross else (None, None)
        self.last = Norm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x, bias, past=None, source=None):
        normal = self.norm(x)
        window = self.own.keys(normal)
        keys, values = window
        if past is not None:
            keys, values = (torch.cat(pair, 2) for pair in zip(past, window, strict=True))
        x = x + self.own(normal, keys, values, bias)
        if source is not None:
            x = x + self.cross(self.cross_norm(x), *source, 0.0)
        return x + self.down(torch.relu(self.up(self.last(x)))), window


class T5(nn.Module):
    """The parameters of the model; `Encode` and `Decode` are its two programs."""

    def __init__(self, tokens, width, heads, layers, source, length, n=32):
        super().__init__()
        self.heads = heads
        self.size = width // heads
        self.source = source
        self.length = length
        self.n = n
        self.width = width
        self.table = nn.Embedding(tokens, width)
        self.encoder = nn.ModuleList(Layer(width, heads, False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(width, heads, True) for _ in range(layers))
        self.encoder_bias = nn.Embedding(32, heads)
        self.decoder_bias = nn.Embedding(32, heads)
        self.encoder_norm = Norm(width)
        self.decoder_norm = Norm(width)

    def bias(self, table, queries, keys, both_ways):
        """Return the bias of relative positions, [1, heads, queries, keys]."""
        places = buckets(torch.arange(keys)[None] - torch.arange(queries)[:, None], both_ways)
        return table(places).permute(2, 0, 1)[None]

    def scores(self, x):
        return self.decoder_norm(x) * self.width**-0.5 @ self.table.weight.T

    def encode(self, source):
        x = self.table(source)
        bias = self.bias(self.encoder_bias, source.shape[1], source.shape[1], True)
        for layer in self.encoder:
            x, _ = layer(x, bias)
        x = self.encoder_norm(x)
        keys_and_values = []
        for layer in self.decoder:
            keys_and_values += layer.cross.keys(x)
        return keys_and_values

    @torch.no_grad()
    def greedy(self, source, prompt, count):
        """Return the tokens that torch alone generates."""
        source_keys = self.encode(torch.tensor([source]))
        tokens = list(prompt)
        for _ in range(count):
            n = len(tokens)
            x = self.table(torch.tensor([tokens]))
            bias = self.bias(self.decoder_bias, n, n, False) + torch.full((n, n), FAR).triu(1)
            for number, layer in enumerate(self.decoder):
                x, _ = layer(x, bias, None, source_keys[2 * number : 2 * number + 2])
            tokens.append(int(self.scores(x)[0, -1].argmax()))
        return tokens[len(prompt) :]


class Encode(nn.Module):
    """The source's keys and values for each layer of the decoder, which caches keep."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, source):
        return tuple(self.model.encode(source))

    def keeps(self):
        return {number: f"caches_{number}" for number in range(2 * len(self.model.decoder))}

    def example(self):
        return (torch.zeros(1, self.model.source, dtype=torch.int64),)


class Decode(nn.Module):
    """Scores of a window of tokens behind all that the caches hold."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        bias = model.bias(model.decoder_bias, model.length, model.length, False)[0]  # heads, queries, keys
        self.register_buffer("rows", bias.permute(1, 0, 2).detach().contiguous())

    def forward(self, tokens, positions, *caches):
        model = self.model
        n = self.model.n
        layers = len(model.decoder)
        earlier = torch.where(torch.arange(model.length) < positions[:, :1], 0.0, FAR)
        far = self.rows[positions[0]].permute(1, 0, 2)[None] + earlier
        near = model.bias(model.decoder_bias, n, n, False) + torch.full((n, n), FAR).triu(1)
        bias = torch.cat([far, near], 3)
        x = model.table(tokens)
        window = []
        source_keys = caches[: 2 * layers]
        past = caches[2 * layers :]
        for number, layer in enumerate(model.decoder):
            of_layer = slice(2 * number, 2 * number + 2)
            x, new = layer(x, bias, past[of_layer], source_keys[of_layer])
            window += new
        return model.scores(x), *window

    def keeps(self):
        layers = len(self.model.decoder)
        return {1 + number: f"caches_{2 * layers + number}" for number in range(2 * layers)}

    def example(self):
        model = self.model
        layers = len(self.model.decoder)
        source_caches = [torch.zeros(1, model.heads, model.source, model.size)] * (2 * layers)
        past = [torch.zeros(1, model.heads, model.length, model.size)] * (2 * layers)
        return torch.zeros(1, model.n, dtype=torch.int64), torch.arange(model.n)[None], *source_caches, *past
