"""OPS 2: how a tensor is cut."""

from buda_emu.spec.blocking import FULL_TILE, LEGAL_TILE_DIMS, Blocking


def test_sizes_of_a_tensor_with_nothing_equal():
    cut = Blocking(grid_size=(2, 3), t=5, mblock=(7, 11), ublock=(13, 17), ublock_order="c", tile_dim=(16, 32))
    assert (cut.block_rows, cut.block_cols) == (91, 187)
    assert (cut.rows, cut.cols) == (182, 561)
    assert cut.shape == (5, 182, 561)
    assert cut.cells == 6
    assert cut.tiles_per_core == 5 * 91 * 187
    assert cut.element_shape == (5, 182 * 16, 561 * 32)


def test_tile_dims():
    assert FULL_TILE == (32, 32) == LEGAL_TILE_DIMS[0] == Blocking().tile_dim
    assert set(LEGAL_TILE_DIMS) == {(n, 32) for n in (1, 2, 4, 8, 16, 32)} | {(32, 16)}
