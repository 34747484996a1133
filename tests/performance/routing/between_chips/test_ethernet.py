"""Transfers between chips: streams of Ethernet cores. pipegen2 says the same, where it is there."""

from pathlib import Path

import pytest

from buda_emu.performance.routing.streams.model import Routed
from buda_emu.performance.routing.streams.route import route
from core_streams import ours
from pipe_mutations import as_text
from small_pipes import Pipes
from vendor_router import AVAILABLE, streams

SENDS, RECEIVES = (6, 9), (0, 9)  # both ends of a link: cores of the NoC


def _routed(pipes: Pipes, scratch: Path) -> Routed:
    done = route(pipes.graph, "wormhole_b0", phases=True)
    if AVAILABLE:
        path = scratch / "pipegen.yaml"
        path.write_text(as_text(pipes.graph))
        expected, said = streams(path, "wormhole_b0")
        assert expected == (None if done.refusals else ours(done.cores, "wormhole_b0")), said
    return done


def _transfers(count: int, firmware: bool = False) -> Pipes:
    """As many packers of chip 0, each of which sends to an operand of chip 1 through a link."""
    pipes = Pipes()
    for index in range(count):
        row, column = divmod(index, 8)
        sent = pipes.packer(row, column, f"from{index}")
        link = {"use_ethernet_fw_stream": firmware, "size_tiles": 4}
        near = pipes.buffer("ethernet_relay", row=6, column=9, operand=33, ethernet_chan=8, **link)
        far = pipes.buffer("ethernet_relay", row=0, column=9, operand=33, ethernet_chan=0, chip=1, **link)
        pipes.pipe([sent], [near], (row, column))
        pipes.pipe([near], [far], (0, 9), ethernet_pipe=True, mcast_core_rc=((1, 0, 9),))
        to = pipes.unpacker(row, column, op=f"to{index}", chip=1)
        pipes.pipe([far], [to], ethernet_chan=0, mcast_core_rc=((1, 0, 9),))
    return pipes


def _ids(done: Routed, chip: int) -> list[int]:
    there = [core for core in done.cores if core.place.ethernet and core.place.chip == chip]
    return [stream.id for core in there for stream in core.streams]


@pytest.mark.parametrize(
    ("count", "firmware", "expected"),
    [
        (1, False, [9]),
        (1, True, [12]),  # the firmware moves tiles: an extra stream
        (3, False, [9, 10, 11]),
        (7, False, [0, 1, 2, 3, 9, 10, 11]),  # those that could multicast transfer too
    ],
)
def test_transfers_of_a_link(count: int, firmware: bool, expected: list[int], tmp_path: Path) -> None:
    done = _routed(_transfers(count, firmware), tmp_path)
    assert (_ids(done, 0), _ids(done, 1), done.refusals) == (expected, expected, ())


def test_more_transfers_than_a_link_has_streams_for(tmp_path: Path) -> None:
    first, *_ = _routed(_transfers(8), tmp_path).refusals
    assert (first.what, first.number, first.limit) == ("ethernet_streams", 8, 7)
    assert "Ethernet core [6, 9] of chip 0" in first.message


def test_a_relay_sends_to_an_operand_on_another_chip(tmp_path: Path) -> None:
    pipes = Pipes()
    sent = pipes.packer(1, 1)
    near = pipes.buffer("ethernet_relay", row=6, column=9, operand=33, ethernet_chan=8, size_tiles=4)
    to = pipes.unpacker(0, 9, chip=1, ethernet_chan=0)
    pipes.pipe([sent], [near], (1, 1))
    pipes.pipe([near], [to], ethernet_pipe=True, mcast_core_rc=((1, 0, 9),))
    done = _routed(pipes, tmp_path)
    assert (_ids(done, 0), _ids(done, 1), done.refusals) == ([9], [9], ())


def test_a_transfer_may_be_on_no_core_where_it_takes_no_stream(tmp_path: Path) -> None:
    pipes = Pipes()
    near = pipes.buffer("ethernet_relay", row=6, column=9, operand=33, ethernet_chan=8, size_tiles=4)
    pipes.pipe([pipes.packer(1, 1)], [near], (1, 1))
    to = pipes.unpacker(0, 9, chip=1, ethernet_chan=0)
    pipes.pipe([near], [to], ethernet_pipe=True, mcast_core_rc=((1, 0, 0),))
    done = _routed(pipes, tmp_path)
    assert (_ids(done, 0), _ids(done, 1), done.refusals) == ([9], [9], ())


def test_a_stream_between_chips_is_on_a_core(tmp_path: Path) -> None:
    pipes = Pipes()
    sent = [pipes.packer(1, column) for column in (1, 2)]
    pipes.pipe(sent, [pipes.unpacker(0, 9, chip=1, ethernet_chan=0)], ethernet_pipe=True, mcast_core_rc=((1, 0, 0),))
    (refusal,) = _routed(pipes, tmp_path).refusals
    assert refusal.message == "a stream is on [0, 0] of the NoC, which is neither a worker nor an Ethernet core"
