"""Requests replayed: what the driver caches, what it moves, and when, under stated assumptions (DARWINN 4, 6, 9)."""

from buda_emu.darwinn.assumptions import CLOCKS, LINKS, Assumptions
from buda_emu.darwinn.replaying.replay import replay
from buda_emu.darwinn.replaying.result import Event, Eviction, Replay, Step

__all__ = ["CLOCKS", "LINKS", "Assumptions", "Event", "Eviction", "Replay", "Step", "replay"]
