"""Calls of torch operators with random arguments, away from their defaults."""

import random
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - as torch's own examples have it

Call = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]
"""A function of tensors and what it is called with."""
DRAWN: dict[str, Callable[[random.Random], Call]] = {}
"""By the name of an operator or a group of like ones."""


def draws(make: Callable[[random.Random], Call]) -> Callable[[random.Random], Call]:
    """Add a function that draws a call to the table, under its own name."""
    DRAWN[make.__name__] = make
    return make


def draw(name: str, seed: int) -> Call:
    """Return the call of an operator for a seed."""
    torch.manual_seed(seed)
    return DRAWN[name](random.Random(f"{name} {seed}"))


def tensor(rng: random.Random, *shape: int, low: float = -2.0, high: float = 2.0) -> torch.Tensor:
    """Return floats in a range, drawn evenly."""
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    return low + (high - low) * torch.rand(*shape, generator=generator)


def whole(rng: random.Random, *shape: int, low: int = -5, high: int = 6, dtype: Any = torch.int32) -> torch.Tensor:
    """Return integers in a range, drawn evenly."""
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    return torch.randint(low, high, shape, generator=generator, dtype=dtype)


def maybe(rng: random.Random, value: Any, otherwise: Any = None) -> Any:
    """Return a value, or half of the time another one."""
    return value if rng.random() < 0.5 else otherwise


def pixels(rng: random.Random, rank: int, low: int = 3, high: int = 8) -> tuple[int, ...]:
    """Return random sizes of an image."""
    return tuple(rng.randint(low, high) for _ in range(rank))


# ------------------------------------------------------------------------------------------------ element by element
@draws
def softplus(rng: random.Random) -> Call:
    beta, threshold = rng.choice([0.3, 1, 2.5, 10]), rng.choice([-1.0, 0.0, 0.4, 1, 5, 16, 20, 30])
    return lambda x: F.softplus(x, beta, threshold), (tensor(rng, 3, 17, low=-4, high=4),)


@draws
def add_and_subtract(rng: random.Random) -> Call:
    alpha = rng.choice([-2, 0.5, 3])
    form = rng.choice([torch.add, torch.sub, torch.rsub])
    other = rng.choice([tensor(rng, 3, 5), tensor(rng, 5), 1.5])
    if isinstance(other, float):
        return lambda x: form(x, other, alpha=alpha), (tensor(rng, 3, 5),)
    return lambda x, y: form(x, y, alpha=alpha), (tensor(rng, 3, 5), other)


@draws
def integers_added(rng: random.Random) -> Call:
    alpha, form = rng.choice([-2, 3]), rng.choice([torch.add, torch.sub])
    return lambda x, y: form(x, y, alpha=alpha), (whole(rng, 3, 5), whole(rng, 3, 5))


@draws
def division(rng: random.Random) -> Call:
    mode = rng.choice([None, "floor", "trunc"])
    if rng.random() < 0.5:
        divisor = rng.choice([-2.5, 0.75, 3.0])
        return lambda x: torch.div(x, divisor, rounding_mode=mode), (tensor(rng, 3, 5, low=-9, high=9),)
    divisors = tensor(rng, 3, 5, low=0.5, high=3) * rng.choice([-1, 1])
    return lambda x, y: torch.div(x, y, rounding_mode=mode), (tensor(rng, 3, 5, low=-9, high=9), divisors)


@draws
def division_of_integers(rng: random.Random) -> Call:
    mode = rng.choice([None, "floor", "trunc"])
    divisors = whole(rng, 3, 5, low=1, high=5) * rng.choice([-1, 1])
    return lambda x, y: torch.div(x, y, rounding_mode=mode), (whole(rng, 3, 5, low=-20, high=20), divisors)


@draws
def clamp(rng: random.Random) -> Call:
    low, high = rng.choice(
        [(None, 0.5), (-0.5, None), (-0.5, 0.7), (0, None), (0, 1.0), (0.5, -0.5), (None, 0), (0, 0)]
    )
    if rng.random() < 0.3:
        return lambda x, y: torch.clamp(x, min=y), (tensor(rng, 3, 5), tensor(rng, 3, 5))
    if rng.random() < 0.3:
        return lambda x, y: x.clone().clamp_(max=y), (tensor(rng, 3, 5), tensor(rng, 5))
    return lambda x: torch.clamp(x, min=low, max=high), (tensor(rng, 3, 5),)


@draws
def clamp_of_integers(rng: random.Random) -> Call:
    low, high = rng.choice([(None, 2), (-1, None), (-1, 3), (0, None), (0, 1)])
    return lambda x: torch.clamp(x, min=low, max=high), (whole(rng, 3, 5),)


@draws
def activations(rng: random.Random) -> Call:
    a, b = rng.choice([0.1, 0.6, 1.7]), rng.choice([0.3, 1.2])
    form = rng.choice(
        [
            lambda x: F.gelu(x, approximate="tanh"),
            lambda x: F.gelu(x, approximate="none"),
            lambda x: F.leaky_relu(x, a),
            lambda x: F.leaky_relu(x, -a),
            lambda x: F.elu(x, a),
            lambda x: torch.ops.aten.elu(x, a, b, a),
            lambda x: F.celu(x, a),
            lambda x: F.hardtanh(x, -a, b),
            lambda x: F.hardtanh_(x.clone(), -a, b),
            lambda x: F.threshold(x, a, -b),
            lambda x: F.threshold(x, -a, b),
            lambda x: F.hardshrink(x, a),
            lambda x: F.softshrink(x, a),
            lambda x: F.rrelu(x, a / 3, a),
            lambda x: F.glu(torch.cat([x, x + a], 1), 1),
            lambda x: F.softsign(x) + F.tanhshrink(x) + F.logsigmoid(x),
            lambda x: F.relu6(x * 4, inplace=True),
            lambda x: F.hardswish(x * 3) + F.hardsigmoid(x * 3) + F.mish(x),
            lambda x: torch.nan_to_num(x, a, b, -b),
            lambda x: F.dropout(x, a / 2, training=False),
        ]
    )
    return form, (tensor(rng, 4, 9, low=-3, high=3),)


@draws
def rounding(rng: random.Random) -> Call:
    decimals = rng.choice([0, 1, 2, -1])
    return lambda x: torch.round(x, decimals=decimals), (tensor(rng, 3, 7, low=-30, high=30),)


@draws
def remainders(rng: random.Random) -> Call:
    form = rng.choice([torch.fmod, torch.remainder])
    divisor = rng.choice([-3, 2, 5])
    return lambda x: form(x, divisor), (whole(rng, 3, 7, low=-20, high=20),)


@draws
def bits_and_truth(rng: random.Random) -> Call:
    form = rng.choice(
        [torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, torch.logical_and, torch.logical_or, torch.logical_xor]
    )
    if rng.random() < 0.4:
        one = rng.choice([torch.bitwise_not, torch.logical_not])
        return lambda x: one(x), (whole(rng, 3, 7),)
    if rng.random() < 0.5:
        return lambda x, y: form(x > 0, y > 0), (whole(rng, 3, 7), whole(rng, 3, 7))
    return lambda x, y: form(x, y), (whole(rng, 3, 7), whole(rng, 3, 7))


@draws
def triangles(rng: random.Random) -> Call:
    form, k = rng.choice([torch.tril, torch.triu]), rng.randint(-4, 4)
    return lambda x: form(x, k), (tensor(rng, 2, 4, 6),)


@draws
def casts(rng: random.Random) -> Call:
    dtype = rng.choice([torch.int32, torch.int64, torch.bool, torch.float64, torch.float16, torch.uint8, torch.int8])
    low = 0 if dtype is torch.uint8 else -3
    form = rng.choice(
        [lambda x: x.to(dtype), lambda x: x.type(dtype), lambda x: torch.zeros_like(x, dtype=dtype) + x.to(dtype)]
    )
    if rng.random() < 0.3:
        return lambda x, y: x.type_as(y), (tensor(rng, 3, 5, low=low), whole(rng, 2))
    return form, (tensor(rng, 3, 5, low=low, high=3),)


@draws
def constants_of_a_shape(rng: random.Random) -> Call:
    dtype = rng.choice([None, torch.int64, torch.float32])
    form = rng.choice(
        [
            lambda x: torch.full_like(x, 2.5 if dtype is not torch.int64 else 2, dtype=dtype),
            lambda x: torch.ones_like(x, dtype=dtype),
            lambda x: x.new_ones(2, 3, dtype=dtype),
            lambda x: x.new_full((2, 3), 4, dtype=dtype),
            lambda x: x.new_zeros(2, 3, dtype=dtype),
        ]
    )
    return lambda x: x.sum() + form(x), (tensor(rng, 3, 5),)


@draws
def products_with_factors(rng: random.Random) -> Call:
    alpha, beta = rng.choice([0.5, -2, 1, 0]), rng.choice([0, 0.25, 1, 3])
    form = rng.choice(["addmm", "baddbmm", "addmv", "addbmm", "addr", "addcmul", "addcdiv"])
    if form == "addmm":
        c = rng.choice([(3, 6), (6,), (1, 6)])
        return lambda c, x, y: torch.addmm(c, x, y, beta=beta, alpha=alpha), (
            tensor(rng, *c), tensor(rng, 3, 4), tensor(rng, 4, 6))  # fmt: skip
    if form == "baddbmm":
        return lambda c, x, y: torch.baddbmm(c, x, y, beta=beta, alpha=alpha), (
            tensor(rng, 2, 3, 6), tensor(rng, 2, 3, 4), tensor(rng, 2, 4, 6))  # fmt: skip
    if form == "addbmm":
        return lambda c, x, y: torch.addbmm(c, x, y, beta=beta, alpha=alpha), (
            tensor(rng, 3, 6), tensor(rng, 2, 3, 4), tensor(rng, 2, 4, 6))  # fmt: skip
    if form == "addmv":
        return lambda c, x, y: torch.addmv(c, x, y, beta=beta, alpha=alpha), (
            tensor(rng, 3), tensor(rng, 3, 4), tensor(rng, 4))  # fmt: skip
    if form == "addr":
        return lambda c, x, y: torch.addr(c, x, y, beta=beta, alpha=alpha), (
            tensor(rng, 3, 4), tensor(rng, 3), tensor(rng, 4))  # fmt: skip
    both = torch.addcmul if form == "addcmul" else torch.addcdiv
    return lambda c, x, y: both(c, x, y, value=alpha), (
        tensor(rng, 3, 4), tensor(rng, 3, 4), tensor(rng, 3, 4, low=0.5))  # fmt: skip


@draws
def lerp_and_where(rng: random.Random) -> Call:
    weight = rng.choice([0.2, 0.9, 1.5])
    if rng.random() < 0.5:
        return lambda x, y: torch.lerp(x, y, weight), (tensor(rng, 3, 4), tensor(rng, 3, 4))
    return lambda x, y: torch.where(x > y, x, weight), (tensor(rng, 3, 4), tensor(rng, 3, 4))


# -------------------------------------------------------------------------------------------------------- reductions
@draws
def reductions(rng: random.Random) -> Call:
    form = rng.choice(["sum", "mean", "prod", "amax", "amin", "logsumexp", "any", "all", "nansum", "max", "min"])
    dims = rng.choice([0, 1, -1, 2])
    if form in ("sum", "mean", "amax", "amin", "logsumexp") and rng.random() < 0.5:
        dims = rng.choice([(0, 2), (-1, 1), (0, 1, 2)])
    keepdim = rng.random() < 0.5
    options = {}
    if form in ("sum", "mean", "prod") and rng.random() < 0.4:
        options["dtype"] = torch.float64 if form == "mean" else rng.choice([torch.float64, torch.int64])
    x = tensor(rng, 3, 4, 5)
    if form in ("any", "all"):
        return lambda x: getattr(torch, form)(x > 1, dims, keepdim=keepdim), (x,)
    if form in ("max", "min"):
        return lambda x: tuple(getattr(torch, form)(x, dims, keepdim=keepdim)), (x,)
    return lambda x: getattr(torch, form)(x, dims, keepdim=keepdim, **options), (x,)


@draws
def reductions_of_all(rng: random.Random) -> Call:
    form = rng.choice([torch.sum, torch.mean, torch.prod, torch.amax, torch.amin, torch.max, torch.min, torch.any])
    options = {}
    if form in (torch.sum, torch.prod) and rng.random() < 0.5:
        options["dtype"] = torch.int64
    return lambda x: form(x, **options), (tensor(rng, 3, 4),)


@draws
def reductions_of_integers(rng: random.Random) -> Call:
    dtype = rng.choice([None, torch.float32, torch.int64, torch.int32])
    form, keepdim = rng.choice([torch.sum, torch.prod, torch.cumsum, torch.cumprod]), rng.random() < 0.5
    if form in (torch.cumsum, torch.cumprod):
        return lambda x: form(x, 1, dtype=dtype), (whole(rng, 3, 4, low=-3, high=4),)
    return lambda x: form(x, 1, keepdim=keepdim, dtype=dtype), (whole(rng, 3, 4, low=-3, high=4),)


@draws
def running(rng: random.Random) -> Call:
    dtype = rng.choice([None, torch.float64, torch.int64])
    form, dim = rng.choice([torch.cumsum, torch.cumprod]), rng.choice([0, 1, -1])
    return lambda x: form(x, dim, dtype=dtype), (tensor(rng, 3, 4),)


@draws
def places(rng: random.Random) -> Call:
    form, dim, keepdim = rng.choice([torch.argmax, torch.argmin]), rng.choice([None, 0, 1, -1]), rng.random() < 0.5
    return lambda x: form(x, dim=dim, keepdim=keepdim), (whole(rng, 3, 7, low=0, high=4).float(),)


@draws
def spread(rng: random.Random) -> Call:
    form = rng.choice([torch.var, torch.std])
    dims, keepdim = rng.choice([None, 0, -1, (0, 1), (1, 2)]), rng.random() < 0.5
    if rng.random() < 0.3:
        unbiased = rng.random() < 0.5
        return lambda x: form(x, unbiased=unbiased), (tensor(rng, 3, 4, 5),)
    if rng.random() < 0.3:
        return lambda x: torch.var_mean(x, 1, correction=2, keepdim=keepdim), (tensor(rng, 3, 4, 5),)
    correction = rng.choice([0, 1, 2, 3, 0.5])
    return lambda x: form(x, dims, correction=correction, keepdim=keepdim), (tensor(rng, 3, 4, 5),)


@draws
def vector_norms(rng: random.Random) -> Call:
    order = rng.choice([1, 2, float("inf"), -float("inf"), 0, 3, 0.5])
    dims, keepdim = rng.choice([None, 0, -1, (0, 1)]), rng.random() < 0.5
    dtype = rng.choice([None, torch.float64])
    return lambda x: torch.linalg.vector_norm(x, order, dims, keepdim, dtype=dtype), (tensor(rng, 3, 4),)


@draws
def normalised(rng: random.Random) -> Call:
    p, dim, eps = rng.choice([1.0, 2.0, float("inf")]), rng.choice([0, 1, -1]), rng.choice([1e-12, 0.7, 3.0])
    if rng.random() < 0.5:
        return lambda x, y: F.cosine_similarity(x, y, dim=dim, eps=eps), (tensor(rng, 3, 4), tensor(rng, 3, 4))
    return lambda x: F.normalize(x, p, dim, eps), (tensor(rng, 3, 4),)


@draws
def softmaxes(rng: random.Random) -> Call:
    form, dim = rng.choice([F.softmax, F.log_softmax, F.softmin]), rng.choice([0, 1, -1])
    dtype = rng.choice([None, torch.float64, torch.float32])
    return lambda x: form(x, dim=dim, dtype=dtype), (tensor(rng, 3, 4),)


@draws
def order_of_values(rng: random.Random) -> Call:
    dim, largest, count = rng.choice([0, 1, -1]), rng.random() < 0.5, rng.randint(1, 3)
    stable, keepdim = rng.random() < 0.5, rng.random() < 0.5
    form = rng.choice(
        [
            lambda x: tuple(torch.topk(x, count, dim, largest, True)),
            lambda x: torch.topk(x, count, dim, largest, False)[0].sort(dim)[0],
            lambda x: tuple(torch.kthvalue(x, count, dim, keepdim)),
            lambda x: tuple(torch.median(x, dim, keepdim)),
            lambda x: torch.median(x),
            lambda x: tuple(torch.sort(x, dim=dim, descending=largest)),
            lambda x: torch.argsort(x, dim, largest),
        ]
    )
    if rng.random() < 0.4:
        equal = whole(rng, 4, 6, low=0, high=3).float()
        return lambda x: tuple(torch.sort(x, dim=dim, descending=largest, stable=True)), (equal,)
    del stable
    return form, (torch.randperm(24).float().reshape(4, 6),)


@draws
def searched(rng: random.Random) -> Call:
    right = rng.random() < 0.5
    edges = torch.arange(6).float()
    if rng.random() < 0.5:
        return lambda x: torch.searchsorted(edges, x, right=right), (whole(rng, 3, 4, low=0, high=6).float(),)
    return lambda x: torch.bucketize(x, edges, right=right), (whole(rng, 3, 4, low=0, high=6).float(),)


@draws
def histogram(rng: random.Random) -> Call:
    bins, low, high = rng.randint(1, 9), rng.choice([-1.0, 0.0]), rng.choice([1.0, 2.0])
    return lambda x: torch.histc(x, bins, low, high), (tensor(rng, 40),)


# -------------------------------------------------------------------------------------------------------------- norms
@draws
def norms(rng: random.Random) -> Call:
    eps, affine = rng.choice([1e-5, 0.1, 2.0]), rng.random() < 0.5
    kind = rng.choice(["batch", "batch track", "instance", "instance track", "group", "layer", "rms", "local"])
    x = tensor(rng, 3, 6, 5, 4)
    if kind.startswith("batch"):
        layer: Any = torch.nn.BatchNorm2d(6, eps, rng.choice([None, 0.3]), affine, kind == "batch track")
    elif kind.startswith("instance"):
        layer = torch.nn.InstanceNorm2d(6, eps, 0.3, affine, kind == "instance track")
    elif kind == "group":
        layer = torch.nn.GroupNorm(rng.choice([1, 2, 3, 6]), 6, eps, affine)
    elif kind == "layer":
        layer = torch.nn.LayerNorm(rng.choice([(4,), (5, 4), (6, 5, 4)]), eps, affine, bias=rng.random() < 0.5)
    elif kind == "rms":
        layer = torch.nn.RMSNorm(rng.choice([(4,), (5, 4)]), rng.choice([None, eps]), affine)
    else:
        layer = torch.nn.LocalResponseNorm(rng.randint(1, 4), 0.3, 0.6, 1.5)
    for item in (*layer.parameters(), *layer.buffers()):
        if item.is_floating_point():
            item.data = tensor(rng, *item.shape, low=0.5, high=1.5)
    return layer.eval(), (x,)


# ------------------------------------------------------------------------------------------------------------ windows
@draws
def convolutions(rng: random.Random) -> Call:
    rank, groups = rng.randint(1, 3), rng.choice([1, 2, 4])
    size = pixels(rng, rank, 5, 8)
    several = [tuple(rng.randint(*bounds) for _ in range(rank)) for bounds in ((1, 3), (1, 3), (0, 2), (1, 2))]
    kernel, stride, padding, dilation = several
    options: dict[str, Any] = {"groups": groups, "bias": rng.random() < 0.5}
    mode = rng.choice(["zeros", "zeros", "circular", "reflect", "replicate"])
    kind = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)[rank - 1]
    given: Any = padding
    if rng.random() < 0.2:
        given, stride = rng.choice(["same", "valid"]), (1,) * rank
    layer = kind(4, 8, kernel, stride, given, dilation, padding_mode=mode, **options)
    return layer.eval(), (tensor(rng, 2, 4, *size),)


@draws
def transposed_convolutions(rng: random.Random) -> Call:
    rank, groups = rng.randint(1, 3), rng.choice([1, 2])
    bounds = ((1, 3), (1, 3), (0, 1), (1, 2))
    kernel, stride, padding, dilation = [tuple(rng.randint(*bound) for _ in range(rank)) for bound in bounds]
    extra = tuple(rng.randrange(max(s, d)) for s, d in zip(stride, dilation, strict=True))
    kind = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[rank - 1]
    layer = kind(4, 6, kernel, stride, padding, extra, groups, rng.random() < 0.5, dilation)
    return layer.eval(), (tensor(rng, 2, 4, *pixels(rng, rank, 3, 5)),)


@draws
def largest_of_windows(rng: random.Random) -> Call:
    rank = rng.randint(1, 3)
    kernel = tuple(rng.randint(1, 3) for _ in range(rank))
    stride = maybe(rng, tuple(rng.randint(1, 3) for _ in range(rank)))
    padding = tuple(rng.randint(0, k // 2) for k in kernel)
    dilation, ceil = tuple(rng.randint(1, 2) for _ in range(rank)), rng.random() < 0.5
    form = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    batched = (2, 3) if rng.random() < 0.8 else (3,)
    return lambda x: form(x, kernel, stride, padding, dilation, ceil), (
        tensor(rng, *batched, *pixels(rng, rank, 5, 9)),
    )


@draws
def means_of_windows(rng: random.Random) -> Call:
    rank = rng.randint(1, 3)
    kernel = tuple(rng.randint(1, 4) for _ in range(rank))
    stride = maybe(rng, tuple(rng.randint(1, 3) for _ in range(rank)), kernel)
    padding = tuple(rng.randint(0, k // 2) for k in kernel)
    ceil, count = rng.random() < 0.5, rng.random() < 0.5
    form: Any = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
    options = {} if rank == 1 else {"divisor_override": rng.choice([None, 1, 3, 7])}
    x = tensor(rng, 2, 3, *pixels(rng, rank, 5, 9))
    if rng.random() < 0.15:
        power = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[rank - 1]
        size: Any = kernel[0] if rank == 1 else kernel  # torch multiplies by the size of one dimension
        return lambda x: power(x, 2.0, size, stride, ceil), (x,)
    return lambda x: form(x, kernel, stride, padding, ceil, count, **options), (x,)


@draws
def adaptive_pools(rng: random.Random) -> Call:
    rank = rng.randint(1, 3)
    size = tuple(rng.choice([None, 1, 2, 3, 9]) for _ in range(rank))
    names = rng.choice([("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
                        ("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")])  # fmt: skip
    if rank == 1:
        size = (size[0] or 2,)
    return lambda x: getattr(F, names[rank - 1])(x, size), (tensor(rng, 2, 3, *pixels(rng, rank, 3, 8)),)


@draws
def interpolation(rng: random.Random) -> Call:
    mode = rng.choice(
        ["nearest", "bilinear", "nearest", "bilinear", "bicubic", "nearest-exact", "linear", "trilinear", "area"]
    )
    rank = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}.get(mode) or rng.randint(1, 3)
    options: dict[str, Any] = {"mode": mode}
    if mode in ("linear", "bilinear", "bicubic", "trilinear"):
        options["align_corners"] = rng.choice([None, False, True])
    if rng.random() < 0.4:
        options["size"] = tuple(rng.randint(1, 19) for _ in range(rank))
    else:
        options["scale_factor"] = tuple(rng.choice([0.4, 0.6, 1, 1.05, 1.3, 1.5, 2, 2.3, 3.7]) for _ in range(rank))
        options["recompute_scale_factor"] = rng.choice([None, False, True])
    return lambda x: F.interpolate(x, **options), (tensor(rng, 1, 2, *pixels(rng, rank, 3, 9), low=0, high=1),)


@draws
def nearest_at_the_edge_of_rounding(rng: random.Random) -> Call:
    size, count = rng.randint(1, 12), rng.randint(1, 120)
    mode = rng.choice(["nearest", "nearest-exact"])
    if rng.random() < 0.5:
        return lambda x: F.interpolate(x, size=count, mode=mode), (tensor(rng, 1, 1, size),)
    factor = count / size
    return lambda x: F.interpolate(x, scale_factor=factor, mode=mode), (tensor(rng, 1, 1, size),)


@draws
def samples_of_a_grid(rng: random.Random) -> Call:
    mode, padding = rng.choice(["bilinear", "nearest", "bicubic"]), rng.choice(["zeros", "border", "reflection"])
    align = rng.random() < 0.5
    if rng.random() < 0.3:
        return lambda x: F.grid_sample(
            x,
            F.affine_grid(torch.tensor([[[0.7, 0.2, 0.1], [0.1, 0.6, -0.3]]]), [1, 2, 4, 5], align),
            mode,
            padding,
            align,
        ), (tensor(rng, 1, 2, 4, 6),)
    return lambda x, grid: F.grid_sample(x, grid, mode, padding, align), (
        tensor(rng, 2, 3, 4, 6), tensor(rng, 2, 3, 5, 2, low=-1.4, high=1.4))  # fmt: skip


@draws
def unfolded_and_folded(rng: random.Random) -> Call:
    kernel, dilation, padding, stride = [(rng.randint(1, 2), rng.randint(1, 2)) for _ in range(4)]
    padding = (padding[0] - 1, padding[1] - 1)
    x = tensor(rng, 2, 3, 6, 7)
    columns = F.unfold(x, kernel, dilation, padding, stride)
    if rng.random() < 0.5:
        return lambda x: F.fold(x, (6, 7), kernel, dilation, padding, stride), (columns,)
    return lambda x: F.unfold(x, kernel, dilation, padding, stride), (x,)


# -------------------------------------------------------------------------------------------------------------- moves
@draws
def padding(rng: random.Random) -> Call:
    mode, rank = rng.choice(["constant", "reflect", "replicate", "circular"]), rng.randint(1, 3)
    least = -1 if mode == "constant" else 0
    pads = [rng.randint(least, 2) for _ in range(2 * rank)]
    value = rng.choice([0.0, 1.5, -2.0, float("-inf")]) if mode == "constant" else None
    return lambda x: F.pad(x, pads, mode, value), (tensor(rng, 2, 3, *pixels(rng, rank, 3, 5)),)


@draws
def moves(rng: random.Random) -> Call:
    dim, step, start, end = rng.choice([0, 1, 2, -1, -2]), rng.randint(1, 3), rng.randint(-5, 3), rng.randint(-2, 7)
    shifts = rng.choice([((1, -2), (0, 2)), (3, 1), (-1, -1), (2, None)])
    form = rng.choice(
        [
            lambda x: (
                torch.ops.aten.slice(x, dim, start, end, step) if start % x.shape[dim] < end % x.shape[dim] else x
            ),
            lambda x: torch.flip(x, [dim]),
            lambda x: torch.flip(x, []),
            lambda x: torch.roll(x, *shifts),
            lambda x: x.unfold(dim, 2, step),
            lambda x: torch.squeeze(x[:1, :, None], (0, 2)),
            lambda x: torch.squeeze(x[:1], ()),
            lambda x: torch.squeeze(x[:1], dim),
            lambda x: torch.unsqueeze(x, dim),
            lambda x: torch.stack([x, x + 1], dim),
            lambda x: torch.cat([x, x + 1], dim),
            lambda x: tuple(torch.split(x, 2, dim)),
            lambda x: tuple(torch.chunk(x, 3, dim)),
            lambda x: tuple(torch.tensor_split(x, 3, dim)),
            lambda x: tuple(torch.unbind(x, dim)),
            lambda x: x.select(dim, -1),
            lambda x: x.movedim(0, dim),
            lambda x: torch.rot90(x, step, (0, 2)),
            lambda x: x.repeat(2, 1, 3, 1),
            lambda x: torch.repeat_interleave(x, 2, dim),
            lambda x: torch.tile(x, (2, 3)),
            lambda x: torch.narrow(x, dim, 1, 2),
            lambda x: torch.select_scatter(x, x.select(dim, 0) + 1, dim, -1),
            lambda x: torch.slice_scatter(x, x[:, :2] + 1, 1, 0, 4, 2),
            lambda x: torch.as_strided(x, (2, 3), (step, 2), 5),
            lambda x: torch.swapaxes(x, 0, dim),
            lambda x: torch.diff(x, 1, dim),
            lambda x: torch.index_select(x, dim, torch.tensor([2, 0])),
            lambda x: x.expand(2, -1, -1, -1),
            lambda x: x.unflatten(1, (2, -1)).flatten(start_dim=1, end_dim=2),
            lambda x: torch.take_along_dim(x, torch.tensor([[[1]]]), 2),
            lambda x: torch.channel_shuffle(x[None].repeat(1, 2, 1, 1)[:, :4], 2),
            lambda x: F.pixel_shuffle(x.repeat(2, 1, 1).reshape(8, 3, 5)[None], 2),
            lambda x: F.pixel_unshuffle(x[:, None, :, :4], 2),
        ]
    )
    return form, (tensor(rng, 3, 4, 5),)


@draws
def one_hot(rng: random.Random) -> Call:
    count = rng.choice([6, 9])
    return lambda x: F.one_hot(x, count), (whole(rng, 3, 4, low=0, high=6, dtype=torch.int64),)


@draws
def scattered(rng: random.Random) -> Call:
    dim, mode = rng.choice([0, 1, -1]), rng.choice(["sum", "prod", "mean", "amax", "amin"])
    own, accumulate, alpha = rng.random() < 0.5, rng.random() < 0.5, rng.choice([1, 2.5])
    x, index, values = tensor(rng, 5, 5), whole(rng, 5, 5, low=0, high=5, dtype=torch.int64), tensor(rng, 5, 5)
    row = torch.randperm(5)[:3]
    form = rng.choice(
        [
            lambda x, index, values: x.scatter(dim, index, values),
            lambda x, index, _: x.scatter(dim, index, 1.5),
            lambda x, index, values: x.scatter_add(dim, index, values),
            lambda x, index, values: x.scatter(dim, index, values, reduce="add"),
            lambda x, index, values: x.scatter_reduce(dim, index, values, mode, include_self=own),
            lambda x, index, values: x.gather(dim, index) + values,
            lambda x, index, values: x.index_put((index[0], index[1]), values[0], accumulate=True),
            lambda x, _, values: x.index_put((row,), values[:3], accumulate=accumulate),
            lambda x, _, values: x.index_add(dim, row, values[:3] if dim == 0 else values[:, :3], alpha=alpha),
            lambda x, _, values: x.index_copy(dim, row, values[:3] if dim == 0 else values[:, :3]),
            lambda x, _, __: x.index_fill(dim, row, 0.5),
            lambda x, _, values: x.masked_fill(values > 0, alpha),
            lambda x, _, values: torch.index_reduce(x, 0, row, values[:3], "prod", include_self=own),
        ]
    )
    if rng.random() < 0.2:
        return lambda x, index: x.scatter(dim, index, 2.0), (x, index)
    return lambda *items: form(*items) + items[1] * 0, (x, index, values)


@draws
def tables(rng: random.Random) -> Call:
    mode, padding_idx = rng.choice(["sum", "mean", "max"]), rng.choice([None, 0, 3])
    last = rng.random() < 0.5
    table = tensor(rng, 10, 4)
    words = whole(rng, 3, 5, low=0, high=10, dtype=torch.int64)
    if rng.random() < 0.4:
        return lambda words: F.embedding(words, table, padding_idx, scale_grad_by_freq=last, sparse=True), (words,)
    if rng.random() < 0.4:
        offsets = torch.tensor([0, 2, 3, 7])
        return lambda words: F.embedding_bag(
            words, table, offsets, mode=mode, include_last_offset=last, padding_idx=padding_idx
        ), (words.reshape(-1)[:7],)
    if mode == "sum":
        return lambda words, weights: F.embedding_bag(
            words, table, mode=mode, per_sample_weights=weights, padding_idx=padding_idx
        ), (words, tensor(rng, 3, 5))
    return lambda words: F.embedding_bag(words, table, mode=mode, padding_idx=padding_idx), (words,)


@draws
def attention(rng: random.Random) -> Call:
    scale, causal, grouped = rng.choice([None, 0.3, 2.0]), rng.random() < 0.5, rng.random() < 0.5
    heads = 2 if grouped else 4
    q, k, v = tensor(rng, 2, 4, 5, 8), tensor(rng, 2, heads, 5, 8), tensor(rng, 2, heads, 5, 8)
    mask = None if causal else rng.choice([None, tensor(rng, 5, 5), tensor(rng, 5, 5) > -1])
    if mask is None:
        return lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=causal, scale=scale, enable_gqa=grouped
        ), (q, k, v)
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=grouped), (q, k, v)


@draws
def distances(rng: random.Random) -> Call:
    p = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
    mode = rng.choice(["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
    if rng.random() < 0.3:
        return lambda x: torch.pdist(x, p), (tensor(rng, 5, 4),)
    if rng.random() < 0.5:
        keepdim = rng.random() < 0.5
        return lambda x, y: F.pairwise_distance(x, y, p or 1.0, 0.1, keepdim), (tensor(rng, 5, 4), tensor(rng, 5, 4))
    return lambda x, y: torch.cdist(x, y, p, mode), (tensor(rng, 5, 4), tensor(rng, 3, 4))


@draws
def transforms(rng: random.Random) -> Call:
    norm, n, dim = rng.choice([None, "ortho", "forward", "backward"]), rng.choice([None, 4, 9]), rng.choice([0, 1, -1])
    form = rng.choice(
        [
            lambda x: torch.view_as_real(torch.fft.fft(x, n, dim, norm)),
            lambda x: torch.view_as_real(torch.fft.rfft(x, n, dim, norm)),
            lambda x: torch.fft.irfft(torch.fft.rfft(x, n, dim, norm), n, dim, norm),
            lambda x: torch.view_as_real(torch.fft.ifft(x, n, dim, norm).resolve_conj()),
            lambda x: torch.view_as_real(torch.fft.fft2(x, None, (-2, -1), norm)),
            lambda x: torch.fft.fftshift(x, dim),
        ]
    )
    return form, (tensor(rng, 6, 8),)


# ------------------------------------------------------------------------------------------------------------- losses
@draws
def losses_by_class(rng: random.Random) -> Call:
    reduction, smoothing = rng.choice(["none", "mean", "sum"]), rng.choice([0.0, 0.1, 0.4])
    ignore, weighted, space = rng.choice([-100, 0, 2, 7]), rng.random() < 0.5, rng.random() < 0.3
    weight = tensor(rng, 5, low=0.5, high=2) if weighted else None
    shape = (4, 3) if space else (4,)
    target = whole(rng, *shape, low=0, high=5, dtype=torch.int64)
    x = tensor(rng, 4, 5, *shape[1:])
    if rng.random() < 0.3:
        return lambda x, y: F.nll_loss(x, y, weight, ignore_index=ignore, reduction=reduction), (x, target)
    if rng.random() < 0.2:
        chances = tensor(rng, *x.shape, low=0, high=1)
        return lambda x, y: F.cross_entropy(x, y, weight, reduction=reduction, label_smoothing=smoothing), (x, chances)
    return lambda x, y: F.cross_entropy(
        x, y, weight, ignore_index=ignore, reduction=reduction, label_smoothing=smoothing
    ), (x, target)


@draws
def losses(rng: random.Random) -> Call:
    reduction, a = rng.choice(["none", "mean", "sum"]), rng.choice([0.3, 1.0, 2.5])
    flag, other = rng.random() < 0.5, rng.random() < 0.5
    weight = tensor(rng, 5, low=0.5, high=2)
    form = rng.choice(
        [
            lambda x, y: F.mse_loss(x, y, reduction=reduction),
            lambda x, y: F.l1_loss(x, y, reduction=reduction),
            lambda x, y: F.smooth_l1_loss(x, y, reduction=reduction, beta=a),
            lambda x, y: F.huber_loss(x, y, reduction=reduction, delta=a),
            lambda x, y: F.kl_div(x, y.sigmoid(), reduction=reduction, log_target=flag),
            lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), weight, reduction=reduction),
            lambda x, y: F.binary_cross_entropy_with_logits(
                x, y.sigmoid(), weight, reduction=reduction, pos_weight=weight
            ),
            lambda x, y: F.poisson_nll_loss(x, y.sigmoid() + 1.5, flag, other, eps=a, reduction=reduction),
            lambda x, y: F.gaussian_nll_loss(x, y, y.square() + 0.1, flag, a, reduction),
            lambda x, y: F.hinge_embedding_loss(x, y.sign(), a, reduction=reduction),
            lambda x, y: F.soft_margin_loss(x, y.sign(), reduction=reduction),
            lambda x, y: F.margin_ranking_loss(x, y, y.sign(), a, reduction=reduction),
            lambda x, y: F.triplet_margin_loss(x, y, x + y, a, 2.0, 0.1, flag, reduction=reduction),
            lambda x, y: F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1, 1]), a / 3, reduction=reduction),
        ]
    )
    return form, (tensor(rng, 4, 5), tensor(rng, 4, 5))
