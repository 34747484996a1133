"""Sizes and alignment of queues in memory (NETLIST 1.9, 7.3)."""

import os
from typing import Any

from buda_emu.api.backend.enums import format_word
from buda_emu.api.backend.processes.family import newest_machine
from buda_emu.netlist.sizes import align_up
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.spec.formats import FORMATS, tile_bytes


def get_io_size_in_bytes(
    data_formati: Any,
    is_untilizesd: bool,
    ublock_ct: int,
    ublock_rt: int,
    mblock_m: int,
    mblock_n: int,
    t: int,
    entries: int,
    tile_height: int = 32,
    tile_width: int = 32,
) -> int:
    """Bytes of one buffer of a queue: its entries after the queue header. Raises RuntimeError for an unknown format.

    The names, misspelt as they are, and the order of the arguments are those of the compiled module.
    """
    word = format_word(data_formati)
    if word not in FORMATS:
        raise RuntimeError(f"get_io_size_in_bytes: {data_formati} is not a format")
    alignment = _alignment()
    tile = tile_bytes(word, tile_height, tile_width, alignment, header=not is_untilizesd)
    return ublock_ct * ublock_rt * mblock_m * mblock_n * t * tile * entries + alignment


def get_next_aligned_address(address: int) -> int:
    """The first aligned address that is not below."""
    return align_up(int(address), _alignment())


def _alignment() -> int:
    """32 bytes, 64 on blackhole: of the architecture that ARCH_NAME names, else of the open backend."""
    name = os.environ.get("ARCH_NAME", "").lower()
    if name in ARCHS:
        return ARCHS[name].alignment
    machine = newest_machine()
    return (machine.netlist.arch if machine is not None else ARCHS[DEFAULT_ARCH]).alignment
