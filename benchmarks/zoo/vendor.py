"""Networks of which the vendor's compiler's netlists are known, at the sizes that those have."""

from collections.abc import Callable

import torch
import torch.nn.functional as fn
from torch import Tensor, nn

from zoo.full_size import Attention, Block, RmsNorm

Source = tuple[nn.Module, tuple[Tensor, ...]]


class Encoders(nn.Module):
    """Layers of a BERT on hidden states, with a mask that is added to the scores."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            Block(width, heads, norm_first=False, epsilon=1e-12, approximate="tanh") for _ in range(layers)
        )

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Hidden states [1, tokens, width], mask [1, 1, 1, tokens]."""
        for layer in self.layers:
            x = layer(x, mask)
        return x


def encoders(layers: int, width: int, heads: int, tokens: int = 128) -> Source:
    """Return the model and its inputs."""
    torch.manual_seed(0)
    return Encoders(layers, width, heads).eval(), (torch.randn(1, tokens, width), torch.zeros(1, 1, 1, tokens))


def attention() -> Source:
    """Return the multi-head attention of BERT's small test, and its inputs."""
    torch.manual_seed(0)
    return Attention(128, 4).eval(), (torch.randn(1, 128, 128), torch.zeros(1, 1, 128, 128))


class SqueezeExcite(nn.Module):
    """A gate for each channel, which depends on the means of all channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = max(8, (width // 4 + 4) // 8 * 8)
        inner += 8 if inner < 0.9 * width / 4 else 0
        self.reduce = nn.Conv2d(width, inner, 1)
        self.expand = nn.Conv2d(inner, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its channels scaled, in the same shape."""
        gate = self.expand(fn.relu(self.reduce(x.mean((2, 3), keepdim=True))))
        return x * fn.hardsigmoid(gate)


def _norm(width_in: int, width: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(width_in, width, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(width))


class MobileBlock(nn.Module):
    """A block of MobileNet v3: a wider convolution, one by channel, a gate, and a narrower convolution."""

    def __init__(
        self, width_in: int, inner: int, width: int, kernel: int, stride: int, *, gated: bool, hard: bool
    ) -> None:
        super().__init__()
        activation = nn.Hardswish if hard else nn.ReLU
        wider = [_norm(width_in, inner, 1), activation()] if inner != width_in else []
        gates = [SqueezeExcite(inner)] if gated else []
        self.path = nn.Sequential(
            *wider, _norm(inner, inner, kernel, stride, inner), activation(), *gates, _norm(inner, width, 1)
        )
        self.skips = stride == 1 and width_in == width

    def forward(self, x: Tensor) -> Tensor:
        """Return x, smaller by the stride."""
        y = self.path(x)
        return x + y if self.skips else y


MOBILE_BLOCKS = (
    (16, 16, 3, 1, False, False), (64, 24, 3, 2, False, False), (72, 24, 3, 1, False, False),
    (72, 40, 5, 2, True, False), (120, 40, 5, 1, True, False), (120, 40, 5, 1, True, False),
    (240, 80, 3, 2, False, True), (200, 80, 3, 1, False, True), (184, 80, 3, 1, False, True),
    (184, 80, 3, 1, False, True), (480, 112, 3, 1, True, True), (672, 112, 3, 1, True, True),
    (672, 160, 5, 2, True, True), (960, 160, 5, 1, True, True), (960, 160, 5, 1, True, True),
)  # fmt: skip
"""The blocks of MobileNet v3 large: inner width, width, kernel, stride, gated, with hard swish."""


class MobileNetV3(nn.Module):
    """MobileNet v3 large as timm has it, 224 x 224."""

    def __init__(self) -> None:
        super().__init__()
        blocks: list[nn.Module] = []
        width = 16
        for inner, out, kernel, stride, gated, hard in MOBILE_BLOCKS:
            blocks.append(
                MobileBlock(
                    width_in=width, inner=inner, width=out, kernel=kernel, stride=stride, gated=gated, hard=hard
                )
            )
            width = out
        self.stem = nn.Sequential(_norm(3, 16, 3, 2), nn.Hardswish())
        self.blocks = nn.Sequential(*blocks)
        self.last = nn.Sequential(_norm(160, 960, 1), nn.Hardswish())
        self.head = nn.Conv2d(960, 1280, 1)
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of an image [1, 3, 224, 224]."""
        x = self.last(self.blocks(self.stem(x))).mean((2, 3), keepdim=True)
        return self.classifier(fn.hardswish(self.head(x)).flatten(1))


def _on_images(make: Callable[[], nn.Module], size: int) -> Source:
    """Return a seeded model in eval mode, with statistics of norms that are not 0 and 1, and an image [1, 3, size,
    size]."""
    torch.manual_seed(0)
    model = make()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean = torch.randn(module.num_features) * 0.1
            module.running_var = torch.rand(module.num_features) + 0.5
    return model.eval(), (torch.randn(1, 3, size, size),)


def mobilenet_v3() -> Source:
    """Return the model and its input."""
    return _on_images(MobileNetV3, 224)


def resnet_head() -> Source:
    """Return ResNet-50's first convolution without bias, which is all that the vendor's netlist for grayskull holds,
    and its input."""
    return _on_images(lambda: nn.Conv2d(3, 64, 7, 2, 3, bias=False), 224)


def _twice(width_in: int, width: int) -> nn.Sequential:
    return nn.Sequential(_norm(width_in, width, 3), nn.ReLU(), _norm(width, width, 3), nn.ReLU())


class UNet(nn.Module):
    """Four steps down from 32 channels and up again, one channel of probabilities, as for magnetic resonance images."""

    def __init__(self) -> None:
        super().__init__()
        widths = (32, 64, 128, 256, 512)
        self.down = nn.ModuleList(_twice(a, b) for a, b in zip((3, *widths), widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in widths[-2::-1])
        self.joined = nn.ModuleList(_twice(2 * width, width) for width in widths[-2::-1])
        self.last = nn.Conv2d(32, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return probabilities [1, 1, 256, 256] for an image [1, 3, 256, 256]."""
        skipped: list[Tensor] = []
        for number, part in enumerate(self.down):
            x = part(fn.max_pool2d(x, 2) if number else x)
            skipped.append(x)
        skipped.pop()
        for up, joined in zip(self.up, self.joined, strict=True):
            x = joined(torch.cat([up(x), skipped.pop()], 1))
        return torch.sigmoid(self.last(x))


def unet() -> Source:
    """Return the model and its input."""
    return _on_images(UNet, 256)


def _silu(width_in: int, width: int, kernel: int = 1, stride: int = 1, padding: int | None = None) -> nn.Sequential:
    padding = kernel // 2 if padding is None else padding
    conv = nn.Conv2d(width_in, width, kernel, stride, padding, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(width), nn.SiLU())


class Narrow(nn.Module):
    """Two convolutions, and a short cut where `adds`."""

    def __init__(self, width: int, *, adds: bool) -> None:
        super().__init__()
        self.path = nn.Sequential(_silu(width, width), _silu(width, width, 3))
        self.adds = adds

    def forward(self, x: Tensor) -> Tensor:
        """Return states of the same shape."""
        return x + self.path(x) if self.adds else self.path(x)


class Split(nn.Module):
    """Half of the channels through `depth` blocks, half past them: YOLOv5's C3."""

    def __init__(self, width_in: int, width: int, depth: int, *, adds: bool = True) -> None:
        super().__init__()
        half = width // 2
        self.through = nn.Sequential(_silu(width_in, half), *(Narrow(half, adds=adds) for _ in range(depth)))
        self.past = _silu(width_in, half)
        self.last = _silu(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return states of `width` channels."""
        return self.last(torch.cat([self.through(x), self.past(x)], 1))


class Pooled(nn.Module):
    """YOLOv5's SPPF: the input beside the maxima of the 5, 9 and 13 places around each place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = _silu(width, width // 2)
        self.last = _silu(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return states of the same shape."""
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(fn.max_pool2d(parts[-1], 5, 1, 2))
        return self.last(torch.cat(parts, 1))


class YoloV5(nn.Module):
    """YOLOv5s: three sizes of anchors, 80 kinds of things, boxes in places of the image."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.fine = nn.Sequential(
            _silu(3, 32, 6, 2, 2), _silu(32, 64, 3, 2), Split(64, 64, 1), _silu(64, 128, 3, 2), Split(128, 128, 2)
        )
        self.middle = nn.Sequential(_silu(128, 256, 3, 2), Split(256, 256, 3))
        self.coarse = nn.Sequential(_silu(256, 512, 3, 2), Split(512, 512, 1), Pooled(512))
        self.narrow1 = _silu(512, 256)
        self.narrow2 = _silu(256, 128)
        self.up1 = Split(512, 256, 1, adds=False)
        self.up2 = Split(256, 128, 1, adds=False)
        self.shrink1 = _silu(128, 128, 3, 2)
        self.shrink2 = _silu(256, 256, 3, 2)
        self.down1 = Split(256, 256, 1, adds=False)
        self.down2 = Split(512, 512, 1, adds=False)
        self.heads = nn.ModuleList(nn.Conv2d(width, 255, 1) for width in (128, 256, 512))
        for number, stride in enumerate((8, 16, 32)):
            axis = torch.arange(size // stride)
            places = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), -1)
            self.register_buffer(f"places{number}", (places.reshape(1, 1, -1, 2) - 0.5).float())
            self.register_buffer(f"anchors{number}", torch.rand(1, 3, 1, 2) * 4 * stride)

    def _boxes(self, x: Tensor, number: int) -> Tensor:
        stride = (8, 16, 32)[number]
        x = torch.sigmoid(self.heads[number](x)).reshape(1, 3, 85, -1).transpose(2, 3)
        at = (x[..., :2] * 2 + getattr(self, f"places{number}")) * stride
        extent = (x[..., 2:4] * 2) ** 2 * getattr(self, f"anchors{number}")
        return torch.cat([at, extent, x[..., 4:]], 3).reshape(1, -1, 85)

    def forward(self, x: Tensor) -> Tensor:
        """Return boxes [1, 6300, 85] for an image [1, 3, 320, 320]."""
        fine = self.fine(x)
        middle = self.middle(fine)
        low = self.narrow1(self.coarse(middle))
        mid = self.narrow2(self.up1(torch.cat([fn.interpolate(low, scale_factor=2.0), middle], 1)))
        high = self.up2(torch.cat([fn.interpolate(mid, scale_factor=2.0), fine], 1))
        middle = self.down1(torch.cat([self.shrink1(high), mid], 1))
        low = self.down2(torch.cat([self.shrink2(middle), low], 1))
        return torch.cat([self._boxes(part, number) for number, part in enumerate((high, middle, low))], 1)


def yolo_v5() -> Source:
    """Return the model and its input."""
    return _on_images(lambda: YoloV5(320), 320)


class CachedLayer(nn.Module):
    """A layer of T5's decoder that takes the keys and values of earlier windows; those of the encoder are constants."""

    cross_k: Tensor
    cross_v: Tensor

    def __init__(self, width: int, heads: int, inner: int, memory: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = RmsNorm(width)
        self.norm2 = RmsNorm(width)
        self.norm3 = RmsNorm(width)
        self.q, self.k, self.v, self.o, self.cross_q, self.cross_o = (
            nn.Linear(width, width, bias=False) for _ in range(6)
        )
        self.wi = nn.Linear(width, inner, bias=False)
        self.wo = nn.Linear(inner, width, bias=False)
        for name in ("cross_k", "cross_v"):
            self.register_buffer(name, torch.randn(1, heads, memory, width // heads))

    def _split(self, x: Tensor) -> Tensor:
        batch, count, width = x.shape
        return x.reshape(batch, count, self.heads, width // self.heads).transpose(1, 2)

    def forward(
        self, x: Tensor, mask: Tensor, memory_mask: Tensor, keys: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the layer's result, and the keys and values of the window."""
        batch, count, width = x.shape
        y = self.norm1(x)
        q = self._split(self.q(y))
        k = self._split(self.k(y))
        v = self._split(self.v(y))
        scores = q @ torch.cat([keys, k], 2).transpose(2, 3) + mask
        mixed = torch.softmax(scores, -1) @ torch.cat([values, v], 2)
        x = x + self.o(mixed.transpose(1, 2).reshape(batch, count, width))
        scores = self._split(self.cross_q(self.norm2(x))) @ self.cross_k.transpose(2, 3) + memory_mask
        mixed = torch.softmax(scores, -1) @ self.cross_v
        x = x + self.cross_o(mixed.transpose(1, 2).reshape(batch, count, width))
        return x + self.wo(fn.relu(self.wi(self.norm3(x)))), k, v


class T5Decoder(nn.Module):
    """T5-base's decoder for a window of 32 tokens behind 480 that caches hold, beside 64 of the encoder. Keys and
    values of the encoder's side are constants: in the vendor's netlist, too, they lie in DRAM and nothing computes
    them."""

    bias: Tensor

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, inner: int = 3072) -> None:
        super().__init__()
        self.shared = nn.Embedding(32128, width)
        self.layers = nn.ModuleList(CachedLayer(width, heads, inner, 64) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.register_buffer("bias", torch.randn(1, heads, 32, 512))

    def forward(self, tokens: Tensor, mask: Tensor, memory_mask: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        """Return scores, keys and values of tokens [1, 32], with masks of ones and zeros, [1, 1, 1, 512] and [1, 1, 1,
        64]."""
        x = self.shared(tokens)
        far = self.bias + (1 - mask) * -1e9
        memory_far = (1 - memory_mask) * -1e9
        cached: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            x, *window = layer(x, far, memory_far, *past[2 * number : 2 * number + 2])
            cached += window
        scores = fn.linear(self.norm(x) * x.shape[-1] ** -0.5, self.shared.weight)
        return (scores, *cached)


def t5_decoder() -> Source:
    """Return the decoder, and inputs with empty caches."""
    torch.manual_seed(0)
    model = T5Decoder().eval()
    past = [torch.zeros(1, 12, 480, 64)] * 24
    return model, (torch.zeros(1, 32, dtype=torch.int64), torch.ones(1, 1, 1, 512), torch.ones(1, 1, 1, 64), *past)
