import numpy as np
import pytest

from buda_emu.tensix.fidelity import PHASES
from buda_emu.tensix.tile_matmul import tile_matmul
from device_vectors import CORES, FAMILIES, MODES, mismatches, needs_vectors, vectors

FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4", "HiFi2_B")


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors(suffix):
    v = vectors("tile_matmul")
    out = np.zeros_like(v["in0"])
    for n, (_, _, mode, fidelity) in enumerate(v["meta"].tolist()):
        dst = out[n, 0]
        for k in range(2):
            setting = (PHASES[FIDELITIES[fidelity]], FAMILIES[int(v["meta"][n, 0])], MODES[mode], CORES[suffix])
            dst = tile_matmul(dst, v["in0"][n, k : k + 1], v["in1"][n, k : k + 1], *setting)
            out[n, k] = dst
    assert mismatches(out, v[f"out_{suffix}"]) == 0


def words(shape, seed):
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return values.view(np.uint32) & np.uint32(0xFFFF0000)


@pytest.mark.tiny
def test_tiles_without_a_second_inner_face():
    in0, in1 = words((2, 32, 32), 1), words((2, 32, 32), 2)
    in0[:, :, 16:] = 0
    setting = ((0, 1), "b", "fp32", "wormhole_b0")
    dst = np.zeros((16, 32), np.uint32)
    whole = tile_matmul(dst, in0[:, :16], in1, *setting)
    assert np.array_equal(whole, tile_matmul(dst, in0[:, :16, :16], in1[:, :16], *setting))


@pytest.mark.tiny
def test_order_of_faces_and_phases():
    in0, in1 = words((1, 32, 32), 1), words((1, 32, 32), 2)
    dst = np.zeros((32, 32), np.uint32)
    wormhole = tile_matmul(dst, in0, in1, (0, 1), "b", "bf16", "wormhole_b0")
    grayskull = tile_matmul(dst, in0, in1, (0, 1), "b", "bf16", "grayskull")
    assert np.any(wormhole != grayskull)
    half = tile_matmul(dst, in0[..., :16], in1[:, :16], (0, 1), "b", "bf16", "grayskull")
    assert np.array_equal(grayskull, tile_matmul(half, in0[..., 16:], in1[:, 16:], (0, 1), "b", "bf16", "grayskull"))
