"""Copies over Ethernet (`ethernet_datacopy`): pipes, streams and verdicts are those of the vendor's programs."""

from pathlib import Path

import pytest

from buda_emu.netlist.load import check_text as loaded
from buda_emu.performance.routing.checking import check_text
from buda_emu.performance.routing.epochs import route_netlist
from buda_emu.performance.routing.pipes.ethernet import L1_BYTES, Relay, size_relays
from buda_emu.performance.routing.pipes.model import Buffer
from performance.routing.between_chips.random_copies import copies, stacked_copies
from performance.routing.between_chips.test_chips import agree
from performance.routing.canonical import differences
from performance.routing.texts import ONE, Size, netlist, op, queue
from pipe_reading import read
from vendor_router import needs_vendor_router, refusal, row_of_chips, stream_counts

WORMHOLE = "wormhole_b0"
WHOLE_L1 = 256 << 10
"""Of an Ethernet core: where data buffers are larger, pipegen2's addresses pass 0, and it refuses nothing."""


def _copy(attributes: str, size: Size = ONE, *, buffers: int = 2, more: str = "") -> str:
    """A nop of chip 0, a copy to chip 1 of `size` tiles, and a nop that reads it."""
    queues = [queue("a", mblock=ONE if more else size), queue("o", "second", mblock=size, chip=1)]
    send = op("send", "ethernet_datacopy", ["first"], mblock=size, buffers=buffers, attributes=attributes, more=more)
    ops = [op("first", "nop", ["a"], mblock=ONE if more else size), send.replace("grid_loc: [0, 0], ", "")]
    return netlist(queues, ops, others={1: [op("second", "nop", ["send"], mblock=size)]})


_PLACED = "ingress_channels: [9], egress_channels: [1], dest_device: 1"


def _epoch(text: str):
    found = loaded(text, arch=WORMHOLE).netlist
    assert found is not None
    return next(route_netlist(found))


def _buffers(text: str) -> dict[str, Buffer]:
    graph = _epoch(text).pipes
    assert graph is not None
    return {one.buffer_type: one for one in graph.buffers if one.op == "send"}


def test_a_copy_has_a_relay_and_what_arrives_on_the_other_chip() -> None:
    found = _buffers(_copy(_PLACED))
    relay, operand, result = found["ethernet_relay"], found["unpacker"], found["packer"]
    assert (relay.chip, relay.row, relay.column, relay.ethernet_chan, relay.operand) == (0, 6, 1, 9, 33)
    assert (operand.chip, operand.row, operand.column, operand.ethernet_chan, operand.operand) == (1, 0, 1, 1, 0)
    assert (result.chip, result.row, result.column, result.operand) == (1, 0, 1, 16)
    assert (result.buffer_space_shared, result.size_tiles) == (operand.id, operand.size_tiles)


def test_pipes_of_a_copy_are_on_the_cores_of_its_channels() -> None:
    graph = _epoch(_copy(_PLACED)).pipes
    assert graph is not None
    kinds = {one.id: one.buffer_type for one in graph.buffers if one.op == "send"}
    into, link, out = (
        next(pipe for pipe in graph.pipes if kinds.get(pipe.outputs[0][0]) == "ethernet_relay"),
        next(pipe for pipe in graph.pipes if pipe.ethernet_pipe),
        next(pipe for pipe in graph.pipes if kinds.get(pipe.inputs[0]) == "packer"),
    )
    assert (into.mcast_core_rc, into.ethernet_chan) == (((0, 0, 0),), -1)
    assert (link.mcast_core_rc, link.ethernet_chan) == (((1, 0, 1),), -1)
    assert (out.mcast_core_rc, out.ethernet_chan) == (((1, 0, 1),), 1)


def test_what_no_pipes_are_made_of_is_said() -> None:
    (found,) = [one for one in check_text(_copy("dest_device: 1"), arch=WORMHOLE).diagnostics if one.rule == "V359"]
    assert "op send: no pipes are made of this ethernet_datacopy" in found.message
    assert "without ingress_channels and egress_channels a cluster description says where" in found.message


def test_an_op_that_reads_another_chip_without_a_copy_is_said_not_to_be_made() -> None:
    queues = [queue("a"), queue("o", "second", chip=1)]
    text = netlist(queues, [op("first", "nop", ["a"])], others={1: [op("second", "nop", ["first"])]})
    (found,) = [one for one in check_text(text, arch=WORMHOLE).diagnostics if one.rule == "V359"]
    assert "no pipes are made of that without a cluster description" in found.message


def test_operand_and_result_of_a_copy_share_bytes() -> None:
    (refused,) = _epoch(_copy(_PLACED, (3, 1), buffers=1)).routed.refusals
    assert refused.what == "V080"
    assert "its result has 3 tiles, its operand 2" in refused.message
    assert _epoch(_copy(_PLACED, (3, 1))).routed.refusals == ()


@pytest.mark.parametrize(
    ("pieces", "epoch_tiles", "gathered", "expected"),
    [
        ([4], 64, 0, [4]),  # a whole piece
        ([1], 64, 0, [6]),  # what a link brings in its latency: 6 tiles of 2,080 bytes
        ([1], 3, 0, [3]),  # but no more than there are
        ([32], 64, 8 * 4 * 2080, [8]),  # beside what is gathered there is room for 8, not for 16
        ([4], 64, 12 * 4 * 2080, [1]),
        ([4, 4, 4], 64, 0, [4, 4, 4]),
        ([2, 2], 64, 0, [6, 6]),  # the first size of several is left out
        ([2, 2], 5, 0, [1, 1]),
    ],
)
def test_sizes_of_relays(pieces: list[int], epoch_tiles: int, gathered: int, expected: list[int]) -> None:
    relays = [Relay(piece, 2080, epoch_tiles, gathered) for piece in pieces]
    size_relays(relays, 0)
    assert [relay.tiles for relay in relays] == expected


@pytest.mark.parametrize(("beyond", "expected"), [(0, [6, 6]), (1, [6, 1])])
def test_relays_grow_into_the_last_byte(beyond: int, expected: list[int]) -> None:
    gathered = L1_BYTES - 2 * 6 * 2080 + beyond
    relays = [Relay(2, 2080, 64, gathered), Relay(2, 2080, 64, 0)]
    size_relays(relays, 0)
    assert [relay.tiles for relay in relays] == expected


def _beyond_all_l1(text: str) -> bool:
    cores = _epoch(text).routed.cores
    return any(core.place.ethernet and core.stream_bytes + core.tile_header_bytes > WHOLE_L1 for core in cores)


def _stacked(channels: tuple[int, int]) -> str:
    """A copy of two cells that stacks the pieces of two cores in turn."""
    ends = [channel - 8 for channel in channels]
    words = f"ingress_channels: {list(channels)}, egress_channels: {ends}, dest_device: 1"
    queues = [queue("a", "HOST", (1, 2), 4), queue("o", "second", (4, 1), mblock=(1, 2), chip=1)]
    send = op(
        "send",
        "ethernet_datacopy",
        ["first"],
        (2, 1),
        mblock=(2, 2),
        attributes=words,
        more=", input_0_tms: [vstack: 4]",
    )
    ops = [op("first", "nop", ["a"], (1, 2), 4), send.replace("grid_loc: [0, 0], ", "")]
    return netlist(queues, ops, others={1: [op("second", "nop", ["send"], (4, 1), mblock=(1, 2))]})


def test_stacked_pieces_are_gathered_on_the_channel_of_each_turn() -> None:
    graph = _epoch(_stacked((9, 9))).pipes
    assert graph is not None
    (pipe,) = [pipe for pipe in graph.pipes if len(pipe.outputs) > 1]
    assert (len(pipe.outputs), pipe.ethernet_chan, set(pipe.mcast_core_rc)) == (4, 9, {(0, 6, 1)})
    assert [one.size_tiles for one in graph.buffers if one.buffer_type == "ethernet_relay"] == [4, 4]


def test_cells_that_get_pieces_in_turn_share_a_channel() -> None:
    (refused,) = _epoch(_stacked((9, 8))).routed.refusals
    assert refused.what == "V368"
    assert "pieces of first go in turn to cells on several channels" in refused.message


@needs_vendor_router
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 300))])
def test_random_copies(seed: int, tmp_path: Path) -> None:
    _agrees(copies(seed), tmp_path)


@needs_vendor_router
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 300))])
def test_random_copies_of_stacked_pieces(seed: int, tmp_path: Path) -> None:
    _agrees(stacked_copies(seed), tmp_path)


@needs_vendor_router
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 100))])
def test_random_copies_of_stacked_pieces_over_links(seed: int, tmp_path: Path) -> None:
    agree(stacked_copies(seed, linked=True), row_of_chips(WORMHOLE, 2), tmp_path)


def _agrees(text: str, tmp_path: Path) -> None:
    """Verdicts, pipes and streams are the vendor's, without a cluster's description."""
    said = refusal(text, WORMHOLE, tmp_path)
    errors = [one for one in check_text(text, arch=WORMHOLE).diagnostics if one.severity == "error"]
    assert not [one for one in check_text(text, arch=WORMHOLE).diagnostics if one.rule == "V359"]
    if said.startswith("net2pipe"):
        assert errors
        return
    pipes = tmp_path / "out/temporal_epoch_0/overlay/pipegen.yaml"
    ours = _epoch(text)
    assert ours.pipes is not None
    assert differences(ours.pipes, read(pipes.read_text(), str(pipes))) == []
    if said:
        assert errors
    elif not _beyond_all_l1(text):
        assert errors == []
        assert {core.place: len(core.streams) for core in ours.routed.cores} == stream_counts(pipes, WORMHOLE)
