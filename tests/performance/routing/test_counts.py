"""Counts that decide where limits are reached."""

import numpy as np
import pytest

from buda_emu.performance.routing.pipes.core_budget import TILE_HEADERS, CoreBudget, PipeNeeds
from buda_emu.performance.routing.pipes.core_use import CoreUse, _count_source_changes
from buda_emu.performance.routing.pipes.edge import EdgeMap, EdgePipe
from buda_emu.performance.routing.streams.counting import _unrolled_iterations


@pytest.mark.parametrize(
    ("iterations", "most", "limit", "skip", "expected"),
    [
        (12, 6, 0, 2, 6),  # the most that divides them
        (6, 6, 0, 4, 6),  # none does: all where there is room
        (7, 6, 0, 4, 4),  # else as few as there may be
        (10, 8, 5, 4, 5),  # what fits a phase, where that divides them
        (11, 8, 5, 4, 4),
    ],
)
def test_iterations_that_are_written_out(iterations: int, most: int, limit: int, skip: int, expected: int) -> None:
    assert _unrolled_iterations(iterations, most, limit, skip) == expected


@pytest.mark.parametrize(("wide", "streams"), [(0, 1 + 1), (1, 3 + 1), (2, 3 + 3)])
def test_only_so_many_gathers_that_multicast_are_spread(wide: int, streams: int) -> None:
    use = CoreUse()
    for segment in ((1, (0,)), (2, (0,))):
        use.add(segment, 5, gathers=True, multicasts=True, wide=wide)
    assert (use.extra, use.multicasts, use.busy_pipes) == (streams, 2, 2)


@pytest.mark.parametrize(("cores", "received"), [((0, 0, 0), 1), ((0, 1, 1), 2), ((0, 1, 0), 3)])
def test_a_reader_receives_anew_where_the_core_changes(cores: tuple[int, ...], received: int) -> None:
    tiles = (np.array(cores, np.int64) + 1) << 40
    edge = EdgeMap(1, False, [EdgePipe(tiles, [(0, 0), (1, 0)], [False, False])], (1, 2), (2, 1))
    assert _count_source_changes(edge) == {0: received, 1: received}


@pytest.mark.parametrize(("sizes", "headers"), [((2080,), 0), ((2080, 4128), 1), ((2080, 4128, 4128), 1)])
def test_relays_take_their_tiles_and_headers_for_each_further_size(sizes: tuple[int, ...], headers: int) -> None:
    wanted = 4 * sum(sizes) + headers * TILE_HEADERS
    core = CoreBudget(wanted)
    assert [core.put(size, 4) for size in sizes] == list(range(len(sizes)))
    assert (core.bytes, core.free_bytes, core.relays, core.buffers) == (wanted, 0, len(sizes), len(sizes))


@pytest.mark.parametrize("most", [2080, 2079])
def test_a_relay_of_one_tile_has_room_to_the_last_byte(most: int) -> None:
    assert CoreBudget(most).takes_relay(2080, 0, 1, 0, 0) == (most == 2080)


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize(
    ("used", "needs"),
    [
        ({"dram_outputs": 7}, {"stored": 1}),
        ({"dram_inputs": 7}, {"inputs": 1}),
        ({"extra": 22}, {"outputs": 2}),
        ({"extra": 23}, {"outputs": 0}),
        ({"multicasts": 3}, {"multicasts": 1}),
        ({"multicasts": 2, "extra": 22}, {"multicasts": 2}),
    ],
)
def test_a_relay_has_the_streams_of_the_pipes_that_read_it(
    used: dict[str, int], needs: dict[str, int], beyond: int
) -> None:
    counts = {name: number + beyond for name, number in used.items()}
    wanted = {"multicasts": 0, "outputs": 1, "inputs": 0, "stored": 0, **needs}
    assert CoreBudget(1 << 20, CoreUse(**counts)).takes_relay(2080, **wanted) == (beyond == 0)


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize(
    ("used", "asked", "wide", "relay"),
    [
        ({"dram_outputs": 7}, PipeNeeds(to_dram=True), 1, -1),
        ({"dram_inputs": 7}, PipeNeeds(from_dram=True), 1, -1),
        ({"extra": 22}, PipeNeeds(spread=2), 1, -1),
        ({"extra": 23}, PipeNeeds(spread=2), 0, -1),  # no further gather is spread
        ({"extra": 21}, PipeNeeds(spread=2), 1, 0),
        ({"multicasts": 3}, PipeNeeds(multicasts=True), 1, -1),
        ({"extra": 23}, PipeNeeds(multicasts=True), 1, -1),
    ],
)
def test_a_core_takes_pipes_up_to_its_limits(
    used: dict[str, int], asked: PipeNeeds, wide: int, relay: int, beyond: int
) -> None:
    counts = {name: number + beyond for name, number in used.items()}
    assert CoreBudget(1 << 20, CoreUse(**counts)).takes(asked, wide, relay) == (beyond == 0)


@pytest.mark.parametrize(
    ("asked", "relay", "held"),
    [(PipeNeeds(gathers=True, held=100), -1, 100), (PipeNeeds(held=100), 50, 150), (PipeNeeds(held=100), -1, 0)],
)
def test_a_core_holds_inputs_of_gathers_and_relays(asked: PipeNeeds, relay: int, held: int) -> None:
    assert CoreBudget(held).takes(asked, 1, relay)
    assert not CoreBudget(held - 1).takes(asked, 1, relay)
