"""Handlers of StableHLO operators, without jax: what they make of a call, against numpy."""

from typing import Any

import numpy as np
import pytest

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Array, Graph, Node
from buda_emu.compiler.importers.from_jax.declared import HLO, Call
from buda_emu.compiler.importers.operators import NotSupportedError
from buda_emu.compiler.parted import evaluate

RNG = np.random.default_rng(0)


def made(name: str, *operands: Any, shape: tuple[int, ...], dtype: str = "float32", **given: Any) -> Array:
    """The value of an operator on arrays that are inputs, and on numbers that are constants."""
    b = Builder(Graph("g"), decompose=False)
    nodes = [
        b.input(f"x{n}", item.shape, item.dtype.name) if isinstance(item, np.ndarray) else b.constant(item)
        for n, item in enumerate(operands)
    ]
    regions = given.pop("regions", ())
    found: Node = HLO[name].handler(Call(b, tuple(nodes), (shape,), (dtype,), given, regions, name.partition(".")[2]))
    inputs = {f"x{n}": item for n, item in enumerate(operands) if isinstance(item, np.ndarray)}
    return evaluate(b.graph, inputs)[found.name]


def test_products_over_dimensions_in_any_order():
    x, y = RNG.standard_normal((5, 2, 4, 3)), RNG.standard_normal((4, 3, 6, 2))
    numbers = {
        "lhs_batching_dimensions": [1],
        "rhs_batching_dimensions": [3],
        "lhs_contracting_dimensions": [2, 3],
        "rhs_contracting_dimensions": [0, 1],
    }
    found = made("stablehlo.dot_general", x, y, shape=(2, 5, 6), dot_dimension_numbers=numbers)
    np.testing.assert_allclose(found, np.einsum("abcd,cdeb->bae", x, y), rtol=1e-5, atol=1e-5)


def test_rows_by_indices_with_the_offsets_in_front():
    x, index = RNG.standard_normal((3, 7)).astype(np.float32), np.array([[6], [0]], np.int32)
    numbers = {"offset_dims": [0], "collapsed_slice_dims": [1], "start_index_map": [1], "index_vector_dim": 1}
    found = made("stablehlo.gather", x, index, shape=(3, 2), dimension_numbers=numbers, slice_sizes=[3, 1])
    np.testing.assert_allclose(found, x[:, [6, 0]])


def test_rows_by_indices_outside_are_the_first_and_the_last():
    x = RNG.standard_normal((7, 3)).astype(np.float32)
    index = np.array([[6], [9], [-1], [-20]], np.int32)
    numbers = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0], "index_vector_dim": 1}
    found = made("stablehlo.gather", x, index, shape=(4, 3), dimension_numbers=numbers, slice_sizes=[1, 3])
    np.testing.assert_allclose(found, x[[6, 6, 0, 0]])


def test_elements_by_indices_outside_are_the_first_and_the_last():
    x = RNG.standard_normal((3, 5)).astype(np.float32)
    index = np.array([[[0], [7]], [[4], [-9]], [[-1], [2]]], np.int32)
    numbers = {
        "collapsed_slice_dims": [1],
        "start_index_map": [1],
        "index_vector_dim": 2,
        "operand_batching_dims": [0],
        "start_indices_batching_dims": [0],
    }
    found = made("stablehlo.gather", x, index, shape=(3, 2), dimension_numbers=numbers, slice_sizes=[1, 1])
    np.testing.assert_allclose(found, np.take_along_axis(x, np.clip(index[..., 0], 0, 4), 1))


@pytest.mark.parametrize("is_from_end", [True, False])
def test_rows_of_a_constant_table_by_an_input_count_from_the_end_where_jax_does(is_from_end):
    """jax writes where(i < 0, i + n, i) for `table[i]`; a gather without that has no negative indices."""
    b = Builder(Graph("g"), decompose=False)
    table = RNG.standard_normal((7, 3)).astype(np.float32)
    plain = b.input("i", (4,), "int32")
    index = plain
    if is_from_end:
        index = b.where(b.less(plain, b.constant(np.int32(0))), b.add(plain, b.constant(np.int32(7))), plain)
    numbers = {"offset_dims": [1], "collapsed_slice_dims": [0], "start_index_map": [0], "index_vector_dim": 1}
    given = {"dimension_numbers": numbers, "slice_sizes": [1, 3]}
    operands = (b.constant(table), b.reshape(index, shape=(4, 1)))
    rows = HLO["stablehlo.gather"].handler(Call(b, operands, ((4, 3),), ("float32",), given, (), "gather"))
    embedding = next(node for node in b.graph if node.op == "embedding")
    assert embedding.attrs.get("from_end", False) == is_from_end
    indices = np.array([-1, 0, -7, 3] if is_from_end else [6, 0, 0, 3], np.int32)
    np.testing.assert_array_equal(evaluate(b.graph, {"i": indices})[rows.name], table[indices])


def test_broadcasts_dimensions_in_any_order():
    x = RNG.standard_normal((3, 2)).astype(np.float32)
    found = made("stablehlo.broadcast_in_dim", x, shape=(2, 4, 3), broadcast_dimensions=[2, 0])
    np.testing.assert_array_equal(found, np.broadcast_to(x.T[:, None], (2, 4, 3)))


def test_zeros_between_elements_and_around():
    x = np.arange(1, 4, dtype=np.float32)
    options = {"interior_padding": [1], "edge_padding_low": [-1], "edge_padding_high": [2]}
    found = made("stablehlo.pad", x, 0.0, shape=(6,), **options)
    np.testing.assert_array_equal(found, [0, 2, 0, 3, 0, 0])


@pytest.mark.parametrize(
    ("name", "operands", "given", "words"),
    [
        ("stablehlo.reduce", 1.0, {"dimensions": [0], "regions": (("add",),)}, "that does not begin with 0"),
        ("stablehlo.reduce", 0.0, {"dimensions": [0], "regions": (("add", "tanh"),)}, "of add, tanh"),
        ("stablehlo.pad", 1.0, {"interior_padding": [1], "edge_padding_low": [0], "edge_padding_high": [0]}, "zeros"),
    ],
)
def test_what_is_not_taken_is_said(name: str, operands: float, given: dict[str, Any], words: str):
    with pytest.raises(NotSupportedError, match=words):
        made(name, np.ones(3, np.float32), np.float32(operands).item(), shape=(), **given)


def test_bits_of_integers_are_refused_and_bool_is_taken():
    ints, bools = np.array([1, 2], np.int32), np.array([True, False])
    with pytest.raises(NotSupportedError, match="bits of int32"):
        made("stablehlo.and", ints, ints, shape=(2,), dtype="int32")
    found = made("stablehlo.or", bools, np.array([False, False]), shape=(2,), dtype="bool")
    np.testing.assert_array_equal(found, bools)
