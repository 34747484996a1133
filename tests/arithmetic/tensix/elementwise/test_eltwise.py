import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.elementwise import elwadd_tiles, elwmul_tiles
from buda_emu.arithmetic.tensix.elementwise import elwadd, elwmul, elwsub
from buda_emu.arithmetic.tensix.registers import kernel_setting
from device_vectors import CORES, FAMILIES, MODES, mismatches, needs_vectors, vectors
from register_words import KINDS, PAIRINGS, dst_image, family, src_words


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors(suffix):
    v = vectors("eltwise")
    out = np.empty_like(v["dst_in"])
    for n, (op, srca, _, mode, phase, accumulate) in enumerate(v["meta"].tolist()):
        a, b, dst = v["srca"][n], v["srcb"][n], v["dst_in"][n]
        setting = (FAMILIES[srca], MODES[mode], CORES[suffix])
        if op == 2:
            out[n] = elwmul(dst, a, b, phase, *setting)
        else:
            out[n] = (elwadd, elwsub)[op](dst if accumulate else None, a, b, *setting)
    assert mismatches(out, v[f"dst_out_{suffix}"]) == 0


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_cancellation_vectors(suffix):
    v = vectors("cancel")
    out = elwmul(v["dst_in"], v["srca"], v["srcb"], 0, "b", "fp32", CORES[suffix])
    assert mismatches(out, v[f"dst_out_{suffix}"]) == 0


def by_kernel(op, dst, a, b, phases, accumulate, setting):
    """The kernel on arrays of any shape of at most 1024 datums, in the first part of a tile."""
    tiles = []
    for words in (dst, a, b):
        tile = np.zeros((1, 1024), np.uint32)
        tile[0, : words.size] = words.ravel()
        tiles.append(tile)
    out = tiles[0]
    if op == 2:
        elwmul_tiles(0, 1, *tiles, phases, setting)
    else:
        elwadd_tiles(0, 1, *tiles, op == 1, accumulate, setting)
    return out[0, : dst.size].reshape(dst.shape)


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors_by_the_kernel(suffix):
    v = vectors("eltwise")
    out = np.empty_like(v["dst_in"])
    for n, (op, srca, _, mode, phase, accumulate) in enumerate(v["meta"].tolist()):
        setting = kernel_setting(FAMILIES[srca], MODES[mode], CORES[suffix])
        out[n] = by_kernel(op, v["dst_in"][n], v["srca"][n], v["srcb"][n], 1 << phase, bool(accumulate), setting)
    assert mismatches(out, v[f"dst_out_{suffix}"]) == 0


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_cancellation_vectors_by_the_kernel(suffix):
    v = vectors("cancel")
    setting = kernel_setting("b", "fp32", CORES[suffix])
    out = by_kernel(2, v["dst_in"], v["srca"], v["srcb"], 1, True, setting)
    assert mismatches(out, v[f"dst_out_{suffix}"]) == 0


@pytest.mark.tiny
@settings(max_examples=24, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    pairing=st.sampled_from(PAIRINGS),
    kind=st.sampled_from(KINDS),
    op=st.integers(0, 2),
    accumulate=st.booleans(),
    core=st.sampled_from(["wormhole_b0", "blackhole"]),
)
def test_kernel_is_the_reference(seed, pairing, kind, op, accumulate, core):
    stream = np.random.default_rng(seed)
    register, mode = pairing
    dst = dst_image(stream, (32, 32), mode, kind)
    a, b = (src_words(stream, (32, 32), register, kind) for _ in range(2))
    setting = (family(register), mode, core)
    if op == 2:
        expected = dst
        for phase in range(4):
            expected = elwmul(expected, a, b, phase, *setting)
    else:
        expected = (elwadd, elwsub)[op](dst if accumulate else None, a, b, *setting)
    out = by_kernel(op, dst, a, b, 0b1111, accumulate, kernel_setting(*setting))
    assert mismatches(out, expected) == 0


@pytest.mark.tiny
@pytest.mark.parametrize("core", ["wormhole_b0", "blackhole"])
@pytest.mark.parametrize("left", [-2, -1, 0, 1, 2])
def test_what_a_cancellation_leaves(core, left):
    """A product of 1 onto a Dst of -1 and `left` units of 2^-23: minus one unit is wrong on Wormhole (2.3 step 5)."""
    words = np.full((1, 1), 0x3F80_0000, np.uint32)
    dst = np.full((1, 1), -1 + left * 2.0**-23, np.float32).view(np.uint32)
    expected = np.float32(-(2.0**4) if left == -1 and core == "wormhole_b0" else left * 2.0**-23).view(np.uint32)
    assert elwmul(dst, words, words, 0, "b", "fp32", core) == expected
    assert by_kernel(2, dst, words, words, 1, True, kernel_setting("b", "fp32", core)) == expected
