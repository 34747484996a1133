"""A decoder in the manner of GPT-2, whose keys and values of earlier windows come from caches."""

import torch
from torch import nn

FAR = -1e9


class Block(nn.Module):
    """Attention over cached and own keys, and a feed-forward layer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention = nn.LayerNorm(width)
        self.before_layers = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, mask, keys=None, values=None):
        batch, length, width = x.shape
        parts = self.qkv(self.before_attention(x)).split(width, 2)
        q, k, v = (part.reshape(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        all_k = k if keys is None else torch.cat([keys, k], 2)
        all_v = v if values is None else torch.cat([values, v], 2)
        scores = q @ all_k.transpose(2, 3) * (width // self.heads) ** -0.5 + mask
        mixed = (torch.softmax(scores, -1) @ all_v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(nn.functional.gelu(self.up(self.before_layers(x)), approximate="tanh")), k, v


class GPT(nn.Module):
    """Scores [batch, n, tokens] of the tokens that follow.

    With caches (`past`: keys and values of each layer, [1, heads, length, width / heads]) the n tokens are a window
    behind all that the caches hold; `positions` says where it begins.
    """

    def __init__(self, tokens, width, heads, layers, length):
        super().__init__()
        self.length = length
        self.heads = heads
        self.width = width
        self.tokens = nn.Embedding(tokens, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)

    def forward(self, tokens, positions, *past):
        n = tokens.shape[1]
        x = self.tokens(tokens) + self.places(positions)
        mask = torch.full((n, n), FAR).triu(1)
        if past:
            earlier = torch.where(torch.arange(self.length) < positions[:, :1], 0.0, FAR)
            mask = torch.cat([earlier.expand(n, self.length), mask], 1)
        window = []
        for number, block in enumerate(self.blocks):
            x, *keys_and_values = block(x, mask, *past[2 * number : 2 * number + 2])
            window += keys_and_values
        scores = self.head(self.last(x))
        return (scores, *window) if past else scores

    def window(self, n=32):
        """Return example inputs of a window of n tokens, with empty caches."""
        empty = torch.zeros(1, self.heads, self.length, self.width // self.heads)
        return torch.zeros(1, n, dtype=torch.int64), torch.arange(n)[None], *[empty] * (2 * len(self.blocks))

    def keeps(self):
        """Return the cache that each output goes to, as `be.Program` takes it."""
        return {1 + number: f"past_{number}" for number in range(2 * len(self.blocks))}

    @torch.no_grad()
    def greedy(self, prompt, count):
        """Return the tokens that torch alone generates."""
        tokens = list(prompt)
        for _ in range(count):
            scores = self(torch.tensor([tokens]), torch.arange(len(tokens))[None])
            tokens.append(int(scores[0, -1].argmax()))
        return tokens[len(prompt) :]
