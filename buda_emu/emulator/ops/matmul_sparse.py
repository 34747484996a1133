"""The product of an identity matmul: sparse tiles times activations, led by an encoding (OPS 6.2).

in0 holds the sparse tiles, split over the grid rows and `fracture_factor` column groups; in2 the encoding, split the
same way; in1 the activations, split over the grid columns.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.kernels.products.sparse import Terms, Weights, mark_finite_tiles, same_words, sparse_tiles
from buda_emu.arithmetic.kernels.tiles import tile_memory
from buda_emu.emulator.ops.base import Parallel, PlannedOp, Tiles
from buda_emu.emulator.ops.common import items
from buda_emu.emulator.ops.operands import after_tms, blank_operand, gather_operand
from buda_emu.spec.attributes import LAST_IN_TILE, LAST_OF_T
from buda_emu.spec.blocking import Shape
from buda_emu.support.errors import ProgramError, UnsupportedError
from buda_emu.support.records import dataclass

WORDS_PER_TILE: Final = 2048  # 16-bit words in a tile of 32-bit words
INDEX_MASK: Final = LAST_OF_T - 1


class TileTerm(NamedTuple):
    """One tile product: out[b][row] += weight tile x row `act_row` of all activation tiles, (t, row) counted as one."""

    b: int
    row: int
    weight: int
    act_row: int


@dataclass(frozen=True, slots=True)
class Encoding:
    """The cut of the words of one op's stream into bits, and the limits of the numbers in them.

    `tile_bits` is sparse_tile_ptr_bits, `ublock_bits` sparse_ublock_idx_bits or the value that replaces it; mblock_rows
    and ublock_rows are the op's, in ublocks and tiles; u_kt tiles of the inner dimension make one strip. `weights` is
    the number of weight tiles that a core can read, `act_rows` that of rows of activation tiles, over all t."""

    name: str
    tile_bits: int
    ublock_bits: int
    mblock_rows: int
    ublock_rows: int
    u_kt: int
    weights: int
    act_rows: int

    @property
    def inner_bits(self) -> int:
        """Low bits of a position that hold the inner index: the bit width of u_kt, at least 1."""
        return max(1, (self.u_kt - 1).bit_length())

    def check(self, sparse_tiles: int) -> None:
        """Raise ProgramError unless every number that occurs fits its bits, `sparse_tiles` weight tiles included."""
        rules = (
            (0 <= self.tile_bits <= 16 and 0 <= self.ublock_bits <= 16, "the bit counts are not within 0 to 16"),
            (self.u_kt >= 1, "u_kt is less than 1"),
            (
                _can_number(16 - self.tile_bits - self.inner_bits, self.ublock_rows),
                "too few bits for the rows of a ublock",
            ),
            (_can_number(self.inner_bits, self.u_kt), "too few bits for u_kt"),
            (_can_number(self.tile_bits, sparse_tiles), "too few bits for the sparse tiles"),
            (_can_number(self.ublock_bits, self.mblock_rows), "too few bits for the ublocks of a core"),
        )
        for fits, problem in rules:
            if not fits:
                raise ProgramError(
                    f"op {self.name}: sparse encoding with sparse_tile_ptr_bits {self.tile_bits}, ublock bits "
                    f"{self.ublock_bits}, u_kt {self.u_kt}, {self.mblock_rows} ublocks of {self.ublock_rows} rows, "
                    f"{sparse_tiles} sparse tiles: {problem}"
                )

    def decode(self, words: Sequence[int], t: int) -> Iterator[TileTerm]:
        """Yield the tile products of one core, in stream order, until `t` result slices are done. `words` are the
        core's encoding tiles as 16-bit words. Raises ProgramError where the stream ends early, is out of order, or
        names a tile that is not there."""
        at = b = 0
        while b < t:
            if at + 3 > len(words):
                raise ProgramError(f"op {self.name}: sparse encoding ends after {b} of {t} slices")
            head = words[at] | words[at + 1] << 16
            ublocks = words[at + 2]
            at += 3
            at = yield from self._decode_strip(words, at, ublocks, head & INDEX_MASK, b)
            if head & LAST_OF_T:
                b += 1
            if head & LAST_IN_TILE:
                at = -(-at // WORDS_PER_TILE) * WORDS_PER_TILE

    def _decode_strip(
        self, words: Sequence[int], at: int, ublocks: int, strip: int, b: int
    ) -> Generator[TileTerm, None, int]:
        """Yield the products of one strip for result slice `b`; the generator's return value is the position after it.
        `at`: where its `ublocks` headers begin among the words; `strip`: its number, which selects its rows of
        activations. Raises ProgramError."""
        last_ublock = -1
        for _ in range(ublocks):
            header = self._word_at(words, at)
            ublock = header & ((1 << self.ublock_bits) - 1)
            count = header >> self.ublock_bits
            if not last_ublock < ublock < self.mblock_rows:
                raise ProgramError(
                    f"op {self.name}: sparse encoding of strip {strip}: ublock {ublock} after {last_ublock}, "
                    f"of {self.mblock_rows}: out of order"
                )
            last_ublock = ublock
            at += 1
            last_place = (-1, -1)
            for _ in range(count or 1 << (16 - self.ublock_bits)):
                word = self._word_at(words, at)
                at += 1
                position = word & ((1 << (16 - self.tile_bits)) - 1)
                weight = word >> (16 - self.tile_bits)
                place = position >> self.inner_bits, position & ((1 << self.inner_bits) - 1)
                if place <= last_place or place[0] >= self.ublock_rows or place[1] >= self.u_kt:
                    raise ProgramError(
                        f"op {self.name}: sparse encoding of strip {strip}, ublock {ublock}: tile {list(place)} after "
                        f"{list(last_place)}, of {self.ublock_rows} x {self.u_kt}: out of order"
                    )
                last_place = place
                act_row = strip * self.u_kt + place[1]
                if weight >= self.weights or act_row >= self.act_rows:
                    raise ProgramError(
                        f"op {self.name}: sparse encoding of strip {strip} reads tile {weight} of {self.weights} "
                        f"sparse tiles and activation row {act_row} of {self.act_rows}"
                    )
                yield TileTerm(b, ublock * self.ublock_rows + place[0], weight, act_row)
        return at

    def _word_at(self, words: Sequence[int], at: int) -> int:
        """Return the word at a position of the stream. Raises ProgramError beyond its end."""
        if at >= len(words):
            raise ProgramError(f"op {self.name}: sparse encoding ends inside a strip")
        return words[at]


def _can_number(bits: int, count: int) -> bool:
    """Return whether `bits` bits can number `count` things; False for a negative number of bits."""
    return bits >= 0 and 1 << bits >= count


class Split(NamedTuple):
    """The division of an op's operands over cores: sizes of a core's share, in tiles."""

    grid_rows: int
    groups: int  # column groups of weights and encodings
    weight_rows: int
    weight_cols: int
    encoding_rows: int
    encoding_cols: int
    cols: int  # of activations and result


def product_shape(call: PlannedOp) -> Shape:
    """Return the declared shape of the op, after checking that operands, attributes and encoding bits fit (OPS 6.2).
    Raises ProgramError, UnsupportedError."""
    label = call.operands[2].label
    if label in ("RawUInt8", "RawUInt16"):
        raise UnsupportedError(f"op {call.name}: identity matmul cannot unpack an encoding of {label}, only RawUInt32")
    if label != "RawUInt32":
        raise ProgramError(f"op {call.name}: identity matmul needs an encoding of RawUInt32, not {label}")
    if call.attributes.sparse_tile_ptr_bits == 0 and "sparse_tile_ptr_bits" not in call.attributes.given:
        raise UnsupportedError(
            f"op {call.name}: identity matmul without sparse_tile_ptr_bits reads the older encoding of 32-bit words, "
            "which is not emulated"  # OPS 6.2: dead code in the reference too
        )
    if call.attributes.requant or call.attributes.dequant or call.attributes.accumulate:
        raise UnsupportedError(f"op {call.name}: identity matmul with accumulate, requant or dequant")
    parts = split(call)
    encoding(call).check(parts.weight_cols // call.blocking.grid_size[1] // parts.groups)
    return call.blocking.shape


def split(call: PlannedOp) -> Split:
    """Return the sizes of a core's share of each operand. Raises ProgramError where an operand does not split
    evenly."""
    grid_rows, grid_cols = call.blocking.grid_size
    groups = call.attributes.fracture_factor
    weights, acts, words = (operand.map.shape for operand in call.operands[:3])
    if groups < 1 or grid_cols % groups:
        raise ProgramError(f"op {call.name}: fracture_factor {groups} does not divide {grid_cols} grid columns")
    for role, shape, pieces in (
        ("sparse tiles", weights, (grid_rows, groups)),
        ("encoding", words, (grid_rows, groups)),
        ("activations", acts, (1, grid_cols)),
    ):
        if shape[1] % pieces[0] or shape[2] % pieces[1]:
            raise ProgramError(
                f"op {call.name}: identity matmul cannot split {role} of {shape[1]} x {shape[2]} tiles into "
                f"{pieces[0]} x {pieces[1]} parts"
            )
    if acts[2] != call.blocking.cols:
        raise ProgramError(f"op {call.name}: activations have {acts[2]} columns of tiles, the op {call.blocking.cols}")
    return Split(
        grid_rows=grid_rows,
        groups=groups,
        weight_rows=weights[1] // grid_rows,
        weight_cols=weights[2] // groups,
        encoding_rows=words[1] // grid_rows,
        encoding_cols=words[2] // groups,
        cols=acts[2] // grid_cols,
    )


def encoding(call: PlannedOp) -> Encoding:
    """Return how the words of the op's stream are cut into bits, by its attributes and dims."""
    attributes = call.attributes
    blocking = call.blocking
    acts = call.operands[1].map.shape
    return Encoding(
        name=call.name,
        tile_bits=attributes.sparse_tile_ptr_bits,
        ublock_bits=attributes.ublock_index_bits,
        mblock_rows=blocking.mblock[0],
        ublock_rows=blocking.ublock[0],
        u_kt=attributes.u_kt,
        weights=split(call).weight_cols,
        act_rows=acts[0] * acts[1],
    )


def core_words(call: PlannedOp, tiles: Tiles, grid_row: int, group: int) -> list[int]:
    """Return the 16-bit words (low half of each 32-bit word first) that the cores of a grid row and column group read
    from one entry of the encoding, post-TM float32[t, R, C, 32, 32]."""
    parts = split(call)
    rows = slice(grid_row * parts.encoding_rows, (grid_row + 1) * parts.encoding_rows)
    cols = slice(group * parts.encoding_cols, (group + 1) * parts.encoding_cols)
    words: list[int] = np.ascontiguousarray(tiles[:, rows, cols]).reshape(-1).view("<u2").tolist()
    return words


def reference_product(call: PlannedOp, weights: Tiles, acts: Tiles, words: Tiles) -> Tiles:
    """Return the product by the definition: of in0 (`weights`) and in1 (`acts`), arranged and blanked, by the encoding
    in2 (`words`), float32[w, t, R, C, 32, 32] each. Raises ProgramError for a bad encoding."""
    blocking = call.blocking
    parts = split(call)
    code = encoding(call)
    out = np.zeros((acts.shape[0], *blocking.shape, 32, 32), np.float32)
    for w, grid_row, grid_col in np.ndindex(acts.shape[0], *blocking.grid_size):
        group = grid_col // (blocking.grid_size[1] // parts.groups)
        cols = slice(grid_col * parts.cols, (grid_col + 1) * parts.cols)
        tiles = weights[w, 0, grid_row * parts.weight_rows, group * parts.weight_cols : (group + 1) * parts.weight_cols]
        for term in code.decode(core_words(call, words[w], grid_row, group), blocking.t):
            z, row = divmod(term.act_row, acts.shape[2])
            to = out[w, term.b, grid_row * blocking.block_rows + term.row, cols]
            with np.errstate(all="ignore"):
                to += tile_product(tiles[term.weight], acts[w, z, row, cols])
    return out


def tile_product(a: Tiles, b: Tiles) -> Tiles:
    """Return a x b for float32[..., 32, 32]: k ascending from +0, product and sum each rounded (OPS 6.2)."""
    total: Tiles = np.zeros(np.broadcast_shapes(a.shape, b.shape), np.float32)
    with np.errstate(all="ignore"):
        for k in range(32):
            total += a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return total


def collect(call: PlannedOp, words: Tiles) -> Terms:
    """Decode the encodings of all cores from one entry of in2, float32[t, R, C, 32, 32] (post-TM), and return their
    products ordered by result row. Raises ProgramError."""
    parts = split(call)
    code = encoding(call)
    blocking = call.blocking
    t, rows, _ = blocking.shape
    weight_cols = call.operands[0].map.shape[2]
    begin = np.zeros((parts.groups, t * rows + 1), np.int64)
    tables: list[NDArray[np.int64]] = []
    count = 0
    for group in range(parts.groups):
        lines: list[TileTerm] = []
        for grid_row in range(parts.grid_rows):
            first_row = grid_row * blocking.block_rows
            first_weight = grid_row * parts.weight_rows * weight_cols + group * parts.weight_cols
            stream = core_words(call, words, grid_row, group)
            lines += [
                TileTerm(0, term.b * rows + first_row + term.row, first_weight + term.weight, term.act_row)
                for term in code.decode(stream, t)
            ]
        table = np.array(lines, np.int64).reshape(-1, 4)[:, 1:]
        table = table[np.argsort(table[:, 0], kind="stable")]
        begin[group] = count + np.searchsorted(table[:, 0], np.arange(t * rows + 1))
        count += len(table)
        tables.append(table)
    every = np.concatenate(tables)
    return Terms(begin, np.ascontiguousarray(every[:, 1]), np.ascontiguousarray(every[:, 2]))


def run_product(call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
    """Compute the product by kernels into `out` float32[w, tiles, 1024]. `inputs` are source tensors before TMs,
    float32[w or 1, tiles, 1024]. Raises ProgramError for a bad encoding."""
    weights = _remembered_weights(call, gather_operand(blank_operand(call, 0, inputs, parallel), parallel))
    acts = blank_operand(call, 1, inputs, parallel, tile_memory.TRANSPOSE if call.transpose else tile_memory.AS_IS)
    terms = _remembered_terms(call, inputs)
    if len(terms) == 1:
        _run_entries(call, terms[0], weights, acts, out, parallel)
        return
    source, tiles, pad_value, arrange = acts
    for w, entry_terms in enumerate(terms):
        entry = slice(w, w + 1)
        if len(weights.tiles) == 1:
            entry_weights = weights
        else:
            entry_weights = Weights.of(weights.tiles[entry])
        entry_acts = (source if len(source) == 1 else source[entry], tiles, pad_value, arrange)
        _run_entries(call, entry_terms, entry_weights, entry_acts, out[entry], parallel)


def _remembered_weights(call: PlannedOp, tiles: Tiles) -> Weights:
    """Return the weight tiles with their non-zero positions, which the op remembers while the weights stay the same."""
    weights: Weights | None = call.memo.get("weights")
    if weights is None or not _same_bits(weights.tiles, tiles):
        weights = call.memo["weights"] = Weights.of(tiles.copy())
    return weights


def _remembered_terms(call: PlannedOp, inputs: Sequence[Tiles]) -> Sequence[Terms]:
    """Return the decoded terms of each entry of the encoding, a single one where all entries are equal; the op
    remembers them while the encoding stays the same. Raises ProgramError for a bad encoding."""
    remembered: tuple[Tiles, Sequence[Terms]] | None = call.memo.get("terms")
    if remembered is None or not _same_bits(remembered[0], inputs[2]):
        words = after_tms(call, 2, inputs)
        bits = words.view(np.uint32)
        differ = words if (bits != bits[:1]).any() else words[:1]
        remembered = call.memo["terms"] = inputs[2].copy(), tuple(collect(call, entry) for entry in differ)
    return remembered[1]


def _same_bits(a: Tiles, b: Tiles) -> bool:
    """Return whether two tensors have the same shape and bits, so that what was computed from one holds for the
    other."""
    return a.shape == b.shape and same_words(a.view(np.uint32).reshape(-1), b.view(np.uint32).reshape(-1))


def _run_entries(
    call: PlannedOp, terms: Terms, weights: Weights, acts: tile_memory.Operand, out: Tiles, parallel: Parallel
) -> None:
    """Compute the product for all entries of `out`, which share the encoding decoded in `terms`."""
    finite = np.empty(acts[0].shape[:2], np.bool_)
    parallel(mark_finite_tiles, items(acts[0]), finite, acts[0])
    cols = call.blocking.cols
    group_cols = cols // call.attributes.fracture_factor
    parallel(sparse_tiles, items(out), out, weights, acts, finite, terms, (cols, group_cols))
