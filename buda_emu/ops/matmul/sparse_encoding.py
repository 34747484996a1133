"""The index stream of an identity matmul: strips of ublocks of sparse tiles (OPS 6.2)."""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

from buda_emu.errors import ProgramError
from buda_emu.records import dataclass

WORDS_PER_TILE: Final = 2048  # 16-bit words in a tile of 32-bit words
LAST_OF_T: Final = 1 << 30
LAST_IN_TILE: Final = 1 << 31
INDEX_MASK: Final = LAST_OF_T - 1


class TileTerm(NamedTuple):
    """One tile product: out[b][row] += weight tile x row `act_row` of all activation tiles, (t, row) counted as one."""

    b: int
    row: int
    weight: int
    act_row: int


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the words of one op's stream are cut into bits, and what they count.

    `tile_bits` is sparse_tile_ptr_bits, `ublock_bits` sparse_ublock_idx_bits or what stands for it; mblock_rows and
    ublock_rows are the op's, in ublocks and tiles; u_kt tiles of the inner dimension make one strip. `weights` is the
    number of weight tiles that a core can read, `act_rows` that of rows of activation tiles, over all t.
    """

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
        """Raises ProgramError unless every number that occurs fits its bits, `sparse_tiles` weight tiles included."""
        rules = (
            (0 <= self.tile_bits <= 16 and 0 <= self.ublock_bits <= 16, "the bit counts are not within 0 to 16"),
            (self.u_kt >= 1, "u_kt is less than 1"),
            (_holds(16 - self.tile_bits - self.inner_bits, self.ublock_rows), "too few bits for the rows of a ublock"),
            (_holds(self.inner_bits, self.u_kt), "too few bits for u_kt"),
            (_holds(self.tile_bits, sparse_tiles), "too few bits for the sparse tiles"),
            (_holds(self.ublock_bits, self.mblock_rows), "too few bits for the ublocks of a core"),
        )
        for fits, problem in rules:
            if not fits:
                raise ProgramError(
                    f"op {self.name}: sparse encoding with sparse_tile_ptr_bits {self.tile_bits}, ublock bits "
                    f"{self.ublock_bits}, u_kt {self.u_kt}, {self.mblock_rows} ublocks of {self.ublock_rows} rows, "
                    f"{sparse_tiles} sparse tiles: {problem}"
                )

    def decode(self, words: Sequence[int], t: int) -> Iterator[TileTerm]:
        """The tile products of one core, in stream order, until `t` result slices are done.

        `words` are the core's encoding tiles as 16-bit words. Raises ProgramError where the stream ends early, or where
        its entries are not in the order in which ublock rows and positions are scanned.
        """
        at = b = 0
        while b < t:
            if at + 3 > len(words):
                raise ProgramError(f"op {self.name}: sparse encoding ends after {b} of {t} slices")
            head = words[at] | words[at + 1] << 16
            ublocks = words[at + 2]
            at += 3
            at = yield from self._strip(words, at, ublocks, head & INDEX_MASK, b)
            if head & LAST_OF_T:
                b += 1
            if head & LAST_IN_TILE:
                at = -(-at // WORDS_PER_TILE) * WORDS_PER_TILE

    def _strip(self, words: Sequence[int], at: int, ublocks: int, strip: int, b: int) -> Generator[TileTerm, None, int]:
        """The products of one strip; returns where it ends."""
        last_ublock = -1
        for _ in range(ublocks):
            header = self._word(words, at)
            ublock, count = header & ((1 << self.ublock_bits) - 1), header >> self.ublock_bits
            if not last_ublock < ublock < self.mblock_rows:
                raise ProgramError(
                    f"op {self.name}: sparse encoding of strip {strip}: ublock {ublock} after {last_ublock}, "
                    f"of {self.mblock_rows}: out of order"
                )
            last_ublock = ublock
            at += 1
            last_place = (-1, -1)
            for _ in range(count or 1 << (16 - self.ublock_bits)):
                word = self._word(words, at)
                at += 1
                position, weight = word & ((1 << (16 - self.tile_bits)) - 1), word >> (16 - self.tile_bits)
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

    def _word(self, words: Sequence[int], at: int) -> int:
        if at >= len(words):
            raise ProgramError(f"op {self.name}: sparse encoding ends inside a strip")
        return words[at]


def _holds(bits: int, count: int) -> bool:
    return bits >= 0 and 1 << bits >= count
