"""Queues of a draft: no more than memory has room for."""

from random import Random

import pytest

from buda_emu.spec.blocking import Blocking
from buda_emu.testing.generator.draft import Draw, NetlistDraft, NoRoomError, OpenGraph

HOST_BYTES = (1 << 30) - (1 << 27)  # NETLIST V156
TILE = Blocking((1, 1), 1, (1, 1), (1, 1))


def placed(free):
    """A queue of a tile of Float32, where the host's memory is free from this byte on; None if it lies in DRAM."""
    for seed in range(100):
        draft = NetlistDraft.new(Draw(Random(seed), frozenset()), "wormhole_b0", 12)
        draft.graphs.append(OpenGraph("g", 0, 1, set(), "b"))
        draft.ends[-1, 0] = free
        made = draft.queue("q", TILE, "Float32", entries=2)
        if made.loc == "host":
            return draft.ends[-1, 0]
    return None


def test_the_hosts_memory_has_room_up_to_its_end():
    size = placed(0x20000000) - 0x20000000
    assert size > 2 * 2 * 4096
    assert placed(HOST_BYTES - size) == HOST_BYTES
    with pytest.raises(NoRoomError):
        placed(HOST_BYTES - size + 32)
