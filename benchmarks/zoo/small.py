"""Small torch models of many kinds, seeded, with sizes that no tile divides: what `acceptance.py` compiles.

`MODELS` names functions that give a module in eval mode and its example inputs.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as fn

Source = tuple[nn.Module, tuple[Tensor, ...]]
MODELS: dict[str, Callable[[], Source]] = {}


def settle(module: nn.Module) -> nn.Module:
    """Put a module into eval mode, with statistics of batch norms that are not 0 and 1."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d | nn.BatchNorm1d):
            mean = part.running_mean
            variance = part.running_var
            assert mean is not None
            assert variance is not None
            nn.init.uniform_(mean, -0.5, 0.5)
            nn.init.uniform_(variance, 0.5, 1.5)
    return module.eval()


def model(build: Callable[[], Source]) -> Callable[[], Source]:
    """Enter a function into the table; what it builds is seeded by its name."""

    def seeded_source() -> Source:
        torch.manual_seed(sum(map(ord, build.__name__)))
        module, inputs = build()
        return settle(module), inputs

    MODELS[build.__name__] = seeded_source
    return seeded_source


class First(nn.Module):
    """A model with several outputs, in order or by name, of which the first is returned."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """Return the model's only or first output."""
        outputs = self.inner(x)
        if isinstance(outputs, dict):
            return next(iter(outputs.values()))
        if isinstance(outputs, list | tuple):
            return outputs[0]
        return outputs


class Function(nn.Module):
    """A function of named layers and of the inputs."""

    def __init__(self, function: Callable[..., object], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *inputs: Tensor) -> object:
        return self.function(self, *inputs)


# ------------------------------------------------------------------------------------------------------ convolutions
@model
def odd_convolutions() -> Source:
    return nn.Sequential(
        nn.Conv2d(3, 10, 5, 2, 1),
        nn.BatchNorm2d(10),
        nn.ReLU(),
        nn.Conv2d(10, 21, (3, 1), padding=(1, 0)),
        nn.GELU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(21, 40, 3, dilation=2, padding=1),
        nn.ReLU6(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(40, 7),
    ), (torch.randn(1, 3, 37, 41),)


@model
def grouped_convolutions() -> Source:
    return nn.Sequential(
        nn.Conv2d(6, 24, 3, padding=1, groups=3),
        nn.SiLU(),
        nn.Conv2d(24, 24, 3, 2, 1, groups=24),
        nn.Hardswish(),
        nn.Conv2d(24, 36, 1, groups=4),
        nn.ELU(),
        nn.AvgPool2d(2),
        nn.Conv2d(36, 5, 1),
    ), (torch.randn(1, 6, 30, 26),)


@model
def decoder_of_images() -> Source:
    return nn.Sequential(
        nn.Linear(20, 8 * 5 * 5),
        nn.ReLU(),
        nn.Unflatten(1, (8, 5, 5)),
        nn.ConvTranspose2d(8, 12, 4, 2, 1),
        nn.BatchNorm2d(12),
        nn.LeakyReLU(0.1),
        nn.ConvTranspose2d(12, 3, 3, 2, 1, output_padding=1),
        nn.Tanh(),
    ), (torch.randn(2, 20),)


class Halves(nn.Module):
    """A U-Net of two sizes: convolutions down and up, with skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 12, 3, padding=1)
        self.second = nn.Conv2d(12, 20, 3, padding=1)
        self.third = nn.Conv2d(20, 30, 3, padding=1)
        self.up = nn.ConvTranspose2d(30, 20, 2, 2)
        self.fourth = nn.Conv2d(40, 12, 3, padding=1)
        self.last = nn.Conv2d(24, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        full = fn.relu(self.first(x))
        half = fn.relu(self.second(fn.max_pool2d(full, 2)))
        upsampled = self.up(fn.relu(self.third(fn.max_pool2d(half, 2))))
        joined = fn.relu(self.fourth(torch.cat([half, upsampled], 1)))
        return self.last(torch.cat([full, fn.interpolate(joined, scale_factor=2, mode="nearest")], 1))


@model
def small_unet() -> Source:
    return Halves(), (torch.randn(1, 2, 24, 40),)


@model
def dense_fan_out() -> Source:
    layers = {f"c{n}": nn.Conv2d(8 + 6 * n, 6, 3, padding=1) for n in range(5)}

    def forward(self: Any, x: Tensor) -> Tensor:
        for n in range(5):
            x = torch.cat([x, fn.relu(getattr(self, f"c{n}")(x))], 1)
        return x.mean((2, 3))

    return Function(forward, **layers), (torch.randn(1, 8, 14, 14),)


@model
def inception() -> Source:
    layers = {
        "a": nn.Conv2d(16, 12, 1),
        "b": nn.Conv2d(16, 20, 3, padding=1),
        "c": nn.Conv2d(16, 5, 5, padding=2),
        "d": nn.Conv2d(16, 9, 1),
        "head": nn.Linear(46, 11),
    }

    def forward(self: Any, x: Tensor) -> Tensor:
        parts = [self.a(x), self.b(x), self.c(x), self.d(fn.max_pool2d(x, 3, 1, 1))]
        return self.head(fn.relu(torch.cat(parts, 1)).mean((2, 3)))

    return Function(forward, **layers), (torch.randn(1, 16, 17, 19),)


@model
def shuffled_channels() -> Source:
    layers = {"a": nn.Conv2d(20, 20, 1), "b": nn.Conv2d(20, 20, 3, padding=1, groups=20), "c": nn.Conv2d(40, 8, 1)}

    def forward(self: Any, x: Tensor) -> Tensor:
        left, right = x.chunk(2, 1)
        right = self.b(fn.relu(self.a(right)))
        shuffled = torch.cat([left, right], 1).unflatten(1, (2, 20)).transpose(1, 2).flatten(1, 2)
        return self.c(shuffled)

    return Function(forward, **layers), (torch.randn(1, 40, 15, 15),)


@model
def squeeze_and_excite() -> Source:
    layers = {"c": nn.Conv2d(5, 33, 3, 2, 1), "down": nn.Conv2d(33, 9, 1), "up": nn.Conv2d(9, 33, 1)}

    def forward(self: Any, x: Tensor) -> Tensor:
        x = fn.silu(self.c(x))
        return x * torch.sigmoid(self.up(fn.relu(self.down(x.mean((2, 3), keepdim=True)))))

    return Function(forward, **layers), (torch.randn(2, 5, 28, 28),)


@model
def sound() -> Source:
    return nn.Sequential(
        nn.Conv1d(13, 40, 5, 2, 2),
        nn.ReLU(),
        nn.Conv1d(40, 40, 3, padding=2, dilation=2),
        nn.BatchNorm1d(40),
        nn.Tanh(),
        nn.AvgPool1d(4),
        nn.Flatten(),
        nn.Linear(40 * 12, 30),
    ), (torch.randn(1, 13, 99),)


@model
def patches() -> Source:
    return nn.Sequential(nn.Conv2d(3, 70, 7, 7), nn.Flatten(2), nn.LayerNorm(16), nn.Linear(16, 3)), (
        torch.randn(1, 3, 28, 28),
    )


@model
def group_norms() -> Source:
    return nn.Sequential(
        nn.Conv2d(4, 24, 3),
        nn.GroupNorm(4, 24),
        nn.SiLU(),
        nn.Conv2d(24, 16, 3, 2),
        nn.InstanceNorm2d(16, affine=True),
        nn.Mish(),
        nn.Upsample(scale_factor=2, mode="bilinear"),
    ), (torch.randn(1, 4, 23, 23),)


# -------------------------------------------------------------------------------------------------------------- dense
@model
def wide_mlp() -> Source:
    return nn.Sequential(
        nn.Linear(301, 700), nn.GELU("tanh"), nn.LayerNorm(700), nn.Linear(700, 513), nn.Softplus(), nn.Linear(513, 3)
    ), (torch.randn(65, 301),)


@model
def many_outputs() -> Source:
    layers = {"body": nn.Linear(50, 96), **{f"h{n}": nn.Linear(96, 5 + 30 * n) for n in range(5)}}

    def forward(self: Any, x: Tensor) -> tuple[Tensor, ...]:
        x = torch.tanh(self.body(x))
        return (x, *(getattr(self, f"h{n}")(x) for n in range(5)), x.softmax(-1))

    return Function(forward, **layers), (torch.randn(40, 50),)


@model
def splits_and_joins() -> Source:
    layers = {"a": nn.Linear(90, 120), "b": nn.Linear(40, 33), "c": nn.Linear(113, 10)}

    def forward(self: Any, x: Tensor, y: Tensor) -> Tensor:
        first, second, third = self.a(torch.cat([x, y], -1)).split([40, 50, 30], -1)
        return self.c(torch.cat([self.b(first), second * second.sigmoid(), third.abs()], -1)).flip(0)

    return Function(forward, **layers), (torch.randn(35, 60), torch.randn(35, 30))


@model
def recommender() -> Source:
    layers = {
        "a": nn.Embedding(100, 16),
        "b": nn.Embedding(37, 16),
        "bottom": nn.Linear(13, 16),
        "top": nn.Linear(19, 1),
    }

    def forward(self: Any, a: Tensor, b: Tensor, x: Tensor) -> Tensor:
        parts = torch.stack([self.a(a), self.b(b), fn.relu(self.bottom(x))], 1)
        products = parts @ parts.transpose(1, 2)
        crossed = torch.stack([products[:, 0, 1], products[:, 0, 2], products[:, 1, 2]], 1)
        return torch.sigmoid(self.top(torch.cat([parts[:, 2], crossed], 1)))

    return Function(forward, **layers), (torch.randint(100, (20,)), torch.randint(37, (20,)), torch.randn(20, 13))


@model
def mixed_experts() -> Source:
    layers = {"gate": nn.Linear(48, 4), **{f"e{n}": nn.Linear(48, 48) for n in range(4)}}

    def forward(self: Any, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(-1)
        return x + sum(weights[:, n : n + 1] * fn.gelu(getattr(self, f"e{n}")(x)) for n in range(4))

    return Function(forward, **layers), (torch.randn(70, 48),)


@model
def elementwise() -> Source:
    def forward(_: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        z = x.clamp(-1, 1) / (1 + y.square())
        return z.exp() - torch.maximum(x, y).sqrt(), torch.where(x > y, x.sin(), y.cos()), (z.abs() + 0.1).log().sum(-1)

    return Function(forward), (torch.rand(3, 50, 70), torch.rand(50, 70))


# --------------------------------------------------------------------------------------------------------- sequences
@model
def masked_attention() -> Source:
    layers = {name: nn.Linear(72, 72) for name in "qkvo"}

    def forward(self: Any, x: Tensor, mask: Tensor) -> Tensor:
        parts = (getattr(self, name)(x).unflatten(-1, (6, 12)).transpose(1, 2) for name in "qkv")
        mixed = fn.scaled_dot_product_attention(*parts, attn_mask=mask)
        return self.o(mixed.transpose(1, 2).flatten(2))

    mask = torch.zeros(1, 1, 45, 45).masked_fill(torch.rand(1, 1, 45, 45) > 0.8, -1e4)
    return Function(forward, **layers), (torch.randn(1, 45, 72), mask)


@model
def transformer() -> Source:
    net = nn.Transformer(48, 3, 2, 2, 100, 0.0, "gelu", batch_first=True, norm_first=True)
    return net, (torch.randn(1, 21, 48), torch.randn(1, 34, 48))


@model
def encoder_layers() -> Source:
    layer = nn.TransformerEncoderLayer(64, 4, 90, 0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), (torch.randn(1, 50, 64),)


@model
def gated_recurrent() -> Source:
    layers = {"cell": nn.GRU(20, 36, batch_first=True), "head": nn.Linear(36, 4)}
    return Function(lambda self, x: self.head(self.cell(x)[0]), **layers), (torch.randn(3, 9, 20),)


@model
def long_short_term() -> Source:
    layers = {"cell": nn.LSTM(17, 24, 2, batch_first=True, bidirectional=True), "head": nn.Linear(48, 5)}
    return Function(lambda self, x: self.head(self.cell(x)[0][:, -1]), **layers), (torch.randn(2, 6, 17),)


@model
def unrolled_cell() -> Source:
    layers = {"ix": nn.Linear(12, 30), "hh": nn.Linear(30, 30), "out": nn.Linear(30, 2)}

    def forward(self: Any, x: Tensor) -> Tensor:
        state = torch.zeros(x.shape[0], 30)
        for n in range(x.shape[1]):
            state = torch.tanh(self.ix(x[:, n]) + self.hh(state))
        return self.out(state)

    return Function(forward, **layers), (torch.randn(4, 7, 12),)


@model
def word_classifier() -> Source:
    layers = {"words": nn.Embedding(300, 40), "body": nn.Linear(40, 64), "head": nn.Linear(64, 6)}

    def forward(self: Any, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        return self.head(fn.relu(self.body(x)).amax(1)).log_softmax(-1)

    return Function(forward, **layers), (torch.randint(300, (2, 23)),)


@model
def mixer() -> Source:
    layers = {"patch": nn.Conv2d(3, 40, 8, 8)}
    for n in range(2):
        layers |= {f"n{n}": nn.LayerNorm(40), f"t{n}": nn.Linear(25, 60), f"u{n}": nn.Linear(60, 25)}
        layers |= {f"m{n}": nn.LayerNorm(40), f"c{n}": nn.Linear(40, 80), f"d{n}": nn.Linear(80, 40)}

    def forward(self: Any, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        for n in range(2):
            n1, t, u, n2, c, d = (getattr(self, f"{word}{n}") for word in "ntumcd")
            x = x + u(fn.gelu(t(n1(x).transpose(1, 2)))).transpose(1, 2)
            x = x + d(fn.gelu(c(n2(x))))
        return x.mean(1)

    return Function(forward, **layers), (torch.randn(1, 3, 40, 40),)


@model
def relative_positions() -> Source:
    layers = {"qkv": nn.Linear(60, 180), "out": nn.Linear(60, 60), "bias": nn.Embedding(79, 5)}

    def forward(self: Any, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, 5, 12)).permute(2, 0, 3, 1, 4)
        places = torch.arange(40)[:, None] - torch.arange(40)[None] + 39
        scores = q @ k.transpose(-1, -2) / 12**0.5 + self.bias(places).permute(2, 0, 1)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    return Function(forward, **layers), (torch.randn(1, 40, 60),)


@model
def linear_attention() -> Source:
    layers = {"qkv": nn.Linear(32, 96), "norm": nn.LayerNorm(32)}

    def forward(self: Any, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        q = fn.elu(q) + 1
        k = fn.elu(k) + 1
        return x + (q @ (k.transpose(1, 2) @ v)) / (q @ k.sum(1, keepdim=True).transpose(1, 2))

    return Function(forward, **layers), (torch.randn(2, 64, 32),)
