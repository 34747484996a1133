import pytest

from buda_emu.arithmetic.tensix.functions.elementary import Lut, lut8, lut16
from buda_emu.support.errors import InternalError

pytestmark = pytest.mark.tiny


def test_bytes_are_sign_exponent_and_four_bits():
    table = lut8((0x1DFF, 0x481A, 0xFF90))
    assert table.slopes == (0x3F680000, 0x3DC00000, 0)  # 0.90625, 0.09375, all ones is 0
    assert table.offsets == (0, 0x3F500000, 0xBF000000)  # 0.8125, -0.5
    assert table.breaks == (0x3F800000, 0x40000000)


def test_halves_keep_their_values_but_for_infinity():
    table = lut16((0x3C00, 0xBC00, 0x7C00, 0x3800, 0x3800, 0x3800), (0x3800,) * 6, table=2, retain=False)
    assert table.slopes[:4] == (0x3F800000, 0xBF800000, 0, 0x3F000000)
    assert table.breaks[-1] == 0x40800000


def test_a_table_has_a_line_for_each_range():
    with pytest.raises(InternalError, match="3 ranges"):
        Lut((1, 2), (0, 0), (0, 0, 0), retain=False)
    with pytest.raises(InternalError, match="ascend"):
        Lut((2, 1), (0, 0, 0), (0, 0, 0), retain=False)
