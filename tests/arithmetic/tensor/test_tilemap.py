"""TM chains as one tile map, held against the formulas of the OPS 7 table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.arithmetic.tensor.tilemap import TileMap, TmError, require_tiles, tile_broadcast

SIZES = st.integers(1, 4)
SHAPES = st.tuples(SIZES, SIZES, SIZES)
FACTORS = st.integers(1, 4)


def grid(tile_map: TileMap) -> np.ndarray:
    return tile_map.index.reshape(tile_map.shape)


def source(shape) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape)


def by_formula(shape, element) -> list:
    """Nested lists of `element(t, r, c)` over a shape."""
    return [[[element(t, r, c) for c in range(shape[2])] for r in range(shape[1])] for t in range(shape[0])]


def same(one: TileMap, other: TileMap) -> bool:
    return one.shape == other.shape and (one.index == other.index).all()


def broken_down(tile_map: TileMap, expected_shape, element) -> None:
    assert tile_map.shape == expected_shape
    assert grid(tile_map).tolist() == by_formula(expected_shape, element)


@given(shape=SHAPES, n=FACTORS)
def test_broadcast(shape, n):
    (t_, r_, c_), tiles = shape, source(shape)
    start = TileMap.identity(shape)
    broken_down(start.broadcast("r", n), (t_, n * r_, c_), lambda t, r, c: tiles[t][r % r_][c])
    broken_down(start.broadcast("c", n), (t_, r_, n * c_), lambda t, r, c: tiles[t][r][c % c_])
    broken_down(start.broadcast("z", n), (n * t_, r_, c_), lambda t, r, c: tiles[t % t_][r][c])


@given(t_=SIZES, r_=SIZES, piece=SIZES, n=FACTORS)
def test_slices(t_, r_, piece, n):
    shape = (t_, r_, piece * n)
    tiles = source(shape)
    broken_down(
        TileMap.identity(shape).hslice(n), (n * t_, r_, piece), lambda t, r, c: tiles[t // n][r][t % n * piece + c]
    )
    shape = (t_, piece * n, r_)
    tiles = source(shape)
    broken_down(
        TileMap.identity(shape).vslice(n), (n * t_, piece, r_), lambda t, r, c: tiles[t // n][t % n * piece + r][c]
    )


@given(t_=SIZES, r_=SIZES, c_=SIZES, n=FACTORS)
def test_stacks(t_, r_, c_, n):
    shape = (t_ * n, r_, c_)
    tiles = source(shape)
    start = TileMap.identity(shape)
    broken_down(start.hstack(n), (t_, r_, n * c_), lambda t, r, c: tiles[t * n + c // c_][r][c % c_])
    broken_down(start.vstack(n), (t_, n * r_, c_), lambda t, r, c: tiles[t * n + r // r_][r % r_][c])
    assert same(start.hstack(0), start.hstack(t_ * n))


@given(shape=SHAPES, rt=st.integers(0, 3), ct=st.integers(0, 3))
def test_transpose_and_pad(shape, rt, ct):
    (t_, r_, c_), tiles = shape, source(shape)
    start = TileMap.identity(shape)
    broken_down(start.transpose(), (t_, c_, r_), lambda t, r, c: tiles[t][c][r])
    padded = start.pad(rt, ct, 2.5)
    broken_down(padded, (t_, r_ + rt, c_ + ct), lambda t, r, c: tiles[t][r][c] if r < r_ and c < c_ else -1)
    assert padded.pad_value == 2.5
    assert same(padded.unpad(rt, ct), start)
    assert padded.is_identity == (rt == ct == 0)


@given(shape=SHAPES, n=FACTORS)
def test_inverses(shape, n):
    t, r, c = shape
    wide, high, deep = (TileMap.identity(s) for s in ((t, r, c * n), (t, r * n, c), (t * n, r, c)))
    assert wide.hslice(n).hstack(n).is_identity
    assert deep.hstack(n).hslice(n).is_identity
    assert high.vslice(n).vstack(n).is_identity
    assert deep.vstack(n).vslice(n).is_identity
    assert wide.transpose().transpose().is_identity


@st.composite
def chains(draw):
    """A map made of some TMs that fit, and the same TMs done one by one on an array of tiles."""
    shape = draw(SHAPES)
    tile_map, tiles = TileMap.identity(shape), source(shape)
    for _ in range(draw(st.integers(0, 5))):
        t, r, c = tile_map.shape
        divisor = {size: [n for n in range(1, size + 1) if size % n == 0] for size in (t, r, c)}
        name = draw(st.sampled_from(["broadcast", "hslice", "vslice", "hstack", "vstack", "transpose", "pad", "unpad"]))
        if name == "broadcast":
            dim, n = draw(st.sampled_from("rcz")), draw(st.integers(1, 2))
            tile_map = tile_map.broadcast(dim, n)
            tiles = np.concatenate([tiles] * n, axis="zrc".index(dim))
        elif name == "hslice":
            n = draw(st.sampled_from(divisor[c]))
            tile_map = tile_map.hslice(n)
            tiles = np.stack([piece for z in tiles for piece in np.split(z, n, axis=1)])
        elif name == "vslice":
            n = draw(st.sampled_from(divisor[r]))
            tile_map = tile_map.vslice(n)
            tiles = np.stack([piece for z in tiles for piece in np.split(z, n, axis=0)])
        elif name in ("hstack", "vstack"):
            n = draw(st.sampled_from(divisor[t]))
            tile_map = tile_map.hstack(n) if name == "hstack" else tile_map.vstack(n)
            axis = 1 if name == "hstack" else 0
            tiles = np.stack([np.concatenate(list(tiles[z : z + n]), axis=axis) for z in range(0, t, n)])
        elif name == "transpose":
            tile_map, tiles = tile_map.transpose(), tiles.transpose(0, 2, 1)
        elif name == "pad":
            rt, ct = draw(st.integers(0, 2)), draw(st.integers(0, 2))
            tile_map = tile_map.pad(rt, ct, 1.5)
            tiles = np.pad(tiles, ((0, 0), (0, rt), (0, ct)), constant_values=-1)
        else:
            rt, ct = draw(st.integers(0, r - 1)), draw(st.integers(0, c - 1))
            tile_map, tiles = tile_map.unpad(rt, ct), tiles[:, : r - rt, : c - ct]
    return shape, tile_map, tiles


@given(chains())
def test_a_chain_is_its_tms_one_after_the_other(case):
    shape, tile_map, tiles = case
    assert tile_map.source_shape == shape
    assert tile_map.shape == tiles.shape
    assert (grid(tile_map) == tiles).all()
    assert tile_map.index.dtype == np.int32
    assert tile_map.is_identity == (tiles.shape == shape and (tiles == source(shape)).all())


def test_apply_moves_whole_tiles_and_fills_pads():
    bits = np.random.default_rng(3).integers(0, 1 << 32, (2, 2, 1, 2, 32, 32), dtype=np.uint32)
    tiles = bits.view(np.float32)
    result = TileMap.identity((2, 1, 2)).hstack(2).transpose().pad(1, 1, -3.0).apply(tiles)
    assert result.shape == (2, 1, 5, 2, 32, 32)
    for w in range(2):
        for position in range(4):
            expected = bits[w, position // 2, 0, position % 2]
            assert (result[w, 0, position, 0].view(np.uint32) == expected).all()
    assert (result[:, :, 4] == -3.0).all()
    assert (result[:, :, :, 1] == -3.0).all()


def test_apply_returns_a_new_array():
    tiles = np.zeros((1, 1, 1, 1, 32, 32), np.float32)
    result = TileMap.identity((1, 1, 1)).apply(tiles)
    assert not np.shares_memory(result, tiles)


def test_the_last_pad_value_wins():
    both = TileMap.identity((1, 1, 1)).pad(1, 0, 1.0).pad(0, 1, 2.0)
    assert both.pad_value == 2.0
    assert grid(both).tolist() == [[[0, -1], [-1, -1]]]
    assert both.hslice(2).pad_value == 2.0


def test_maps_cannot_be_changed():
    tile_map = TileMap.identity((1, 2, 2)).transpose()
    with pytest.raises(ValueError, match="read-only"):
        tile_map.index[0] = 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m.hslice(4), "hslice 4: does not divide the 6 tile columns"),
        (lambda m: m.hslice(0), "hslice 0"),
        (lambda m: m.hslice(-2), "hslice -2"),
        (lambda m: m.vslice(3), "vslice 3: does not divide the 4 tile rows"),
        (lambda m: m.vslice(0), "vslice 0"),
        (lambda m: m.hstack(2), "hstack 2: does not divide t = 3"),
        (lambda m: m.hstack(-1), "hstack -1"),
        (lambda m: m.vstack(2), "vstack 2: does not divide t = 3"),
        (lambda m: m.vstack(0), "vstack 0"),  # unlike hstack (OPS 7)
        (lambda m: m.broadcast("r", 0), "broadcast r by 0"),
        (lambda m: m.broadcast("w", 2), "broadcast along 'w'"),
        (lambda m: m.pad(-1, 0, 0.0), "must not be negative"),
        (lambda m: m.unpad(4, 0), "unpad by 4 rows and 0 columns: there are 4 and 6"),
        (lambda m: m.unpad(0, 7), "unpad by 0 rows and 7 columns"),
        (lambda m: m.unpad(-1, 0), "unpad by -1 rows"),
        (lambda m: m.apply(np.zeros((1, 3, 4, 5, 32, 32), np.float32)), r"for \(3, 4, 6\) tiles, not \(3, 4, 5\)"),
    ],
)
def test_what_does_not_fit_is_refused(change, text):
    with pytest.raises(TmError, match=text):
        change(TileMap.identity((3, 4, 6)))


def test_tile_broadcast():
    tiles = np.random.default_rng(4).integers(0, 1 << 32, (2, 3, 32, 32), dtype=np.uint32).view(np.float32)
    bits = tiles.view(np.uint32)
    for i, j in ((0, 0), (5, 17), (31, 31)):
        assert (tile_broadcast(tiles, "r")[..., i, j].view(np.uint32) == bits[..., 0, j]).all()
        assert (tile_broadcast(tiles, "c")[..., i, j].view(np.uint32) == bits[..., i, 0]).all()
        assert (tile_broadcast(tiles, "rc")[..., i, j].view(np.uint32) == bits[..., 0, 0]).all()


@pytest.mark.parametrize("mode", ["z", "x", ""])
def test_other_tile_broadcasts_are_refused(mode):
    with pytest.raises(TmError, match="tile_broadcast"):
        tile_broadcast(np.zeros((1, 32, 32), np.float32), mode)


def test_a_tensor_has_at_least_a_tile_and_at_most_2_to_the_24():
    for shape in ((1, 1, 1), (1 << 24, 1, 1), (4, 2048, 2048)):
        assert require_tiles(shape) == shape
    for shape in ((0, 1, 1), (1, 0, 4), (1, 1, -1), ((1 << 24) + 1, 1, 1), (5, 2048, 2048)):
        with pytest.raises(TmError, match="cannot be held"):
            require_tiles(shape)
