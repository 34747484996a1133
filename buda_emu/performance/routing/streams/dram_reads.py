"""Reads from DRAM: the size of chunks and of the buffers that they go through, and the choice between one stream and
two."""

from functools import cache
from math import gcd, lcm

from buda_emu.performance.routing.streams.connected import BufferNode, invalid_graph
from buda_emu.performance.routing.streams.model import (
    MERGED_READ_BYTES,
    READ_BYTES,
    READ_TILES,
    TILES_A_PHASE,
    Refusal,
    RefusedError,
)
from buda_emu.performance.routing.streams.rational import Kind, Node, Simple


def first_queue(pipe: Simple) -> BufferNode:
    """Return the buffer in DRAM that `pipe` reads first. Raises RefusedError if it reads none."""
    queue = pipe.sources[0].of
    if queue is None or not queue.dram_input:
        raise invalid_graph(f"pipe {pipe.pipe.id} does not read from DRAM")
    return queue


def merged_bytes(pipe: Simple, chunk: int, operand: BufferNode, read_tiles: int) -> int | None:
    """Return the bytes of a buffer that both receives reads from DRAM and is the kernel's operand; None if that is not
    possible and two streams are needed. `chunk` is the tiles that are read at once; `read_tiles` is the buffer for
    reads that the netlist states in tiles, 0 for none."""
    if pipe.place != operand.place:
        return None
    tile = operand.buffer.tile_size
    operand_bytes = tile * operand.buffer.size_tiles
    needed = lcm(chunk * first_queue(pipe).buffer.tile_size, operand_bytes)
    if needed <= max(_most_bytes(read_tiles, tile), operand_bytes):
        return needed
    return None


def _most_bytes(read_tiles: int, tile_size: int) -> int:
    """Return the most bytes of a buffer that both reads from DRAM and is the kernel's operand: what the netlist states
    in tiles (`read_tiles`), else pipegen2's own limit."""
    if read_tiles > 0:
        return read_tiles * tile_size
    return MERGED_READ_BYTES


def scaled_bytes(pipe: Simple, base: int, max_tiles: int) -> int:
    """Return the bytes of a read buffer: the multiple of `base` bytes (one chunk) that keeps enough reads in flight.
    `max_tiles` is the most tiles of a phase, which the buffer divides if it can."""
    tile = first_queue(pipe).buffer.tile_size
    phase = max_tiles * tile
    read_tiles = pipe.pipe.pipe.op_input_dram_io_buf_size_tiles
    scale = 1
    if read_tiles > 0:
        scale = max(1, read_tiles * tile // base)
        while scale > 1 and phase % (scale * base):
            scale -= 1
    else:
        while (scale + 1) * base < READ_BYTES and not (scale * base >= READ_BYTES // 2 and phase % (scale * base) == 0):
            scale += 1
    if scale == 1 and 2 * base <= _most_bytes(read_tiles, tile) and phase % (2 * base) == 0:
        scale = 2
    return scale * base


def phase_tiles(pipe: Simple, merged: bool) -> int:
    """Return the most tiles of a phase before the size of the read buffer is known. `merged` tells whether one buffer
    both receives reads and is the kernel's operand. Raises RefusedError if a phase cannot hold the tiles that must move
    at once."""
    output = pipe.outputs[0]
    if merged and output.tiles > TILES_A_PHASE:
        return _largest_multiple(
            first_queue(pipe).buffer.tiles_per_input, output.buffer.buffer.size_tiles, output.iterations, pipe
        )
    return output.max_tiles


def settled_phase_tiles(pipe: Simple, tiles: int) -> int:
    """Return the most tiles of a phase once the read buffer is known to hold `tiles` tiles: a multiple of them. Raises
    RefusedError if no phase can hold one buffer."""
    queue = first_queue(pipe)
    output = pipe.outputs[0]
    if output.tiles > TILES_A_PHASE:
        tiles = lcm(tiles, output.subtree)
    return _largest_multiple(queue.buffer.tiles_per_input, tiles, output.iterations, pipe)


def _largest_multiple(tiles_per_input: int, tiles: int, iterations: int, pipe: Simple) -> int:
    """Return the most tiles of a phase that are a multiple of `tiles` and, if possible, of the tiles of an input. If
    there is only one iteration and it has more tiles than a phase can, return all that a phase can have. Raises
    RefusedError if `tiles` is 0 or a phase cannot hold it."""
    if tiles < 1:
        raise invalid_graph(f"pipe {pipe.pipe.id}: the buffer that reads holds no whole tile")
    if iterations == 1 and tiles > TILES_A_PHASE:
        return TILES_A_PHASE
    if 0 < tiles_per_input <= TILES_A_PHASE and (common := lcm(tiles, tiles_per_input)) <= TILES_A_PHASE:
        tiles = common
    if tiles > TILES_A_PHASE:
        raise RefusedError(
            Refusal(
                what="phases",
                message=f"pipe {pipe.pipe.id} has to move {tiles} tiles at once, and a phase of a stream has "
                f"at most {TILES_A_PHASE}",
                place=pipe.place,
                number=tiles,
                limit=TILES_A_PHASE,
            )
        )
    return TILES_A_PHASE // tiles * tiles


class Chunks:
    """The number of tiles that each pipe of one subgraph reads from DRAM at once: call `of(pipe)`. Figures are
    cached."""

    def __init__(self) -> None:
        self.of = cache(self._of)
        self._of_queue = cache(self._of_queue)
        self._tiles_at_once = cache(_tiles_at_once)

    def _of(self, pipe: Simple) -> int:
        """Return the tiles that a pipe reads from DRAM at once: the least over all queues that it reads."""
        return min(self._of_queue(node.owner, _read_limit(pipe, node)) for node in pipe.sources)

    def _of_queue(self, node: Node, max_bytes: int) -> int:
        """Return the tiles that are read at once from the queue of a node: at most `max_bytes`, and a number that all
        its readers can take."""
        reader = node.outputs[0]
        clear = _cleared_at_once(reader)
        chunk = TILES_A_PHASE // clear * clear
        if reader.kind is Kind.DRAM_FORK:
            pipes = [output.outputs[0] for output in reader.outputs]
        else:
            pipes = [reader]
        for pipe in pipes:
            chunk = gcd(chunk, _moved_tiles(pipe))
        least = min(map(self._tiles_at_once, pipes))
        chunk = lcm(chunk, least)
        return whole_chunk(chunk, least, node.buffer.buffer.tile_size, READ_TILES, max_bytes)


def _read_limit(pipe: Simple, node: Node) -> int:
    """Return the most bytes that a pipe may read at once from a node's queue: the buffer that the netlist states, at
    most pipegen2's own limit."""
    read_tiles = pipe.pipe.pipe.op_input_dram_io_buf_size_tiles
    if read_tiles:
        return min(READ_BYTES, read_tiles * node.buffer.buffer.tile_size)
    return READ_BYTES


def whole_chunk(chunk: int, least: int, tile_size: int, most_tiles: int, most_bytes: int) -> int:
    """Return the largest divisor of `chunk` tiles that is a multiple of `least` tiles and fits one transfer of at most
    `most_tiles` tiles and `most_bytes` bytes; `least` if there is none."""
    max_tiles = min(most_tiles, most_bytes // max(1, tile_size))
    if chunk <= max_tiles:
        return chunk
    return next((part for part in range(max_tiles // least * least, 0, -least) if chunk % part == 0), least)


def _cleared_at_once(pipe: Simple) -> int:
    """Return the greatest common divisor of the tiles that the buffers behind `pipe` free at once."""
    divisor = 0
    for node in pipe.outputs:
        buffer = node.of
        if buffer is not None and buffer.relay:
            divisor = gcd(divisor, buffer.buffer.size_tiles)
        elif node.kernel_operand is not None:
            divisor = gcd(divisor, node.kernel_operand.buffer.tile_clear_granularity)
        elif buffer is not None and buffer.in_dram and buffer.input is not None:
            divisor = gcd(divisor, buffer.buffer.size_tiles)
        else:
            divisor = gcd(divisor, _cleared_at_once(node.outputs[0]))
    return max(1, divisor)


def _moved_tiles(pipe: Simple) -> int:
    """Return the tiles that a pipe moves in an iteration; for an embedding, the indices that it takes at once."""
    if pipe.kind is not Kind.DRAM_EMBEDDING:
        return pipe.outputs[0].tiles
    queue = _indices(pipe)
    inputs = queue.indices_per_input
    tile = queue.indices_per_tile
    if inputs > tile:
        return gcd(inputs, tile)
    return inputs


def _tiles_at_once(pipe: Simple) -> int:
    """Return the least number of tiles that a pipe can read at once; for flat data that it tilizes, of rows."""
    if pipe.kind is Kind.DRAM_TILIZER:
        return _tile_rows(pipe)
    if pipe.kind is Kind.DRAM_EMBEDDING:
        rows = _tile_rows(pipe)
        if _indices(pipe).indices_per_input < rows:
            return 1
        return rows
    return pipe.tiles_at_once()


def _tile_rows(pipe: Simple) -> int:
    """Return the rows of a tile of the flat data that a pipe reads, 32 if the queue does not state them."""
    return first_queue(pipe).buffer.untilized_output_tile_dim_r or 32


def _indices(pipe: Simple) -> BufferNode:
    """Return the buffer of an embedding's indices: the last input of the pipe that reads its table."""
    return pipe.pipe.inputs[-1][0]
