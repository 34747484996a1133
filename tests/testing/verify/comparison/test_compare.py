"""The comparison of outputs, branch by branch of NETLIST 5.3. Counts and verdicts are worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.spec.test_config import Comparison
from buda_emu.support.errors import HostError, NetlistError
from buda_emu.testing.verify.comparison import check, compare, tile_blocks, tiles_that_hold

INF, NAN = float("inf"), float("nan")
TILE = (32, 32)
EXACT = Comparison("Exact")
EXACT_TILES = Comparison("Exact", method="TilizedTensor")


def close_config(**fields):
    return Comparison("AllClose", **{"atol": 0.0, "rtol": 0.0, **fields})


def hw(**fields):
    return Comparison("AllCloseHw", **{"atol": 0.0, "rtol": 0.0, "check_pct": 0.0, **fields})


def flat(*values):
    """An output whose elements are few: only the flat comparison takes such."""
    return np.array(values, np.float32).reshape(1, 1, 1, -1)


def tiles(cols=1, rows=1, entries=1, t=1, value=0.0, tile_dim=TILE):
    return np.full((entries, t, rows * tile_dim[0], cols * tile_dim[1]), value, np.float32)


def holds(expected, observed, comparison, mode="vendor", tile_dim=TILE):
    verdict = compare(expected, observed, comparison, tile_dim, mode)
    assert bool(verdict.reason) != verdict.passed
    return verdict.passed


def changed(base, *places, by=1.0):
    out = base.copy()
    for place in places:
        out[place] += by
    return out


# ---------------------------------------------------------------------------------------------------- Exact, flat
def test_flat_exact_looks_at_eight_chunks_of_equal_length():
    # 11 elements: chunks of 1 from 0, 1, 2, 4, 5, 6, 8, 9; elements 3, 7 and 10 are never looked at
    base = flat(*range(11))
    for place in range(11):
        observed = changed(base, (0, 0, 0, place))
        assert holds(base, observed, EXACT) is (place in (3, 7, 10)), place


def test_flat_exact_names_the_chunk_the_count_and_the_first_element():
    base = flat(*range(16))
    verdict = compare(base, changed(base, (0, 0, 0, 4), (0, 0, 0, 5)), EXACT, TILE)
    assert verdict.reason == "Exact, elements 4..5: 2 of 2 differ, the first is element 4"
    verdict = compare(base, changed(base, (0, 0, 0, 15)), EXACT, TILE)
    assert verdict.reason == "Exact, elements 14..15: 1 of 2 differ, the first is element 15"


def test_flat_exact_takes_no_nan_for_another_and_zeros_for_each_other():
    assert not holds(flat(*[NAN] * 8), flat(*[NAN] * 8), EXACT)
    assert holds(flat(*[0.0] * 8), flat(*[-0.0] * 8), EXACT)
    assert holds(flat(*[INF] * 8), flat(*[INF] * 8), EXACT)
    assert not holds(flat(*[INF] * 8), flat(*[-INF] * 8), EXACT)


def test_words_are_compared_as_numbers():
    a = np.full((1, 1, 1, 8), 0x7FC00000, np.uint32)  # as a float it would be NaN
    assert holds(a, a.copy(), EXACT)
    assert not holds(a, a + np.uint32(1), EXACT)
    assert holds(a, a + np.uint32(1), close_config(atol=1.0))


def test_words_of_any_case_are_known():
    for word in ("exact", "EXACT", "Exact"):
        assert holds(flat(*range(8)), flat(*range(8)), Comparison(word))
    assert holds(tiles(), tiles(), Comparison("allclosehw", method="tilizedtensor", verbosity="CONCISE"))
    base = tiles(value=NAN)
    assert holds(base, base, Comparison("exact", method="TILIZEDTENSOR"))  # tilized: NaN equals NaN
    assert holds(base, base, Comparison("exact", verbosity="VERBOSE"))


# ------------------------------------------------------------------------------------------------- AllClose, flat
def test_every_chunk_must_reach_check_pct():
    base = flat(*[0.0] * 64)  # chunks of 8
    two = changed(base, *[(0, 0, 0, 8 * chunk + i) for chunk in range(8) for i in range(2)])
    assert holds(base, two, close_config(check_pct=0.75))  # 6 of 8 in each
    assert not holds(base, two, close_config(check_pct=0.7500001))
    three = changed(base, (0, 0, 0, 16), (0, 0, 0, 17), (0, 0, 0, 18))
    verdict = compare(base, three, close_config(check_pct=0.75), TILE)
    assert verdict.reason == "AllClose, elements 16..23: 3 of 8 are not close, 62.5 % match, check_pct asks 75 %"
    assert holds(base, changed(base, *[(0, 0, 0, i) for i in range(64)]), close_config(check_pct=0.0))


def test_tolerances_reach_the_elements():
    base = flat(*[2.0] * 8)
    assert holds(base, flat(*[2.5] * 8), close_config(atol=0.5))
    assert not holds(base, flat(*[2.5] * 8), close_config(atol=0.4))
    assert holds(base, flat(*[2.5] * 8), close_config(rtol=0.2))
    assert not holds(base, flat(*[2.5] * 8), close_config(rtol=0.19))


def test_fewer_elements_than_chunks_are_never_looked_at():
    assert holds(flat(1, 2, 3), flat(4, 5, 6), EXACT)  # chunks of floor(3/8) = 0 elements
    assert holds(flat(1, 2, 3), flat(4, 5, 6), close_config())
    verdict = compare(flat(1), flat(1), close_config(check_pct=1.25), TILE)
    assert verdict.reason == "AllClose, elements 0..-1: 0 of 0 are not close, 100 % match, check_pct asks 125 %"


# ----------------------------------------------------------------------------------------------- AllCloseHw, flat
def test_slices_of_1024_elements_are_not_tiles():
    base = tiles(cols=2)  # rows of 64: slice 0 is rows 0..15 of both tiles
    observed = base.copy()
    observed[..., :16, :] = 1.0
    verdict = compare(base, observed, hw(check_pct=1.0, check_pcc=0.0), TILE)
    assert verdict.reason == (
        "AllCloseHw, elements 0..1023: 1024 of 1024 are not close, 0 % match, check_pct asks 100 %"
    )
    observed = base.copy()
    observed[..., 16:, :] = 1.0
    assert "elements 1024..2047" in compare(base, observed, hw(check_pct=1.0, check_pcc=0.0), TILE).reason


def halves(quarter_right):
    """1024 zeros and ones of which the observed ones agree so that the PCC is 2 * share - 1 (by hand: 3/4 -> 1/2)."""
    expected = np.array([0.0] * 512 + [1.0] * 512, np.float32)
    observed = expected.copy()
    wrong = 512 - quarter_right
    observed[:wrong] = 1.0
    observed[512 : 512 + wrong] = 0.0
    return expected.reshape(1, 1, 32, 32), observed.reshape(1, 1, 32, 32)


def test_each_slice_needs_the_pcc():
    expected, observed = halves(384)  # E[ab] = 3/8: PCC 1/2
    assert holds(expected, observed, hw(check_pcc=0.5))
    verdict = compare(expected, observed, hw(check_pcc=0.6), TILE)
    assert verdict.reason == "AllCloseHw, elements 0..1023: PCC 0.5 does not reach check_pcc 0.6"
    both = np.concatenate([expected, expected], axis=0), np.concatenate([expected, observed], axis=0)
    assert "elements 1024..2047: PCC" in compare(*both, hw(check_pcc=0.6), TILE).reason


def test_the_pcc_is_not_looked_at_where_too_few_are_close():
    expected, observed = halves(384)
    assert "256 of 1024 are not close" in compare(expected, observed, hw(check_pct=0.8, check_pcc=0.9), TILE).reason
    assert "PCC 0.5" in compare(expected, observed, hw(check_pct=0.75, check_pcc=0.9), TILE).reason  # 768/1024


def test_the_last_slice_may_be_short():
    base = tiles(cols=3, tile_dim=(16, 32))  # 1536 elements: one slice, and 512 that are left
    observed = base.copy()
    observed.reshape(-1)[1024:1152] = 1.0
    verdict = compare(base, observed, hw(check_pct=0.76, check_pcc=0.0), (16, 32))
    assert verdict.reason == (
        "AllCloseHw, elements 1024..1535: 128 of 512 are not close, 75 % match, check_pct asks 76 %"
    )
    assert holds(base, observed, hw(check_pct=0.75, check_pcc=0.0), tile_dim=(16, 32))


def test_flat_pcc_takes_nan_for_zero_and_infinity_for_the_largest():
    expected, observed = halves(512)
    expected[0, 0, 0, :4] = NAN
    assert holds(expected, observed, hw(check_pcc=0.99))
    assert holds(observed, expected, hw(check_pcc=0.99))
    expected, observed = tiles(), tiles()
    expected[0, 0, 0, 0], observed[0, 0, 0, 0] = INF, np.finfo(np.float32).max
    assert holds(expected, observed, hw(check_pcc=0.99))


def test_constant_slices_are_held_together_by_tolerances():
    ones = tiles(value=1.0)
    assert holds(ones, tiles(value=1.25), hw(atol=0.25, check_pcc=0.99))
    assert not holds(ones, tiles(value=1.25), hw(atol=0.2, check_pcc=0.99))
    almost = changed(tiles(value=1.25), (0, 0, 31, 31), by=0.25)
    assert not holds(ones, almost, hw(atol=0.5, check_pcc=0.99))  # observed is not constant
    assert not holds(almost, ones, hw(atol=0.5, check_pcc=0.99))  # expected is not


def test_the_sign_of_the_mean_decides_in_the_vendors_way_only():
    a, b = tiles(value=-1.0), tiles(value=-1.5)
    config = hw(atol=0.5, rtol=0.125, check_pcc=0.99)  # 0.5 <= 0.5 - 0.1875 or 0.5 + 0.1875
    assert not holds(a, b, config)
    assert holds(a, b, config, "strict")
    # tilized: of 1024 cells 961 are looked at, the mean of b is -0.46924
    config = hw(atol=0.47, rtol=0.125, check_pcc=0.99, method="TilizedTensor")
    assert not holds(tiles(), tiles(value=-0.5), config)
    assert holds(tiles(), tiles(value=0.5), config)


# -------------------------------------------------------------------------------------------------------- tilized
def test_which_words_compare_tile_by_tile():
    base = tiles()
    corner = changed(base, (0, 0, 31, 31))  # the vendor's tilized loops never look there
    config = {"atol": 0.0, "rtol": 0.0, "check_pct": 1.0}
    assert not holds(base, corner, Comparison("AllClose", **config))
    assert not holds(base, corner, Comparison("AllClose", verbosity="AllFails", **config))
    assert holds(base, corner, Comparison("AllClose", verbosity="Verbose", **config))
    assert holds(base, corner, Comparison("AllClose", method="TilizedTensor", **config))


def test_tilized_exact_looks_at_every_cell():
    base = tiles(cols=2, rows=2, entries=2, t=2)
    for place in ((0, 0, 0, 0), (1, 1, 63, 63), (0, 1, 31, 32), (1, 0, 32, 31)):
        assert not holds(base, changed(base, place), EXACT_TILES), place
    verdict = compare(base, changed(base, (1, 0, 40, 33), (1, 0, 41, 33)), EXACT_TILES, TILE)
    assert verdict.reason == "Exact, entry 1, t 0, tile [1, 1]: 2 of 1024 elements differ"
    ranged = Comparison("Exact", method="TilizedTensor", check_tile_rows_range=(1, 2))
    assert not holds(base, changed(base, (0, 0, 20, 0)), ranged)  # ranges are not for Exact


def test_tilized_exact_takes_nan_for_nan():
    base = tiles(value=NAN)
    assert holds(base, base.copy(), EXACT_TILES)
    for one_sided in (NAN, -INF, INF):
        assert not holds(tiles(), changed(tiles(), (0, 0, 3, 3), by=one_sided), EXACT_TILES)
    infinite = tiles(value=INF)
    assert holds(infinite, infinite.copy(), EXACT_TILES)
    assert not holds(infinite, -infinite, EXACT_TILES)


@pytest.mark.parametrize(
    ("bounds", "looked_at"),
    [((1, 32), range(31)), ((5, 8), range(4, 7)), ((1, 2), range(1)), ((31, 32), range(30, 31)), ((7, 7), range(0))],
)
@pytest.mark.parametrize("axis", [2, 3])
def test_ranges_end_before_their_upper_bound(axis, bounds, looked_at):
    name = "check_tile_rows_range" if axis == 2 else "check_tile_cols_range"
    config = close_config(method="TilizedTensor", **{name: bounds})
    plain = close_config(**{name: bounds})
    base = tiles()
    for position in range(32):
        place = (0, 0, position, 3) if axis == 2 else (0, 0, 3, position)
        observed = changed(base, place)
        assert holds(base, observed, config) is (position not in looked_at), position
        inside = bounds[0] - 1 <= position <= bounds[1] - 1
        assert holds(base, observed, plain, "strict") is not inside, position


def test_the_share_counts_the_cells_that_are_not_looked_at():
    base = tiles()
    config = close_config(method="TilizedTensor", check_pct=1000 / 1024)
    assert holds(base, changed(base, *[(0, 0, 0, i) for i in range(24)]), config)
    verdict = compare(base, changed(base, *[(0, 0, 0, i) for i in range(25)]), config, TILE)
    assert verdict.reason == (
        "AllClose, entry 0, t 0, tile [0, 0]: 25 of 1024 are not close, 97.56 % match, check_pct asks 97.66 %"
    )
    ranged = close_config(
        method="TilizedTensor", check_pct=0.75, check_tile_rows_range=(1, 4), check_tile_cols_range=(1, 2)
    )  # 3 rows of 1 column looked at, of 4 * 2
    assert holds(base, changed(base, (0, 0, 0, 0), (0, 0, 1, 0)), ranged)  # 6/8
    assert not holds(base, changed(base, (0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 2, 0)), ranged)  # 5/8


def test_tilized_pcc_divides_by_the_cells_that_are_not_looked_at():
    # Ones in the upper half of both, in all 31 columns looked at; the lower half 0. rows 0..15 of 31 looked at.
    expected = tiles()
    expected[0, 0, :16, :] = 1.0
    observed = tiles()
    observed[0, 0, :8, :] = 1.0
    # sums over 1024: mean_a = 16*31/1024 = 0.484375, mean_b = 0.2421875, E[ab] = 0.2421875
    # cov = 0.2421875 * (1 - 0.484375) = 0.124878, var_a = 0.249756, var_b = 0.183533: PCC = 0.583272
    config = hw(method="TilizedTensor", check_pcc=0.5833)
    verdict = compare(expected, observed, config, TILE)
    assert verdict.reason.endswith("PCC 0.583272 does not reach check_pcc 0.5833")
    assert holds(expected, observed, hw(method="TilizedTensor", check_pcc=0.5832))
    # with all cells: cov = 1/8, var_a = 1/4, var_b = 3/16: PCC = 0.57735
    assert not holds(expected, observed, hw(check_pcc=0.5774), "strict")
    assert holds(expected, observed, hw(check_pcc=0.5773), "strict")


def test_tilized_pcc_keeps_nan():
    expected, observed = halves(512)
    expected[0, 0, 0, 0] = NAN
    assert not holds(expected, observed, hw(check_pcc=0.9, method="TilizedTensor"))
    assert holds(expected, observed, hw(check_pcc=0.0, method="TilizedTensor"))
    expected[0, 0, 0, 0] = INF
    observed[0, 0, 0, 0] = np.finfo(np.float32).max
    assert holds(expected, observed, hw(check_pcc=0.9, method="TilizedTensor"))


def test_constants_are_judged_by_the_first_cell_whatever_the_range():
    config = {"method": "TilizedTensor", "check_tile_rows_range": (2, 32)}
    expected, observed = tiles(), tiles(value=0.25)
    assert holds(expected, observed, hw(atol=0.5, check_pcc=0.99, **config))
    for side in (expected, observed):
        side[0, 0, 0, 0] += 1.0  # outside of the range
        assert not holds(expected, observed, hw(atol=0.5, check_pcc=0.99, **config))
        assert holds(expected, observed, hw(atol=0.5, check_pcc=0.99, check_tile_rows_range=(2, 32)), "strict")
        side[0, 0, 0, 0] -= 1.0


def test_a_range_of_one_row_compares_nothing():
    config = {"method": "TilizedTensor", "check_tile_rows_range": (4, 4)}
    assert holds(tiles(), tiles(value=9.0), hw(check_pcc=0.99, check_pct=1.0, **config))
    assert holds(tiles(), tiles(value=9.0), close_config(**config))
    assert not holds(tiles(), tiles(value=9.0), hw(check_pcc=0.99, check_tile_rows_range=(4, 4)), "strict")


def test_tilized_order_is_pct_then_pcc_and_tiles_in_order():
    expected, observed = halves(384)
    both = np.concatenate([expected, expected], axis=3), np.concatenate([expected, observed], axis=3)
    reason = compare(*both, hw(check_pcc=0.9, method="TilizedTensor"), TILE).reason
    assert reason.startswith("AllCloseHw, entry 0, t 0, tile [0, 1]: PCC 0.")
    reason = compare(*both, hw(check_pcc=0.9, check_pct=0.9, method="TilizedTensor"), TILE).reason
    assert "are not close" in reason


def test_small_tiles_stand_in_a_whole_one():
    base = tiles(cols=2, tile_dim=(16, 32))
    observed = changed(base, *[(0, 0, 0, i) for i in range(31)])
    # 31 of 1024 cells: the tile is filled up with zeros
    assert holds(base, observed, close_config(method="TilizedTensor", check_pct=993 / 1024), tile_dim=(16, 32))
    assert not holds(base, observed, close_config(method="TilizedTensor", check_pct=994 / 1024), tile_dim=(16, 32))
    last_row = changed(base, (0, 0, 15, 0))
    assert not holds(base, last_row, close_config(method="TilizedTensor"), tile_dim=(16, 32))
    assert not holds(base, last_row, EXACT_TILES, tile_dim=(16, 32))
    assert not holds(base, changed(base, (0, 0, 15, 33)), EXACT_TILES, tile_dim=(16, 32))


# --------------------------------------------------------------------------------------------------------- strict
def test_strict_looks_at_all_elements_of_allclose_together():
    base = tiles(cols=2)  # 2048 elements, chunks of 256
    observed = changed(base, *[(0, 0, 0, i) for i in range(64)])
    config = close_config(check_pct=1984 / 2048)
    assert not holds(base, observed, config)
    assert holds(base, observed, config, "strict")
    verdict = compare(base, changed(observed, (0, 0, 5, 5)), config, TILE, "strict")
    assert verdict.reason == "AllClose: 65 of 2048 are not close, 96.83 % match, check_pct asks 96.88 %"
    one_tile = changed(base, *[(0, 0, 0, i) for i in range(32)], *[(0, 0, 1, i) for i in range(16)])
    assert holds(base, one_tile, close_config(check_pct=0.96), "strict")  # 2000 of 2048
    assert not holds(base, one_tile, close_config(check_pct=0.96, method="TilizedTensor"), "strict")  # 976 of 1024


def test_strict_exact_takes_nan_for_nan_and_looks_at_the_ranges():
    base = tiles(value=NAN)
    assert holds(base, base.copy(), EXACT, "strict")
    assert not holds(base, base.copy(), EXACT)
    config = Comparison("Exact", check_tile_rows_range=(1, 16))
    assert holds(tiles(), changed(tiles(), (0, 0, 16, 0)), config, "strict")
    assert not holds(tiles(), changed(tiles(), (0, 0, 15, 0)), config, "strict")


def test_strict_allclosehw_is_tile_by_tile():
    base = tiles(cols=2)
    observed = base.copy()
    observed[..., :16, :] = 1.0  # half of each tile
    assert holds(base, observed, hw(check_pct=0.5, check_pcc=0.0), "strict")
    assert not holds(base, observed, hw(check_pct=0.5, check_pcc=0.0))


def test_a_range_beyond_a_small_tile_keeps_its_last_row():
    config = close_config(check_tile_rows_range=(20, 24))
    base = tiles(tile_dim=(16, 32))
    assert not holds(base, changed(base, (0, 0, 15, 0)), config, "strict", (16, 32))
    assert holds(base, changed(base, (0, 0, 14, 0)), config, "strict", (16, 32))


# ------------------------------------------------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (Comparison(), "type is 'not given'"),
        (Comparison("Close"), "type is 'Close', known: Exact, AllClose, AllCloseHw"),
        (Comparison("Exact", verbosity="Loud"), "verbosity is 'Loud'"),
        (Comparison("Exact", method="Flat"), "method is 'Flat'"),
        (Comparison("Exact", atol=-1e-9), "atol is -1e-09, a tolerance is 0 or more"),
        (Comparison("Exact", rtol=NAN), "rtol is nan"),
        (Comparison("Exact", check_pcc=1.0000001), "check_pcc is 1.0000001, it lies between -1 and 1"),
        (Comparison("Exact", check_pcc=NAN), "check_pcc is nan"),
    ],
)
def test_what_the_harness_refuses(comparison, words):
    with pytest.raises(NetlistError, match="comparison-config: ") as caught:
        compare(tiles(), tiles(), comparison, TILE)
    assert words in str(caught.value)


def test_bounds_at_their_ends_are_legal():
    for comparison in (Comparison("Exact", atol=0.0, rtol=0.0, check_pcc=1.0), Comparison("Exact", check_pcc=-1.0)):
        check(comparison)


def test_shapes_must_agree():
    with pytest.raises(HostError, match=r"expected has shape \[1, 1, 32, 32\], observed \[1, 1, 32, 64\]"):
        compare(tiles(), tiles(cols=2), EXACT, TILE)


# ----------------------------------------------------------------------------------------------------- properties
KINDS = st.sampled_from(["Exact", "AllClose", "AllCloseHw"])


WORDS = {
    "kind": KINDS, "method": st.sampled_from(["FlatTensor", "TilizedTensor"]),
    "verbosity": st.sampled_from(["Concise", "AllFails", "Verbose"]), "mode": st.sampled_from(["vendor", "strict"]),
}  # fmt: skip
DIMS = st.sampled_from([(32, 32), (16, 32), (8, 32), (1, 32), (32, 16)])
SPREAD = st.floats(1e-3, 1e18)  # of the elements; their squares stay far from the ends of float32


@given(**WORDS, tile_dim=DIMS, spread=SPREAD, seed=st.integers(0), check_pcc=st.sampled_from([0.0, 0.5, 0.999, 1.0]))
def test_equal_outputs_hold(kind, method, verbosity, mode, tile_dim, spread, seed, check_pcc):
    values = np.random.default_rng(seed).normal(0.0, spread, (2, 2, tile_dim[0], 2 * tile_dim[1])).astype(np.float32)
    # 1 - 10^-6: the vendor's sums over more cells than it looks at are still those of equal numbers, but for rounding
    config = Comparison(kind, verbosity, method, atol=0.0, rtol=0.0, check_pcc=min(check_pcc, 1 - 1e-6), check_pct=0.9)
    assert holds(values, values.copy(), config, mode, tile_dim)


@given(**WORDS, seed=st.integers(0), kept=st.integers(1, 1024))
def test_equal_outputs_with_nan_hold_where_it_is_taken_for_itself(kind, method, verbosity, mode, seed, kept):
    values = np.random.default_rng(seed).permutation(1024).astype(np.float32).reshape(1, 1, 32, 32)
    values[0, 0, 5, 7] = NAN
    config = Comparison(kind, verbosity, method, atol=0.0, rtol=0.0, check_pct=kept / 1024, check_pcc=0.9)
    flat_way = mode == "vendor" and method == "FlatTensor" and verbosity != "Verbose"
    refused = {"Exact": flat_way, "AllClose": False, "AllCloseHw": not flat_way}  # ==; -; the PCC of a tile is NaN
    assert holds(values, values.copy(), config, mode) is not refused[kind]


@given(**WORDS, seed=st.integers(0), place=st.integers(0, 1023), by=st.sampled_from([1.0, -1.0, NAN, INF, -INF]))
def test_one_element_that_differs_is_seen_where_it_is_looked_at(kind, method, verbosity, mode, seed, place, by):
    values = np.random.default_rng(seed).permutation(1024).astype(np.float32).reshape(1, 1, 32, 32)
    row, col = divmod(place, 32)
    config = Comparison(kind, verbosity, method, atol=0.5, rtol=0.0, check_pcc=0.0)
    in_tiles = mode == "vendor" and (method == "TilizedTensor" or verbosity == "Verbose")
    missed = in_tiles and kind != "Exact" and 31 in (row, col)
    assert holds(values, changed(values, (0, 0, row, col), by=by), config, mode) is missed


@given(st.integers(0), st.floats(0, 1, width=32), st.floats(0.5, 1))
def test_a_tile_holds_by_itself_where_strict_says_so(seed, noise, check_pcc):
    stream = np.random.default_rng(seed)
    expected = stream.standard_normal((1, 1, 32, 96)).astype(np.float32)
    observed = (expected + noise * stream.standard_normal(expected.shape)).astype(np.float32)
    config = Comparison("AllCloseHw", atol=0.5, check_pct=0.5, check_pcc=check_pcc)
    (block,) = tile_blocks(expected, observed, TILE)
    flags = tiles_that_hold(*block.inside(config), config)
    alone = [holds(expected[..., c : c + 32], observed[..., c : c + 32], config, "strict") for c in (0, 32, 64)]
    assert flags.tolist() == alone


def test_tiles_hold_by_themselves():
    a = np.zeros((3, 4))
    b = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1]], float)
    assert tiles_that_hold(a, b, Comparison("Exact")).tolist() == [True, False, False]
    assert tiles_that_hold(a, b, close_config(check_pct=0.75)).tolist() == [True, True, False]
    assert tiles_that_hold(a, b, hw(check_pct=0.75, check_pcc=0.9)).tolist() == [True, False, False]


def test_tiles_hold_in_the_plain_meaning():
    nan = np.full((1, 4), NAN)
    assert tiles_that_hold(nan, nan, Comparison("Exact")).tolist() == [True]
    constants = hw(atol=0.5, rtol=0.125, check_pcc=0.99)  # 0.5 <= 0.5 + 0.125 * 1.5
    assert tiles_that_hold(np.full((1, 4), -1.0), np.full((1, 4), -1.5), constants).tolist() == [True]


def test_equal_outputs_that_hardly_vary_do_not_correlate_to_the_vendor():
    # 1 + 2^-23 among ones: E[x^2] and mean^2 are both 1 + 2^-32 in float64, so the variance and the PCC are 0
    values = changed(tiles(value=1.0), (0, 0, 0, 1), by=2.0**-23)
    config = hw(check_pcc=0.1)
    assert compare(values, values, config, TILE).reason.endswith("PCC 0 does not reach check_pcc 0.1")
    assert holds(values, values, config, "strict")
    other = changed(values, (0, 0, 0, 2), by=2.0**-23)
    assert not holds(values, other, config, "strict")  # neither equal nor constant
    assert not holds(*halves(384), hw(check_pcc=0.9), "strict")  # nor where the means are the same


def test_a_small_constant_tile_is_not_constant_to_the_vendor():
    # zeros beyond the 16 rows; in the plain meaning the tile ends there
    config = hw(atol=0.5, check_pcc=0.99, method="TilizedTensor")
    expected, observed = tiles(tile_dim=(16, 32)), tiles(value=0.25, tile_dim=(16, 32))
    assert not holds(expected, observed, config, tile_dim=(16, 32))
    assert holds(expected, observed, config, "strict", (16, 32))


# ------------------------------------------------------------------------------------------------- large outputs
# These are looked at in stretches of 2^20 elements; here of 2^12, so that a few elements are many.
@pytest.fixture
def short_stretches(monkeypatch):
    monkeypatch.setattr("buda_emu.testing.verify.comparison._BLOCK", 1 << 12)


@pytest.mark.usefixtures("short_stretches")
def test_blocks_cover_every_tile_once_and_know_its_place():
    # a row of tiles of 32 x 64 cells: two fit a block
    expected = np.zeros((2, 2, 96, 64), np.float32)
    expected.reshape(-1)[:] = range(expected.size)
    seen, cells = [], []
    for block in tile_blocks(expected, expected + 1, TILE):
        assert block.a.size <= 4096
        seen += [block.index(tile) for tile in range(block.tiles)]
        cells += [block.a.reshape(-1), block.b.reshape(-1) - 1]
    assert seen == [(e, t, r, c) for e in range(2) for t in range(2) for r in range(3) for c in range(2)]
    assert (np.concatenate(cells[0::2]) == expected.reshape(-1)).all()
    assert (np.concatenate(cells[1::2]) == expected.reshape(-1)).all()


@pytest.mark.usefixtures("short_stretches")
def test_a_row_of_tiles_larger_than_a_block_is_a_block():
    expected = np.zeros((1, 1, 64, 160), np.float32)
    assert [block.tiles for block in tile_blocks(expected, expected, TILE)] == [5, 5]


@pytest.mark.usefixtures("short_stretches")
def test_chunks_are_looked_at_in_stretches():
    expected = np.zeros((1, 1, 512, 96), np.float32)  # 49152 elements: chunks of 6144, stretches of 4096 and 2048
    for places in ([49151], [4096], [6143], [4096, 4097], [0, 5000], [0], [10239, 10240]):
        observed = expected.copy()
        observed.reshape(-1)[places] = 1.0
        start = places[0] // 6144 * 6144
        assert compare(expected, observed, EXACT, TILE).reason == (
            f"Exact, elements {start}..{start + 6143}: {len(places)} of 6144 differ, the first is element {places[0]}"
        )


@pytest.mark.usefixtures("short_stretches")
def test_slices_are_looked_at_in_stretches():
    expected = np.zeros((1, 1, 144, 64), np.float32)  # 9216 elements: slices in stretches of 4, 4 and 1
    for place, slice_ in ((0, "0..1023"), (4095, "3072..4095"), (4096, "4096..5119"), (9215, "8192..9215")):
        observed = expected.copy()
        observed.reshape(-1)[place] = 1.0
        reason = compare(expected, observed, hw(check_pct=1.0, check_pcc=0.0), (16, 32)).reason
        assert reason.startswith(f"AllCloseHw, elements {slice_}: 1 of 1024 are not close"), place
