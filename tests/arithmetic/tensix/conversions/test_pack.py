import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.formats.bits import to_bits
from buda_emu.arithmetic.kernels.tensix.pack import Conversion
from buda_emu.arithmetic.kernels.tensix.pack import pack as pack_kernel
from buda_emu.arithmetic.tensix.conversions.pack import Packed, decode, intermediate, pack, relu_threshold
from buda_emu.spec.formats import FORMATS, NETLIST_FORMATS, is_block
from buda_emu.support.errors import UnsupportedError
from device_vectors import CORES, FOLDER, needs_vectors, vectors
from lane_words import KINDS, datums

NAMES = {spec.id: spec.name for spec in FORMATS.values()}
TYPES = {32: np.uint32, 16: np.uint16}
MODES = ("bf16", "fp16", "fp32", "int32")
THRESHOLDS = {"bf16": 0x3F00, "fp16": 0x3800, "fp32": 0x3F00, "int32": 0x3F}


def by_kernel(dst, mode, held_as, out_df, relu_mode=0, threshold=0, core="wormhole_b0"):
    stored = np.empty(dst.shape, TYPES.get(FORMATS[out_df].bits, np.uint8))
    exponents = np.empty((*dst.shape[:-1], 2), np.uint8) if is_block(out_df) else None
    by = Conversion(mode, held_as, out_df, relu_mode, threshold, core)
    pack_kernel(0, len(dst), dst, by, stored, exponents)
    return Packed(stored, exponents)


def l1_bytes(packed, out_df):
    """As the simulator writes a face: the exponents, then the datums, the first in the lowest bits."""
    faces = packed.datums.reshape(-1, 256)
    if packed.exponents is None:
        return np.ascontiguousarray(faces).view(np.uint8)
    bits = FORMATS[out_df].bits
    parts = faces.reshape(len(faces), -1, 8 // bits) << np.arange(0, 8, bits, dtype=np.uint8)
    return np.concatenate([packed.exponents.reshape(len(faces), 16), np.bitwise_or.reduce(parts, axis=2)], axis=1)


CASE = re.compile(r"(?:relu(\d)_)?(bf16|fp16|fp32|int)_src(\d+)(?:_out(\d+))?(?:_uns(\d))?(?:_thr(\w+))?_dst")


def cases():
    if not FOLDER.is_dir():
        return ["absent"]
    return [name for name in vectors("pack") if CASE.fullmatch(name)]


@needs_vectors
@pytest.mark.parametrize("core", CORES.values())
@pytest.mark.parametrize("name", cases())
def test_vectors(name, core):
    v = vectors("pack")
    relu_mode, mode, held, out, unsigned, threshold = CASE.fullmatch(name).groups()
    held_as = "UInt8" if unsigned == "1" else NAMES[int(held)]
    out_df = NAMES[int(out)] if out else held_as
    setting = (
        "int32" if mode == "int" else mode,
        held_as,
        out_df,
        int(relu_mode or 0),
        int(threshold or "0", 16),
        core,
    )
    faces = v[name].reshape(-1, 16, 16)
    stored = v[name.replace("_dst", "_bytes")].reshape(len(faces), -1)
    assert np.array_equal(l1_bytes(pack(faces, *setting), out_df), stored)
    # The kernel takes tiles: those of one face above the other, padded with zeros, hold whole faces in their rows.
    tiles = np.zeros((len(faces), 32, 32), np.uint32)
    tiles[:, :16, :16] = faces
    packed = by_kernel(tiles, *setting)
    exponents = None if packed.exponents is None else packed.exponents[:, :16, :1]
    assert np.array_equal(l1_bytes(Packed(packed.datums[:, :16, :16], exponents), out_df), stored)


def settings_of(mode):
    """Every conversion from a Dst mode that an op can ask for, on every core."""
    found = set()
    for core in ("grayskull", "wormhole_b0", "blackhole"):
        for out_df, integer, single in product(NETLIST_FORMATS, (False, True), (False, True)):
            try:
                found.add((intermediate(mode, out_df, integer, core, single), out_df, core))
            except UnsupportedError:
                assert mode != "fp32"
    return sorted(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_kernel_is_the_definition(mode, kind):
    dst = datums(mode, kind, 2)
    for held_as, out_df, core in settings_of(mode):
        for relu_mode in range(4):
            setting = (mode, held_as, out_df, relu_mode, THRESHOLDS[mode], core)
            expected = pack(dst, *setting)
            packed = by_kernel(dst, *setting)
            assert packed.datums.dtype == expected.datums.dtype
            assert np.array_equal(packed.datums, expected.datums), setting
            assert expected.exponents is None or np.array_equal(packed.exponents, expected.exponents), setting


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 0xFFFFFFFF), min_size=16, max_size=16), st.sampled_from(MODES))
def test_any_words(group, mode):
    dst = np.resize(np.array(group, np.uint32), (1, 32, 32))
    dst = dst if mode in ("fp32", "int32") else dst & np.uint32(0xFFFF)
    for held_as, out_df, core in settings_of(mode):
        expected, packed = (f(dst, mode, held_as, out_df, core=core) for f in (pack, by_kernel))
        assert np.array_equal(packed.datums, expected.datums)
        assert expected.exponents is None or np.array_equal(packed.exponents, expected.exponents)


@pytest.mark.parametrize("name", ["Float32", "Float16_b", "Bfp8_b", "Bfp4_b", "Bfp2_b"])
def test_what_is_stored_and_read_stays(name):
    """Packing what the host reads gives the same values: each format holds its own values exactly."""
    dst = datums("fp32", "normal", 2)
    held_as = intermediate("fp32", name)
    values = decode(name, pack(dst, "fp32", held_as, name))
    assert np.array_equal(decode(name, pack(to_bits(values), "fp32", held_as, name)), values)


@pytest.mark.parametrize(("name", "worst"), [("Float16_b", 2**-8), ("Float16", 2**-11), ("Bfp8_b", 2**-7)])
def test_how_far_packed_values_are(name, worst):
    """Rounding to the nearest in 8, 11 and, twice, in 7 bits; for the block the largest of 16 is what counts."""
    dst = datums("fp32", "normal", 4)
    x = dst.view(np.float32)
    y = decode(name, pack(dst, "fp32", intermediate("fp32", name), name))
    scale = np.abs(x).reshape(-1, 16).max(axis=1, keepdims=True) if is_block(name) else np.abs(x).reshape(-1, 16)
    assert (np.abs(y - x).reshape(-1, 16) <= 2 * worst * scale + 2**-14).all()
    assert not np.array_equal(x, y)


@pytest.mark.tiny
def test_the_intermediate_formats():
    assert intermediate("fp32", "Float16") == "Tf32"
    assert intermediate("fp32", "Bfp4") == "Bfp8_b"
    assert intermediate("fp16", "Float16_b") == "Float16"
    assert intermediate("fp16", "Bfp2_b") == "Bfp8"
    assert intermediate("bf16", "Float32") == "Float16_b"
    assert intermediate("int32", "Int8") == "Int8"
    assert intermediate("int32", "Float16_b", integer_op=True) == "Float32"
    assert intermediate("bf16", "Float16", core="grayskull") == "Float16_b"
    with pytest.raises(UnsupportedError, match="grayskull"):
        intermediate("bf16", "Bfp8", core="grayskull")
    with pytest.raises(UnsupportedError, match="32-bit Dst"):
        intermediate("bf16", "Int8")


@pytest.mark.tiny
def test_relu_thresholds():
    assert relu_threshold(0.1, "Float16_b", "bf16") == 0x3DCC
    assert relu_threshold(0.1, "Float16", "fp16") == 0x2E66
    assert relu_threshold(0.1, "Float16", "fp32") == 0x3DCC
    assert relu_threshold(0.1, "Bfp8", "fp16") == 0x2E66


@pytest.mark.tiny
def test_relu_at_the_threshold_gives_zero():
    dst = np.resize(np.array([0xBF80, 0x3F00, 0x3F01, 0x4000], np.uint32), (1, 32, 32))
    lowest = pack(dst, "bf16", "Float16_b", "Float16_b", 2, 0x3F00)
    assert decode("Float16_b", lowest)[0, 0, :4].tolist() == [0, 0, 0.50390625, 2]
    clamped = pack(dst, "bf16", "Float16_b", "Float16_b", 3, 0x3F00)
    assert decode("Float16_b", clamped)[0, 0, :4].tolist() == [0, 0.5, 0.5, 0.5]


@pytest.mark.tiny
def test_relu_of_integers():
    """A threshold is inferred: a number beside the magnitude, at which the min mode gives zero as for floats."""
    dst = np.resize(np.array([0x80000005, 7, 10, 11, 300], np.uint32), (1, 32, 32))

    def kept(df, mode, threshold=0.0):
        stored = pack(dst, "int32", df, df, mode, relu_threshold(threshold, df, "int32"))
        return decode(df, stored)[0, 0, :5].tolist()

    assert kept("Int8", 1) == [0, 7, 10, 11, 127]
    assert kept("UInt8", 2, 10.9) == [0, 0, 0, 11, 255]
    assert kept("Int8", 3, 10.0) == [0, 7, 10, 10, 10]
    assert kept("Int32", 2, 10.0) == [0, 0, 0, 11, 300]


@pytest.mark.tiny
def test_bfp4_is_cut_from_bfp8():
    """1.1875 is 0x4c in Bfp8, and 4 quarters in Bfp4, where the reference model would round it to 5 (4.5)."""
    dst = np.resize(np.array([0x3F98, 0x3F80], np.uint32), (1, 32, 32))
    packed = pack(dst, "bf16", "Bfp8_b", "Bfp4_b")
    assert packed.exponents[0, 0].tolist() == [127, 127]
    assert packed.datums[0, 0, :2].tolist() == [4, 4]
    assert pack(dst, "bf16", "Bfp8_b", "Bfp8_b").datums[0, 0, :2].tolist() == [0x4C, 0x40]


@pytest.mark.tiny
def test_small():
    for mode, out_df, core in (
        ("fp32", "Float16", "wormhole_b0"),
        ("bf16", "Bfp8_b", "wormhole_b0"),
        ("fp16", "Bfp4", "wormhole_b0"),
        ("int32", "Int8", "wormhole_b0"),
        ("fp16", "Fp8_e4m3", "blackhole"),
    ):
        dst, held_as = datums(mode, "specials", 1), intermediate(mode, out_df, core=core)
        packed = by_kernel(dst, mode, held_as, out_df, core=core)
        expected = pack(dst, mode, held_as, out_df, core=core)
        assert np.array_equal(packed.datums, expected.datums)
        assert expected.exponents is None or np.array_equal(packed.exponents, expected.exponents)
