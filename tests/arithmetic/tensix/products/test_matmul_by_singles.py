"""The kernel of singles against that of integers, and what it leaves to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.tensix.products.matmul_by_singles import Traversal, matmul_by_singles, room_for
from buda_emu.arithmetic.kernels.tensix.products.prepared import EXPONENTS, HALVES, SPAN, prepare_srca, prepare_srcb
from buda_emu.arithmetic.kernels.tensix.products.spills import AS_IT_WAS
from buda_emu.arithmetic.kernels.tensix.products.tile_matmul import matmul_by_integers, matmul_tiles
from buda_emu.arithmetic.tensix.products import phase_mask, tile_matmul
from buda_emu.arithmetic.tensix.registers import kernel_setting
from buda_emu.spec.precision import PHASES
from register_words import PAIRINGS, family
from tile_products import product_of

NONE = np.uint32(0)
NO_ENDS = np.zeros(0, np.bool_)
MEMORY = np.zeros(room_for(0, 1, 1, 1), np.int32)


@kernel
def srca(exponent, parts, words, ends, phases, lift):
    prepare_srca(exponent, parts, words, ends, phases, lift)


@kernel
def srcb(exponent, parts, words, ends, phases, lift, plus):
    prepare_srcb(exponent, parts, words, ends, phases, lift, plus)


def words(stream, shape, register, middle, spread, zeros=0.05):
    """Exponents from `middle` - `spread` to `middle` + `spread`, few different fractions: ties are frequent."""
    top = 31 if register == "Float16" else 255
    exponent = np.clip(stream.integers(middle - spread, middle + spread + 1, shape), 0, top).astype(np.uint32)
    fraction = stream.choice(np.array([0, 1, 2, 4, 7, 512, 1016, 1023, stream.integers(0, 1024)], np.uint32), shape)
    if register == "Float16_b":
        fraction &= np.uint32(0x3F8)
    sign = stream.integers(0, 2, shape, np.uint32)
    made = sign << np.uint32(31) | exponent << np.uint32(23) | fraction << np.uint32(13)
    return np.where(stream.random(shape) < zeros, np.uint32(0), made)


def both(dst, in0, in1, fidelity, setting, *, faces=2, faces_first=False, moved=0):
    """dst [n, 1024], in0 and in1 [K, 1024]: the images by both kernels, and what the first one left out."""
    index = np.arange(len(in0), dtype=np.int32)
    operands = (in0[None], index, NONE, in1[None], index, NONE, False)
    shape = (1, 1, len(in0), 1, 0, len(in0), faces, phase_mask(fidelity))
    singles, integers = dst[None].copy(), dst[None].copy()
    left_out = np.zeros(1, np.bool_)
    product = product_of(*operands, *shape, *setting, faces_first)
    matmul_by_singles(0, 1, singles, product, Traversal(AS_IT_WAS, NO_ENDS, False, moved), left_out, MEMORY)
    matmul_by_integers(0, 1, integers, product)
    return singles[0], integers[0], bool(left_out[0])


def start(stream, mode, register, middle, spread):
    made = words(stream, (1, 1024), "Float16_b" if mode == "bf16" else register, middle, spread)
    if mode == "bf16":
        return made >> np.uint32(16)
    if mode == "fp16":
        return made >> np.uint32(16) & np.uint32(0x8000) | made >> np.uint32(13) & np.uint32(0x7FFF)
    return made | stream.integers(0, 1 << 13, made.shape, np.uint32)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    pairing=st.sampled_from(PAIRINGS),
    spread=st.sampled_from([0, 1, 3, 8, 14, 32, 40]),  # from 32 on exponents are not bytes
    middles=st.tuples(*[st.integers(30, 200)] * 3),
    fidelity=st.sampled_from(sorted(PHASES)),
    core=st.sampled_from(["grayskull", "wormhole_b0", "blackhole"]),
    faces=st.sampled_from([1, 2]),
)
def test_both_kernels_agree(seed, pairing, spread, middles, fidelity, core, faces):
    stream = np.random.default_rng(seed)
    register, mode = pairing
    if register == "Float16":
        middles = tuple(m % 32 for m in middles)
    in0, in1 = (words(stream, (3, 1024), register, middle, spread) for middle in middles[:2])
    dst = start(stream, mode, register, middles[2], spread)
    setting = kernel_setting(family(register), mode, core)
    singles, integers, left_out = both(dst, in0, in1, fidelity, setting, faces=faces, faces_first=core == "grayskull")
    assert np.array_equal(singles, dst if left_out else integers)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    mode=st.sampled_from(["bf16", "fp32"]),
    moved=st.sampled_from([48, -48, -96]),
    sums=st.integers(0, 70),
    spread=st.sampled_from([0, 1, 3, 6]),
    apart=st.integers(-30, 30),
    onto=st.integers(-20, 20),
    fidelity=st.sampled_from(sorted(PHASES)),
    core=st.sampled_from(["grayskull", "wormhole_b0", "blackhole"]),
)
def test_exponents_moved_from_the_ends(seed, mode, moved, sums, spread, apart, onto, fidelity, core):
    """Sums that overflow, words that are infinite, and what is too small for Dst."""
    stream = np.random.default_rng(seed)
    middle = sums if moved > 0 else 320 - sums - 48 * (moved == -48)
    left = (middle + 127 + apart) // 2
    in0, in1 = (words(stream, (3, 1024), "Float16_b", m, spread) for m in (left, middle + 127 - left))
    in0[2, :512] = in0[0, 512:] ^ np.uint32(0x80000000)  # sums that cancel
    dst = start(stream, mode, "Float16_b", min(max(middle + onto, 1), 254), spread)
    setting = kernel_setting("b", mode, core)
    singles, integers, left_out = both(dst, in0, in1, fidelity, setting, faces_first=core == "grayskull", moved=moved)
    assert np.array_equal(singles, dst if left_out else integers)


@pytest.mark.parametrize("mode", ["bf16", "fp32"])
@pytest.mark.parametrize(
    ("moved", "middles", "dst_at"),
    [
        (48, (70, 75), 20), (48, (80, 75), 3), (-48, (127, 230), 200), (-48, (240, 127), 250), (-96, (250, 150), 250),
        (-96, (254, 126), 254),
    ],
)  # fmt: skip
def test_what_is_taken_where_exponents_are_moved(mode, moved, middles, dst_at):
    stream = np.random.default_rng(9)
    in0, in1 = (words(stream, (2, 1024), "Float16_b", middle, 1) for middle in middles)
    dst = start(stream, mode, "Float16_b", dst_at, 0)
    dst[0, ::3] = 0
    setting = kernel_setting("b", mode, "wormhole_b0")
    for way in (0, moved):
        singles, integers, left_out = both(dst, in0, in1, "HiFi3", setting, moved=way)
        assert left_out is (way == 0)
        assert np.array_equal(singles, dst if left_out else integers)
    assert (integers != dst).any()


@pytest.mark.parametrize("mode", ["bf16", "fp32"])
@pytest.mark.parametrize(
    ("middles", "taken"),
    [((127, 127), True), ((30, 129), False), ((127, 230), False), ((90, 110), True), ((12, 200), False)],
)
def test_what_is_left_to_integers(mode, middles, taken):
    stream = np.random.default_rng(3)
    in0, in1 = (words(stream, (1, 1024), "Float16_b", middle, 2) for middle in middles)
    dst = start(stream, mode, "Float16_b", 120, 4)
    setting = kernel_setting("b", mode, "wormhole_b0")
    singles, integers, left_out = both(dst, in0, in1, "LoFi", setting)
    assert left_out is not taken
    assert np.array_equal(singles, integers if taken else dst)


@pytest.mark.parametrize("mode", ["bf16", "fp32"])
def test_infinities_times_small_numbers_and_zeros(mode):
    stream = np.random.default_rng(6)
    in0, in1 = words(stream, (1, 1024), "Float16_b", 60, 2, zeros=0.3), words(stream, (1, 1024), "Float16_b", 127, 2)
    in1[0, ::9] = 0xFF800000
    dst = start(stream, mode, "Float16_b", 120, 3)
    for pair in ((in0, in1), (in1, in0)):
        singles, integers, left_out = both(dst, *pair, "HiFi3", kernel_setting("b", mode, "wormhole_b0"))
        assert left_out or np.array_equal(singles, integers)


@pytest.mark.parametrize("exponent", [2, 240, 255])
def test_words_of_dst_at_the_ends_are_left_to_integers(exponent):
    stream = np.random.default_rng(4)
    in0, in1 = (words(stream, (1, 1024), "Float16_b", 127, 2) for _ in range(2))
    dst = start(stream, "bf16", "Float16_b", exponent, 0)
    setting = kernel_setting("b", "bf16", "wormhole_b0")
    singles, _, left_out = both(dst, in0, in1, "LoFi", setting)
    assert left_out
    assert np.array_equal(singles, dst)


@pytest.mark.tiny
def test_tiles_of_zeros_and_denormal_words():
    stream = np.random.default_rng(5)
    in0 = words(stream, (2, 1024), "Float16_b", 127, 2)
    dst = start(stream, "bf16", "Float16_b", 120, 3)
    dst[0, :40] &= np.uint32(0x807F)  # no exponent: these count as nothing
    for zero in (np.zeros_like(in0), in0 * np.array([[1], [0]], np.uint32)):
        singles, integers, left_out = both(dst, in0, zero, "HiFi2", kernel_setting("b", "bf16", "wormhole_b0"))
        assert not left_out
        assert np.array_equal(singles, integers)


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("mode", "moved", "middles", "dst_at"),
    [("bf16", 0, (127, 127), 120), ("fp32", 0, (127, 127), 120), ("fp16", 0, (15, 15), 15), ("fp16", 0, (28, 27), 30),
     ("bf16", 48, (70, 75), 20), ("fp32", 48, (80, 75), 3), ("bf16", -48, (240, 127), 250)],
)  # fmt: skip
def test_one_product_of_each_kind_is_the_definition(mode, moved, middles, dst_at):
    """In plain Python too, where a kernel of integers takes seconds."""
    stream = np.random.default_rng(11)
    register = "Float16" if mode == "fp16" else "Float16_b"
    in0, in1 = (words(stream, (1, 1024), register, middle, 1) for middle in middles)
    dst = start(stream, mode, register, dst_at, 1)
    index, setting = np.zeros(1, np.int32), kernel_setting(family(register), mode, "wormhole_b0")
    out, left_out = dst[None].copy(), np.zeros(1, np.bool_)
    shape = (1, 1, 1, 1, 0, 1, 2, phase_mask("HiFi2"))
    operands = (in0[None], index, NONE, in1[None], index, NONE, False)
    product = product_of(*operands, *shape, *setting, False)
    matmul_by_singles(0, 1, out, product, Traversal(AS_IT_WAS, NO_ENDS, False, moved), left_out, MEMORY)
    tiles = (item.reshape(1, 32, 32) for item in (in0, in1))
    want = tile_matmul(dst.reshape(32, 32), *tiles, PHASES["HiFi2"], family(register), mode, "wormhole_b0")
    assert not left_out.any()
    assert np.array_equal(out.reshape(32, 32), want)


@pytest.mark.parametrize("pairing", PAIRINGS)
@pytest.mark.parametrize("fidelity", sorted(PHASES))
def test_rows_of_zeros_onto_nothing(pairing, fidelity):
    """Pickers are like that: a sum without a product, and a word of Dst that is zero, have no exponent."""
    stream = np.random.default_rng(7)
    register, mode = pairing
    middle = 15 if register == "Float16" else 127
    in0, in1 = (words(stream, (2, 1024), register, middle, 2) for _ in range(2))
    in0.reshape(2, 32, 32)[:, 1::3] = 0
    in1.reshape(2, 32, 32)[:, :16, 5::4] = 0
    dst = start(stream, mode, register, middle, 2)
    dst.reshape(32, 32)[:24] = 0
    singles, integers, left_out = both(dst, in0, in1, fidelity, kernel_setting(family(register), mode, "wormhole_b0"))
    assert not left_out
    assert np.array_equal(singles, integers)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("product", [matmul_by_integers, matmul_tiles])
def test_halves_are_read_as_they_lie(product, transposed):
    stream = np.random.default_rng(13)
    in0, in1 = (words(stream, (1, 6, 1024), "Float16_b", 127, 9) for _ in range(2))
    in1[0, 2, :3] = [0xFF800000, 0x00010000, 0x80000000]
    index = np.array([[0, 1, 2], [3, -1, 5]], np.int32).reshape(-1)
    shape = (transposed, 1, 2, 3, 2, 0, 3, 2, phase_mask("HiFi3"), *kernel_setting("b", "bf16", "wormhole_b0"), False)
    made = []
    for tiles in ((in0, in1), tuple((item >> np.uint32(16)).astype(np.uint16).view(np.uint32) for item in (in0, in1))):
        made.append(np.zeros((1, 4, 1024), np.uint32))
        product(0, 4, made[-1], product_of(tiles[0], index, NONE, tiles[1], index, NONE, *shape))
    assert made[0].any()
    assert np.array_equal(*made)


@pytest.mark.parametrize("lift", [0, 5])
@pytest.mark.parametrize("phases", [0b1, 0b11, 0b111, 0b1111])
def test_prepared_tiles_are_those_of_the_definition(phases, lift):
    """Zeros, words without exponent, infinities, all kinds of fractions."""
    stream = np.random.default_rng(17)
    mixed = stream.integers(0, 1 << 32, 1024, np.uint32) & np.uint32(0xFFFFE000)
    mixed[::7], mixed[1::50], mixed[2::90] = 0, 0x80400000, 0xFF800000
    for tile in (mixed, np.zeros(1024, np.uint32), words(stream, 1024, "Float16_b", 100, 3)):
        source = tile.view(np.int32)
        for definition, code, more in ((prepare_srca, srca, ()), (prepare_srcb, srcb, (27,))):
            made = []
            for function in (definition, code):
                exponents, parts = np.zeros(EXPONENTS, np.int32), np.zeros(2048, np.float32)
                ends = np.zeros(2, np.int32)
                function(exponents, parts, source, ends, phases, lift, *more)
                known = EXPONENTS if ends[1] - ends[0] <= SPAN else HALVES
                made.append((exponents[:known], parts.view(np.int32), ends))
            assert all(map(np.array_equal, *made))


@pytest.mark.parametrize("mode", ["bf16", "fp32"])
def test_fresh_tiles_are_zeros_whatever_is_in_them(mode):
    """Also those that singles leave out: here the second one, whose numbers are too large for them."""
    stream = np.random.default_rng(19)
    in0 = np.stack([words(stream, 1024, "Float16_b", middle, 2) for middle in (127, 250)])[None]
    in1 = words(stream, (1, 1, 1024), "Float16_b", 127, 2)
    index = np.arange(2, dtype=np.int32)
    shape = (False, 1, 2, 1, 1, 0, 1, 2, phase_mask("HiFi2"), *kernel_setting("b", mode, "wormhole_b0"), False)
    made = []
    for dst, fresh in (np.zeros((1, 2, 1024), np.uint32), False), (stream.integers(0, 1 << 16, (1, 2, 1024)), True):
        made.append(dst.astype(np.uint32))
        matmul_tiles(0, 2, made[-1], product_of(in0, index, NONE, in1, index, NONE, *shape), fresh)
    assert made[0].any(axis=2).all()
    assert np.array_equal(*made)
