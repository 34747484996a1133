import numpy as np
import pytest

from buda_emu.errors import UnsupportedError
from buda_emu.tensix.moves import copy_to_dst, move_to_dst, move_to_src
from device_vectors import mismatches, needs_vectors, vectors


@needs_vectors
@pytest.mark.parametrize(("case", "mode"), [("bf16", "bf16"), ("fp16", "fp16"), ("tf32_dst32", "fp32")])
def test_vectors_to_dst(case, mode):
    v = vectors("moves_pool")
    assert mismatches(move_to_dst(v[f"mova2d_{case}_src"], mode), v[f"mova2d_{case}_dst"]) == 0


@needs_vectors
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize(
    ("case", "mode", "register"),
    [
        ("bf16", "bf16", "Float16_b"),
        ("fp16", "fp16", "Float16"),
        ("dst32_to_bf16", "fp32", "Float16_b"),
        ("dst32_to_tf32", "fp32", "Tf32"),
    ],
)
def test_vectors_to_src(side, case, mode, register):
    v = vectors("moves_pool")
    out = move_to_src(v[f"movd2{side}_{case}_dst"], mode, register)
    assert mismatches(out, v[f"movd2{side}_{case}_src"]) == 0


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("family", "mode", "given", "expected"),
    [
        ("b", "bf16", 0x8000_0000, 0),
        ("b", "bf16", 0x807F_0000, 0),
        ("b", "bf16", 0xFFC1_0000, 0xFFC1),
        ("a", "fp16", 0x8000_0000 | 31 << 23 | 0x3FF << 13, 0xFFFF),
        ("b", "fp32", 0x3F80_2000, 0x3F80_2000),
        ("b", "fp32", 0x8000_0000, 0),
        ("b", "fp32", 0x8040_0000, 0),
        ("b", "fp32", 0xFFC0_2000, 0xFF80_0000),
        ("a", "fp32", 0x8000_0000 | 31 << 23 | 0x3FF << 13, 0x8000_0000 | 143 << 23 | 0x3FF << 13),
    ],
)
def test_copies_by_the_text(family, mode, given, expected):
    out = copy_to_dst(np.array([given], np.uint32), family, mode, "wormhole_b0")
    assert [hex(x) for x in out] == [hex(expected)]


@pytest.mark.tiny
def test_fp16_does_not_come_out_of_a_wide_dst():
    with pytest.raises(UnsupportedError, match="Float16"):
        move_to_src(np.zeros(4, np.uint32), "fp32", "Float16")
