import numpy as np
import pytest

from buda_emu.arithmetic.kernels.tensix import pack as kernels
from buda_emu.arithmetic.tensix.conversions.pack import accumulate, pack
from buda_emu.support.errors import UnsupportedError
from device_vectors import mismatches, needs_vectors, vectors
from lane_words import KINDS, words

FORMATS = {"Float32": 0, "Float16_b": 16, "Float16": 16}


def by_kernel(out_df, old, new):
    total = np.ascontiguousarray(np.resize(old, (-(-old.size // 1024), 32, 32)))
    kernels.accumulate(0, len(total), out_df, total, np.ascontiguousarray(np.resize(new, total.shape)))
    return total.reshape(-1)[: old.size].reshape(old.shape)


@needs_vectors
@pytest.mark.parametrize(("key", "mode", "out_df"), [("f32", "fp32", "Float32"), ("bf16", "bf16", "Float16_b")])
def test_vectors(key, mode, out_df):
    v = vectors("pack")
    new = pack(v[f"l1acc_{key}_dst"], mode, out_df, out_df).datums
    for add in (accumulate, by_kernel):
        assert mismatches(add(out_df, v[f"l1acc_{key}_init"], new), v[f"l1acc_{key}_out"]) == 0


@pytest.mark.parametrize("partner", ["other", "opposite", "near opposite"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("out_df", FORMATS)
def test_kernel_is_the_definition(out_df, kind, partner):
    old, new = words(kind, (4, 32, 32), 1), words(kind, (4, 32, 32), 2)
    if partner != "other":
        new = old ^ np.uint32(0x80000000)
    if partner == "near opposite":
        new = new ^ words("any", old.shape, 3) & np.uint32(3 << FORMATS[out_df])
    old, new = (
        (x >> np.uint32(FORMATS[out_df])).astype(np.uint16 if FORMATS[out_df] else np.uint32) for x in (old, new)
    )
    assert mismatches(by_kernel(out_df, old, new), accumulate(out_df, old, new)) == 0


@pytest.mark.tiny
def test_sums():
    def half(*values):
        return np.array(values, np.uint16)

    one, tie = 0x3F80, 0x3B80  # 2^-8, half of a unit of 1.0
    assert accumulate("Float16_b", half(one, 0x3F81, 0x7F80), half(tie, tie, 0xFF80)).tolist() == [one, 0x3F82, 0x7FC0]
    assert accumulate("Float16_b", half(0x7FC0, 0x0001, 0x7F00), half(one, one, 0x7F00)).tolist() == [
        0x7F80,
        one,
        0x7F80,
    ]
    assert accumulate("Float16", half(0x3C00, 0x7C00, 0x7BFF), half(0x3C00, 0xFC00, 0xFBFF)).tolist() == [
        0x4000,
        0x7FFF,
        0x7FFF,
    ]
    assert accumulate("Float32", np.array([1], np.uint32), np.array([0x80000001], np.uint32)).tolist() == [0]


@pytest.mark.tiny
def test_other_formats_are_refused():
    with pytest.raises(UnsupportedError, match="Bfp8_b"):
        accumulate("Bfp8_b", np.zeros(16, np.uint8), np.zeros(16, np.uint8))
    with pytest.raises(UnsupportedError, match="Int32"):
        kernels.accumulate(0, 1, "Int32", np.zeros((1, 32, 32), np.uint32), np.zeros((1, 32, 32), np.uint32))


@pytest.mark.tiny
@pytest.mark.parametrize("out_df", FORMATS)
def test_small(out_df):
    old, new = words("specials", (1, 32, 32), 1), words("specials", (1, 32, 32), 2)
    old, new = (
        (x >> np.uint32(FORMATS[out_df])).astype(np.uint16 if FORMATS[out_df] else np.uint32) for x in (old, new)
    )
    assert mismatches(by_kernel(out_df, old, new), accumulate(out_df, old, new)) == 0
