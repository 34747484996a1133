"""Generates inputs of an identity matmul: the sparse tiles and their encoding (NETLIST 5.1 Sparse, 5.2; read back by
OPS 6.2)."""

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from buda_emu.netlist.model import Op, Queue
from buda_emu.spec.attributes import LAST_IN_TILE, LAST_OF_T
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.test_config import Stimulus
from buda_emu.support.errors import NetlistError, UnsupportedError
from buda_emu.support.records import dataclass

_HEADER_BYTES = 6  # three 16-bit words (OPS 6.2)


@dataclass(frozen=True, slots=True)
class SparseShape:
    """The parameters of an identity matmul that decide its encoding. Names as in NETLIST 5.2."""

    name: str
    t: int
    act_t: int
    m_k: int
    u_kt: int
    mblock_m: int
    ublock_rt: int
    grid_rows: int
    sparse_tiles: int
    index_tiles: int
    pointer_bits: int
    ublock_bits: int

    @property
    def column_bits(self) -> int:
        """Bits of a tile column in a position."""
        return bits(self.u_kt)

    def check(self) -> None:
        """Raise NetlistError where these parameters break a precondition of NETLIST 5.2, so that no encoding exists,
        and UnsupportedError without sparse_tile_ptr_bits."""
        p = self.pointer_bits
        u = self.ublock_bits
        if p <= 0:
            raise UnsupportedError(
                f"op {self.name}: sparse_tile_ptr_bits is {p} or not given; the older encoding of 32-bit words that "
                "needs none is not emulated"  # OPS 6.2: dead code in the vendor's model too
            )
        conditions = (
            (self.t == self.act_t or self.act_t == 1, f"act_t {self.act_t} is neither t {self.t} nor 1"),
            (self.mblock_m < 1 << u, f"mblock_m {self.mblock_m} does not fit {u} ublock bits"),
            (self.ublock_rt * self.u_kt <= 1 << max(16 - u, 0), f"a ublock has more tiles than {16 - u} bits count"),
            (self.sparse_tiles < 1 << p, f"{self.sparse_tiles} sparse tiles do not fit {p} pointer bits"),
            (bits(self.ublock_rt) + self.column_bits <= 16 - p, f"tile positions do not fit beside {p} pointer bits"),
        )
        for holds, text in conditions:
            if not holds:
                raise NetlistError(f"op {self.name}: no sparse encoding: {text}")


def bits(count: int) -> int:
    """Return how many bits it takes to number `count` values, at least one."""
    return max(1, (count - 1).bit_length())


def sparse_shape(op: Op, activations_t: int) -> SparseShape:
    """Return the encoding's parameters of one identity matmul. `activations_t` is the t of its input 1, which counts
    where the attribute act_t is 0."""
    attributes = op.attributes
    blocking = op.blocking
    return SparseShape(
        name=op.name,
        t=blocking.t,
        act_t=attributes.act_t or activations_t,
        m_k=attributes.m_k,
        u_kt=attributes.u_kt,
        mblock_m=blocking.mblock[0],
        ublock_rt=blocking.ublock[0],
        grid_rows=blocking.grid_size[0],
        sparse_tiles=attributes.num_sparse_tiles,
        index_tiles=attributes.num_index_tiles,
        pointer_bits=attributes.sparse_tile_ptr_bits,
        ublock_bits=attributes.ublock_index_bits,
    )


@dataclass(frozen=True, slots=True)
class Strip:
    """One strip: its number, and the non-zero tile positions (row, column) of each non-zero ublock by its index."""

    index: int
    ublocks: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    last_of_t: bool

    @property
    def size(self) -> int:
        """Bytes of the strip in the stream."""
        return _HEADER_BYTES + sum(2 + 2 * len(tiles) for _, tiles in self.ublocks)


def encoding_tiles(
    shape: SparseShape, stimulus: Stimulus | None, queue: Queue, stream: np.random.Generator
) -> NDArray[np.uint32]:
    """Return one entry of the encoding queue: uint32 [1, t, rows, cols], tile after tile (LAYOUT 2 megarow), drawn from
    `stream` as the stimulus says. Without a stimulus every t gets one strip with one tile. Raises NetlistError where
    the encoding does not fit the queue, UnsupportedError without sparse_tile_ptr_bits."""
    shape.check()
    word_bytes = FORMATS[queue.df].bits // 8
    height, width = queue.blocking.tile_dim
    words = height * width
    capacity = words * word_bytes
    if stimulus is not None:
        capacity = min(capacity, stimulus.enc_tile_byte_size)
    t, rows, cols = queue.blocking.shape
    per_row = shape.index_tiles or t * rows * cols // shape.grid_rows
    tiles = np.zeros((t * rows * cols, words), np.uint32)
    for row in range(shape.grid_rows):
        coded = _pack_strips(shape, _make_strips(shape, stimulus, stream), capacity)
        if len(coded) > per_row or (row + 1) * per_row > len(tiles):
            raise NetlistError(
                f"op {shape.name}: the sparse encoding of a grid row takes {len(coded)} tiles, "
                f"num_index_tiles is {per_row} and queue {queue.name} has {len(tiles)} for {shape.grid_rows} rows"
            )
        for number, data in enumerate(coded):
            padded = data.ljust(words * word_bytes, b"\0")
            tiles[row * per_row + number] = np.frombuffer(padded, f"<u{word_bytes}")
    return tiles.reshape(1, *queue.blocking.element_shape)


def sparse_tiles(shape: SparseShape, queue: Queue, stream: np.random.Generator) -> NDArray[np.float32]:
    """Return one entry of the queue of sparse tiles, float32 [1, t, rows, cols]: each used tile has a single 1 in every
    row, at a column drawn from `stream` (NETLIST 5.1 Sparse); unused tiles are zero."""
    t, rows, cols = queue.blocking.shape
    height, width = queue.blocking.tile_dim
    tiles = np.zeros((t * rows * cols, height, width), np.float32)
    used = min(shape.grid_rows * shape.sparse_tiles, len(tiles))
    columns = np.floor(stream.random((used, height)) * width).astype(np.int64)
    np.put_along_axis(tiles[:used], columns[:, :, None], 1.0, axis=2)
    grid = tiles.reshape(1, t, rows, cols, height, width)
    return np.ascontiguousarray(grid.transpose(0, 1, 2, 4, 3, 5)).reshape(1, *queue.blocking.element_shape)


def _make_strips(shape: SparseShape, stimulus: Stimulus | None, stream: np.random.Generator) -> list[Strip]:
    """Return the strips of one grid row: as many as the stimulus counts, or drawn from `stream` by its frequencies;
    without a stimulus one for each t. Raises NetlistError for counts that no encoding has."""
    if stimulus is None:
        return list(_even_strips(shape, shape.t, shape.t, shape.t))
    if (
        stimulus.type == "sparse_encoding_nz_counts"
        or min(stimulus.nz_strips, stimulus.nz_ublocks, stimulus.nz_tiles) > 0
    ):
        return list(_even_strips(shape, stimulus.nz_strips, stimulus.nz_ublocks, stimulus.nz_tiles))
    return list(_random_strips(shape, stimulus, stream))


def _random_strips(shape: SparseShape, stimulus: Stimulus, stream: np.random.Generator) -> Iterator[Strip]:
    """Yield the strips of one grid row where the stimulus gives frequencies: strips, ublocks and tiles are dropped at
    random with these."""
    last = 0
    number = 0
    group = -(-shape.m_k // shape.t)
    for t in range(shape.t):
        strips = [
            s
            for s, draw in enumerate(stream.random(shape.m_k))
            if draw > stimulus.zero_strip_freq and s >= last and s < (t + 1) * group
        ]
        for s in strips:
            last = s
            number = _strip_index(shape, t, s)
            ublocks = tuple(
                (
                    index,
                    tuple(
                        divmod(position, shape.u_kt)
                        for position in _draw_subset(shape.ublock_rt * shape.u_kt, stimulus.zero_tile_freq, stream)
                    ),
                )
                for index in _draw_subset(shape.mblock_m, stimulus.zero_ublock_freq, stream)
            )
            yield Strip(number, ublocks, s == strips[-1])
        if not strips:
            yield Strip(number, (), True)


def _draw_subset(count: int, zero_frequency: float, stream: np.random.Generator) -> list[int]:
    """Return the numbers below `count` that are kept: each is dropped with the probability `zero_frequency`, except for
    one, drawn too, that is always kept."""
    forced = int(stream.random() * count)
    return [i for i, draw in enumerate(stream.random(count)) if i == forced or draw > zero_frequency]


def _even_strips(shape: SparseShape, strips: int, ublocks: int, tiles: int) -> Iterator[Strip]:
    """Yield the strips of one grid row where the stimulus gives counts: that many strips, ublocks and tiles, spread
    evenly. Raises NetlistError for counts that no encoding has."""
    ublock_tiles = shape.ublock_rt * shape.u_kt
    if not (
        shape.t <= strips <= shape.m_k + shape.t - 1
        and strips <= ublocks <= strips * shape.mblock_m
        and ublocks <= tiles <= ublocks * ublock_tiles
    ):
        raise NetlistError(
            f"op {shape.name}: no sparse encoding with nz_strips {strips}, nz_ublocks {ublocks}, nz_tiles {tiles} "
            f"for t {shape.t}, m_k {shape.m_k}, mblock_m {shape.mblock_m} and ublocks of {ublock_tiles} tiles"
        )
    width, rest = divmod(strips, shape.t)
    repeats = rest + max(0, width * shape.t - shape.m_k)  # that many t begin with the last strip of the t before
    last = 0
    strip_number = 0
    ublock_number = 0
    for t in range(shape.t):
        strips_of_t = list(range(t * width, min((t + 1) * width, shape.m_k)))
        if t >= shape.t - repeats:
            strips_of_t.insert(0, last)
        for s in strips_of_t:
            ublocks_of_strip: list[tuple[int, tuple[tuple[int, int], ...]]] = []
            for index in range(_share(ublocks, strips, strip_number)):
                positions = range(_share(tiles, ublocks, ublock_number))
                ublocks_of_strip.append((index, tuple(divmod(position, shape.u_kt) for position in positions)))
                ublock_number += 1
            strip_number += 1
            yield Strip(_strip_index(shape, t, s), tuple(ublocks_of_strip), s == strips_of_t[-1])
        last = strips_of_t[-1]


def _share(total: int, parts: int, part: int) -> int:
    """Return the size of part number `part` of an even split of `total` into `parts`; remainders go to the first
    parts."""
    return total // parts + (part < total % parts)


def _strip_index(shape: SparseShape, t: int, strip: int) -> int:
    """Return the number of a strip in the stream. Where activations have a t of their own, each t has m_k strips."""
    return strip if shape.act_t == 1 else shape.m_k * t + strip


def _pack_strips(shape: SparseShape, strips: list[Strip], capacity: int) -> list[bytes]:
    """Return the byte stream of strips, cut into tiles of at most `capacity` bytes between strips. Raises NetlistError
    for a strip that is larger than a tile."""
    tiles: list[bytes] = []
    current = b""
    unique = 1 % shape.sparse_tiles if shape.sparse_tiles else 0
    for number, strip in enumerate(strips):
        following = None
        if number + 1 < len(strips):
            following = strips[number + 1]
        if len(current) + strip.size > capacity:
            raise NetlistError(f"op {shape.name}: a sparse strip of {strip.size} bytes does not fit an encoding tile")
        full = following is None or len(current) + strip.size + following.size > capacity
        flags = LAST_OF_T * strip.last_of_t | LAST_IN_TILE * full
        current += struct.pack("<IH", strip.index | flags, len(strip.ublocks))
        for index, positions in strip.ublocks:
            count_limit = 1 << (16 - shape.ublock_bits)
            current += struct.pack("<H", (len(positions) % count_limit) << shape.ublock_bits | index)
            for row, column in positions:
                position = row << shape.column_bits | column
                current += struct.pack("<H", unique << (16 - shape.pointer_bits) | position)
                unique = (unique + 1) % max(shape.sparse_tiles, 1)
        if full:
            tiles.append(current)
            current = b""
    return tiles
