"""The byte image of queue entries (LAYOUT 3)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.formats.packing import unpack_tiles
from buda_emu.arithmetic.tensor.layout import EntryLayout, pack_entry, tile_order, tilize, unpack_entry
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.formats import FORMATS, tile_bytes
from buda_emu.support.errors import HostError, UnsupportedError

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


def words(shape) -> np.ndarray:
    return np.random.default_rng(11).integers(0, 1 << 32, shape, dtype=np.uint32)


def bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint32)


def test_worked_example():
    # LAYOUT 3.1: grid [1,2], t 1, mblock [2,2], ublock [1,2]: a tensor of 2x8 tiles
    blocking = Blocking((1, 2), 1, (2, 2), (1, 2), "r")
    assert tile_order(blocking).tolist() == [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    by_column = Blocking((1, 2), 1, (2, 2), (1, 2), "c")
    assert tile_order(by_column)[0].tolist() == [0, 1, 8, 9, 2, 3, 10, 11]
    assert (tile_order(by_column, raw=True) == tile_order(blocking)).all()


@given(grid=PAIRS, t=st.integers(1, 3), mblock=PAIRS, ublock=PAIRS, order=st.sampled_from("rc"))
def test_offsets_are_those_of_the_text(grid, t, mblock, ublock, order):
    blocking = Blocking(grid, t, mblock, ublock, order)
    places = tile_order(blocking)
    (rows, cols), (tile_r, tile_c) = mblock, ublock
    _, all_rows, all_cols = blocking.shape
    for gr in range(grid[0]):
        for gc in range(grid[1]):
            for z, mr, mc, ur, uc in np.ndindex(t, rows, cols, tile_r, tile_c):
                rt, ct = gr * rows * tile_r + mr * tile_r + ur, gc * cols * tile_c + mc * tile_c + uc
                block = (z * rows + mr) * cols + mc if order == "r" else (z * cols + mc) * rows + mr
                offset = (block * tile_r + ur) * tile_c + uc
                assert places[gr * grid[1] + gc, offset] == (z * all_rows + rt) * all_cols + ct


@pytest.mark.parametrize("alignment", [32, 64])
@pytest.mark.parametrize("tile_dim", [(32, 32), (16, 32), (32, 16), (1, 32)])
@pytest.mark.parametrize("name", ["Float32", "Float16_b", "Bfp8_b", "Bfp4", "Int8", "RawUInt32", "RawUInt8"])
def test_tilized_round_trip(name, tile_dim, alignment):
    blocking = Blocking((2, 1), 2, (1, 2), (2, 1), "c", tile_dim)
    layout = EntryLayout(name, blocking, alignment=alignment)
    tiles = quantise(name, tilize(words((1, *blocking.element_shape)).view(np.float32), tile_dim, layout.megarow))[0]
    buffers = pack_entry(tiles, layout)
    size = tile_bytes(name, *tile_dim, alignment, header=True)
    assert [buffer.shape for buffer in buffers] == [(8 * size,)] * 2
    assert layout.entry_bytes == 8 * size
    assert (bits(unpack_entry(buffers, layout)) == bits(tiles)).all()
    # the tile at place 3 of buffer 1: order c, so z 0, mc 1, mr 0, ur 1 -> global tile row 3, column 1
    image = buffers[1][3 * size : 4 * size].reshape(1, -1)
    assert (bits(unpack_tiles(name, image, tile_dim, alignment)[0]) == bits(tiles[0, 3, 1])).all()


@pytest.mark.parametrize("name", [name for name, spec in FORMATS.items() if spec.flat_bytes])
def test_flat_entry_is_a_plain_copy_on_one_core(name):
    blocking = Blocking((1, 1), 2, (1, 2), (2, 1), "r")
    layout = EntryLayout(name, blocking, "flat", 64)
    elements = words((1, *blocking.element_shape)).view(np.float32)
    tiles = quantise(name, tilize(elements, megarow=True))[0]
    (buffer,) = pack_entry(tiles, layout)
    assert layout.entry_bytes == buffer.size == elements.size * FORMATS[name].flat_bytes
    if name in ("Float32", "RawUInt32"):
        assert buffer.tobytes() == elements.tobytes()
    if name in ("Float16_b",):
        assert (buffer.view("<u2") == bits(elements).reshape(-1) >> 16).all()
    assert (bits(unpack_entry([buffer], layout)) == bits(tiles)).all()


def test_flat_entry_over_a_grid():
    blocking = Blocking((2, 2), 2, (1, 1), (1, 2), "c", (16, 32))
    layout = EntryLayout("Float32", blocking, "flat")
    elements = words((1, *blocking.element_shape))
    buffers = pack_entry(tilize(elements.view(np.float32), (16, 32), megarow=True)[0], layout)
    assert len(buffers) == 4
    for gr in range(2):
        for gc in range(2):
            part = elements[0, :, gr * 16 : (gr + 1) * 16, gc * 64 : (gc + 1) * 64]
            assert buffers[gr * 2 + gc].tobytes() == part.tobytes()
    back = unpack_entry(buffers, layout)
    assert (bits(back) == bits(tilize(elements.view(np.float32), (16, 32), megarow=True)[0])).all()


@pytest.mark.parametrize("tile_dim", [(32, 32), (8, 32)])
def test_untilized_entry_is_the_row_major_tensor(tile_dim):
    blocking = Blocking((1, 1), 2, (2, 3), (1, 2), "r", tile_dim)
    layout = EntryLayout("Float32", blocking, "untilized")
    elements = words((1, *blocking.element_shape))
    tiles = tilize(elements.view(np.float32), tile_dim)[0]
    (buffer,) = pack_entry(tiles, layout)
    assert buffer.tobytes() == elements.tobytes()
    assert (bits(unpack_entry([buffer], layout)) == bits(tiles)).all()


def test_untilized_integers_are_sign_and_magnitude():
    blocking = Blocking((1, 1), 1, (1, 1), (1, 1), "r")
    (buffer,) = pack_entry(np.full((1, 1, 1, 32, 32), -5, np.float32), EntryLayout("Int8", blocking, "untilized"))
    assert (buffer == 0x85).all()


def test_truncating_pack():
    blocking = Blocking((1, 1), 1, (1, 1), (1, 1), "r")
    layout = EntryLayout("Bfp2_b", blocking)
    tiles = np.full((1, 1, 1, 32, 32), 1.0, np.float32)
    tiles[..., 1::2] = 0.5
    assert (unpack_entry(pack_entry(tiles, layout), layout) == 1.0).all()
    cut = unpack_entry(pack_entry(tiles, layout, "truncate"), layout)
    assert (cut[..., ::2] == 1.0).all()
    assert (cut[..., 1::2] == 0.0).all()


@settings(max_examples=25)
@given(grid=PAIRS, t=st.integers(1, 2), mblock=PAIRS, ublock=PAIRS, order=st.sampled_from("rc"))
def test_any_blocking_round_trips(grid, t, mblock, ublock, order):
    blocking = Blocking(grid, t, mblock, ublock, order, (1, 32))
    tiles = tilize(words((1, *blocking.element_shape)).view(np.float32), (1, 32))[0]
    for form in ("tilized", "flat"):
        layout = EntryLayout("RawUInt32" if form == "tilized" else "Float32", blocking, form)
        assert (bits(unpack_entry(pack_entry(tiles, layout), layout)) == bits(tiles)).all()


@pytest.mark.parametrize("name", ["Bfp8", "Bfp8_b", "Bfp4_b", "Bfp2", "Lf8", "Fp8_e4m3"])
@pytest.mark.parametrize("form", ["flat", "untilized"])
def test_formats_without_elements_are_refused(name, form):
    with pytest.raises(UnsupportedError, match=f"{name} has no {form} form"):
        EntryLayout(name, Blocking((1, 1), 1, (1, 1), (1, 1), "r"), form)


def test_an_untilized_entry_has_one_buffer():
    with pytest.raises(UnsupportedError, match="one buffer"):
        EntryLayout("Float16", Blocking((1, 2), 1, (1, 1), (1, 1), "r"), "untilized")


def test_wrong_buffers_are_refused():
    layout = EntryLayout("Float16", Blocking((1, 2), 1, (1, 1), (1, 1), "r"))
    buffers = pack_entry(np.zeros((1, 1, 2, 32, 32), np.float32), layout)
    with pytest.raises(HostError, match="has 2 buffers, got 1"):
        unpack_entry(buffers[:1], layout)
    with pytest.raises(HostError, match="2080 bytes in each buffer"):
        unpack_entry([buffers[0], buffers[1][:-1]], layout)
    buffers[1][0] = 0
    with pytest.raises(HostError, match="header"):
        unpack_entry(buffers, layout)
