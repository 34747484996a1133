"""Passes before and after, what a graph may hold, layouts and pickers."""

from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.graph.registry import front_ops
from buda_emu.compiler.graph.sparse import Sparse
from buda_emu.compiler.graph.spec import CORE, FRONT, check_graph
from buda_emu.compiler.lower.layout import dense_layout, reshape_layout, standard
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.lower.picker import Counts, PickTable, WorkDivision
from buda_emu.compiler.passes.clean import cse, dce, decompose
from buda_emu.compiler.passes.folding import gelu
from buda_emu.compiler.pipeline import core_graph
from buda_emu.compiler.target import Target
from buda_emu.compiler.train.compile_training import softmax_from_logarithm
from buda_emu.emulator.ops.matmul_sparse import Encoding
from buda_emu.support.errors import InternalError

WORMHOLE = Target.from_names("wormhole_b0", "Float16_b", "HiFi3")


def started(*shape, decomposed=False):
    """A builder on a new graph, and its input x."""
    b = Builder(Graph("g"), decompose=decomposed)
    return b, b.input("x", shape, "float32")


def ended(b, *nodes):
    """The graph with these outputs."""
    b.graph.outputs = [Output(f"out{k}", node.name, "float32") for k, node in enumerate(nodes)]
    return b.graph


def ops(graph):
    """Names of all ops but inputs and constants."""
    return [node.op for node in graph if node.op not in ("input", "constant")]


def test_gelu_is_found_in_what_exporters_write():
    b, x = started(3, 4)
    one = b.add(b.erf(b.divide(x, np.float32(np.sqrt(2)))), 1.0)
    graph = ended(b, b.multiply(b.multiply(x, one), 0.5))
    assert ops(dce(gelu(graph))) == ["gelu"]


def test_gelu_is_left_alone_where_a_part_is_used_elsewhere():
    b, x = started(3, 4)
    one = b.add(b.erf(b.divide(x, np.float32(np.sqrt(2)))), 1.0)
    graph = ended(b, b.multiply(b.multiply(x, one), 0.5), one)
    assert "gelu" not in ops(gelu(graph))


def test_decompose_leaves_core_ops_and_folds_constants():
    b, x = started(2, 3)
    graph = ended(b, b.add(b.softmax(x, dim=-1), b.exp(b.constant(np.zeros(3, np.float32)))))
    made = decompose(graph)
    check_graph(made, CORE, "decompose")
    assert ops(made) == ["reduce_max", "subtract", "exp", "linear", "reciprocal", "multiply", "add"]


def test_products_of_constants_do_not_depend_on_blas():
    """Each element is its sum, rounded once; BLAS rounds as often as its threads and blocks make it."""
    rng = np.random.default_rng(0)
    a, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 4000), (4000, 2)))
    exact = [[fsum(x * y for x, y in zip(row, column, strict=True)) for column in c.T.tolist()] for row in a.tolist()]
    b, _ = started(1)
    assert np.array_equal(b.matmul(a, c).value, np.float32(exact))
    whole = b.conv(a[None, :1], c.T.reshape(2, 1, -1), strides=[1], dilations=[1], pads=[(0, 0)])
    assert np.array_equal(whole.value[0, :, 0], np.float32(exact[0]))


def test_the_exponential_of_a_logarithm_of_shares_is_the_shares():
    b, x = started(2, 3)
    logarithm = b.log_softmax(x, dim=0)
    graph = softmax_from_logarithm(ended(b, b.add(logarithm, b.exp(logarithm)), b.exp(x)))
    assert ops(graph) == ["log_softmax", "softmax", "add", "exp"]
    softmax = next(node for node in graph if node.op == "softmax")
    assert softmax.inputs == ("x",)
    assert softmax.attrs == {"dim": 0}
    assert ops(cse(decompose(graph))).count("exp") == 2


def test_common_joins_equal_nodes():
    b, x = started(2, 3, decomposed=True)
    graph = cse(ended(b, b.add(b.exp(x), b.exp(x))))
    assert ops(graph) == ["exp", "add"]


def test_dead_drops_what_no_output_needs():
    b, x = started(2, 3, decomposed=True)
    b.log(x)
    graph = dce(ended(b, b.exp(x)))
    assert ops(graph) == ["exp"]
    assert graph.inputs == ["x"]


def test_the_spec_of_a_stage_names_pass_node_and_rule():
    b, x = started(2, 3)
    graph = ended(b, b.softmax(x, dim=-1))
    check_graph(graph, FRONT, "import")
    with pytest.raises(InternalError, match=r"after import: softmax = softmax\(x\).*is a core op"):
        check_graph(graph, CORE, "import")


def test_every_op_is_core_with_shape_and_reference_or_made_of_others():
    for op in front_ops():
        assert op.doc
        assert (op.decompose is None) == (op.shape is not None and op.reference is not None)


def test_a_reshape_of_a_layout_moves_nothing():
    layout = standard((4, 6, 8))
    split = reshape_layout(layout, (2, 2, 6, 4, 2))
    assert split is not None
    np.testing.assert_array_equal(split.place("zrc").ravel(), layout.place("zrc").ravel())
    assert reshape_layout(dense_layout((6, 4), [], [0], [1]), (4, 6)) is None


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.integers(1, 6), st.integers(1, 5), st.data())
def test_a_picker_is_its_matrix(seed, t, rows, inner, data):
    grid = data.draw(st.sampled_from([n for n in range(1, rows + 1) if rows % n == 0]))
    index = np.random.default_rng(seed).integers(-1, inner * 32, t * rows * 32)
    matrix = Sparse.gather(index, inner * 32)
    picker = PickTable.of(matrix, t, rows).picker(WorkDivision(grid))
    found = np.zeros(matrix.shape)
    for core in range(grid):
        own = slice(core * 32, core * 32 + 32)
        words = picker.words[0, own].reshape(-1).view("<u2").tolist()
        tiles = picker.tiles[0, own].reshape(32, -1, 32).transpose(1, 0, 2)
        code = Encoding("x", picker.tile_bits, picker.ublock_bits, rows // grid, 1, 1, len(tiles), inner)
        for term in code.decode(words, t):
            row = (term.b * rows + core * rows // grid + term.row) * 32
            found[row : row + 32, term.act_row * 32 : term.act_row * 32 + 32] += tiles[term.weight]
    np.testing.assert_array_equal(found, matrix.to_dense())


def test_a_table_of_picks_counts_what_its_fullest_row_of_cores_has():
    """Two tile rows: the upper one picks from two tiles, in two strips; a slice without picks has one of each still."""
    upper = np.array([0, 33, *[-1] * 30, *[-1] * 32])
    table = PickTable.of(Sparse.gather(upper, 64), 1, 2)
    assert table.counts(WorkDivision(2)) == Counts(strips=2, ublocks=2, pairs=2, tiles=2, word_tiles=1)
    assert table.counts(WorkDivision(1, u_kt=2)) == Counts(strips=1, ublocks=1, pairs=2, tiles=2, word_tiles=1)
    nothing = PickTable.of(Sparse.gather(np.full(64, -1), 64), 2, 1)
    assert nothing.counts(WorkDivision(1)) == Counts(strips=2, ublocks=1, pairs=1, tiles=1, word_tiles=1)


def test_a_pick_takes_tiles_of_all_slices_of_its_source():
    """Two slices of three tile rows each: strips are numbered through both (OPS 6.2)."""
    b, x = started(2, 70, 8)
    graph = core_graph(ended(b, b.transpose(x, perm=(1, 0, 2))))
    (pick,) = (op for op in lower(graph, WORMHOLE).ops.values() if op.attrs.get("identity"))
    assert (pick.shape, pick.inner, pick.attrs["act_t"]) == ((70, 1, 1), 3, 2)


@pytest.mark.parametrize(
    ("exponent", "made"),
    [
        (2.0, ["square"]),
        (0.5, ["sqrt"]),
        (1.5, ["sqrt", "multiply"]),
        (3.5, ["sqrt", "power", "multiply"]),
        (4.5, ["abs", "log", "multiply", "exp"]),
        (8.0, ["power"]),
        (9.0, ["abs", "log", "multiply", "exp"]),
        (-2.0, ["square", "reciprocal"]),
    ],
)
def test_powers_are_products_and_roots_while_those_are_few(exponent, made):
    b, x = started(2, 3, decomposed=True)
    b.emit("pow", x, b.constant(np.float32(exponent)))
    assert ops(b.graph)[: len(made)] == made
    assert ("exp" in ops(b.graph)) == ("exp" in made)
