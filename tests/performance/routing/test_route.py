"""Which streams each kind of pipe needs, on which core, and what is refused.

Where the vendor's pipegen2 is there, it says the same of every one of these graphs.
"""

from pathlib import Path
from typing import Any

import pytest

from buda_emu.performance.routing.pipes.model import POST_TM, PipeGraph
from buda_emu.performance.routing.streams.model import CoreUse, Place, Routed
from buda_emu.performance.routing.streams.route import route
from buda_emu.support.errors import UnsupportedError
from core_streams import ours
from pipe_mutations import as_text
from small_pipes import TILE, Pipes
from vendor_router import AVAILABLE, lowest_addresses, our_lowest_addresses, streams

ARCHS = ("grayskull", "wormhole_b0")
Kinds = dict[tuple[int, int], dict[int, str]]


@pytest.fixture(params=ARCHS)
def arch(request: pytest.FixtureRequest) -> str:
    return request.param


class Router:
    """Routes a graph, and holds what comes of it against pipegen2 where that is there."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    def __call__(self, graph: PipeGraph, arch: str) -> Routed:
        routed = route(graph, arch, phases=True)
        if AVAILABLE:
            path = self._scratch / "pipegen.yaml"
            path.write_text(as_text(graph))
            expected, said = streams(path, arch)
            assert (expected is None) == bool(routed.refusals), said
            if expected is not None:
                assert ours(routed.cores, arch) == expected
                assert our_lowest_addresses(routed.cores, arch) == lowest_addresses(path, arch)
        return routed


@pytest.fixture
def routed(tmp_path: Path) -> Router:
    return Router(tmp_path)


def _core(routed: Routed, row: int, column: int) -> CoreUse:
    return next(core for core in routed.cores if core.place == Place(0, row, column))


def _kinds(routed: Routed) -> Kinds:
    """Kind of each stream by id, by core, without the kernels' operands."""
    return {
        core.place[1:3]: {
            stream.id: stream.kind for stream in core.streams if stream.operand is None or stream.id >= 40
        }
        for core in routed.cores
    }


def _operand(arch: str, operand: int) -> int:
    return {0: 4, 1: 5}.get(operand, 8 + operand) if arch == "wormhole_b0" else 8 + operand


def test_packer_to_unpacker_takes_their_own_streams_alone(routed: Router, arch: str) -> None:
    pipes = Pipes()
    id = pipes.pipe([pipes.packer(0, 0)], [pipes.unpacker(0, 1, operand=1)], (0, 1))
    done = routed(pipes.graph, arch)
    (sender,), (receiver,) = (core.streams for core in done.cores)
    assert (sender.id, sender.kind, sender.operand, sender.pipes) == (24, "packer", 16, (id,))
    assert (receiver.id, receiver.kind, receiver.pipes) == (_operand(arch, 1), "unpacker", (id,))
    assert [core.l1_bytes for core in done.cores] == [8 * TILE, 8 * TILE]
    assert [core.ops for core in done.cores] == [("from",), ("to",)]


def test_each_further_reader_of_a_packer_takes_an_extra_stream_in_the_same_buffer(routed: Router, arch: str) -> None:
    pipes = Pipes()
    packer = pipes.packer(0, 0)
    for column in range(1, 5):
        pipes.pipe([packer], [pipes.unpacker(0, column)], (0, column))
    core = _core(routed(pipes.graph, arch), 0, 0)
    assert [stream.id for stream in core.streams] == [24, 40, 41, 42]
    assert (core.extra_streams, core.stream_bytes) == (3, 8 * TILE)


def test_extra_streams_end_at_24(routed: Router, arch: str) -> None:
    pipes = Pipes()
    packer = pipes.packer(0, 0)
    for place in range(25):
        pipes.pipe([packer], [pipes.unpacker(1 + place // 8, place % 8)], (1 + place // 8, place % 8))
    assert _core(routed(pipes.graph, arch), 0, 0).extra_streams == 24
    pipes.pipe([packer], [pipes.unpacker(9, 0)], (9, 0))
    (refusal,) = routed(pipes.graph, arch).refusals
    assert (refusal.what, refusal.number, refusal.limit, refusal.place) == ("extra_streams", 25, 24, Place(0, 0, 0))
    assert "core [0, 0] of chip 0 (from) needs 25 extra streams, and has 24" in refusal.message


@pytest.mark.parametrize(("senders", "relays", "tiles"), [(2, 2, 6), (3, 3, 4), (5, 3, 4)])
def test_a_gather_has_relays_and_the_stream_that_they_fill(
    routed: Router, arch: str, senders: int, relays: int, tiles: int
) -> None:
    pipes = Pipes()
    packers = [pipes.packer(0, column) for column in range(senders)]
    pipes.pipe(packers, [pipes.unpacker(5, 5, tile_clear_granularity=4)], (5, 5))
    core = _core(routed(pipes.graph, arch), 5, 5)
    assert _kinds(routed(pipes.graph, arch))[5, 5] == {
        0: "gather",
        **dict.fromkeys(range(40, 40 + relays), "gather_relay"),
    }
    assert core.stream_bytes == (relays * tiles + 8) * TILE


def test_a_multicast_reads_into_a_buffer_of_twelve_tiles(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.packer(0, 0)], [pipes.unpacker(1, 1), pipes.unpacker(1, 2)], (1, 1))
    done = routed(pipes.graph, arch)
    assert _kinds(done)[1, 1] == {0: "multicast"}
    assert _core(done, 1, 1).stream_bytes == (12 + 8) * TILE


def test_a_gather_that_multicasts_does_so_itself(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.packer(0, 0), pipes.packer(0, 1)], [pipes.unpacker(1, 1), pipes.unpacker(1, 2)], (1, 1))
    core = _core(routed(pipes.graph, arch), 1, 1)
    assert _kinds(routed(pipes.graph, arch))[1, 1] == {0: "gather_multicast", 40: "gather_relay", 41: "gather_relay"}
    assert core.multicast_streams == 1


def test_gathers_beyond_the_streams_that_gather_are_relays(routed: Router, arch: str) -> None:
    pipes = Pipes()
    for operand in range(5):
        packers = [pipes.packer(operand, column) for column in range(2)]
        pipes.pipe(packers, [pipes.unpacker(9, 5, operand=operand)], (9, 5))
    gathers = {"grayskull": 3, "wormhole_b0": 4}[arch]
    core = _core(routed(pipes.graph, arch), 9, 5)
    assert (core.multicast_streams, core.extra_streams) == (gathers, 2 * gathers + 5 - gathers)


def test_multicasts_beyond_those_streams_are_refused(routed: Router, arch: str) -> None:
    pipes = Pipes()
    limit = {"grayskull": 3, "wormhole_b0": 4}[arch]
    for operand in range(limit + 1):
        pipes.pipe([pipes.packer(operand, 0)], [pipes.unpacker(9, 1, operand), pipes.unpacker(9, 2, operand)], (9, 1))
    (refusal,) = routed(pipes.graph, arch).refusals
    assert (refusal.what, refusal.number, refusal.limit) == ("multicast_streams", limit + 1, limit)


def test_a_packer_multicasts_by_itself_on_wormhole_alone(routed: Router) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.packer(0, 0)], [pipes.unpacker(1, 1), pipes.unpacker(1, 2)], (0, 0), direct_mcast=True)
    assert _kinds(routed(pipes.graph, "grayskull"))[0, 0] == {0: "multicast"}
    (stream,) = _core(routed(pipes.graph, "wormhole_b0"), 0, 0).streams
    assert (stream.id, stream.kind, stream.buffer_bytes) == (3, "packer_multicast", 8 * TILE)


def test_a_scattered_packer_serves_receivers_in_turn(routed: Router, arch: str) -> None:
    pipes = Pipes()
    packer = pipes.packer(0, 0, is_scatter=True, replicate=2)
    first, second = pipes.unpacker(0, 1), pipes.unpacker(0, 2)
    pipes.pipe([packer, packer + 4], [[first], [second]], (0, 1), (0, 2))
    core = _core(routed(pipes.graph, arch), 0, 0)
    assert [(stream.id, stream.buffer_bytes) for stream in core.streams] == [(24, 2 * 8 * TILE)]


def test_receivers_that_take_turns_more_than_once_are_fed_by_one_relay(routed: Router, arch: str) -> None:
    pipes = Pipes()
    packers = [pipes.packer(0, 0), pipes.packer(0, 1)]
    first, second = pipes.unpacker(3, 1), pipes.unpacker(3, 2)
    pipes.pipe(packers, [[first], [second], [first], [second]], *[(3, 1), (3, 2)] * 2)
    kinds = _kinds(routed(pipes.graph, arch))
    assert (kinds[3, 1], kinds[3, 2]) == ({40: "relay"}, {40: "relay"})


def test_a_repeated_receiver_is_fed_by_a_relay(routed: Router, arch: str) -> None:
    pipes = Pipes()
    receiver = pipes.unpacker(3, 1)
    pipes.pipe([pipes.packer(0, 0)], [[receiver], [receiver]], (3, 1), (3, 1), pipe_consumer_repeat=2)
    assert _kinds(routed(pipes.graph, arch))[3, 1] == {40: "relay"}


def test_gathers_without_relays_of_their_own(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.packer(0, 0), pipes.packer(0, 1)], [pipes.unpacker(3, 1)], (3, 1), dis_gather_opt=True)
    assert _kinds(routed(pipes.graph, arch))[3, 1] == {40: "relay"}


def test_a_relay_has_a_stream_of_its_buffers_size(routed: Router, arch: str) -> None:
    pipes = Pipes()
    relay = pipes.relay(2, 2)
    pipes.pipe([pipes.packer(0, 0)], [relay], (2, 2))
    pipes.pipe([relay], [pipes.unpacker(4, 4)], (4, 4))
    done = routed(pipes.graph, arch)
    assert (_kinds(done)[2, 2], _core(done, 2, 2).l1_bytes) == ({40: "relay"}, 8 * TILE)


def test_an_operand_reads_from_dram_by_itself_where_one_buffer_fits_both(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.queue()], [pipes.unpacker(0, 0)], (0, 0))
    (stream,) = _core(routed(pipes.graph, arch), 0, 0).streams
    assert (stream.kind, stream.reads_queues) == ("unpacker", 1)
    assert stream.buffer_bytes == 2 * 8 * TILE  # two whole chunks


def test_an_operand_whose_buffer_does_not_go_with_reads_has_a_relay(routed: Router, arch: str) -> None:
    pipes = Pipes()
    queue = pipes.queue(size_tiles=20, scatter_gather_num_tiles=20, tiles_per_input=20, epoch_tiles=160)
    pipes.pipe([queue], [pipes.unpacker(0, 0, size_tiles=9, tile_clear_granularity=1)], (0, 0))
    assert _kinds(routed(pipes.graph, arch))[0, 0] == {40: "relay"}


@pytest.mark.parametrize("first", [0, 2])
def test_a_packer_that_multicasts_by_itself_sends_to_others_from_extra_streams(routed: Router, first: int) -> None:
    """Whichever of its pipes comes first."""
    pipes = Pipes()
    packer = pipes.packer(0, 0)
    for number in range(3):
        if number == first:
            pipes.pipe([packer], [pipes.unpacker(1, 1), pipes.unpacker(1, 2)], (0, 0), direct_mcast=True)
        else:
            pipes.pipe([packer], [pipes.unpacker(2, number)], (2, number))
    core = _core(routed(pipes.graph, "wormhole_b0"), 0, 0)
    assert [(stream.id, stream.kind) for stream in core.streams] == [
        (3, "packer_multicast"),
        (40, "packer"),
        (41, "packer"),
    ]


def test_reads_for_several_cores_are_multicast(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.queue(), pipes.queue()], [pipes.unpacker(0, 0), pipes.unpacker(0, 1)], (0, 0))
    done = routed(pipes.graph, arch)
    multicast = _core(done, 0, 0).streams[0]
    assert (multicast.id, multicast.kind, multicast.reads_queues) == (0, "multicast", 2)


def test_ncrisc_readers_and_writers_end_at_8(routed: Router, arch: str) -> None:
    pipes = Pipes()
    queue = pipes.queue()
    for operand in range(8):
        pipes.pipe([queue], [pipes.unpacker(0, 0, operand)], (0, 0))
    assert not routed(pipes.graph, arch).refusals
    pipes.pipe([queue], [pipes.unpacker(0, 0, 8)], (0, 0))
    (refusal,) = routed(pipes.graph, arch).refusals
    assert (refusal.what, refusal.number, refusal.limit) == ("ncrisc_readers", 9, 8)

    writes = Pipes()
    packer = writes.packer(0, 0)
    for _ in range(9):
        writes.pipe([packer], [writes.queue()], (0, 0))
    (refusal,) = routed(writes.graph, arch).refusals
    assert (refusal.what, refusal.number, refusal.limit) == ("ncrisc_writers", 9, 8)


def test_who_receives_a_queue_reads_it(routed: Router, arch: str) -> None:
    """Whatever core the pipe names, one for all of its readers."""
    pipes = Pipes()
    queue = pipes.queue()
    for number in range(9):
        pipes.pipe([queue], [pipes.unpacker(1 + number // 3, number % 3)], (0, 0))
    assert not routed(pipes.graph, arch).refusals


def test_a_queue_has_at_most_255_readers(routed: Router, arch: str) -> None:
    pipes = Pipes()
    queue = pipes.queue("shared")
    for number in range(256):
        row, column = number % 10, number // 10 % 8
        pipes.pipe([queue], [pipes.unpacker(row, column, number // 80)], (row, column))
    refusal = routed(pipes.graph, arch).refusals[0]
    assert (refusal.what, refusal.number, refusal.limit) == ("readers_of_a_queue", 256, 255)
    assert "'shared'" in refusal.message


def test_queues_beyond_40_are_kept_track_of_in_l1(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.queue() for _ in range(43)], [pipes.unpacker(0, 0)], (0, 0))
    assert _core(routed(pipes.graph, arch), 0, 0).fallback_bytes == 3 * 36


def test_a_parameter_in_l1_has_a_relay_for_each_pipe(routed: Router, arch: str) -> None:
    pipes = Pipes()
    parameter = pipes.prefetched(0, 0)
    pipes.pipe([parameter], [pipes.unpacker(0, 0)], (0, 0))
    pipes.pipe([parameter], [pipes.unpacker(0, 1)], (0, 1))
    done = routed(pipes.graph, arch)
    assert (_kinds(done)[0, 0], _core(done, 0, 0).l1_bytes) == ({40: "relay", 41: "relay"}, 2 * 8 * TILE)


def test_a_parameter_fetched_after_its_tms_lies_in_the_operands_buffer(routed: Router, arch: str) -> None:
    pipes = Pipes()
    parameter = pipes.prefetched(0, 0, prefetch_type=POST_TM, is_scatter=True, replicate=1, epoch_tiles=4)
    pipes.pipe([parameter], [pipes.unpacker(0, 0, epoch_tiles=4)], (0, 0))
    (stream,) = _core(routed(pipes.graph, arch), 0, 0).streams
    assert (stream.kind, stream.buffer_bytes, stream.reads_queues) == ("unpacker", 4 * TILE, 1)


def test_an_intermediate_buffer_has_a_stream_in_its_own_l1_or_the_packers(routed: Router, arch: str) -> None:
    own = Pipes()
    own.intermediate(0, 0)
    (stream,) = _core(routed(own.graph, arch), 0, 0).streams
    assert (stream.id, stream.kind, stream.buffer_bytes, stream.pipes) == (32, "intermediate", 8 * TILE, ())

    shared = Pipes()
    intermediate = shared.intermediate(0, 0)
    shared.pipe([shared.packer(0, 0, buffer_space_shared=intermediate)], [shared.unpacker(0, 1)], (0, 1))
    core = _core(routed(shared.graph, arch), 0, 0)
    assert ([stream.id for stream in core.streams], core.l1_bytes) == ([24, 32], 8 * TILE)
    assert (core.kernel_inputs, core.kernel_outputs) == (1, 2)


def test_a_gradient_is_an_intermediate_buffer_that_dram_keeps(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.buffer("gradient_op", row=0, column=0, operand=24, dram_buf_flag=True, write_dram_buf_flag=True, q_slots=1)
    (stream,) = _core(routed(pipes.graph, arch), 0, 0).streams
    assert (stream.kind, stream.writes_queues) == ("intermediate", 1)


def test_a_queue_written_and_read_in_one_epoch(routed: Router, arch: str) -> None:
    pipes = Pipes()
    queue = pipes.queue()
    pipes.pipe([pipes.packer(0, 0)], [queue], (0, 0))
    pipes.pipe([queue], [pipes.unpacker(0, 1)], (0, 1))
    done = routed(pipes.graph, arch)
    assert [(stream.writes_queues, stream.reads_queues) for core in done.cores for stream in core.streams] == [
        (1, 0),
        (0, 1),
    ]


def test_each_size_of_tiles_beyond_one_takes_a_header_buffer_on_every_core(routed: Router, arch: str) -> None:
    pipes = Pipes()
    for column, size in enumerate((TILE, 1120, 4128)):
        packer = pipes.packer(0, column, tile_size=size)
        pipes.pipe([packer], [pipes.unpacker(1, column, tile_size=size)], (1, column))
    assert {core.tile_header_bytes for core in routed(pipes.graph, arch).cores} == {2 * 32 * 1024}


def test_l1_is_refused_from_the_first_byte_too_many(routed: Router, arch: str) -> None:
    room = {"grayskull": 839_616, "wormhole_b0": 1_290_176}[arch]
    tiles, tile = room // 2048, 2048

    def with_blob(blob: int) -> Routed:
        pipes = Pipes()
        packer = pipes.packer(0, 0, tile_size=tile)
        pipes.pipe(
            [packer], [pipes.unpacker(0, 1, size_tiles=tiles - 2, tile_size=tile, overlay_blob_size=blob)], (0, 1)
        )
        return routed(pipes.graph, arch)

    fits = with_blob(64 * 1024 - 128 + 4095)
    assert (_core(fits, 0, 1).blob_bytes, fits.refusals) == (0, ())
    (refusal,) = with_blob(64 * 1024 - 128 + 2 * 4096).refusals
    assert (refusal.what, refusal.number, refusal.limit) == ("l1", (tiles - 2) * tile + 2 * 4096, room)


def test_two_operands_of_one_number_on_a_core_are_refused(routed: Router, arch: str) -> None:
    pipes = Pipes()
    for column in (1, 2):
        pipes.pipe([pipes.packer(0, column)], [pipes.unpacker(0, 0)], (0, 0))
    (refusal,) = routed(pipes.graph, arch).refusals
    assert refusal.what == "operand_stream"


def test_a_read_that_no_phase_can_hold_is_refused(routed: Router, arch: str) -> None:
    pipes = Pipes()
    queue = pipes.queue(
        size_tiles=4000, scatter_gather_num_tiles=2000, tiles_per_input=4000, epoch_tiles=40_000, tile_size=16
    )
    receiver = pipes.unpacker(0, 0, size_tiles=4000, tile_clear_granularity=2000, epoch_tiles=40_000, tile_size=16)
    pipes.pipe([queue], [receiver], (0, 0))
    (refusal,) = routed(pipes.graph, arch).refusals
    assert (refusal.what, refusal.limit) == ("phases", 2048)


def test_a_buffer_that_holds_no_whole_tile_is_refused(routed: Router, arch: str) -> None:
    pipes = Pipes()
    given = {"prefetch_type": POST_TM, "is_scatter": True, "replicate": 1, "epoch_tiles": 4, "tile_size": 96}
    pipes.pipe([pipes.prefetched(0, 0, **given)], [pipes.unpacker(0, 0, epoch_tiles=4)], (0, 0))
    (refusal,) = routed(pipes.graph, arch).refusals
    assert "no whole tile" in refusal.message


@pytest.mark.parametrize(
    ("epoch_tiles", "phases"),
    [
        (15 * 2048 + 2047, 16),  # an iteration of 16 phases, the last not full
        (16 * 2048 + 1, 18),  # which two do not divide: three iterations of six phases, written out
    ],
)
def test_one_source_sends_up_to_fifteen_full_phases_in_an_iteration(
    routed: Router, epoch_tiles: int, phases: int
) -> None:
    pipes = Pipes()
    fields: dict[str, Any] = {
        "epoch_tiles": epoch_tiles,
        "tiles_per_input": 1,
        "size_tiles": 1,
        "scatter_gather_num_tiles": 1,
    }
    packer = pipes.packer(0, 0, **fields)
    pipes.pipe([packer], [pipes.unpacker(0, 1, tile_clear_granularity=1, **fields)], (0, 1))
    assert _phases(routed(pipes.graph, "grayskull"), 0, 0) == {24: phases}


def test_pipes_that_are_of_no_known_kind_are_refused(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.queue(), pipes.packer(0, 0)], [pipes.unpacker(0, 1)], (0, 1))
    (refusal,) = routed(pipes.graph, arch).refusals
    assert (refusal.what, "no kind" in refusal.message) == ("pipe_graph", True)


@pytest.mark.parametrize(("operand", "known"), [(63, True), (64, False)])
def test_relays_have_numbers_up_to_63(routed: Router, arch: str, operand: int, known: bool) -> None:
    pipes = Pipes()
    relay = pipes.buffer("relay", row=1, column=1, operand=operand)
    pipes.pipe([pipes.packer(0, 0)], [relay], (1, 1))
    pipes.pipe([relay], [pipes.unpacker(2, 2)], (2, 2))
    assert bool(routed(pipes.graph, arch).refusals) != known


def test_a_pipe_that_names_no_buffer_is_refused(routed: Router, arch: str) -> None:
    pipes = Pipes()
    pipes.pipe([5], [pipes.unpacker(0, 1)], (0, 1))
    (refusal,) = routed(pipes.graph, arch).refusals
    assert "names buffer 5, which there is not" in refusal.message


def test_other_architectures_are_not_routed() -> None:
    with pytest.raises(UnsupportedError, match="'blackhole'"):
        route(Pipes().graph, "blackhole")


def _over_pcie(pipes: Pipes, senders: int, receivers: list[int], **fields: object) -> Pipes:
    """Packers of chip 0 to operands of chip 1."""
    packers = [pipes.packer(0, column) for column in range(senders)]
    pipes.pipe(packers, receivers, (1, 1), mmio_pipe=True, mmio_pipe_downstream=True, **fields)
    return pipes


def test_pcie_is_written_to_and_read_from(routed: Router) -> None:
    pipes = Pipes()
    done = routed(_over_pcie(pipes, 1, [pipes.unpacker(1, 1, chip=1)]).graph, "grayskull")
    (sender,), (receiver,) = (core.streams for core in done.cores)
    assert (sender.kind, sender.writes_queues) == ("packer", 1)
    assert (receiver.kind, receiver.reads_queues, receiver.buffer_bytes) == ("unpacker", 1, 8 * TILE)


def test_pcie_takes_a_relay_where_packers_take_turns_and_where_buffers_do_not_fit(routed: Router) -> None:
    pipes = Pipes()
    receiver = pipes.unpacker(2, 2, chip=1)
    done = routed(_over_pcie(pipes, 2, [receiver]).graph, "grayskull")
    assert {core.place[:3]: [stream.kind for stream in core.streams] for core in done.cores} == {
        (0, 0, 0): ["packer", "relay"],
        (0, 0, 1): ["packer"],
        (1, 1, 1): ["relay"],
        (1, 2, 2): ["unpacker"],
    }


def test_pcie_for_several_cores_is_multicast(routed: Router) -> None:
    pipes = Pipes()
    receivers = [pipes.unpacker(1, column, chip=1) for column in (1, 2)]
    done = routed(_over_pcie(pipes, 1, receivers).graph, "grayskull")
    (multicast, _), _ = (core.streams for core in done.cores if core.place.chip == 1)
    assert (multicast.kind, multicast.reads_queues, multicast.buffer_bytes) == ("multicast", 1, 2 * 4 * TILE)


def test_pcie_in_turns_is_written_on_two_cores(routed: Router) -> None:
    pipes = Pipes()
    packers = [pipes.packer(0, 0), pipes.packer(0, 1)]
    receivers = [[pipes.unpacker(1, 1, chip=1)], [pipes.unpacker(1, 2, chip=1)]]
    pipes.pipe(packers, receivers, (1, 1), (1, 2), mmio_pipe=True)
    done = routed(pipes.graph, "grayskull")
    assert [core.extra_streams for core in done.cores if core.place.chip == 0] == [1, 1]


def test_pcie_for_receivers_that_take_turns_more_than_once(routed: Router) -> None:
    pipes = Pipes()
    packers = [pipes.packer(0, 0), pipes.packer(0, 1)]
    first, second = pipes.unpacker(1, 1, chip=1), pipes.unpacker(1, 2, chip=1)
    pipes.pipe(packers, [[first], [second], [first], [second]], *[(1, 1), (1, 2)] * 2, mmio_pipe=True)
    done = routed(pipes.graph, "grayskull")
    kinds = {core.place[:3]: [stream.kind for stream in core.streams] for core in done.cores}
    assert kinds[0, 0, 0].count("relay") + kinds[0, 0, 1].count("relay") == 2  # one for each receiver


def _phases(routed: Routed, row: int, column: int) -> dict[int, int | None]:
    return {stream.id: stream.phases for stream in _core(routed, row, column).streams}


def test_senders_that_take_turns_have_a_phase_for_each_turn(routed: Router) -> None:
    pipes = Pipes()
    pipes.pipe([pipes.packer(0, 0), pipes.packer(0, 1)], [pipes.unpacker(5, 5)], (5, 5))
    done = routed(pipes.graph, "grayskull")  # 16 iterations, all written out, which for the operand are one phase again
    assert _phases(done, 5, 5) == {0: 32, 8: 1, 40: 16, 41: 16}
    assert _phases(done, 0, 0) == {24: 16}


def test_phases_are_counted_where_they_are_asked_for() -> None:
    pipes = Pipes()
    pipes.pipe([pipes.packer(0, 0)], [pipes.unpacker(0, 1)], (0, 1))
    assert _phases(route(pipes.graph, "grayskull"), 0, 0) == {24: None}
    assert _phases(route(pipes.graph, "grayskull", phases=True), 0, 0) == {24: 1}


@pytest.mark.parametrize("padding_first", [True, False])
def test_phases_of_turns_that_padding_fills(routed: Router, arch: str, padding_first: bool) -> None:
    """Whatever the id of the padding buffer."""
    pipes = Pipes()

    def padding() -> int:
        lies: dict[str, Any] = {"dram_buf_flag": True, "q_slots": 1, "is_padding": True, "is_scatter": True}
        moves = {"size_tiles": 2, "scatter_gather_num_tiles": 2, "epoch_tiles": 8, "replicate": 1}
        return pipes.buffer("unknown", row=0, column=0, operand=0, op="to", **lies, **moves)

    before = padding() if padding_first else 0
    moves = {"size_tiles": 4, "scatter_gather_num_tiles": 2, "epoch_tiles": 8, "tiles_per_input": 8, "replicate": 1}
    packer = pipes.packer(0, 0, is_scatter=True, **moves)
    flow = {"epoch_tiles": 6, "tiles_per_input": 6, "scatter_gather_num_tiles": 6, "tile_clear_granularity": 1}
    first, second = (pipes.unpacker(row, 1, size_tiles=16, **flow) for row in (0, 1))
    filled = (0, 0, 0, 0, *[before or padding()] * 2)
    pipes.pipe([packer], [[first]] * 3 + [[second]] * 3, *[(0, 0)] * 6, output_padding=filled)
    done = routed(pipes.graph, arch)
    assert [list(_phases(done, row, 1).values()) for row in (0, 1)] == [[3], [3]]
