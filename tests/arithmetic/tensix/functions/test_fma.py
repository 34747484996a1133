import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.functions import lanes, vector_unit
from buda_emu.arithmetic.tensix.functions.programs import record
from buda_emu.arithmetic.tensix.functions.vector_unit import fma
from buda_emu.arithmetic.tensix.lanes import touched_mask
from device_vectors import CORES, mismatches, needs_vectors, vectors
from lane_words import KINDS, words

ONE, MINUS_ONE = 0x3F800000, 0xBF800000
PROGRAMS = {
    # Three operands from two inputs: the addend is a product, which the vectors' own kernel test does without.
    "fma": record(lambda u, x, y: u.fma(x, y, u.bit_or(u.shift_right(y, 1), u.bit_and(x, 0x80000000))), 2),
    "multiply": record(lambda u, x, y: u.fma(x, y, 0), 2),
    "add": record(lambda u, x, y: u.fma(ONE, x, y), 2),
    "subtract": record(lambda u, x, y: u.fma(MINUS_ONE, x, y), 2),
}


def expected(name, x, y, blackhole):
    if name == "fma":
        return fma(x, y, y >> np.uint32(1) | x & np.uint32(0x80000000), blackhole)
    if name == "multiply":
        return fma(x, y, np.uint32(0), blackhole)
    return fma(np.uint32(ONE if name == "add" else MINUS_ONE), x, y, blackhole)


def by_kernel(program, x, y, blackhole):
    """Any number of words through the kernel, in whole tiles."""
    count = -(-x.size // 1024) * 1024
    first, second = (np.resize(words.reshape(-1), count).reshape(-1, 32, 32) for words in (x, y))
    out = np.empty_like(first)
    program.run(first, out, touched_mask("rc"), "int32", second=(second, "int32"), blackhole=blackhole)
    return out.reshape(-1)[: x.size].reshape(x.shape)


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors(suffix):
    v = vectors("fma")
    assert mismatches(fma(v["x"], v["y"], v["z"], suffix == "bh"), v[f"out_{suffix}"]) == 0


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors_by_kernel(suffix):
    v = vectors("fma")
    operands = np.concatenate([np.resize(v[key], (80, 256)) for key in ("x", "y", "z")]).reshape(3, 80, 256)
    code = np.array([[lanes.FMA, 3, 0, 1, 2, 0]], np.int32)
    out = np.empty((80, 256), np.uint32)
    for row in range(80):
        # x is the constant of a program here, so that all three operands are free: one row of lanes at a time.
        out[row] = one_row(code, operands[:, row], suffix == "bh")
    assert mismatches(out.reshape(-1)[:20000], v[f"out_{suffix}"]) == 0


def one_row(code, operands, blackhole):
    registers = np.concatenate([operands.reshape(-1), np.zeros(256, np.uint32)])
    vector_unit.run_instructions(code, registers, np.zeros((1, 11), np.uint32), blackhole)
    return registers[-256:]


@pytest.mark.parametrize("blackhole", [False, True], ids=["wormhole", "blackhole"])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_kernel_is_the_definition(kind, name, blackhole):
    x, y = words(kind, (64, 1024), 1), words(kind, (64, 1024), 2)
    assert mismatches(by_kernel(PROGRAMS[name], x, y, blackhole), expected(name, x, y, blackhole)) == 0


WORDS = st.integers(0, 0xFFFFFFFF)


@pytest.mark.parametrize("blackhole", [False, True], ids=["wormhole", "blackhole"])
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=8))
@example([(0x7F7FFFFF, 0x3F800000, 0xFF7FFFFF)])
@example([(0x00800000, 0x3F7FFFFF, 0)])
def test_any_words(blackhole, triples):
    x, y, z = np.array(triples, np.uint32).T
    row = np.stack([np.resize(operand, 256) for operand in (x, y, z)])
    out = one_row(np.array([[lanes.FMA, 3, 0, 1, 2, 0]], np.int32), row, blackhole)
    assert mismatches(out, fma(*row, blackhole)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("blackhole", [False, True], ids=["wormhole", "blackhole"])
@pytest.mark.parametrize("kind", KINDS)
def test_millions(kind, blackhole):
    for seed in range(8):
        x, y, z = (words(kind, (1024, 256), 10 * seed + i) for i in range(3))
        code = np.array([[lanes.FMA, 3, 0, 1, 2, 0]], np.int32)
        out = np.stack([one_row(code, np.stack(row), blackhole) for row in zip(x, y, z, strict=True)])
        assert mismatches(out, fma(x, y, z, blackhole)) == 0


@pytest.mark.tiny
def test_one_rounding_of_a_product():
    third = np.float32(1 / 3).view(np.uint32)  # a little more than that
    assert fma(third, np.uint32(0x40400000), np.uint32(MINUS_ONE)) == 0x33000000  # 2^-25, all that is over


@pytest.mark.tiny
def test_what_lies_under_the_three_bits_is_one_of_them():
    x = np.uint32(0x3F800001)
    assert fma(x, x, np.uint32(0xBF800002)) == 0x32800000  # it is 2^-46, the sticky bit 2^-26


@pytest.mark.tiny
@pytest.mark.parametrize("name", PROGRAMS)
def test_small(name):
    x, y = words("specials", (1, 1024), 3), words("specials", (1, 1024), 4)
    assert mismatches(by_kernel(PROGRAMS[name], x, y, False), expected(name, x, y, False)) == 0


@pytest.mark.parametrize("blackhole", [False, True], ids=["wormhole", "blackhole"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_pairs_of_ends(name, blackhole):
    """Zeros, denormals, the smallest and largest numbers, infinities and NaNs with one another."""
    ends = [
        0,
        1,
        0x7FFFFF,
        0x800000,
        0x800001,
        0x1000000,
        ONE,
        0x7F000000,
        0x7F7FFFFF,
        0x7F800000,
        0x7F800001,
        0x7FC00000,
    ]
    ends = np.array([end | sign for end in ends for sign in (0, 0x80000000)], np.uint32)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(ends, ends))
    assert mismatches(by_kernel(PROGRAMS[name], x, y, blackhole), expected(name, x, y, blackhole)) == 0
