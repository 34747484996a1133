"""What is put side by side stays apart where a sum follows; columns of a product are a product by columns."""

import numpy as np
import pytest

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.parted import evaluate
from buda_emu.compiler.passes.clean import decompose
from buda_emu.compiler.passes.slices import slice_products, split_concats

RNG = np.random.default_rng(5)


def attention(*, slots=4, shown=False):
    """Over the keys and values of a cache and its own, with a mask put together likewise."""
    graph = Graph("attention")
    b = Builder(graph, decompose=False)
    q = b.input("q", (2, 32, 16), "float32")
    k = b.input("k", (2, 32, 16), "float32")
    keys = b.state("keys", RNG.standard_normal((2, 128, 16), np.float32), slots=slots, dim=1)
    mask = b.concat(b.expand(b.input("m", (1, 128), "float32"), shape=(32, 128)), np.tril(np.ones((32, 32))), dim=1)
    both = b.concat(keys, k, dim=1)
    scores = b.add(b.matmul(q, b.transpose(both, perm=(0, 2, 1))), mask)
    made = b.matmul(b.softmax(scores, dim=-1), both)
    graph.outputs = [Output("y", made.name, "float32"), Output("k", k.name, "float32", state="keys")]
    if shown:
        graph.outputs.append(Output("scores", scores.name, "float32"))
    return decompose(graph)


def same_values(one, other, inputs):
    """All outputs of two graphs."""
    first, second = evaluate(one, inputs), evaluate(other, inputs)
    for before, behind in zip(one.outputs, other.outputs, strict=True):
        np.testing.assert_allclose(second[behind.value], first[before.value], rtol=2e-5, atol=2e-6)


def inputs_of(graph):
    """Random ones."""
    nodes = [graph[name] for name in graph.inputs]
    return {node.attrs["label"]: RNG.standard_normal(node.shape, np.float32) for node in nodes}


def test_attention_over_a_cache_puts_nothing_side_by_side():
    graph = attention()
    made = split_concats(graph)
    assert [node.op for node in made].count("concat") == 0
    assert [node.op for node in graph].count("concat") == 2
    same_values(graph, made, inputs_of(graph))


@pytest.mark.parametrize("graph", [attention(shown=True), attention(slots=1)], ids=["shown", "no slots"])
def test_what_is_read_whole_or_comes_of_no_cache_stays_together(graph):
    assert split_concats(graph) is graph


def test_what_a_reader_needs_whole_keeps_all_that_it_met_together():
    graph = attention()
    b = Builder(graph)
    mask = next(node for node in graph if node.op == "concat")
    graph.outputs.append(Output("moved", b.linear(mask, dim=1, matrix=Sparse.gather([3, 5], 160)).name, "float32"))
    made = split_concats(graph)  # a selection is a sum over both parts, of which one gives nothing
    same_values(graph, made, inputs_of(graph))
    graph.outputs.append(Output("mask", mask.name, "float32"))
    assert split_concats(graph) is graph


def branches(*, out=32, stride=1, between=(), also=None, sizes=(32, 64, 32), kernel=3):
    """A convolution of channels of several branches side by side, after the ops `between`."""
    graph = Graph("branches")
    b = Builder(graph, decompose=False)
    given = [b.relu(b.input(f"x{number}", (1, size, 8, 8), "float32")) for number, size in enumerate(sizes)]
    x = b.concat(*given, dim=1)
    if also is not None:
        graph.outputs.append(Output("also", also(b, x).name, "float32"))
    for op in between:
        x = op(b, x)
    weights = RNG.standard_normal((out, x.shape[1], kernel, kernel), np.float32)
    pad = kernel // 2
    y = b.conv(x, weights, strides=(stride,) * 2, pads=((pad, pad),) * 2, dilations=(1, 1), groups=1)
    graph.outputs.append(Output("y", b.add(y, RNG.standard_normal((out, 1, 1), np.float32)).name, "float32"))
    return decompose(graph)


def norm(b, x):
    """A batch norm with a clamp."""
    count = (x.shape[1], 1, 1)
    scaled = b.multiply(x, RNG.standard_normal(count, np.float32))
    return b.relu(b.add(scaled, RNG.standard_normal(count, np.float32)))


def pool(b, x):
    """A maximum of windows."""
    return b.max_pool(x, kernel=(2, 2), strides=(2, 2), pads=((0, 0),) * 2, dilations=(1, 1))


def another(b, x):
    """A second convolution of the same channels."""
    weights = RNG.standard_normal((32, x.shape[1], 1, 1), np.float32)
    return b.conv(x, weights, strides=(1, 1), pads=((0, 0),) * 2, dilations=(1, 1), groups=1)


@pytest.mark.parametrize(
    "given",
    [{}, {"kernel": 1, "sizes": (40, 8, 80)}, {"stride": 2}, {"between": (norm,)}, {"between": (norm, pool)},
     {"also": another}],
    ids=["3 x 3", "1 x 1", "stride", "norm", "norm and pool", "two readers"],
)  # fmt: skip
def test_a_convolution_of_several_branches_is_a_sum_of_convolutions(given):
    graph = branches(**given)
    made = split_concats(graph)
    assert not any(node.op == "concat" for node in made)
    same_values(graph, made, inputs_of(graph))
    whole, shares = ([of[node.inputs[1]].value for node in of if node.op == "conv"] for of in (graph, made))
    assert len(shares) == 3 * len(whole)
    assert all(any(np.shares_memory(share, one) for one in whole) for share in shares)  # nothing is copied


@pytest.mark.parametrize(
    "given",
    [{"out": 512}, {"also": lambda b, x: b.exp(x)}, {"sizes": (4, 4, 4, 4), "kernel": 5},
     {"between": (lambda b, x: b.multiply(x, b.input("gate", (1, 128, 1, 1), "float32")),)}],
    ids=["many more channels", "read whole", "parts of less than a tile", "times a whole tensor"],
)  # fmt: skip
def test_branches_stay_side_by_side(given):
    graph = branches(**given)
    assert split_concats(graph) is graph


def test_channels_that_are_taken_of_one_branch_are_taken_of_it_alone():
    graph = branches(between=(lambda b, x: b.linear(x, dim=1, matrix=Sparse.gather(range(40, 80), 128)),))
    made = split_concats(graph)
    assert [node.op for node in made].count("linear") == 1
    assert not any(node.op == "concat" for node in made)
    same_values(graph, made, inputs_of(graph))


def product(columns, *, bias=True, also=False):
    """Columns of one product, one op for each list of them."""
    graph = Graph("product")
    b = Builder(graph)
    x = b.input("x", (1, 8, 6), "float32")
    y = b.matmul(x, RNG.standard_normal((6, 12), np.float32))
    y = b.add(y, RNG.standard_normal(12, np.float32)) if bias else y
    made = [b.linear(y, dim=2, matrix=Sparse.gather(own, 12)) for own in columns]
    made += [b.exp(y)] if also else []
    graph.outputs = [Output(f"y{n}", node.name, "float32") for n, node in enumerate(made)]
    return graph


@pytest.mark.parametrize("bias", [True, False])
def test_columns_of_a_product_are_products_by_columns(bias):
    graph = product([range(4), range(4, 8), range(11, 7, -1)], bias=bias)
    made = slice_products(graph)
    assert not any(node.op == "linear" for node in made)
    products = [node for node in made if node.op == "matmul"]
    assert [node.shape for node in products] == [(1, 8, 4)] * 3
    (whole,) = (node.value for node in graph if node.op == "constant" and node.shape == (6, 12))
    shared = [np.shares_memory(made[node.inputs[1]].value, whole) for node in products]
    assert shared == [True, True, False]  # large ones are not copied where they lie side by side
    same_values(graph, made, inputs_of(graph))


@pytest.mark.parametrize(
    "graph",
    [product([range(4)], also=True), product([range(12), range(4)]), product([[3, -1]])],
    ids=["read by another op", "more columns than there are", "a zero"],
)
def test_products_that_are_read_otherwise_stay(graph):
    assert slice_products(graph) is graph
