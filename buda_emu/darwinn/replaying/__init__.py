"""Requests replayed: what the driver caches, what it moves, and when, under stated assumptions (DARWINN 4, 6, 9)."""

from buda_emu.darwinn.replaying.replay import replay
from buda_emu.darwinn.replaying.result import Replay

__all__ = ["Replay", "replay"]
