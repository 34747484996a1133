"""Queues between epochs share DRAM with those that no epoch uses together; a refusal says what takes the room."""

import itertools
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.compiler.compile import compile as compile_model
from buda_emu.compiler.emit.netlist import netlist_text
from buda_emu.compiler.place.cost import DRAM_BASE
from buda_emu.compiler.place.memory import Channel, Memory, MemoryFullError, buffer_bytes
from buda_emu.compiler.place.queues import add_queues
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Allocate

onnx = pytest.importorskip("onnx")

EPOCHS = 8


@st.composite
def requests(draw):
    """(bytes, first and last epoch) in the order in which they are placed."""
    life = st.tuples(st.integers(0, EPOCHS - 1), st.integers(0, EPOCHS - 1)).map(lambda two: (min(two), max(two)))
    return draw(st.lists(st.tuples(st.integers(1, 100), life), max_size=30))


@given(requests(), st.integers(0, 100))
def test_what_an_epoch_uses_together_lies_apart_and_above_what_is_always_there(sizes, static):
    channel = Channel(DRAM_BASE + 10_000)
    assert channel.allocate(static, None) == DRAM_BASE
    taken = []
    for size, life in sizes:
        at = channel.allocate(size, life)
        assert at is not None
        assert at >= DRAM_BASE + static
        taken.append((at, at + size, life))
    for first, second in itertools.combinations(taken, 2):
        together = first[2][0] <= second[2][1] and second[2][0] <= first[2][1]
        assert not together or first[1] <= second[0] or second[1] <= first[0]


def test_bytes_are_given_again_once_no_epoch_needs_them():
    channel = Channel(DRAM_BASE + 300)
    assert channel.allocate(100, (0, 1)) == DRAM_BASE
    assert channel.allocate(100, (1, 2)) == DRAM_BASE + 100
    assert channel.allocate(100, (2, 3)) == DRAM_BASE
    assert channel.allocate(150, (3, 3)) == DRAM_BASE + 100
    assert channel.allocate(250, (1, 1)) is None


@pytest.fixture(scope="module")
def chain():
    """A hundred and fifty layers with skips: several epochs on one chip."""
    from onnx import TensorProto, helper, numpy_helper

    rng, width = np.random.default_rng(3), 64
    nodes, held, before = [], [], "x"
    for n in range(150):
        held.append(numpy_helper.from_array(rng.standard_normal((width, width), np.float32) / 16, f"w{n}"))
        nodes.append(helper.make_node("MatMul", [before, f"w{n}"], [f"h{n}"], name=f"h{n}"))
        nodes.append(helper.make_node("Tanh", [f"h{n}"], [f"s{n}"], name=f"s{n}"))
        nodes.append(helper.make_node("Add", [f"s{n}", before], [f"y{n}"], name=f"y{n}"))
        before = f"y{n}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, width])
    y = helper.make_tensor_value_info(before, TensorProto.FLOAT, [32, width])
    graph = helper.make_graph(nodes, "chain", [x], [y], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_queues_between_epochs_hold_a_round_and_share_memory(chain):
    compiled = compile_model(chain, effort="low", microbatch=8)
    between = [queue for queue in compiled.placement.queues.values() if queue.role == "between"]
    assert len(between) >= 3
    assert {queue.entries for queue in between} == {8}
    spans = [
        (channel, at, at + buffer_bytes(compiled.placement.target, queue), queue)
        for queue in between
        for channel, at in queue.addresses
    ]
    met = [
        (one[3], two[3])
        for one, two in itertools.combinations(spans, 2)
        if one[0] == two[0] and one[1] < two[2] and two[1] < one[2]
    ]
    assert met
    assert all(one.life[1] < two.life[0] or two.life[1] < one.life[0] for one, two in met)
    assert not check_text(compiled.text).diagnostics
    from onnx import reference

    x = np.random.default_rng(4).standard_normal((32, 64)).astype(np.float32)
    expected = reference.ReferenceEvaluator(chain).run(None, {"x": x})[0]
    (found,) = compiled(x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_refusal_names_the_queues_that_take_the_room(chain):
    found = compile_model(chain, effort="low", microbatch=64).placement
    small = replace(found.target, arch=replace(found.target.arch, dram_channel_bytes=DRAM_BASE + (100 << 10)))
    with pytest.raises(MemoryFullError) as refused:
        Memory(small).add(found, {name: {} for name in found.queues})
    text = str(refused.value)
    constants = [queue for queue in found.queues.values() if queue.role == "constant"]
    size = sum(buffer_bytes(small, queue) * prod(queue.blocks.grid) for queue in constants)
    assert f"constants: {size / 2**20:.1f} MiB in 150 queues" in text
    assert "between epochs: " in text
    assert "not all at one time" in text
    assert "64 entries, epochs" in text
    assert "microbatch" in text


def test_copies_allocate_the_queues_of_every_chip(chain):
    found = compile_model(chain, effort="low", microbatch=2).placement
    copies = replace(found, copies=2, queues={}, between={})
    add_queues(copies, 2)
    checked = check_text(netlist_text(copies, "copies"))
    assert not checked.diagnostics
    steps = [step for program in checked.netlist.programs.values() for step in program.instructions]
    allocated = {name for step in steps if isinstance(step, Allocate) for name in step.queues}
    assert allocated == {f"{name}.{chip}" for name in copies.between.values() for chip in (0, 1)}
