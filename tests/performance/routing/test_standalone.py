"""Ops without a netlist around them have the pipes that they have in one."""

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist
from buda_emu.performance.routing.pipes.build import Built, build
from buda_emu.performance.routing.pipes.epoch import epochs
from buda_emu.performance.routing.pipes.model import PipeGraph
from performance.routing.texts import netlist, op, queue
from pipe_parts import between
from pipes_alone import alone


def _loaded(text: str) -> Netlist:
    found = check_text(text)
    assert found.netlist is not None, found.diagnostics
    return found.netlist


def _graph(built: Built) -> PipeGraph:
    assert built.graph is not None, built.refusals
    return built.graph


@pytest.fixture
def whole() -> Netlist:
    """`left` and `right` feed a product on 2x2 cores, which two more ops read."""
    inner, cut = "m_k: 2, u_kt: 1", ", input_0_tms: [hslice: 2, vslice: 2]"
    return _loaded(
        netlist(
            [
                queue("a", mblock=(4, 2)),
                queue("b", mblock=(2, 4)),
                queue("o", "last", (1, 1), 4, (2, 2)),
                queue("p", "copy", mblock=(4, 4)),
            ],
            [
                op("left", "nop", ["a"], (2, 1), mblock=(2, 2)),
                op("right", "nop", ["b"], (1, 2), mblock=(2, 2), at=(0, 1)),
                op("product", "matmul", ["left", "right"], (2, 2), mblock=(2, 2), at=(2, 0), attributes=inner),
                op("last", "nop", ["product"], t=4, mblock=(2, 2), at=(4, 0), more=cut),
                op("copy", "nop", ["product"], mblock=(4, 4), at=(4, 1)),
            ],
        )
    )


def _said(graph: PipeGraph, producer: str, reader: str) -> list[object]:
    """Pipes from op to op, without ids."""
    part = between(graph, producer, reader)
    places = {buffer.id: (buffer.row, buffer.column, buffer.operand) for buffer in part.buffers}
    base = 1_000_000_000
    return [
        (
            [(places[one - one % base], one % base) for one in pipe.inputs],
            [[places[one] for one in turn] for turn in pipe.outputs],
            pipe.mcast_core_rc,
            pipe.pipe_periodic_repeat,
            pipe.pipe_consumer_repeat,
            pipe.incoming_noc_id,
        )
        for pipe in part.pipes
    ]


@pytest.mark.parametrize(("producer", "reader"), [("left", "product"), ("product", "last"), ("product", "copy")])
def test_an_edge(whole: Netlist, producer: str, reader: str) -> None:
    """What else reads the result is given too: it may cut it into smaller pieces."""
    ops = [
        one for one in whole.ops.values() if one.name in (producer, *whole.ops[reader].inputs) or producer in one.inputs
    ]
    built = _graph(alone(ops, [], "wormhole_b0"))
    (full,) = map(build, epochs(whole))
    assert _said(built, producer, reader) == _said(_graph(full), producer, reader)
    assert _said(built, producer, reader)


def test_an_op_with_all_that_it_reads_and_feeds(whole: Netlist) -> None:
    names = ("left", "right", "product", "last", "copy")
    built = alone((whole.ops[name] for name in names), whole.queues.values(), "wormhole_b0")
    (full,) = map(build, epochs(whole))
    assert len(_graph(built).pipes) == len(_graph(full).pipes)
    assert built.use == full.use


def test_what_it_takes_of_each_core(whole: Netlist) -> None:
    built = alone((whole.ops[name] for name in ("product", "last", "copy")), [], "wormhole_b0")
    (full,) = map(build, epochs(whole))
    readers = [(0, 4, 0), (0, 4, 1)]
    assert [built.use[core] for core in readers] == [full.use[core] for core in readers]
    assert built.use[0, 2, 0].extra == 2  # for the nop that stands for it to read a queue, and for one more reader


def test_what_is_kept_in_l1(whole: Netlist) -> None:
    built = alone([whole.ops["left"]], [whole.queues["a"]], "wormhole_b0", kept=["a"], input_count=4)
    kinds = {buffer.buffer_type for buffer in _graph(built).buffers}
    assert "dram_prolog" in kinds


def test_an_edge_that_is_refused() -> None:
    text = netlist(
        [queue("a", t=3, mblock=(1, 2)), queue("o", "second", mblock=(1, 2), ublock=(1, 3))],
        [
            op("first", "nop", ["a"], t=3, mblock=(1, 2)),
            op("second", "nop", ["first"], mblock=(1, 2), ublock=(1, 3), at=(0, 1), more=", input_0_tms: [hstack: 3]"),
        ],
    )
    built = alone(_loaded(text).ops.values(), [], "wormhole_b0")
    assert built.graph is None
    assert [(one.rule, one.op) for one in built.refusals] == [("V325", "second")]
