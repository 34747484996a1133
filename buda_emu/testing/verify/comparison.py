"""The comparisons of a test-config, which decide whether an output holds (NETLIST 5.3)."""

from collections.abc import Iterator
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from buda_emu.spec.test_config import COMPARISON_TYPES, METHODS, VERBOSITIES, Comparison
from buda_emu.support.errors import HostError, NetlistError
from buda_emu.support.records import dataclass

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEAR_INFINITY = 2.0**126
"""A finite value of at least this magnitude matches an infinity of its sign."""


def close(a: Floats, b: Floats, atol: float, rtol: float) -> Flags:
    """Return for each element whether |a - b| <= atol + rtol * max(|a|, |b|), in float64 (elements are float32 or
    integers). Two NaN match, one does not; an infinity matches itself and finite values of its sign near the end of
    float32."""
    with np.errstate(all="ignore"):
        size_a = np.abs(a)
        size_b = np.abs(b)
        result: Flags = np.abs(a - b) <= atol + rtol * np.maximum(size_a, size_b)
        special = ~(np.isfinite(a) & np.isfinite(b))
        if special.any():
            x = a[special]
            y = b[special]
            infinite = np.isinf(x) | np.isinf(y)
            one_sign = np.signbit(x) == np.signbit(y)
            both_large = np.minimum(size_a[special], size_b[special]) >= NEAR_INFINITY
            result[special] = np.where(infinite, (x == y) | (one_sign & both_large), np.isnan(x) & np.isnan(y))
    return result


def equal(a: Floats, b: Floats) -> Flags:
    """Return for each element whether both are the same number, or both NaN; zeros of either sign are equal."""
    return (a == b) | (np.isnan(a) & np.isnan(b))


FLT_MAX: Final = float(np.finfo(np.float32).max)
LIMIT: Final = 1.0000001  # of |pcc|, and of ratios that count as rounding
CONSTANT_DEVIATION: Final = 1e-5  # in place of a standard deviation of zero


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a comparison that decide whether a PCC passes: the least PCC, and tolerances of means of
    constants."""

    check_pcc: float
    atol: float
    rtol: float


def replace_special(values: Floats, *, nan_is_zero: bool) -> Floats:
    """Return a copy with infinities replaced by the largest float32 of their sign and, with `nan_is_zero`, as in the
    flat comparison, NaN by 0."""
    result = np.clip(values, -FLT_MAX, FLT_MAX)
    if not nan_is_zero:
        return result
    return np.where(np.isnan(result), 0.0, result)


def pcc(a: Floats, b: Floats, count: int) -> tuple[Floats, Flags]:
    """Return the PCC of each row of a and b [rows, elements], and a mask of the rows in which all three terms of the
    vendor's formula were negative by rounding only (such rows count as PCC 1). `count` divides the sums: the number of
    elements, or more where the vendor's loops leave some out."""
    value, rounded, _, _ = _correlation(a, b, count)
    return value, rounded


def _correlation(a: Floats, b: Floats, count: int) -> tuple[Floats, Flags, Floats, Floats]:
    """Return what `pcc` returns, and then the means of the rows of a and of b."""
    with np.errstate(all="ignore"):
        mean_a = _sum_in_order(a) / count
        mean_b = _sum_in_order(b) / count
        var_a, rounded_a = _covariance(_sum_in_order(a * a) / count, mean_a * mean_a)
        var_b, rounded_b = _covariance(_sum_in_order(b * b) / count, mean_b * mean_b)
        cov, rounded_cov = _covariance(_sum_in_order(a * b) / count, mean_a * mean_b)
        value = cov / (_standard_deviation(var_a) * _standard_deviation(var_b))
    return value, rounded_a & rounded_b & rounded_cov, mean_a, mean_b


def passes(a: Floats, b: Floats, count: int, bounds: Bounds, constant: Flags, *, signed: bool) -> tuple[Flags, Floats]:
    """Return for each row of a and b whether its PCC reaches the bounds, and the PCC, 1 for rows that count as the
    same. Means are sums over `count`. `constant` marks rows in which both inputs are constant. With `signed`, the
    tolerance of constants follows the sign of the mean of b, like the vendor's; else its magnitude."""
    with np.errstate(all="ignore"):
        value, rounded, mean_a, mean_b = _correlation(a, b, count)
        same_sign = np.signbit(value) == np.signbit(bounds.check_pcc)
        correlated = (np.abs(value) >= abs(bounds.check_pcc)) & same_sign & (np.abs(value) <= LIMIT)
        if signed:
            reference = mean_b
        else:
            reference = np.abs(mean_b)
        same_constant = constant & (np.abs(mean_a - mean_b) <= bounds.atol + bounds.rtol * reference)
    counted_as_one = same_constant | rounded
    value = np.where(counted_as_one & ~correlated, 1.0, value)
    return correlated | counted_as_one | (bounds.check_pcc == 0), value


def _sum_in_order(values: Floats) -> Floats:
    """Return the sum of each row, added up from first to last like the vendor's loop (numpy's own sum rounds
    differently)."""
    return np.add.accumulate(values, axis=-1)[..., -1]


def _covariance(mean_of_product: Floats, product_of_means: Floats) -> tuple[Floats, Flags]:
    """Return E[xy] - E[x]E[y] from the two terms, with 0 where it is negative by rounding only, and a mask of these
    places."""
    difference = mean_of_product - product_of_means
    ratio = product_of_means / mean_of_product
    rounding = (difference < 0) & (ratio >= 1) & (ratio <= LIMIT)
    return np.where(rounding, 0.0, difference), rounding


def _standard_deviation(variance: Floats) -> Floats:
    """Return the square roots of variances, with the vendor's constant in place of 0."""
    deviation = np.sqrt(variance)
    return np.where(deviation == 0, CONSTANT_DEVIATION, deviation)


Mode = Literal["vendor", "strict"]
Array = NDArray[Any]

CHUNKS: Final = 8  # of a flat Exact or AllClose
SLICE: Final = 1024  # elements of a flat AllCloseHw: as many as a tile has, but not a tile
TILE: Final = 32  # rows and columns of the vendor's tile, of whatever tile_dim
_BLOCK: Final = 1 << 20  # elements that are compared together


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an output; `reason` is one line that names the failed check, the place and the amount, else ""."""

    passed: bool
    reason: str = ""


def compare(
    expected: Array, observed: Array, comparison: Comparison, tile_dim: tuple[int, int], mode: Mode = "vendor"
) -> Verdict:
    """Return whether one output holds, [entries, t, rows, columns] of both sides, in the vendor's way or strictly.
    Raises NetlistError for a comparison without legal type, words or bounds, HostError when the shapes differ."""
    check(comparison)
    if expected.shape != observed.shape:
        raise HostError(f"expected has shape {list(expected.shape)}, observed {list(observed.shape)}")
    if mode == "strict":
        return _compare_strictly(expected, observed, comparison, tile_dim)
    if comparison.method.lower() == "tilizedtensor" or comparison.verbosity.lower() == "verbose":
        return _compare_tiles(expected, observed, comparison, tile_dim)
    return _compare_flat(expected.reshape(-1), observed.reshape(-1), comparison)


def check(comparison: Comparison) -> None:
    """Raise NetlistError if a comparison has a word or bound that the vendor's harness refuses when it is used (NETLIST
    5.3)."""
    for field, words in (("type", COMPARISON_TYPES), ("verbosity", VERBOSITIES), ("method", METHODS)):
        word = getattr(comparison, field)
        if word.lower() not in {legal.lower() for legal in words}:
            raise NetlistError(f"comparison-config: {field} is {word or 'not given'!r}, known: {', '.join(words)}")
    for field in ("atol", "rtol"):
        value = getattr(comparison, field)
        if not value >= 0:
            raise NetlistError(f"comparison-config: {field} is {value}, a tolerance is 0 or more")
    if not abs(comparison.check_pcc) <= 1:
        raise NetlistError(f"comparison-config: check_pcc is {comparison.check_pcc}, it lies between -1 and 1")


def _bounds(comparison: Comparison) -> Bounds:
    """Return the bounds of a comparison that concern its PCC."""
    return Bounds(comparison.check_pcc, comparison.atol, comparison.rtol)


def _compare_flat(expected: Array, observed: Array, comparison: Comparison) -> Verdict:
    """Compare all elements in their order in the vendor's way, in chunks; up to 7 elements at the end are never
    compared."""
    if comparison.type.lower() == "allclosehw":
        return _compare_slices(expected, observed, comparison)
    size = len(expected)
    exact = comparison.type.lower() == "exact"
    for number in range(CHUNKS):
        first = number * size // CHUNKS  # chunks of equal length: up to 7 elements are never compared
        end = first + size // CHUNKS
        mismatches, place = _count_mismatches(expected[first:end], observed[first:end], comparison)
        if exact and mismatches:
            text = f"{mismatches} of {end - first} differ, the first is element {first + place}"
            return Verdict(False, f"Exact, elements {first}..{end - 1}: {text}")
        if not exact and not _matching_share(mismatches, end - first) >= comparison.check_pct:
            text = _few_matches_reason(mismatches, end - first, comparison)
            return Verdict(False, f"AllClose, elements {first}..{end - 1}: {text}")
    return Verdict(True)


def _count_mismatches(expected: Array, observed: Array, comparison: Comparison) -> tuple[int, int]:
    """Return how many elements of two flat arrays do not match, and the position of the first, -1 if all do. A NaN
    matches NaN only if the type is not exact."""
    count = 0
    first = -1
    for start in range(0, len(expected), _BLOCK):
        a = _doubles(expected[start : start + _BLOCK])
        b = _doubles(observed[start : start + _BLOCK])
        matches = _matches(a, b, comparison, nan_equals_nan=False)
        wrong = int(matches.size - np.count_nonzero(matches))
        if wrong and first < 0:
            first = start + int(np.argmin(matches))
        count += wrong
    return count, first


def _matches(a: Floats, b: Floats, comparison: Comparison, *, nan_equals_nan: bool) -> Flags:
    """Return for each element whether it matches: the same number for type exact, where two NaN count only with
    `nan_equals_nan`; else close, where two NaN always do."""
    if comparison.type.lower() != "exact":
        return close(a, b, comparison.atol, comparison.rtol)
    if nan_equals_nan:
        return equal(a, b)
    return np.equal(a, b)


def _compare_slices(expected: Array, observed: Array, comparison: Comparison) -> Verdict:
    """Compare by AllCloseHw in the vendor's way, 1,024 elements after the other; the last slice is shorter, where the
    vendor reads past the end."""
    size = len(expected)
    full = size - size % SLICE
    step = _BLOCK // SLICE * SLICE
    stretches = [(first, min(first + step, full), SLICE) for first in range(0, full, step)]
    if full < size:
        stretches.append((full, size, size - full))
    for first, end, length in stretches:
        a = _doubles(expected[first:end]).reshape(-1, length)
        b = _doubles(observed[first:end]).reshape(-1, length)
        mismatches = length - np.count_nonzero(close(a, b, comparison.atol, comparison.rtol), axis=1)
        enough = (length - mismatches) / length >= comparison.check_pct
        clean_a = replace_special(a, nan_is_zero=True)
        clean_b = replace_special(b, nan_is_zero=True)
        constant = (clean_a == clean_a[:, :1]).all(axis=1) & (clean_b == clean_b[:, :1]).all(axis=1)
        correlated, values = passes(clean_a, clean_b, length, _bounds(comparison), constant, signed=True)
        good = enough & correlated
        if not good.all():
            number = int(np.argmin(good))
            place = f"elements {first + number * length}..{first + (number + 1) * length - 1}"
            if not enough[number]:
                text = _few_matches_reason(int(mismatches[number]), length, comparison)
            else:
                text = _low_pcc_reason(float(values[number]), comparison)
            return Verdict(False, f"AllCloseHw, {place}: {text}")
    return Verdict(True)


def _compare_tiles(expected: Array, observed: Array, comparison: Comparison, tile_dim: tuple[int, int]) -> Verdict:
    """Compare tile by tile of 32x32 cells in the vendor's way; cells beyond a smaller tile_dim are zeros on both sides.
    The vendor's loops end before the upper bound of a range, so its last row and column are never compared, while the
    number that shares and sums are divided by includes them. Exact has no ranges and compares every cell."""
    exact = comparison.type.lower() == "exact"
    rows = comparison.check_tile_rows_range
    cols = comparison.check_tile_cols_range
    compared_rows = slice(rows[0] - 1, rows[1] - 1)
    compared_cols = slice(cols[0] - 1, cols[1] - 1)
    if exact:
        count = TILE * TILE
    else:
        count = (rows[1] - rows[0] + 1) * (cols[1] - cols[0] + 1)
    for block in tile_blocks(expected, observed, tile_dim):
        full_a = _in_full_tiles(block.a)
        full_b = _in_full_tiles(block.b)
        first_a = full_a[:, :1, 0]
        first_b = full_b[:, :1, 0]
        if not exact:
            full_a = full_a[:, compared_rows, compared_cols]
            full_b = full_b[:, compared_rows, compared_cols]
        a = full_a.reshape(block.tiles, -1)
        b = full_b.reshape(block.tiles, -1)
        result = _first_failing_tile(a, b, count, comparison, (first_a, first_b), signed=True)
        if result is not None:
            return Verdict(False, f"{_type_word(comparison)}, {block.place(result[0])}: {result[1]}")
    return Verdict(True)


def _compare_strictly(expected: Array, observed: Array, comparison: Comparison, tile_dim: tuple[int, int]) -> Verdict:
    """Compare as the words of the comparison say, without the vendor's peculiarities: each tile inside the ranges, or,
    for a flat AllClose, all elements together."""
    if comparison.type.lower() == "allclose" and comparison.method.lower() == "flattensor":
        return _compare_whole_strictly(expected, observed, comparison, tile_dim)
    for block in tile_blocks(expected, observed, tile_dim):
        a, b = block.inside(comparison)
        result = _first_failing_tile(a, b, a.shape[1], comparison, (a[:, :1], b[:, :1]), signed=False)
        if result is not None:
            return Verdict(False, f"{_type_word(comparison)}, {block.place(result[0])}: {result[1]}")
    return Verdict(True)


def _compare_whole_strictly(
    expected: Array, observed: Array, comparison: Comparison, tile_dim: tuple[int, int]
) -> Verdict:
    """Compare all elements inside the ranges of all tiles together, by AllClose."""
    mismatches = 0
    size = 0
    for block in tile_blocks(expected, observed, tile_dim):
        a, b = block.inside(comparison)
        size += a.size
        mismatches += a.size - int(np.count_nonzero(close(a, b, comparison.atol, comparison.rtol)))
    if _matching_share(mismatches, size) >= comparison.check_pct:
        return Verdict(True)
    return Verdict(False, f"AllClose: {_few_matches_reason(mismatches, size, comparison)}")


def tiles_that_hold(a: Floats, b: Floats, comparison: Comparison) -> Flags:
    """Return for each tile of [tiles, cells] whether it would pass by itself, without the vendor's peculiarities; used
    for the figures of an output."""
    matches = _matches(a, b, comparison, nan_equals_nan=True)
    cells = a.shape[1]
    if comparison.type.lower() == "exact":
        return np.count_nonzero(matches, axis=1) == cells
    good: Flags = np.count_nonzero(matches, axis=1) / cells >= comparison.check_pct
    if comparison.type.lower() == "allclosehw":
        good &= _tile_pcc(a, b, cells, comparison, (a[:, :1], b[:, :1]), signed=False)[0]
    return good


def _tile_pcc(
    a: Floats, b: Floats, count: int, comparison: Comparison, first: tuple[Floats, Floats], *, signed: bool
) -> tuple[Flags, Floats]:
    """Return for each tile, a row of `a` and of `b`, whether its PCC passes, and the PCC.

    Means are sums over `count`: the number of cells, or more where the vendor's loops leave some out. Tiles whose cells
    all equal the one in `first`, [tiles, 1] of `a` and of `b`, are constant, and compared by their means, with a
    tolerance that follows the sign of the mean of `b` if `signed`, like the vendor's, else its magnitude. A tile
    that is the same in `a` and `b` counts as constant, too, unless `signed`."""
    clean = [replace_special(values, nan_is_zero=False) for values in (a, b, *first)]
    constant = (clean[0] == clean[2]).all(axis=1) & (clean[1] == clean[3]).all(axis=1)
    if not signed:  # in the plain meaning equal tiles correlate, however little they vary
        constant |= (clean[0] == clean[1]).all(axis=1)
    if not clean[0].shape[1]:  # a range of one row or column: the vendor's sums stay 0
        clean[0] = clean[1] = np.zeros((len(a), 1))
    return passes(clean[0], clean[1], count, _bounds(comparison), constant, signed=signed)


def _first_failing_tile(
    a: Floats, b: Floats, count: int, comparison: Comparison, first: tuple[Floats, Floats], *, signed: bool
) -> tuple[int, str] | None:
    """Return the number of the first tile, a row of `a` and of `b`, that fails the comparison, and the reason; None
    where all pass. Shares and means are sums over `count`. `first` and `signed` decide on constant tiles, as in
    `_tile_pcc`."""
    matches = _matches(a, b, comparison, nan_equals_nan=True)
    mismatches = a.shape[1] - np.count_nonzero(matches, axis=1)
    if comparison.type.lower() == "exact":
        enough: Flags = mismatches == 0
    else:
        enough = (count - mismatches) / count >= comparison.check_pct
    good = enough
    values = None
    if comparison.type.lower() == "allclosehw":
        correlated, values = _tile_pcc(a, b, count, comparison, first, signed=signed)
        good = enough & correlated
    if good.all():
        return None
    tile = int(np.argmin(good))
    wrong = int(mismatches[tile])
    if enough[tile] and values is not None:
        return tile, _low_pcc_reason(float(values[tile]), comparison)
    if comparison.type.lower() == "exact":
        return tile, f"{wrong} of {count} elements differ"
    return tile, _few_matches_reason(wrong, count, comparison)


@dataclass(frozen=True, slots=True)
class TileBlock:
    """Some rows of tiles of both sides: float64 [tile rows, height, tile columns, width]."""

    a: Floats
    b: Floats
    first_row: int  # among all rows of tiles of the output
    shape: tuple[int, ...]  # of the output, in tiles: [entries, t, R, C]

    @property
    def tiles(self) -> int:
        """The number of tiles in the block, the same for both sides."""
        return self.a.shape[0] * self.a.shape[2]

    def inside(self, comparison: Comparison) -> tuple[Floats, Floats]:
        """Return the cells of both sides that lie inside the comparison's ranges, [tiles, cells]. Where a tile is too
        small for a range, its last row or column is in it."""
        rows = _slice_of_range(comparison.check_tile_rows_range, self.a.shape[1])
        cols = _slice_of_range(comparison.check_tile_cols_range, self.a.shape[3])
        return flat_tiles(self.a[:, rows, :, cols]), flat_tiles(self.b[:, rows, :, cols])

    def place(self, tile: int) -> str:
        """Return where tile number `tile` of the block lies in the output, as text for people."""
        entry, t, row, col = self.index(tile)
        return f"entry {entry}, t {t}, tile [{row}, {col}]"

    def index(self, tile: int) -> tuple[int, int, int, int]:
        """Return where tile number `tile` of the block lies in the output: entry, t, row and column of tiles."""
        row, col = divmod(tile, self.shape[3])
        entry_t, r = divmod(self.first_row + row, self.shape[2])
        entry, t = divmod(entry_t, self.shape[1])
        return entry, t, r, col


def _slice_of_range(bounds: tuple[int, int], size: int) -> slice:
    """Return the slice for a range of rows or columns, both ends included and counted from 1, cut to `size` but never
    empty."""
    first = min(bounds[0], size)
    return slice(first - 1, max(first, min(bounds[1], size)))


def flat_tiles(block: Floats) -> Floats:
    """Return [tile rows, height, tile columns, width] as [tiles, cells], row by row of tiles."""
    rows, height, cols, width = block.shape
    return block.transpose(0, 2, 1, 3).reshape(rows * cols, height * width)


def tile_blocks(expected: Array, observed: Array, tile_dim: tuple[int, int]) -> Iterator[TileBlock]:
    """Yield an output of both sides, [entries, t, rows, columns], as float64 blocks of whole rows of tiles, from the
    first to the last; this bounds the memory of a comparison."""
    height, width = tile_dim
    entries, t, rows, cols = expected.shape
    shape = (entries, t, rows // height, cols // width)
    split = (-1, height, cols // width, width)
    a, b = (np.ascontiguousarray(array).reshape(split) for array in (expected, observed))
    step = max(1, _BLOCK // (height * cols))
    for first in range(0, len(a), step):
        yield TileBlock(_doubles(a[first : first + step]), _doubles(b[first : first + step]), first, shape)


def _in_full_tiles(block: Floats) -> Floats:
    """Return tiles [tiles, 32, 32]; a smaller one lies at the top left with zeros around it, as in the vendor's
    memory."""
    rows, height, cols, width = block.shape
    tiles = block.transpose(0, 2, 1, 3).reshape(rows * cols, height, width)
    if (height, width) == (TILE, TILE):
        return tiles
    result = np.zeros((rows * cols, TILE, TILE))
    result[:, :height, :width] = tiles
    return result


def _doubles(array: Array) -> Floats:
    """Return a copy of an array in float64."""
    return array.astype(np.float64)


def _matching_share(mismatches: int, count: int) -> float:
    """Return the share of `count` elements that match; 1 where there are none."""
    if count:
        return (count - mismatches) / count
    return 1.0


def _type_word(comparison: Comparison) -> str:
    """Return the comparison's type, whose letters may have any case, as the vendor writes it."""
    return next(word for word in COMPARISON_TYPES if word.lower() == comparison.type.lower())


def _few_matches_reason(mismatches: int, count: int, comparison: Comparison) -> str:
    """Return the line that says how many elements match, and how many had to."""
    share = 100 * _matching_share(mismatches, count)
    asked = 100 * comparison.check_pct
    return f"{mismatches} of {count} are not close, {share:.4g} % match, check_pct asks {asked:.4g} %"


def _low_pcc_reason(value: float, comparison: Comparison) -> str:
    """Return the line that says which PCC there is, and which had to be reached."""
    return f"PCC {value:.6g} does not reach check_pcc {comparison.check_pcc:.6g}"
