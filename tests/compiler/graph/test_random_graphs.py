"""Random graphs over all front-end ops: no findings, and the netlist gives what numpy gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.frontend_ops.scatter import REDUCTIONS
from buda_emu.compiler.fuse.epilogues import use_integers
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.registry import front_ops
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.parted import evaluate
from buda_emu.compiler.pipeline import core_graph
from buda_emu.compiler.search.placer import place
from buda_emu.compiler.target import Target
from fused_tiles import fuse

MOST = 20_000
"""Elements of a value, so that an example takes no second."""


class Making:
    """A graph that grows. `smooth`: values of around 1 whose last bits may differ; `grid`: multiples of 1/2 that are
    exact, for ops that jump."""

    def __init__(self, draw):
        self.draw = draw
        sizes = st.sampled_from([1, 1, 2, 3, 5, 31, 32, 33, 64, 1000])
        shape = draw(st.lists(sizes, min_size=1, max_size=4).filter(lambda found: np.prod(found) <= MOST / 4))
        self.b = b = Builder(Shown("g"), decompose=False)
        self.rng = np.random.default_rng(draw(st.integers(0, 1 << 20)))
        self.smooth = [b.input("x", tuple(shape), "float32")]
        self.grid = [b.input("n", tuple(shape), "float32")]
        self.index = b.input("index", (3,), "int64")

    def pick(self, items):
        return self.draw(st.sampled_from(list(items)))

    def dim(self, y):
        return self.draw(st.integers(0, len(y.shape) - 1))

    def constant(self, *shape):
        return self.b.constant(self.rng.standard_normal(shape).astype(np.float32) / 2)

    def partner(self, y):
        """Of another shape that broadcasts: fewer dimensions, some of size 1; a value, a constant, or y itself."""
        kind = self.pick(["reduced", "constant", "itself", "other"])
        if kind == "constant":
            shape = [size if self.pick([True, False]) else 1 for size in y.shape]
            return self.constant(*shape[self.draw(st.integers(0, len(shape))) :])
        if kind == "reduced":
            axes = tuple(k for k in range(len(y.shape)) if self.pick([True, False]))
            return self.b.reduce_mean(y, axes=axes) if axes else y
        same = [node for node in self.smooth if node.shape == y.shape]
        return self.pick(same) if same and kind == "other" else y

    def image(self, y):
        """As [N, C, H, W]."""
        shape = (*y.shape, 1, 1, 1)[: max(4, len(y.shape))]
        if len(shape) > 4:
            shape = (*shape[:3], int(np.prod(shape[3:])))
        y = self.b.reshape(y, shape=shape)
        return y if shape[1] <= 40 else self.b.slice(y, dim=1, start=0, count=40)

    def small(self, y):
        """With no dimension above 40."""
        for dim, size in enumerate(y.shape):
            if size > 40:
                y = self.b.slice(y, dim=dim, start=size - 40, count=40)
        return y


def plain(*names, before=None, **attrs):
    """An op on one value, which `before` brings to where the op is tame."""

    def apply(m, y, name):
        return m.b.emit(name, before(m.b, y) if before else y, **attrs)

    return dict.fromkeys(names, apply)


def two(*names, left=None, right=None):
    """An op on two values that broadcast."""

    def apply(m, y, name):
        a, b = (left(m.b, y) if left else y), m.partner(y)
        return m.b.emit(name, a, right(m.b, b) if right else b)

    return dict.fromkeys(names, apply)


def along(*names, **attrs):
    """Over some dimensions."""

    def apply(m, y, name):
        axes = tuple(sorted({m.dim(y), m.dim(y)}))
        return m.b.emit(name, y, axes=axes, **attrs)

    return dict.fromkeys(names, apply)


def tame(b, y):
    return b.tanh(y)


def half(b, y):
    return b.multiply(b.tanh(y), 0.5)


def positive(b, y):
    return b.add(b.sigmoid(y), 0.25)


def above_one(b, y):
    return b.add(b.sigmoid(y), 1.5)


def matmul(m, y, _):
    y = m.small(y if len(y.shape) > 1 else m.b.reshape(y, shape=(1, *y.shape)))
    other = y.shape[-1], m.pick([1, 31, 33])
    kind = m.pick(["right", "left", "itself"])
    if kind == "right":
        return m.b.matmul(y, m.constant(*other))
    if kind == "left":
        return m.b.matmul(m.constant(m.pick([1, 31, 33]), y.shape[-2]), y)
    order = (*range(len(y.shape) - 2), len(y.shape) - 1, len(y.shape) - 2)
    return m.b.matmul(y, m.b.transpose(y, perm=order))


def window(m, y):
    space = y.shape[2:]
    kernel = tuple(min(m.pick([1, 2, 3]), size) for size in space)
    return {
        "kernel": kernel,
        "strides": tuple(m.pick([1, 2]) for _ in space),
        "dilations": (1,) * len(space),
        "pads": tuple((m.pick([0, k // 2]), k // 2) for k in kernel),
    }


def conv(m, y, name):
    y = m.image(y)
    attrs = window(m, y)
    kernel, channels = attrs.pop("kernel"), y.shape[1]
    groups = m.pick([1, channels])
    if name == "conv_transpose":
        w = m.constant(channels, 2 if groups == 1 else 1, *kernel)
    else:
        w = m.constant(channels if groups > 1 else 5, channels // groups, *kernel)
    extra = [m.constant(w.shape[0])] if name == "convolution" else []
    return m.b.emit(name, y, w, *extra, groups=groups, **attrs)


def pool(m, y, name, **attrs):
    y = m.image(y)
    return m.b.emit(name, y, **window(m, y), **attrs)


def unpool(m, y, name):
    y = m.small(y)
    attrs = window(m, m.image(y))
    return m.b.emit(name, m.b.max_pool(m.image(y), **attrs), m.image(y), **attrs)


def attention(m, y, _):
    y = m.small(y)
    y = m.b.reshape(y, shape=(1, 1, *y.shape) if len(y.shape) == 1 else (1, *y.shape) if len(y.shape) == 2 else y.shape)
    return m.b.attention(y, y, m.b.tanh(y), scale=0.5, causal=m.pick([True, False]))


def pixels(m, y, name):
    if name == "depth_to_space":
        y = m.b.reshape(y, shape=(1, int(np.prod(y.shape)), 1, 1))
        y = m.b.slice(m.b.concat(y, y, y, y, dim=1), dim=1, start=0, count=4 * (y.shape[1] // 4 or 1))
        return m.b.depth_to_space(y, block=2, columns_first=m.pick([True, False]))
    y = m.image(y)
    y = m.b.pad(y, pads=((0, 0), (0, 0), (0, y.shape[2] % 2), (0, y.shape[3] % 2)))
    return m.b.space_to_depth(y, block=2, block_first=m.pick([True, False]))


def batch_norm(m, y, _):
    y = y if len(y.shape) > 1 else m.b.reshape(y, shape=(1, *y.shape))
    c = y.shape[1]
    spread = m.b.constant(np.linspace(0.5, 2, c, dtype=np.float32))
    return m.b.batch_norm(y, m.constant(c), m.constant(c), m.constant(c), spread, epsilon=1e-3)


def group_norm(m, y, _):
    y = y if len(y.shape) > 1 else m.b.reshape(y, shape=(1, *y.shape))
    c = y.shape[1]
    groups = m.pick([n for n in (1, 2, c) if c % n == 0])
    return m.b.group_norm(y, m.constant(c), m.constant(c), groups=groups, epsilon=1e-1)


def reshape(m, y, _):
    at = m.draw(st.integers(0, len(y.shape)))
    return m.b.reshape(y, shape=(int(np.prod(y.shape[:at])), int(np.prod(y.shape[at:]))))


def slice_(m, y, _):
    dim = m.dim(y)
    start = m.draw(st.integers(0, y.shape[dim] - 1))
    step = m.pick([1, 2])
    return m.b.slice(y, dim=dim, start=start, count=-(-(y.shape[dim] - start) // step), step=step)


def pad(m, y, _):
    mode = m.pick(["constant", "edge", "reflect", "wrap"])
    pads = tuple((m.pick([0, 1]), m.pick([0, 2])) if size > 3 else (0, 0) for size in y.shape)
    return m.b.pad(y, pads=pads, mode=mode, value=1.5 if mode == "constant" else 0.0)


def permuted(m, y):
    return tuple(m.draw(st.permutations(range(len(y.shape)))))


def quantised(m, y, name):
    scale, zero = m.b.constant(np.float32(0.25)), m.b.constant(np.float32(3))
    return m.b.emit(name, y, scale, zero, **({"type": "int8"} if name == "quantize" else {}))


def of_8_bits(m, y, _):
    """Both ops: nothing else reads what is between them."""
    whole = m.b.to_int8(y, m.b.constant(np.float32(4)), zero=3.0)
    return m.b.from_int8(whole, m.b.constant(np.float32(0.25)), zero=3.0)


def gathered(m, y, name):
    dim = m.dim(y)
    if name == "gather_elements":
        y = m.small(y)
        index = m.b.constant(m.rng.integers(0, y.shape[dim], tuple(y.shape)))
        return m.b.gather_elements(y, index, dim=dim)
    return m.b.gather(y, m.index, dim=dim)


def scattered(m, y, _):
    y = m.small(y)
    dim, shape = m.dim(y), list(y.shape)
    shape[dim] = 3
    hot = m.b.one_hot(m.b.constant(m.rng.integers(0, y.shape[dim], shape)), depth=y.shape[dim])
    values = m.b.constant(m.rng.integers(-2, 3, shape).astype(np.float32) / 2)
    return m.b.scatter(y, hot, values, dim=dim, reduction=m.pick(REDUCTIONS), include_self=m.pick([True, False]))


def matrix(m, y, name):
    dim = m.dim(y)
    count = m.pick([1, 31, 33])
    rows = m.rng.integers(0, count, 2 * y.shape[dim])
    weights = m.rng.random(rows.size).astype(np.float32) / 8
    found = Sparse.of((count, y.shape[dim]), rows, np.tile(np.arange(y.shape[dim]), 2), weights).merge_duplicates()
    if name == "linear":
        return m.b.linear(y, dim=dim, matrix=found)
    return m.b.resize(y, matrices=((dim, found),))


def embedded(m, _, __):
    return m.b.embedding(m.constant(7, m.pick([1, 33])), m.index)


SMOOTH = {
    **plain("sigmoid", "tanh", "gelu_tanh", "sine", "cosine", "abs", "relu", "leaky_relu", "identity", "negative",
            "silu", "softplus", "mish", "softsign", "hard_sigmoid", "hard_swish", "elu", "erf", "gelu", "atan"),
    **plain("exp", "exp2", "square", "sinh", "cosh", "asinh", before=tame), **plain("power", before=tame, exp=3),
    **plain("tan", "asin", "acos", "atanh", before=half), **plain("clip", low=-0.5, high=0.75),
    **plain("log", "log2", "log10", "sqrt", "reciprocal", "rsqrt", before=positive), **plain("acosh", before=above_one),
    **two("add", "subtract", "multiply", "maximum", "minimum", "prelu"), **two("divide", "atan2", right=above_one),
    **two("pow", left=positive, right=tame),
    "where": lambda m, _, __: m.b.where(m.b.greater(m.grid[0], 0.0), m.grid[0], m.b.multiply(m.smooth[0], 2.0)),
    "guarded_where": lambda m, _, __: m.b.guarded_where(m.b.is_finite(m.grid[0]), m.grid[0], m.smooth[0]),
    "matmul": matmul, "conv": conv, "convolution": conv, "conv_transpose": conv, "attention": attention,
    "max_pool": pool, "avg_pool": pool, "windows": lambda m, y, name: pool(m, m.small(y), name),
    "lp_pool": lambda m, y, name: pool(m, positive(m.b, y), name, p=2),
    "linear": matrix, "resize": matrix, "reshape": reshape, "slice": slice_, "pad": pad, "embedding": embedded,
    "transpose": lambda m, y, _: m.b.transpose(y, perm=permuted(m, y)),
    "expand": lambda m, y, _: m.b.expand(m.b.reduce_mean(y, axes=(0,)), shape=y.shape),
    "concat": lambda m, y, _: m.b.concat(y, m.b.tanh(y), dim=m.dim(y)),
    "take": lambda m, y, _: m.b.take(y, dim=0, index=m.rng.integers(-1, y.shape[0], 5)),
    "repeat": lambda m, y, _: m.b.repeat(m.small(y), dim=m.dim(y), times=2),
    "tile": lambda m, y, _: m.b.tile(m.small(y), repeats=[m.pick([1, 2]) for _ in y.shape]),
    "depth_to_space": pixels, "space_to_depth": pixels, "gather": gathered, "gather_elements": gathered,
    **along("reduce_sum", "reduce_mean", "reduce_largest", "reduce_smallest", "reduce_sum_square", "reduce_l1",
            "reduce_log_sum_exp"),
    "reduce_max": lambda m, y, _: m.b.reduce_max(y, dim=m.dim(y)),
    "reduce_l2": lambda m, y, _: m.b.reduce_l2(positive(m.b, y), axes=(m.dim(y),)),
    "reduce_lp": lambda m, y, _: m.b.reduce_lp(positive(m.b, y), p=m.pick([-1.0, 0.5, 3.0]), axes=(m.dim(y),)),
    "reduce_log_sum": lambda m, y, _: m.b.reduce_log_sum(positive(m.b, y), axes=(m.dim(y),)),
    "reduce_product": lambda m, y, _: m.b.reduce_product(above_one(m.b, m.small(y)), axes=(0,), keepdims=True),
    "cumsum": lambda m, y, _: m.b.cumsum(m.small(y), dim=m.dim(y), reverse=m.pick([True, False])),
    "cumprod": lambda m, y, _: m.b.cumprod(tame(m.b, m.small(y)), dim=m.dim(y), exclusive=m.pick([True, False])),
    "softmax": lambda m, y, _: m.b.softmax(y, dim=m.dim(y)),
    "log_softmax": lambda m, y, _: m.b.log_softmax(y, dim=m.dim(y)),
    "standardise": lambda m, y, _: m.b.standardise(y, axes=(m.dim(y),), epsilon=0.1),
    "rms_normalise": lambda m, y, _: m.b.rms_normalise(y, axes=(m.dim(y),), epsilon=0.1),
    "layer_norm": lambda m, y, _: m.b.layer_norm(y, m.constant(y.shape[-1]), rank=1, epsilon=0.1),
    "lp_normalise": lambda m, y, _: m.b.lp_normalise(positive(m.b, y), dim=m.dim(y), p=m.pick([1, 2])),
    "batch_norm": batch_norm, "group_norm": group_norm,
}  # fmt: skip
JUMPS = {
    **plain("round", "floor", "ceil", "truncate", "sign", "boolean", "is_nan", "is_infinite", "is_finite"),
    **plain("round_decimals", decimals=1), "scatter": scattered, "max_pool_places": pool, "max_unpool": unpool,
    "logical_not": lambda m, y, _: m.b.logical_not(m.b.greater(y, 0.0)),
    **{name: (lambda m, y, name: m.b.emit(name, y, m.pick([y, m.b.constant(np.float32(0.5))])))
       for name in ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "not_less")},
    **{name: (lambda m, y, name: m.b.emit(name, m.b.greater(y, 0.0), m.b.less(y, 1.0)))
       for name in ("logical_and", "logical_or", "logical_xor")},
    "modulo": lambda m, y, _: m.b.modulo(y, 1.5), "whole_quotient": lambda m, y, _: m.b.whole_quotient(y, 0.75),
    "argmax": lambda m, y, _: m.b.argmax(y, dim=m.dim(y)),
    "rank": lambda m, y, _: m.b.rank(m.small(y), descending=m.pick([True, False])),
    "ordered": lambda m, y, _: m.b.ordered(m.small(y), dim=0, count=1),
    "order": lambda m, y, _: m.b.order(m.small(y), dim=0, count=1),
    "one_hot": lambda m, _, __: m.b.one_hot(m.index, depth=7),
    "quantize": quantised, "dequantize": quantised, "to_int8": of_8_bits, "from_int8": of_8_bits,
}  # fmt: skip
GROW = {"reduce_sum", "reduce_sum_square", "reduce_l1", "cumsum", "matmul", "linear", "conv", "convolution",
        "conv_transpose", "reduce_product", "reduce_l2", "attention", "square", "resize"}  # fmt: skip
"""What is brought back to around 1 after them."""


class Shown(Graph):
    """Of which a failure shows the text."""

    def __repr__(self):
        return f"\n{self.text()}\n"


@st.composite
def graphs(draw, most=4):
    """Up to so many ops, of what is not yet too large; one or two outputs, perhaps a constant."""
    m = Making(draw)
    for _ in range(draw(st.integers(1, most))):
        if m.pick([True, True, True, False]):
            name = m.pick(sorted(SMOOTH))
            y = SMOOTH[name](m, m.pick([node for node in m.smooth if np.prod(node.shape) <= MOST / 4]), name)
            m.smooth.append(m.b.tanh(m.b.multiply(y, 0.25)) if name in GROW else y)
        else:
            name = m.pick(sorted(JUMPS))
            y = JUMPS[name](m, m.grid[0], name)
            m.smooth.append(m.b.multiply(y, 0.5, dtype="float32"))
    shown = [m.smooth[-1], m.pick(m.smooth)]
    if m.pick([True, False, False]):
        shown.append(m.constant(3, 33))
    m.b.graph.outputs = [Output(f"out{k}", node.name, "float32") for k, node in enumerate(shown)]
    return m.b.graph


def inputs_of(graph, seed=1):
    rng = np.random.default_rng(seed)
    shape = graph["x"].shape
    return {
        "x": rng.standard_normal(shape).astype(np.float32),
        "n": rng.integers(-4, 5, shape).astype(np.float32) / 2,
        "index": np.array([0, 0, 0]),
    }


def holds(graph, arch="wormhole_b0", fused=True):
    """No findings, and numpy's values."""
    if any(node.op == "to_int8" for node in graph) and arch == "grayskull":
        arch = "blackhole"  # which has such ops
    target, inputs = Target.from_names(arch, "Float16_b", "HiFi3"), inputs_of(graph)
    with np.errstate(all="ignore"):
        expected = evaluate(graph, inputs)
    made = core_graph(graph, target)
    tiles = use_integers(lower(made, target))
    compiled = CompiledModel(made, place(fuse(tiles, target) if fused else tiles, target), "test")
    found = [str(item) for item in compiled.check(strict=True)]
    assert not found, found
    try:
        for got, output in zip(compiled.run(inputs), graph.outputs, strict=True):
            want = expected[output.value]
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4 * max(1.0, float(np.abs(want).max())))
    finally:
        compiled.close()


def test_every_front_end_op_is_among_them():
    assert {op.name for op in front_ops()} == {*SMOOTH, *JUMPS, "host"}


@settings(max_examples=30, deadline=None, derandomize=True)
@given(graphs(), st.sampled_from(["wormhole_b0", "grayskull", "blackhole"]), st.booleans())
def test_a_random_graph_is_its_numpy_reference_and_has_no_findings(graph, arch, fused):
    holds(graph, arch, fused)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(graphs(8), st.sampled_from(["wormhole_b0", "grayskull", "blackhole"]), st.booleans())
def test_many_random_graphs(graph, arch, fused):
    holds(graph, arch, fused)
