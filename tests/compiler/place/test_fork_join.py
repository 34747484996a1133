"""Short branches beside long ones: what would hang on a chip, and what room helps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.lower.tiles import TileOp, Use
from buda_emu.compiler.place.blocks import Blocks
from buda_emu.compiler.place.operand_room import Edge, Pipeline, find_shortages
from buda_emu.compiler.search.evaluate import evaluate
from buda_emu.compiler.search.report import report


def pipeline(*ops):
    """Of (name, type, slices, operands, attributes); one core and two slices of buffer each."""
    made = Pipeline({}, {})
    for name, type, t, operands, attrs in ops:
        uses = [item if isinstance(item, Use) else Use(item) for item in operands]
        made.ops[name] = TileOp(name, type, uses, (t, 1, 1), attrs)
        made.blocks[name] = Blocks((1, 1), t, (1, 1), (1, 1), 2)
    return made


def simulated(made):
    """Whether every op gives all its slices when each moves as soon as operands and room allow: the definition."""
    given = dict.fromkeys(made.ops, 0)
    readers = [edge for name in made.ops for edge in made.edges(name)]
    moved = True
    while moved:
        moved = False
        for name, op in made.ops.items():
            if given[name] == op.shape[0]:
                continue
            now = np.array(given[name])
            ready = all(given[edge.source] >= made.slices_read(edge, now + 1) for edge in made.edges(name))
            room = all(
                given[name] < made.ahead(edge, np.array(given[edge.reader])) or reached(made, edge, given)
                for edge in readers
                if edge.source == name
            )
            if ready and room:
                given[name] += 1
                moved = True
    return all(given[name] == op.shape[0] for name, op in made.ops.items())


def reached(made, edge, given):
    """A reader takes what it wants for its next slice as it comes, and so frees the buffer."""
    wish = made.slices_read(edge, np.array(given[edge.reader] + 1))
    others = all(
        given[other.source] >= made.slices_read(other, np.array(given[edge.reader] + 1))
        for other in made.edges(edge.reader)
        if other.source != edge.source
    )
    return given[edge.source] < wish and others


def softmax_over_z(t=8):
    spread = Use("m", (("broadcast", "z", t),))
    return pipeline(
        ("f", "nop", t, ["x"], {}),
        ("m", "reduce", 1, ["f"], {"dim": "z", "z": t}),
        ("j", "subtract", t, ["f", spread], {}),
    )


def test_a_short_branch_beside_a_maximum_over_z_hangs_until_it_has_room():
    made = softmax_over_z()
    (lack,) = find_shortages(made)
    assert (lack.edge, lack.hangs) == (Edge("f", "j", 0), True)
    assert not simulated(made)
    made.extra[lack.edge] = lack.slices
    assert not [item for item in find_shortages(made) if item.hangs]
    assert simulated(made)


def test_slice_by_slice_nothing_hangs_but_a_deep_branch_makes_the_short_one_wait():
    chain = [(f"l{k}", "exp", 8, [f"l{k - 1}" if k else "f"], {}) for k in range(5)]
    made = pipeline(("f", "nop", 8, ["x"], {}), *chain, ("j", "add", 8, ["f", "l4"], {}))
    (lack,) = find_shortages(made)
    assert not lack.hangs
    assert lack.slices == 4  # one for each op that the long branch has more, but what f holds itself


@pytest.mark.parametrize("t", [1, 2])
def test_what_fits_the_forks_own_buffer_needs_nothing(t):
    assert not list(find_shortages(softmax_over_z(t)))


def test_pickers_and_slices_side_by_side_want_many():
    made = pipeline(
        ("f", "nop", 8, ["x"], {}),
        ("s", "matmul", 2, [Use("f", (("hstack", 4),)), "w"], {}),
        ("j", "add", 2, [Use("f", (("vstack", 4),)), "s"], {}),
    )
    (lack,) = find_shortages(made)
    assert (lack.edge, lack.hangs) == (Edge("f", "j", 0), True)
    made = pipeline(
        ("f", "nop", 8, ["x"], {}),
        ("p", "matmul", 8, ["tiles", "f", "words"], {"identity": True}),
        ("j", "add", 8, ["f", "p"], {}),
    )
    (lack,) = find_shortages(made)
    assert (lack.hangs, lack.slices >= 6) == (True, True)


@st.composite
def pipelines(draw):
    """Element-wise ops, pickers and maxima over z that are spread again, each reading one or two before it."""
    ops = [("v0", "nop", 6, ["x"], {})]
    for number in range(1, draw(st.integers(3, 8))):
        kind = draw(st.sampled_from(["add", "add", "pick", "max"]))
        first, second = (f"v{draw(st.integers(0, number - 1))}" for _ in "ab")
        if kind == "add":
            ops.append((f"v{number}", "add", 6, [first, second], {}))
        elif kind == "pick":
            ops.append((f"v{number}", "matmul", 6, ["tiles", first, "words"], {"identity": True}))
        else:
            ops.append((f"m{number}", "reduce", 1, [first], {"dim": "z", "z": 6}))
            ops.append((f"v{number}", "add", 6, [Use(f"m{number}", (("broadcast", "z", 6),)), second], {}))
    return pipeline(*ops)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(pipelines())
def test_with_the_room_that_is_asked_for_nothing_hangs(made):
    for _ in range(100):
        shortage = next((entry for entry in find_shortages(made) if entry.hangs), None)
        if shortage is None:
            break
        made.extra[shortage.edge] = made.extra.get(shortage.edge, 0) + shortage.slices
    assert shortage is None
    assert simulated(made)


def made(images, rows, effort="default"):
    """y = exp(x); y - max of y over the images."""
    b = Builder(Graph("g"), decompose=True)
    x = b.input("x", (images, rows, 64), "float32")
    y = b.exp(x)
    last = b.subtract(y, b.reduce_largest(y, axes=[0]))
    b.graph.outputs = [Output("out", last.name, "float32")]
    compilation = Compilation.of(CompileOptions(effort=effort))
    return CompiledModel(*compilation.place(b.graph))


def test_a_model_is_given_room_in_l1():
    compiled = made(6, 64, effort="low")  # other efforts make the fork's own buffer larger
    assert compiled.check(strict=True) == ()
    assert "input_buf_min_size_tiles: [" in compiled.text
    assert "fork_" not in compiled.text


def test_where_l1_is_full_the_short_branch_goes_by_way_of_dram():
    compiled = made(1024, 32)
    assert compiled.check(strict=True) == ()
    assert "fork_" in compiled.text
    assert "1 operand goes through DRAM within an epoch instead of from core to core:" in compiled.report()
    assert "  subtract reads exp: it waits there for a longer branch" in compiled.report()
    x = np.random.default_rng(0).standard_normal((1024, 32, 64)).astype(np.float32)
    want = np.exp(x) - np.exp(x).max(0)
    for _ in range(3):  # the queue's pointers come round
        np.testing.assert_allclose(compiled(x)[0], want, rtol=1e-4, atol=1e-4)
    compiled.close()


def test_the_report_says_what_keeps_the_reader_of_a_forks_queue_from_more_cores():
    compiled = made(1024, 32)
    assert compiled.placement.ops["subtract"].op.uses[0].source.startswith("fork_")
    found = evaluate(compiled.placement)
    (epoch,) = found.run.epochs
    slowest = replace(epoch, bottleneck=replace(epoch.bottleneck, kind="op", name="subtract"))
    text = report(replace(found, run=replace(found.run, epochs=(slowest,))), None)
    assert "1 core; its next grid takes 2, which no pace of this epoch had room for" in text
