"""Counts that decide where limits are reached."""

import numpy as np
import pytest

from buda_emu.routing.pipes.maps.edge import EdgeMap, EdgePipe
from buda_emu.routing.pipes.rules.core_use import CoreUse
from buda_emu.routing.pipes.rules.warned import _received
from buda_emu.routing.streams.counting import _times


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
    assert _times(iterations, most, limit, skip) == expected


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
    assert _received(edge) == {0: received, 1: received}
