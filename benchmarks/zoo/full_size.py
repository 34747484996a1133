"""Models at their originals' sizes, in plain torch with seeded random weights: what `compile_models.py` measures.

`build(name, seed)` gives a module in eval mode and example inputs. Batch norms get statistics that are not 0 and 1.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as fn


# ------------------------------------------------------------------------------------------------------------- images
class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a short cut: ResNet-18."""

    expansion = 1

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(width_in, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(fn.relu(self.bn1(self.conv1(x)))))
        return fn.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 and a short cut: ResNet-50."""

    expansion = 4

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = _shortcut(width_in, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = fn.relu(self.bn2(self.conv2(fn.relu(self.bn1(self.conv1(x))))))
        return fn.relu(self.bn3(self.conv3(y)) + (x if self.downsample is None else self.downsample(x)))


def _shortcut(width_in: int, width: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and width_in == width:
        return None
    return nn.Sequential(nn.Conv2d(width_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))


class ResNet(nn.Module):
    """Four stages of blocks behind a 7x7 convolution, for images of 224 x 224."""

    def __init__(self, block: type[BasicBlock] | type[Bottleneck], depths: tuple[int, ...]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        width = 64
        stages = []
        for number, depth in enumerate(depths):
            for place in range(depth):
                stages.append(block(width, 64 << number, 2 if number and not place else 1))
                width = (64 << number) * block.expansion
        self.layers = nn.Sequential(*stages)
        self.fc = nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layers(self.maxpool(fn.relu(self.bn1(self.conv1(x)))))
        return self.fc(fn.adaptive_avg_pool2d(x, 1).flatten(1))


def _convolution(width_in: int, width: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(width_in, width, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(width), nn.ReLU6())


class InvertedResidual(nn.Module):
    """Wider, depthwise, narrower: MobileNetV2."""

    def __init__(self, width_in: int, width: int, stride: int, expand: int) -> None:
        super().__init__()
        middle = width_in * expand
        wider = [_convolution(width_in, middle)] if expand > 1 else []
        depthwise = _convolution(middle, middle, 3, stride, middle)
        self.conv = nn.Sequential(*wider, depthwise, nn.Conv2d(middle, width, 1, bias=False), nn.BatchNorm2d(width))
        self.residual = stride == 1 and width_in == width

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.residual else self.conv(x)


class MobileNetV2(nn.Module):
    """17 inverted residuals, for images of 224 x 224."""

    def __init__(self) -> None:
        super().__init__()
        width = 32
        parts: list[nn.Module] = [_convolution(3, 32, 3, 2)]
        for expand, out, depth, stride in (
            (1, 16, 1, 1),
            (6, 24, 2, 2),
            (6, 32, 3, 2),
            (6, 64, 4, 2),
            (6, 96, 3, 1),
            (6, 160, 3, 2),
            (6, 320, 1, 1),
        ):
            for place in range(depth):
                parts.append(InvertedResidual(width, out, 1 if place else stride, expand))
                width = out
        self.features = nn.Sequential(*parts, _convolution(320, 1280))
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


# ------------------------------------------------------------------------------------------------------- transformers
class Attention(nn.Module):
    """Heads of `width / heads`, of x or of x and another sequence."""

    def __init__(self, width: int, heads: int, bias: bool = True) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(width, width, bias=bias) for _ in range(4))
        self.heads = heads

    def forward(
        self, x: Tensor, mask: Tensor | None = None, other: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        y = x if other is None else other
        parts = self.query(x), self.key(y), self.value(y)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = fn.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.output(mixed.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Wide, GELU, narrow."""

    def __init__(self, width: int, approximate: str = "none") -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return self.down(fn.gelu(self.up(x), approximate=self.approximate))


class Block(nn.Module):
    """Attention and a feed-forward net, with norms before (GPT, ViT, Whisper) or behind them (BERT)."""

    def __init__(self, width: int, heads: int, *, norm_first: bool, epsilon: float, approximate: str = "none") -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.mlp = FeedForward(width, approximate)
        self.norm1 = nn.LayerNorm(width, epsilon)
        self.norm2 = nn.LayerNorm(width, epsilon)
        self.norm_first = norm_first

    def forward(self, x: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask, causal=causal)
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask, causal=causal))
        return self.norm2(x + self.mlp(x))


class Bert(nn.Module):
    """BERT-base: 12 layers of 768, with a padding mask; hidden states and the pooled first one."""

    def __init__(self) -> None:
        super().__init__()
        self.word = nn.Embedding(30522, 768)
        self.position = nn.Embedding(512, 768)
        self.kind = nn.Embedding(2, 768)
        self.norm = nn.LayerNorm(768, 1e-12)
        self.encoder = nn.ModuleList(Block(768, 12, norm_first=False, epsilon=1e-12) for _ in range(12))
        self.pooler = nn.Linear(768, 768)

    def forward(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.norm(self.word(ids) + self.position(torch.arange(ids.shape[1])) + self.kind(kinds))
        bias = (1.0 - mask[:, None, None, :].float()) * -10000.0
        for layer in self.encoder:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt2(nn.Module):
    """GPT-2 small: 12 layers of 768, the table of words used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(50257, 768)
        self.wpe = nn.Embedding(1024, 768)
        self.h = nn.ModuleList(Block(768, 12, norm_first=True, epsilon=1e-5, approximate="tanh") for _ in range(12))
        self.ln_f = nn.LayerNorm(768)
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for layer in self.h:
            x = layer(x, causal=True)
        return fn.linear(self.ln_f(x), self.wte.weight)


class Vit(nn.Module):
    """ViT-B/16: 196 patches and a class token, 12 layers of 768."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 768, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, 768) * 0.02)
        self.position = nn.Parameter(torch.randn(1, 197, 768) * 0.02)
        self.encoder = nn.ModuleList(Block(768, 12, norm_first=True, epsilon=1e-6) for _ in range(12))
        self.norm = nn.LayerNorm(768, 1e-6)
        self.head = nn.Linear(768, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        for layer in self.encoder:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


class RmsNorm(nn.Module):
    """A norm by the root mean square."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class T5Layer(nn.Module):
    """Self attention, attention to the encoder where there is one, and a feed-forward net."""

    def __init__(self, width: int, heads: int, inner: int, *, crossed: bool) -> None:
        super().__init__()
        self.attention = Attention(width, heads, bias=False)
        self.norm1 = RmsNorm(width)
        self.cross, self.norm2 = (Attention(width, heads, bias=False), RmsNorm(width)) if crossed else (None, None)
        self.wi = nn.Linear(width, inner, bias=False)
        self.wo = nn.Linear(inner, width, bias=False)
        self.norm3 = RmsNorm(width)

    def forward(self, x: Tensor, bias: Tensor, other: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.norm1(x), bias)
        if self.cross is not None and self.norm2 is not None:
            x = x + self.cross(self.norm2(x), None, other)
        return x + self.wo(fn.relu(self.wi(self.norm3(x))))


class T5(nn.Module):
    """T5-small: 6 layers of 512 each side, 32 buckets of relative positions, the table of words used three times."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(32128, 512)
        self.encoder_bias = nn.Embedding(32, 8)
        self.decoder_bias = nn.Embedding(32, 8)
        self.encoder = nn.ModuleList(T5Layer(512, 8, 2048, crossed=False) for _ in range(6))
        self.decoder = nn.ModuleList(T5Layer(512, 8, 2048, crossed=True) for _ in range(6))
        self.encoder_norm = RmsNorm(512)
        self.decoder_norm = RmsNorm(512)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x = self.shared(source)
        n = source.shape[1]
        m = target.shape[1]
        bias = self.encoder_bias(_buckets(n, both_ways=True)).permute(2, 0, 1)[None]
        for layer in self.encoder:
            x = layer(x, bias)
        x = self.encoder_norm(x)
        y = self.shared(target)
        bias = self.decoder_bias(_buckets(m, both_ways=False)).permute(2, 0, 1)[None] + torch.full((m, m), -1e9).triu(1)
        for layer in self.decoder:
            y = layer(y, bias, x)
        return fn.linear(self.decoder_norm(y) * 512**-0.5, self.shared.weight)


def _buckets(size: int, *, both_ways: bool) -> Tensor:
    """Return T5's buckets of relative positions [size, size]: exact for near positions, logarithmic for far ones, 32 in
    all."""
    distance = torch.arange(size)[None, :] - torch.arange(size)[:, None]
    count = 32
    offset = torch.zeros_like(distance)
    if both_ways:
        count = 16
        offset = 16 * (distance > 0).long()
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    near = count // 2
    far = near + (torch.log(distance.clamp(min=1).float() / near) / math.log(128 / near) * (count - near)).long()
    return offset + torch.where(distance < near, distance, far.clamp(max=count - 1))


class LlamaLayer(nn.Module):
    """Rotary positions, 32 heads that share 8 keys and values, SwiGLU."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.groups = groups
        self.size = width // heads
        self.input_norm = RmsNorm(width)
        self.post_norm = RmsNorm(width)
        self.q_proj = nn.Linear(width, width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate_proj, self.up_proj = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        y = self.input_norm(x)
        q = _rotate(self.q_proj(y).unflatten(-1, (self.heads, -1)).transpose(1, 2), cos, sin)
        k = _rotate(self.k_proj(y).unflatten(-1, (self.groups, -1)).transpose(1, 2), cos, sin)
        v = self.v_proj(y).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        k, v = (part.repeat_interleave(self.heads // self.groups, 1) for part in (k, v))
        weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.size) + mask, -1)
        x = x + self.o_proj((weights @ v).transpose(1, 2).flatten(2))
        y = self.post_norm(x)
        return x + self.down_proj(fn.silu(self.gate_proj(y)) * self.up_proj(y))


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Return x with rotary positions applied."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Llama(nn.Module):
    """Four layers of width 2048 on 128 hidden states."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(LlamaLayer(2048, 32, 8, 8192) for _ in range(4))
        self.norm = RmsNorm(2048)
        angle = torch.arange(128)[:, None] / 10000 ** (torch.arange(0, 64, 2) / 64)
        self.register_buffer("cos", torch.cat([angle.cos()] * 2, -1))
        self.register_buffer("sin", torch.cat([angle.sin()] * 2, -1))

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, mask)
        return self.norm(x)


class WhisperEncoder(nn.Module):
    """Whisper-tiny's encoder: 30 seconds as 3000 frames of 80 bands, 4 layers of 384 on 1500 states."""

    position: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(80, 384, 3, padding=1)
        self.conv2 = nn.Conv1d(384, 384, 3, stride=2, padding=1)
        rate = torch.exp(-math.log(10000) / 191 * torch.arange(192))
        angle = torch.arange(1500)[:, None] * rate[None, :]
        self.register_buffer("position", torch.cat([angle.sin(), angle.cos()], 1))
        self.layers = nn.ModuleList(Block(384, 6, norm_first=True, epsilon=1e-5) for _ in range(4))
        self.layer_norm = nn.LayerNorm(384)

    def forward(self, x: Tensor) -> Tensor:
        x = fn.gelu(self.conv2(fn.gelu(self.conv1(x)))).transpose(1, 2) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class Mlp(nn.Module):
    """784, 512, 256, 10."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


Inputs = Callable[[], tuple[Tensor, ...]]
_MODELS: dict[str, tuple[Callable[[], nn.Module], Inputs]] = {
    "mlp": (Mlp, lambda: (torch.randn(32, 784),)),
    "resnet18": (lambda: ResNet(BasicBlock, (2, 2, 2, 2)), lambda: (torch.randn(1, 3, 224, 224),)),
    "resnet50": (lambda: ResNet(Bottleneck, (3, 4, 6, 3)), lambda: (torch.randn(1, 3, 224, 224),)),
    "mobilenet_v2": (MobileNetV2, lambda: (torch.randn(1, 3, 224, 224),)),
    "bert_base": (Bert, lambda: (_ids(30522, 128), _ids(2, 128), (torch.arange(128) < 100).long()[None])),
    "gpt2": (Gpt2, lambda: (_ids(50257, 128),)),
    "vit_b_16": (Vit, lambda: (torch.randn(1, 3, 224, 224),)),
    "t5_small": (T5, lambda: (_ids(32128, 128), _ids(32128, 32))),
    "llama": (Llama, lambda: (torch.randn(1, 128, 2048),)),
    "whisper_tiny": (WhisperEncoder, lambda: (torch.randn(1, 80, 3000),)),
}
NAMES = tuple(_MODELS)


def _ids(high: int, count: int) -> Tensor:
    return torch.randint(0, high, (1, count))


def build(name: str, seed: int = 0) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """A module in eval mode and example inputs, by the seed alone."""
    torch.manual_seed(seed)
    make, inputs = _MODELS[name]
    module = make()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean is not None
            assert part.running_var is not None
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return module.eval(), inputs()
