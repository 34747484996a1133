"""Arguments for the overloads of core ATen, drawn from a seed: by their schema, or by a function of their name."""

import numpy as np
import torch

aten = torch.ops.aten


class Drawing:
    """Draws tensors and numbers. `rank` is that of the next tensors, `shape` theirs unless one is asked for."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.shape = self.sizes(int(self.rng.integers(2, 4)))

    def sizes(self, rank):
        return tuple(int(size) for size in self.rng.integers(2, 6, rank))

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def floats(self, *shape):
        """Not near 0 or a whole number, where ops jump or have poles."""
        size = self.rng.integers(-2, 3, shape) + self.rng.uniform(0.2, 0.8, shape)
        return torch.tensor(size, dtype=torch.float32)

    def within(self, low, high):
        return torch.tensor(self.rng.uniform(low, high, self.shape), dtype=torch.float32)

    def logical(self, *shape):
        return torch.tensor(self.rng.integers(0, 2, shape or self.shape) > 0)

    def index(self, most, *shape):
        return torch.tensor(self.rng.integers(0, most, shape))

    def x(self):
        return self.floats(*self.shape)

    def dim(self):
        return int(self.rng.integers(-len(self.shape), len(self.shape)))

    def image(self, rank=2):
        return self.floats(2, 4, *(int(size) for size in self.rng.integers(6, 9, rank)))


def by_schema(drawing, overload):
    """Tensors of one shape, numbers by their type and name; what has a default is left out, perhaps."""
    values = []
    options = {}
    for argument in overload._schema.arguments:
        if argument.name in ("dtype", "layout", "device", "pin_memory", "memory_format", "half_to_float"):
            value = False if argument.name == "half_to_float" else None
        elif argument.has_default_value() and drawing.pick([True, False]):
            value = argument.default_value
        else:
            value = _by_type(drawing, argument)
        if argument.kwarg_only:
            options[argument.name] = value
        else:
            values.append(value)
    return values, options


def _by_type(drawing, argument):
    kind, name = str(argument.type), argument.name
    if "Tensor" in kind:
        return drawing.x()
    if "bool" in kind:
        return drawing.pick([True, False])
    if name.startswith("dim") and "List" in kind:
        rank = len(drawing.shape)
        return sorted({int(dim) for dim in drawing.rng.integers(0, rank, 2)})
    if name.startswith("dim"):
        return drawing.dim()
    if argument.has_default_value():
        return argument.default_value
    return drawing.pick([0.75, 2.5, -1.25])


def _logical(d, overload):
    second = [] if len(overload._schema.arguments) == 1 else [d.logical()]
    if overload._overloadname == "Scalar":
        second = [d.pick([True, False])]
    return [d.logical(), *second]


def _pow(d, overload):
    if overload._overloadname == "Scalar":
        return [2.5, d.x()]
    if overload._overloadname == "Tensor_Scalar":
        return [d.within(0.3, 2), d.pick([2, 0.5, -1.5])]
    return [d.within(0.3, 2), d.x()]


def _div(d, overload):
    divisor = d.pick([0.75, -1.5]) if "Scalar" in overload._overloadname else d.x()
    if "mode" in overload._overloadname:
        return [d.x(), divisor], {"rounding_mode": d.pick(["floor", "trunc", None])}
    return [d.x(), divisor]


def _clamp(d, overload):
    if overload._overloadname == "default":
        return [d.x(), -0.5, 0.75]
    return [d.x(), d.x(), d.x() + 1]


def _scatter(d, overload):
    x, dim = d.x(), d.dim()
    places = list(d.shape)
    places[dim] = 3
    index = d.index(x.shape[dim], *places)
    if overload._opname == "scatter_reduce":
        word = d.pick(["sum", "prod", "mean", "amax", "amin"])
        return [x, dim, index, d.floats(*places), word], {"include_self": d.pick([True, False])}
    return [x, dim, index, 1.5 if overload._overloadname == "value" else d.floats(*places)]


def _index(d, _):
    return [d.x(), [None] * d.pick([0, 1]) + [d.index(2, 3)]]


def _index_put(d, _):
    x = d.x()
    return [x, [torch.tensor([1, 0])], d.floats(2, *x.shape[1:]), d.pick([True, False])]


def _slice(d, _):
    return [d.x(), d.dim(), d.pick([0, 1, -2]), d.pick([2, 100, -1]), d.pick([1, 2])]


def _slice_scatter(d, overload):
    x, dim = d.x(), d.dim()
    part = aten.slice(x, dim, 0, 1)
    return [x, d.floats(*part.shape), dim, 0, 1]


def _pads(d, overload):
    rank = int(overload._opname[-2])
    return [d.image(rank), [int(count) for count in d.rng.integers(0, 3, 2 * rank)]]


def _pool(d, overload):
    rank = next(int(letter) for letter in overload._opname if letter.isdigit())
    return [d.image(rank), [d.pick([2, 3])] * rank, [d.pick([1, 2])] * rank, [d.pick([0, 1])] * rank]


def _max_pool_backward(d, _):
    x = d.image()
    values, places = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
    return [d.floats(*values.shape), x, [2, 2], [2, 2], [0, 0], [1, 1], False, places]


def _avg_pool_backward(d, _):
    x = d.image()
    return [d.floats(*aten.avg_pool2d(x, [2, 2], [2, 2]).shape), x, [2, 2], [2, 2], [0, 0], False, True, None]


def _adaptive(d, overload):
    rank = next(int(letter) for letter in overload._opname if letter.isdigit())
    return [d.image(rank), [d.pick([2, 3])] * rank]


def _adaptive_backward(d, _):
    x = d.image()
    return [d.floats(*x.shape[:2], 2, 3), x]


def _convolution(d, overload):
    x, groups, stride, pad = d.image(), d.pick([1, 2]), d.pick([1, 2]), d.pick([0, 1])
    w = d.floats(6, 4 // groups, 3, 3)
    form = [[stride, stride], [pad, pad], [1, 1], False, [0, 0], groups]
    if overload._opname == "convolution":
        return [x, w, d.pick([None, d.floats(6)]), *form]
    result = aten.convolution(x, w, None, *form)
    return [d.floats(*result.shape), x, w, [6], *form, [True, True, True]]


def _upsampled(d, overload):
    align = [d.pick([True, False])] if "bilinear" in overload._opname else []
    sizes, factors = d.pick([([9, 5], None), (None, [2.0, 1.5])])
    return [d.image(), sizes, *align, factors]


def _grid(d, _):
    return [d.image(), d.floats(2, 3, 4, 2) / 2, d.pick([0, 1]), d.pick([0, 1]), d.pick([True, False])]


def _bag(d, _):
    return [d.floats(7, 5), d.index(7, 6), torch.tensor([0, 2, 3]), False, d.pick([0, 1, 2])]


def _batch_norm(d, overload):
    x = d.image()
    c = x.shape[1]
    affine = [d.floats(c), d.floats(c)]
    if overload._overloadname == "no_stats":
        return [x, *affine, True, 0.1, 1e-3]
    spread = torch.tensor(d.rng.uniform(0.5, 2, c), dtype=torch.float32)
    training = [True] if overload._opname == "_native_batch_norm_legit" else []
    return [x, *affine, d.floats(c), spread, *training, 0.1, 1e-3]


def _layer_norm_backward(d, _):
    x, w, b = d.floats(4, 5), d.floats(5), d.floats(5)
    _, mean, deviation = aten.native_layer_norm(x, [5], w, b, 1e-3)
    return [d.floats(4, 5), x, [5], mean, deviation, w, b, [True, True, True]]


def _group_norm_backward(d, _):
    x, w = d.floats(2, 4, 6), d.floats(4)
    _, mean, deviation = aten.native_group_norm(x, w, None, 2, 4, 6, 2, 1e-3)
    return [d.floats(2, 4, 6), x, mean, deviation, w, 2, 4, 6, 2, [True, True, True]]


def _positive(low, high):
    return lambda d, _: [d.within(low, high)]


def _size(d, _):
    return [[int(size) for size in d.sizes(2)]]


_BY_DOMAIN = {name: _positive(-0.9, 0.9) for name in ("acos", "asin", "atanh")}
_BY_DOMAIN |= {name: _positive(0.2, 3) for name in ("log", "log2", "log10", "sqrt", "rsqrt", "log1p")}
BY_NAME = {
    **_BY_DOMAIN, "acosh": _positive(1.1, 3), "exp": _positive(-2, 2),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "logical_and", "logical_or",
                     "logical_xor", "logical_not"), _logical),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), _scatter),
    "pow": _pow, "div": _div, "clamp": _clamp,
    "where": lambda d, _: [d.logical(), d.x(), d.x()],
    "copy": lambda d, _: [d.x(), d.floats(d.shape[-1])],
    "_to_copy": lambda d, _: ([d.x()], {"dtype": d.pick([torch.int32, torch.bool, torch.float32])}),
    "index": _index, "index_put": _index_put, "index_select": lambda d, _: [d.x(), d.dim(), d.index(2, 4)],
    "gather": lambda d, _: [d.x(), 0, d.index(d.shape[0], 3, *d.shape[1:])],
    "masked_scatter": lambda d, _: [d.x(), d.logical(), d.floats(200)],
    "embedding": lambda d, _: [d.floats(7, 5), d.index(7, 2, 3)], "_embedding_bag": _bag,
    "embedding_dense_backward": lambda d, _: [d.floats(3, 5), d.index(7, 3), 7, -1, False],
    "view": lambda d, _: [d.x(), [-1, d.shape[-1]]], "expand": lambda d, _: [d.floats(3, 1), [2, 3, 4]],
    "permute": lambda d, _: [d.x(), [int(dim) for dim in d.rng.permutation(len(d.shape))]],
    "repeat": lambda d, _: [d.x(), [2, *(d.pick([1, 3]) for _ in d.shape)]],
    "as_strided": lambda d, _: [d.floats(4, 5), [3, 2], [d.pick([1, 5]), 2], 1],
    "slice": _slice, "slice_scatter": _slice_scatter, "select": lambda d, _: [d.x(), d.dim(), d.pick([0, 1, -1])],
    "select_scatter": lambda d, _: [d.floats(3, 4), d.floats(4), 0, d.pick([0, -1])],
    "split_with_sizes": lambda d, _: [d.floats(5, 3), [1, 4]], "squeeze": lambda d, overload: [
        d.floats(3, 1, 2), 1 if overload._overloadname == "dim" else [0, 1]],
    "unsqueeze": lambda d, _: [d.x(), d.dim()],
    "cat": lambda d, _: [[d.floats(2, 3), d.floats(4, 3)], 0],
    "diagonal": lambda d, _: [d.x(), d.pick([-1, 0, 1]), *d.pick([(0, 1), (-1, 0)])],
    "constant_pad_nd": lambda d, _: [d.x(), [1, 0, 2, 1], 0.5], "flip": lambda d, _: [d.x(), [d.dim()]],
    **{f"{mode}_pad{rank}d": _pads for mode in ("reflection", "replication") for rank in (1, 2, 3)},
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"),
                    _pool),
    **dict.fromkeys(("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d"), _adaptive),
    "_adaptive_avg_pool2d_backward": _adaptive_backward, "avg_pool2d_backward": _avg_pool_backward,
    "max_pool2d_with_indices_backward": _max_pool_backward, "convolution": _convolution,
    "convolution_backward": _convolution, "upsample_bilinear2d": _upsampled, "upsample_nearest2d": _upsampled,
    "grid_sampler_2d": _grid, "col2im": lambda d, _: [d.floats(2, 8, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]],
    "mm": lambda d, _: [d.floats(3, 4), d.floats(4, 5)], "bmm": lambda d, _: [d.floats(2, 3, 4), d.floats(2, 4, 5)],
    "addmm": lambda d, _: ([d.floats(5), d.floats(3, 4), d.floats(4, 5)], {"beta": d.pick([1, 0.5]), "alpha": 2}),
    "_cdist_forward": lambda d, _: [d.floats(3, 4), d.floats(5, 4), d.pick([1.0, 2.0, 3.0]), None],
    "_pdist_forward": lambda d, _: [d.floats(4, 3), d.pick([1.0, 2.0, 3.0])],
    "_fft_r2c": lambda d, _: [d.floats(3, 6), [1], 0, True], "_fft_c2r": lambda d, _: [
        torch.complex(d.floats(3, 4), d.floats(3, 4)), [1], 0, 6],
    "_native_batch_norm_legit": _batch_norm, "_native_batch_norm_legit_no_training": _batch_norm,
    "native_layer_norm": lambda d, _: [d.x(), [d.shape[-1]], None, None, 1e-3],
    "native_group_norm": lambda d, _: [d.floats(2, 4, 6), d.floats(4), d.floats(4), 2, 4, 6, 2, 1e-3],
    "native_layer_norm_backward": _layer_norm_backward, "native_group_norm_backward": _group_norm_backward,
    "native_dropout": lambda d, _: [d.x(), 0.5, True], "topk": lambda d, _: [d.x(), 2, d.dim()],
    "prod": lambda d, overload: [d.x(), *([d.dim()] if overload._overloadname == "dim_int" else [])],
    "arange": lambda d, _: [0, d.pick([7, 9]), 2], "full": lambda d, _: [d.sizes(2), 1.5],
    "scalar_tensor": lambda d, _: [d.pick([2.5, -1])], "empty": _size, "rand": _size, "randn": _size,
    "randperm": lambda d, _: [d.pick([5, 7])], "empty_strided": lambda d, _: [[2, d.pick([2, 3])], [3, 1]],
    "nonzero": lambda d, _: [d.x()],
    "fill": lambda d, _: [d.x(), 1.5], "full_like": lambda d, _: [d.x(), 2.5],
}  # fmt: skip


def arguments_of(overload, seed):
    """Return arguments in order and by name, with which torch computes an overload."""
    drawing = Drawing(seed)
    draw = BY_NAME.get(overload._opname)
    if draw is None:
        return by_schema(drawing, overload)
    drawn = draw(drawing, overload)
    return drawn if isinstance(drawn, tuple) else (drawn, {})
