"""Caches and what is after them stay apart; columns of a product are a product by columns."""

import numpy as np
import pytest

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.evaluate import evaluate
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.passes.attend_in_parts import attend_in_parts
from buda_emu.compiler.passes.decompose import decompose
from buda_emu.compiler.passes.slice_products import slice_products

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
    made = attend_in_parts(graph)
    assert [node.op for node in made].count("concat") == 0
    assert [node.op for node in graph].count("concat") == 2
    same_values(graph, made, inputs_of(graph))


@pytest.mark.parametrize("graph", [attention(shown=True), attention(slots=1)], ids=["shown", "no slots"])
def test_what_is_read_whole_or_comes_of_no_cache_stays_together(graph):
    assert attend_in_parts(graph) is graph


def test_what_a_reader_needs_whole_keeps_all_that_it_met_together():
    graph = attention()
    b = Builder(graph)
    mask = next(node for node in graph if node.op == "concat")
    graph.outputs.append(Output("moved", b.linear(mask, dim=1, matrix=Sparse.gather([3, 5], 160)).name, "float32"))
    made = attend_in_parts(graph)  # a selection is a sum over both parts, of which one gives nothing
    same_values(graph, made, inputs_of(graph))
    graph.outputs.append(Output("mask", mask.name, "float32"))
    assert attend_in_parts(graph) is graph


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
