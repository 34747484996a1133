"""Pipes between chips through PCIe: how many tiles are written at once, and what the reading side keeps room for."""

from math import gcd

from buda_emu.routing.pipes.model import Buffer
from buda_emu.routing.streams.connected import BufferNode, Inputs
from buda_emu.routing.streams.limits import MERGED_READ_BYTES, WRITE_BYTES


def streamed(inputs: Inputs, outputs: list[BufferNode]) -> BufferNode:
    """What a core writes to, and another reads from, as if it were a queue: `size_tiles` at once, `q_slots` times."""
    tile = inputs[0][0].buffer.tile_size
    at_once = _written_at_once(inputs, outputs, tile)
    if len(outputs) == 1:
        kept = outputs[0].buffer.size_tiles
    else:
        kept = at_once * (2 if 2 * at_once * tile <= MERGED_READ_BYTES else 1)
    return BufferNode(
        Buffer(
            id=-1,
            buffer_type="pcie",
            chip=inputs[0][0].place.chip,
            epoch_tiles=outputs[0].buffer.epoch_tiles,
            tiles_per_input=at_once,
            size_tiles=at_once,
            tile_size=tile,
            scatter_gather_num_tiles=1,
            q_slots=max(1, kept // at_once),
            dram_io_flag=True,
        )
    )


def _written_at_once(inputs: Inputs, outputs: list[BufferNode], tile: int) -> int:
    """Tiles that divide what each core in turn sends, and the receiver's buffer, and that one write can move."""
    runs = list[int]()
    place = None
    for buffer, _ in inputs:
        if buffer.place == place:
            runs[-1] += buffer.buffer.scatter_gather_num_tiles
        else:
            runs.append(buffer.buffer.scatter_gather_num_tiles)
        place = buffer.place
    tiles = gcd(*runs)
    if len(outputs) == 1:
        tiles = gcd(tiles, outputs[0].buffer.size_tiles)
    while tiles % 2 == 0 and tiles * tile > WRITE_BYTES:
        tiles //= 2
    return tiles
