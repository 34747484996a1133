import numpy as np
import pytest

from buda_emu.errors import UnsupportedError
from buda_emu.tensix.maxpool import max_pool, reduce_max
from buda_emu.tensix.unpack import unpack
from device_vectors import MODES, REGISTERS, mismatches, needs_vectors, vectors


@needs_vectors
def test_vectors():
    v = vectors("moves_pool")
    cases = [name.removesuffix("_srca") for name in v if name.startswith("gmpool") and name.endswith("_srca")]
    assert len(cases) == 18
    for case in cases:
        _, register, mode, valid, _ = case.split("_")
        dst = v[f"{case}_din"] if valid == "v1" else None
        out = max_pool(dst, v[f"{case}_srca"], REGISTERS[int(register[1:])], MODES[int(mode[1:])])
        assert mismatches(out, v[f"{case}_out"]) == 0, case


def patterns(values):
    return np.asarray(values, np.float32).view(np.uint32)


@pytest.mark.tiny
@pytest.mark.parametrize("dim", ["r", "c"])
@pytest.mark.parametrize(("register", "mode"), [("Float16_b", "bf16"), ("Float16_b", "fp32"), ("Tf32", "fp32")])
def test_the_largest_of_each_line(dim, register, mode):
    values = np.random.default_rng(3).integers(-99, 99, (2, 3, 32, 32)).astype(np.float32)
    out = reduce_max(patterns(values), dim, register, mode, "wormhole_b0")
    axis = 2 if dim == "r" else 3
    expected = np.zeros((2, 32, 32), np.float32)
    if dim == "r":
        expected[:, 0, :] = values.max(axis=(1, axis))
    else:
        expected[:, :, 0] = values.max(axis=(1, axis))
    as_words = out << np.uint32(16) if mode == "bf16" else out
    assert np.array_equal(as_words, patterns(expected))


@pytest.mark.tiny
def test_minus_zero_goes_with_the_way_back():
    tiles = np.full((1, 32, 32), 0x8000_0000, np.uint32)
    assert not reduce_max(tiles, "c", "Float16_b", "fp32", "blackhole").any()
    lowest = np.full((1, 32, 32), 0xFFFF_E000, np.uint32)  # below all numbers, above a cleared Dst
    assert reduce_max(lowest, "r", "Tf32", "fp32", "blackhole")[0, 0] == 0xFFFF_E000
    assert reduce_max(lowest, "c", "Tf32", "fp32", "blackhole")[0, 0] == 0xFF80_0000


@pytest.mark.tiny
def test_integers_are_refused():
    with pytest.raises(UnsupportedError, match="Int8"):
        max_pool(None, np.zeros((16, 16), np.uint32), "Int8", "int32")


@pytest.mark.tiny
@pytest.mark.parametrize("dim", ["r", "c"])
@pytest.mark.parametrize("mode", ["fp16", "fp32"])
def test_halves(dim, mode):
    values = np.random.default_rng(4).integers(-99, 99, (3, 32, 32)).astype(np.float16)
    words = unpack(values.view(np.uint16), "Float16", "Float16", "wormhole_b0")
    out = reduce_max(words, dim, "Float16", mode, "wormhole_b0")
    line = out[0] if dim == "r" else out[:, 0]
    read = line.astype(np.uint16).view(np.float16) if mode == "fp16" else line.view(np.float32)
    assert np.array_equal(read, values.max(axis=(0, 1 if dim == "r" else 2)))
