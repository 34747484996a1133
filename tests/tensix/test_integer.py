import numpy as np
import pytest

from buda_emu.tensix.fidelity import PHASES
from buda_emu.tensix.integer import int_copy, int_elwadd, int_elwmul, int_elwsub, int_mvmul
from buda_emu.tensix.tile_matmul import int_tile_matmul
from buda_emu.tensix.unpack import unpack
from device_vectors import mismatches, needs_vectors, vectors


@needs_vectors
def test_vectors():
    v = vectors("int8")
    out = np.empty_like(v["dst_in"])
    for n, (op, phase) in enumerate(zip(v["op"].tolist(), v["phase"].tolist(), strict=True)):
        a, b, dst = v["srca"][n], v["srcb"][n], v["dst_in"][n]
        if op == 0:
            out[n] = int_mvmul(dst, b, a, phase)
        elif op == 1:
            out[n] = int_elwmul(dst, a, b, phase)
        else:
            out[n] = int_elwadd(dst if phase else None, a, b)
    assert mismatches(out, v["dst_out"]) == 0


def signed(shape, seed):
    """Values and their words."""
    values = np.random.default_rng(seed).integers(-127, 128, shape)
    codes = np.where(values < 0, 128 - values, values).astype(np.uint8)
    return values, unpack(codes, "Int8", "Int8", "wormhole_b0")


def image(values):
    return np.where(values < 0, 0x8000_0000 - values, values).astype(np.uint32)


@pytest.mark.tiny
def test_four_phases_are_the_exact_product():
    (x, a), (y, b) = signed((32, 32), 1), signed((32, 32), 2)
    dst = np.zeros((32, 32), np.uint32)
    for phase in PHASES["HiFi4"]:
        dst = int_elwmul(dst, a, b, phase)
    assert np.array_equal(dst, image(x * y))
    assert np.array_equal(int_elwadd(None, a, b), image(x + y))
    assert np.array_equal(int_elwsub(None, a, b), image(x - y))
    assert np.array_equal(int_copy(a), image(x))


@pytest.mark.tiny
@pytest.mark.parametrize("core", ["grayskull", "wormhole_b0", "blackhole"])
def test_tiles(core):
    (x, in0), (y, in1) = signed((3, 32, 32), 3), signed((3, 32, 32), 4)
    out = int_tile_matmul(np.zeros((32, 32), np.uint32), in0, in1, core)
    assert np.array_equal(out, image((x @ y).sum(axis=0)))


@pytest.mark.tiny
def test_sums_saturate():
    words = unpack(np.full((1, 1), 127, np.uint8), "Int8", "Int8", "wormhole_b0")
    assert int_elwadd(np.array([[0x7FFF_FFFF]], np.uint32), words, words) == 0x7FFF_FFFF
    assert int_elwsub(np.array([[0xFFFF_FFFF]], np.uint32), words ^ np.uint32(1 << 31), words) == 0xFFFF_FFFF
