import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.tensix.products.accumulate import accumulate_narrow, accumulate_wide
from buda_emu.arithmetic.kernels.tensix.words import FP16, FP32, MODES, load_word, store_word
from buda_emu.arithmetic.tensix.products import Sum, accumulate
from buda_emu.support.errors import UnsupportedError
from device_vectors import mismatches
from register_words import KINDS, dst_image

pytestmark = pytest.mark.tiny

LARGEST_SUM = 8 * 31 * 127
FAMILIES = {"bf16": "b", "fp16": "a", "fp32": "b"}


@kernel
def accumulate_all(out, dst, x0, v0, x1, v1, mode, blackhole):
    for n in range(out.size):
        word = load_word(dst[n], mode)
        if mode == FP32:
            word = accumulate_wide(word, x0[n], v0[n], x1[n], v1[n], blackhole)
        else:
            word = accumulate_narrow(word, x0[n], v0[n], x1[n], v1[n], mode == FP16)
        out[n] = store_word(word, mode)


def both(dst, sums, mode, core):
    """The Dst image by the reference, which the kernel must equal; sums are pairs of exponent and signed units."""
    dst = np.atleast_1d(np.asarray(dst, np.uint32))
    terms = [(np.broadcast_to(x, dst.shape), np.broadcast_to(v, dst.shape)) for x, v in sums]
    reference = accumulate(
        dst,
        [Sum((v < 0).astype(np.int64), x.astype(np.int64), np.abs(v).astype(np.int64) << 13) for x, v in terms],
        FAMILIES[mode],
        mode,
        core,
    )
    out = np.empty(dst.shape, np.int32)
    pairs = [*terms, (np.zeros(dst.shape), np.zeros(dst.shape))][:2]
    arrays = [array.astype(np.int32) for pair in pairs for array in pair]
    accumulate_all(out, dst.view(np.int32), *arrays, MODES[mode], core == "blackhole")
    assert mismatches(out.view(np.uint32), reference) == 0
    return reference


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    mode=st.sampled_from(sorted(MODES)),
    core=st.sampled_from(["wormhole_b0", "blackhole"]),
    kind=st.sampled_from(KINDS),
    spread=st.sampled_from([0, 2, 8, 20, 200]),
    size=st.sampled_from([1, 4, 100, LARGEST_SUM]),
)
def test_kernel_is_the_reference(seed, mode, core, kind, spread, size):
    stream = np.random.default_rng(seed)
    dst = dst_image(stream, (256,), mode, kind)
    middle = 15 if mode == "fp16" else 127
    sums = []
    for _ in range(2):
        x = np.maximum(stream.integers(middle - spread, middle + spread + 1, 256), 0)
        v = stream.integers(-size, size + 1, 256)
        sums.append((x, np.where(x == 0, 0, v)))
    both(dst, sums, mode, core)


@pytest.mark.parametrize("distance", range(32))
@pytest.mark.parametrize("mode", sorted(MODES))
def test_ties_of_sums_at_every_distance(distance, mode):
    """Values at and around what rounds to a half, of both signs, against a sum that is alone at the top."""
    x = 40 if mode != "fp16" else 31
    values = [s * (k * 2 ** min(distance, 12) // 2 + e) for s in (1, -1) for k in (1, 3, 5, 7) for e in (-1, 0, 1)]
    values = np.clip([*values, LARGEST_SUM, -LARGEST_SUM, 8192, 8193, -8193, 16385, -16385], -LARGEST_SUM, LARGEST_SUM)
    low = max(x - distance, 0)
    sums = [(np.full(values.shape, x), np.full(values.shape, 1024)), (low, np.where(low == 0, 0, values))]
    both(np.zeros(values.shape, np.uint32), sums, mode, "wormhole_b0")


@pytest.mark.parametrize(
    ("mode", "dst", "sums", "expected"),
    [
        ("bf16", 0x3F80, [(127, 1024)], 0x4000),  # 1 + 1
        ("bf16", 0x3F80, [(127, -1024)], 0x0000),  # +0 where nothing is left
        ("bf16", 0x3F80, [(127, 4)], 0x3F81),  # half a last place is rounded away from zero
        ("bf16", 0xBF80, [(127, -4)], 0xBF81),
        ("bf16", 0x3F80, [(127, 3)], 0x3F80),
        ("bf16", 0x8000, [(0, 0)], 0x0000),  # a zero in Dst loses its sign
        ("bf16", 0x7F7F, [(254, 2032)], 0x7F80),  # overflow
        ("bf16", 0x7FFF, [(0, 0)], 0x7F80),  # exponent 255 is ordinary, but overflows
        ("fp16", 0x7800, [(31, 1024)], 0x7E00),  # exponent 31 is ordinary
        ("fp16", 0x7FFF, [(31, 1024)], 0x7FFF),
        ("fp16", 0xFFFF, [(31, -1)], 0xFFFF),
        ("fp16", 0x0400, [(1, -512)], 0x0000),  # underflow
        ("fp32", 0x3F80_0000, [(127, 1)], 0x3F80_2000),
        ("fp32", 0x3F80_0000, [(126, 1), (126, -1)], 0x3F80_0000),
        ("fp32", 0xBF80_0001, [(127, 1024)], 0xC180_0000),  # minus one unit: an error of Wormhole
        ("fp32", 0x3F80_0001, [(127, -1024)], 0x3400_0000),
        ("fp32", 0x7F7F_FFFF, [(254, 2047)], 0x7F80_0000),
    ],
)
def test_worked_examples(mode, dst, sums, expected):
    assert [hex(x) for x in both(dst, sums, mode, "wormhole_b0")] == [hex(expected)]


def test_minus_one_unit_is_right_on_blackhole():
    assert both(0xBF80_0001, [(127, 1024)], "fp32", "blackhole") == 0xB400_0000


def test_families_do_not_meet_in_a_narrow_dst():
    with pytest.raises(UnsupportedError, match="family a"):
        accumulate(np.zeros(1, np.uint32), [], "a", "bf16", "wormhole_b0")
