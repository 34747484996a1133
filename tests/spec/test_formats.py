"""The format table and tile sizes against the three tables of FORMATS 2."""

import pytest

from buda_emu.spec import formats
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import FORMATS, NETLIST_FORMATS, exponent_bytes, tile_bytes
from buda_emu.spec.precision import find_precision

ROWS = {
    "Float32 Tf32 Int32 RawUInt32": (
        (4128, 2080, 2080, 1056, 544, 288, 160),
        (4160, 2112, 2112, 1088, 576, 320, 192),
        (4096, 2048, 2048, 1024, 512, 256, 128),
    ),
    "Float16 Float16_b UInt16 RawUInt16": (
        (2080, 1056, 1056, 544, 288, 160, 96),
        (2112, 1088, 1088, 576, 320, 192, 128),
        (2048, 1024, 1024, 512, 256, 128, 64),
    ),
    "Lf8 Fp8_e4m3 Int8 UInt8 RawUInt8": (
        (1056, 544, 544, 288, 160, 96, 64),
        (1088, 576, 576, 320, 192, 128, 64),
        (1024, 512, 512, 256, 128, 64, 32),
    ),
    "Bfp8 Bfp8_b": (
        (1120, 576, 576, 288, 160, 96, 64),
        (1152, 576, 576, 320, 192, 128, 64),
        (1088, 544, 544, 272, 144, 80, 48),
    ),
    "Bfp4 Bfp4_b": (
        (608, 320, 320, 160, 96, 64, 64),
        (640, 320, 320, 192, 128, 64, 64),
        (576, 288, 288, 144, 80, 48, 32),
    ),
    "Bfp2 Bfp2_b": (
        (352, 192, 192, 96, 64, 64, 64),
        (384, 192, 192, 128, 64, 64, 64),
        (320, 160, 160, 80, 48, 32, 24),
    ),
}
IDS = {
    "Float32": 0, "Float16": 1, "Bfp8": 2, "Bfp4": 3, "Tf32": 4, "Float16_b": 5, "Bfp8_b": 6, "Bfp4_b": 7, "Int32": 8,
    "UInt16": 9, "Lf8": 10, "Bfp2": 11, "Int8": 14, "Bfp2_b": 15, "Fp8_e4m3": 26, "UInt8": 30,
    "RawUInt8": 240, "RawUInt16": 241, "RawUInt32": 242,
}  # fmt: skip
CASES = [(name, sizes) for names, sizes in ROWS.items() for name in names.split()]


@pytest.mark.parametrize(("name", "sizes"), CASES, ids=[name for name, _ in CASES])
def test_tile_bytes_are_those_of_the_tables(name, sizes):
    aligned_32, aligned_64, payload = sizes
    assert tuple(tile_bytes(name, h, w, 32, header=True) for h, w in LEGAL_TILE_DIMS) == aligned_32
    assert tuple(tile_bytes(name, h, w, 64, header=True) for h, w in LEGAL_TILE_DIMS) == aligned_64
    assert tuple(tile_bytes(name, h, w, 32, header=False) for h, w in LEGAL_TILE_DIMS) == payload


def test_every_format_has_a_row_and_an_id():
    assert {name for name, _ in CASES} == set(FORMATS)
    assert {name: spec.id for name, spec in FORMATS.items()} == IDS


def test_only_tf32_is_not_a_netlist_word():
    assert set(FORMATS) - set(NETLIST_FORMATS) == {"Tf32"}


def test_kinds():
    assert {n for n in FORMATS if formats.is_integer(n)} == {"Int8", "UInt8", "UInt16", "Int32"}
    assert {n for n in FORMATS if formats.is_raw(n)} == {"RawUInt8", "RawUInt16", "RawUInt32"}
    assert {n for n in FORMATS if formats.is_block(n)} == {"Bfp8", "Bfp8_b", "Bfp4", "Bfp4_b", "Bfp2", "Bfp2_b"}


def test_exponent_families():
    five_bits, eight_bits = ({n for n, spec in FORMATS.items() if spec.family == family} for family in "ab")
    assert five_bits == {"Float16", "Bfp8", "Bfp4", "Bfp2", "Lf8"}
    assert eight_bits == {"Float32", "Tf32", "Float16_b", "Bfp8_b", "Bfp4_b", "Bfp2_b"}


def test_flat_element_sizes():
    sizes = {n: s.flat_bytes for n, s in FORMATS.items()}
    assert {n for n, size in sizes.items() if size == 4} == {"Float32", "Tf32", "Int32", "RawUInt32"}
    assert {n for n, size in sizes.items() if size == 2} == {"Float16", "Float16_b", "UInt16", "RawUInt16"}
    assert {n for n, size in sizes.items() if size == 1} == {"Int8", "UInt8", "RawUInt8"}
    assert all(size is None for n, size in sizes.items() if n.startswith(("Bfp", "Lf8", "Fp8")))


def test_host_elements():
    own = {"Float32": "f32", "RawUInt32": "f32", "Int8": "i8", "UInt8": "u8", "Int32": "i32"}
    assert {n: s.host_element for n, s in FORMATS.items()} == {n: own.get(n, "u16") for n in FORMATS}


# FORMATS 1: bits of sign, exponent and what follows, and the exponent's bias; MSB first.
LAYOUTS = {
    "Float32": (1, 8, 23, 127), "Tf32": (1, 8, 10, 127), "Float16_b": (1, 8, 7, 127), "Float16": (1, 5, 10, 15),
    "Lf8": (1, 5, 2, 15), "Fp8_e4m3": (1, 4, 3, 7),
}  # fmt: skip
BLOCKS = {"Bfp8": 7, "Bfp4": 3, "Bfp2": 1}


@pytest.mark.parametrize("name", LAYOUTS)
def test_floats_are_laid_out_as_their_table_says(name):
    sign, exponent, fraction, bias = LAYOUTS[name]
    spec = FORMATS[name]
    assert (spec.kind, spec.mantissa_bits, spec.bias) == ("float", fraction, bias)
    assert spec.family == {8: "b", 5: "a", 4: None}[exponent]
    assert spec.bits == (32 if name == "Tf32" else sign + exponent + fraction)


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_have_a_sign_a_magnitude_and_one_exponent_of_their_family(name):
    for df, family, bias in ((name, "a", 15), (name + "_b", "b", 127)):
        spec = FORMATS[df]
        assert (spec.kind, spec.family, spec.bias) == ("block", family, bias)
        assert (spec.mantissa_bits, spec.bits) == (BLOCKS[name], BLOCKS[name] + 1)


@pytest.mark.parametrize(
    ("name", "bits", "magnitude"),
    [("Int32", 32, 31), ("Int8", 8, 7), ("UInt16", 16, 16), ("UInt8", 8, 8),
     ("RawUInt8", 8, 8), ("RawUInt16", 16, 16), ("RawUInt32", 32, 32)],
)  # fmt: skip
def test_integers_and_raw_words(name, bits, magnitude):
    spec = FORMATS[name]
    assert (spec.bits, spec.mantissa_bits, spec.bias, spec.family) == (bits, magnitude, None, None)
    assert spec.kind == ("raw" if name.startswith("Raw") else "int")


def test_a_precision_by_its_name():
    assert [find_precision(word) for word in ("format", "ideal", "device", "exact", "")] == [
        "format",
        "ideal",
        "device",
        None,
        None,
    ]


def test_exponents_of_tiles_of_any_size():  # FORMATS 2
    expected = {(32, 32): 64, (16, 32): 32, (32, 16): 32, (8, 32): 16, (1, 32): 16, (17, 17): 64}
    assert {size: exponent_bytes("Bfp8_b", *size) for size in expected} == expected
    assert exponent_bytes("Float32", 32, 32) == 0
