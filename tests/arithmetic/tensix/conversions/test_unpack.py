import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.kernels.tensix.unpack import unpack_blocks_to_halves
from buda_emu.arithmetic.tensix.conversions.unpack import unpack, unpacker
from buda_emu.spec.formats import FORMATS, is_block
from buda_emu.support.errors import InternalError, UnsupportedError
from device_vectors import mismatches, needs_vectors, vectors

CASES = [
    ("f32_in_tf32", "f32_to_tf32", "Float32", "Tf32", None),
    ("f32_in_bf16", "f32_to_bf16", "Float32", "Float16_b", None),
    ("f32_in_fp16", "f32_to_fp16", "Float32", "Float16", None),
    ("bf16_in", "bf16_src", "Float16_b", "Float16_b", None),
    ("fp16_in", "fp16_src", "Float16", "Float16", None),
    ("bfp8b_code", "bfp8b_src", "Bfp8_b", "Bfp8_b", "bfp8b_exp"),
    ("bfp4b_code", "bfp4b_src", "Bfp4_b", "Bfp8_b", "bfp4b_exp"),
    ("bfp2b_code", "bfp2b_src", "Bfp2_b", "Bfp8_b", "bfp2b_exp"),
]


def by_kernel(codes, df, register, core, exponents=None):
    """The kernel on an array of any shape, in the first part of as many tiles as it takes."""
    tiles = []
    for data, size in ((codes, 1024), (exponents, 64)):
        if data is not None:
            padded = np.zeros((-(-codes.size // 1024), size), data.dtype)
            padded.reshape(-1)[: data.size] = data.ravel()
            tiles.append(padded)
    out = np.empty(tiles[0].shape, np.uint32)
    unpacker(df, register, core)(0, len(out), out, *tiles)
    return out.ravel()[: codes.size].reshape(codes.shape)


@needs_vectors
@pytest.mark.parametrize(("given", "expected", "df", "register", "exponents"), CASES)
@pytest.mark.parametrize("core", ["wormhole_b0", "blackhole"])
def test_vectors(given, expected, df, register, exponents, core):
    v = vectors("unpack")
    codes, shared = v[given], None if exponents is None else v[exponents]
    assert mismatches(unpack(codes, df, register, core, shared), v[expected]) == 0
    assert mismatches(by_kernel(codes, df, register, core, shared), v[expected]) == 0


@needs_vectors
@pytest.mark.parametrize(("df", "expected"), [("Int8", "int8_u0_src"), ("UInt8", "int8_u1_src")])
def test_integer_vectors(df, expected):
    codes, words = np.arange(256, dtype=np.uint8), vectors("unpack")[expected]
    assert mismatches(unpack(codes, df, df, "wormhole_b0"), words) == 0
    assert mismatches(by_kernel(codes, df, df, "wormhole_b0"), words) == 0


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("df", "register", "core", "given", "expected"),
    [
        ("Float32", "Tf32", "wormhole_b0", 0xFF80_3FFF, 0xFF80_2000),
        ("Float32", "Float16_b", "wormhole_b0", 0x807F_FFFF, 0x8000_0000),
        ("Float32", "Float16", "wormhole_b0", 0x3F80_3FFF, 15 << 23 | 1 << 13),
        ("Float32", "Float16", "wormhole_b0", 0xC800_0000, 0x8000_0000 | 31 << 23 | 0x3FF << 13),
        ("Float32", "Float32", "wormhole_b0", 0x1234_5678, 0x1234_5678),
        ("Lf8", "Lf8", "wormhole_b0", 0xFF, 0x8000_0000 | 31 << 23 | 3 << 21),
        ("Lf8", "Lf8", "blackhole", 0xFF, 0x8000_0000 | 31 << 23 | 0x3FF << 13),
        ("Fp8_e4m3", "Lf8", "blackhole", 0x38, 15 << 23),
        ("Fp8_e4m3", "Lf8", "blackhole", 0x7F, 23 << 23 | 0x3FF << 13),
        ("Fp8_e4m3", "Lf8", "blackhole", 0x81, 0x8000_0000 | 1 << 20),
        ("RawUInt8", "Lf8", "wormhole_b0", 0x3C, 15 << 23),
        ("RawUInt16", "Float16", "wormhole_b0", 0x3C01, 15 << 23 | 1 << 13),
        ("RawUInt32", "Float32", "wormhole_b0", 0xDEAD_BEEF, 0xDEAD_BEEF),
        ("Int32", "Int32", "wormhole_b0", 0x8000_0005, 0x8000_0005),
        ("UInt16", "UInt16", "wormhole_b0", 0xFFFF, 0xFFFF),
    ],
)
def test_single_codes(df, register, core, given, expected):
    bits = {"Lf8": np.uint8, "Fp8_e4m3": np.uint8, "RawUInt8": np.uint8, "RawUInt16": np.uint16, "UInt16": np.uint16}
    out = unpack(np.array([given], bits.get(df, np.uint32)), df, register, core)
    assert out.dtype == np.uint32
    assert [hex(x) for x in out] == [hex(expected)]


@pytest.mark.tiny
@pytest.mark.parametrize(
    ("df", "code", "shared", "expected"),
    [
        ("Bfp8", 0x40, 15, 15 << 23),
        ("Bfp8", 0xFF, 31, 0x8000_0000 | 31 << 23 | 0x3F << 17),
        ("Bfp4", 0x1, 15, 13 << 23),
        ("Bfp2", 0x3, 15, 0x8000_0000 | 15 << 23),
        ("Bfp2", 0x2, 15, 0x8000_0000 | 31 << 23),
        ("Bfp8", 0x81, 3, 0x8000_0000),  # exponent below 0
        ("Bfp8_b", 0x01, 3, (3 - 6) % 256 << 23),
        ("Bfp4_b", 0x8, 127, 0xFF80_0000),
    ],
)
def test_single_codes_of_blocks(df, code, shared, expected):
    codes, exponents = np.full((2, 32), code, np.uint8), np.full((2, 2), shared, np.uint8)
    out = unpack(codes, df, "Bfp8_b" if df.endswith("_b") else "Bfp8", "wormhole_b0", exponents)
    assert {hex(x) for x in out.ravel()} == {hex(expected)}


@pytest.mark.tiny
@pytest.mark.parametrize(("df", "register"), [("Float16", "Float16_b"), ("Fp8_e4m3", "Lf8"), ("Int8", "UInt8")])
def test_what_no_op_does_is_refused(df, register):
    with pytest.raises(UnsupportedError, match=f"unpack {df}"):
        unpack(np.zeros(4, np.uint16), df, register, "wormhole_b0")


@pytest.mark.tiny
def test_exponents_belong_to_blocks():
    with pytest.raises(InternalError, match="exponents"):
        unpack(np.zeros((1, 16), np.uint8), "Bfp8_b", "Bfp8_b", "wormhole_b0")


PAIRS = [
    ("Float32", "Tf32"),
    ("Float32", "Float16_b"),
    ("Float32", "Float16"),
    ("Float16_b", "Float16_b"),
    ("Float16", "Float16"),
    ("RawUInt16", "Float16"),
    ("RawUInt8", "Lf8"),
    ("Lf8", "Lf8"),
    ("Fp8_e4m3", "Lf8"),
    ("Int8", "Int8"),
    ("UInt8", "UInt8"),
    *[(f"Bfp{bits}{end}", f"Bfp8{end}") for bits in (8, 4, 2) for end in ("", "_b")],
]


@pytest.mark.tiny
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_kernels_are_the_reference(seed, pair):
    df, register = pair
    stream = np.random.default_rng(seed)
    spec = FORMATS[df]
    kind = {32: np.uint32, 16: np.uint16}.get(spec.bits, np.uint8)
    codes = stream.integers(0, 1 << spec.bits, (2, 32, 32), np.uint64).astype(kind)
    if spec.bits == 32:
        codes[0] = codes[0] & np.uint32(0x8FFFFFFF) | np.uint32(0x30000000)  # within reach of fp16
    shared = stream.integers(0, 256 if spec.family == "b" else 32, (2, 32, 2)).astype(np.uint8)
    exponents = shared if is_block(df) else None
    expected = unpack(codes, df, register, "blackhole", exponents)
    assert mismatches(by_kernel(codes, df, register, "blackhole", exponents), expected) == 0


@pytest.mark.tiny
@pytest.mark.parametrize("bits", [8, 4, 2])
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_halves_say_all_that_words_do(seed, bits):
    """Where products read blocks as halves: all codes, all shared exponents."""
    stream = np.random.default_rng(seed)
    codes = stream.integers(0, 1 << bits, (3, 1024)).astype(np.uint8)
    exponents = stream.permutation(256)[:192].reshape(3, 64).astype(np.uint8)
    words = unpack(codes, f"Bfp{bits}_b", "Bfp8_b", "wormhole_b0", exponents)
    halves = np.zeros((3, 1024), np.uint16)
    unpack_blocks_to_halves(1, 3, halves, codes, exponents, bits)
    assert (halves[1:].astype(np.uint32) << 16 == words[1:]).all()
    assert not halves[0].any()


@pytest.mark.tiny
def test_kernels_refuse_what_the_reference_refuses():
    with pytest.raises(UnsupportedError, match="Fp8_e4m3"):
        unpacker("Fp8_e4m3", "Lf8", "wormhole_b0")
    with pytest.raises(InternalError, match="in Dst"):
        unpacker("Int32", "Int32", "wormhole_b0")
