import numpy as np
import pytest

from buda_emu.arithmetic.tensix.products import correction, part_of_srca, part_of_srcb, phase_mask, product
from buda_emu.spec.precision import PHASES

pytestmark = pytest.mark.tiny

SIGNIFICANDS = np.arange(1 << 10, 1 << 11)


def test_parts_make_up_the_significand():
    srca = (part_of_srca(SIGNIFICANDS, 0) << 5) + part_of_srca(SIGNIFICANDS, 1)
    assert np.array_equal(srca << 1, SIGNIFICANDS & ~1)  # the lowest bit is never used
    srcb = (part_of_srcb(SIGNIFICANDS, 0) << 7) + part_of_srcb(SIGNIFICANDS, 2)
    assert np.array_equal(srcb, SIGNIFICANDS << 3)


def test_parts_have_the_widths_of_the_multiplier():
    for phase in range(4):
        assert part_of_srca(SIGNIFICANDS, phase).max() == 31
        assert part_of_srcb(SIGNIFICANDS, phase).max() in (127, 15 << 3)


def test_phases_of_a_product_sum_up_to_it():
    a, b = np.array([0x3FFE_A000], np.uint32), np.array([0xBFAC_6000], np.uint32)
    total = 0.0
    for phase in PHASES["HiFi4"]:
        p = product(a, b, phase, "b", "fp32")
        total += (-1.0) ** p.sign[0] * float(p.magnitude[0]) * 2.0 ** (p.exponent[0] - 127 - 4 - 6)
    used = (a & np.uint32(0xFFFF_C000)).view(np.float32).astype(np.float64)  # without SrcA's lowest bit
    assert total == used[0] * b.view(np.float32)[0]


def test_exponents_of_zeros():
    zero, one = np.zeros(1, np.uint32), np.array([0x3F80_0000], np.uint32)
    assert product(zero, one, 0, "b", "bf16").exponent == 0
    assert product(one, zero, 0, "a", "fp32").exponent == 97
    assert product(one, zero, 3, "a", "fp32").exponent == 97 - correction(3) == 85


def test_masks():
    assert {name: phase_mask(name) for name in PHASES} == {
        "LoFi": 0b0001,
        "HiFi2": 0b0011,
        "HiFi2_A": 0b0011,
        "HiFi2_B": 0b0101,
        "HiFi3": 0b0111,
        "HiFi4": 0b1111,
    }
