"""Lines picked by sparse tiles, against products of whole tiles."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.jit.kernel import kernel
from buda_emu.arithmetic.kernels.tensix.picks import Picks
from buda_emu.arithmetic.kernels.tensix.products.spills import SPILLS, spill_any
from buda_emu.arithmetic.kernels.tensix.words import MODES
from buda_emu.arithmetic.tensix.conversions.pack import pack
from buda_emu.arithmetic.tensix.conversions.unpack import unpack
from buda_emu.arithmetic.tensix.elementwise import copy_to_dst
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.on_device.reference_units import ReferenceUnits
from buda_emu.emulator.ops.on_device.units import PackedAs, Picking, Product, ProductBlock, Spill, Words
from buda_emu.spec.precision import PHASES

NONE = np.uint32(0)
WAYS = {
    ("Float16_b", "bf16"): ("Float16_b", "Float16_b", "Float16_b"),
    ("Bfp8_b", "bf16"): ("Bfp8_b", "Bfp8_b", "Bfp8_b"),
    ("Bfp2_b", "bf16"): ("Bfp8_b", "Bfp8_b", "Bfp8_b"),
    ("Float16", "fp16"): ("Float16", "Float16", "Float16"),
    ("Bfp8", "fp16"): ("Float16", "Float16", "Float16"),
    ("Float16_b", "fp32"): ("Float32", "Float32", "Tf32"),
    ("Float32", "fp32"): ("Float32", "Float32", "Tf32"),
}
REGISTERS = {"Bfp2_b": "Bfp8_b", "Float32": "Tf32"}


def stored(stream, df, tiles, middle, spread):
    """Any codes under exponents near the middle; a denormal, a least number, an infinity and a NaN where they exist."""
    bits = Bits.empty(df, 1, tiles)
    if bits.exponents is not None:
        bits.datums[...] = stream.integers(0, {"Bfp2_b": 4}.get(df, 256), bits.datums.shape)
        bits.datums[stream.random(bits.datums.shape) < 0.2] = 0
        bits.datums.reshape(-1, 16)[stream.random(bits.datums.size // 16) < 0.1] = 0
        most = 31 if df == "Bfp8" else 255
        bits.exponents[...] = np.clip(
            stream.integers(middle - spread, middle + spread + 1, bits.exponents.shape), 0, most
        )
        return bits
    fraction, narrow = {"Float16": (10, 31), "Float16_b": (7, 255), "Float32": (23, 255)}[df]
    exponent = np.clip(stream.integers(middle - spread, middle + spread + 1, bits.datums.shape), 0, narrow)
    sign = stream.integers(0, 2, bits.datums.shape)
    codes = (sign << (8 if narrow == 255 else 5) | exponent) << fraction | stream.integers(0, 1 << fraction, sign.shape)
    codes[stream.random(codes.shape) < 0.2] = 0
    codes[0, 0, :4] = 1, 1 << fraction, narrow << fraction, narrow << fraction | 1
    bits.datums[...] = codes
    return bits


def sparse_tiles(stream, register, count, exponent):
    """Words with one element at most in a line: tiles of powers of two, and others."""
    tiles = np.zeros((count, 32, 32), np.uint32)
    for tile in tiles:
        lines = np.flatnonzero(stream.random(32) < 0.8)
        rough = stream.random() < 0.3
        fraction = stream.integers(0, 1024, lines.size) & (0x3F8 if rough else 0)
        words = stream.integers(0, 2, lines.size) << 31 | exponent << 23 | fraction << 13
        tile[lines, stream.integers(0, 32, lines.size)] = words
    tiles[-1] = 0
    return tiles.reshape(count, 1024)


def picks_of(tiles, weight, act_row, ends):
    tile, place = np.nonzero(tiles & 0x7F800000)
    begin_of = np.append(np.searchsorted(tile, np.arange(len(tiles) + 1)), len(tile))
    word = tiles[tile, place].view(np.int32)
    return Picks(np.array([[0, len(weight)]]), weight, act_row, ends, begin_of, place // 32, place % 32, word)


def both(
    stream, df, mode, fidelity, middle, spread, exponent, core, *, transposed=False, terms=4, products=KernelUnits
):
    """Images of two result tiles, of so many terms with a spill after the second, by picks and by products."""
    register = REGISTERS.get(df, df)
    acts = stored(stream, df, 8, middle, spread)
    weights = sparse_tiles(stream, register, 3, exponent)
    weight, act_row = stream.integers(0, 3, terms), stream.integers(0, 4, terms)
    ends = np.arange(terms) == 1
    spill = Spill(ends, *WAYS[df, mode])
    index = np.arange(8, dtype=np.int32)
    index[5] = -1
    index.flags.writeable = False
    units = KernelUnits(core)
    pad = units.unpack(Bits.encode(df, np.full((1, 1024), 0.75, np.float32)), register)[0, 0]
    picking = Picking(picks_of(weights, weight, act_row, ends), acts, index, pad, transposed, register, 2, 2)
    pick = units.picker(picking, fidelity, mode, spill)
    assert pick is not None
    picked = np.zeros((2, 1024), np.uint32)
    pick(picked, 0, 2)

    words = units.unpack(acts.rows(), register)[None]
    in0 = Words(register, weights[None], np.asarray(weight, np.int32), NONE)
    in1 = Words(register, words, index.reshape(4, 2)[act_row].reshape(-1), pad, transposed)
    images = np.zeros((1, 2, 1024), np.uint32)
    product = Product(1, terms, 2, 2, fidelity)
    products(core).matmul(images, range(2), ProductBlock((in0, in1), product, mode, range(terms), spill))
    return picked, images[0]


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(sorted(WAYS)),
    middle=st.sampled_from([0, 3, 20, 100, 127, 200, 219, 252, 255]),
    spread=st.sampled_from([0, 2, 9]),
    exponent=st.sampled_from([1, 64, 118, 127, 130, 190, 255]),
    fidelity=st.sampled_from(sorted(PHASES)),
    core=st.sampled_from(["grayskull", "wormhole_b0", "blackhole"]),
    transposed=st.booleans(),
    terms=st.sampled_from([3, 4, 13]),
)
def test_picked_lines_are_those_of_the_product(seed, kind, middle, spread, exponent, fidelity, core, transposed, terms):
    df, mode = kind
    if mode == "fp16":
        middle, exponent = middle // 8, exponent // 8
    stream = np.random.default_rng(seed)
    picked, products = both(
        stream, df, mode, fidelity, middle, spread, max(exponent, 1), core, transposed=transposed, terms=terms
    )
    assert np.array_equal(picked, products)


@pytest.mark.tiny
def test_one_pick_of_each_format():
    for df, mode in WAYS:
        middle = 15 if mode == "fp16" else 127
        picked, products = both(
            np.random.default_rng(1), df, mode, "HiFi2", middle, 3, middle, "wormhole_b0", products=ReferenceUnits
        )  # numpy: a kernel of products takes seconds where it is not compiled
        assert picked.any()
        assert np.array_equal(picked, products)


def compare_with_the_definition(columns, weights, fidelity):
    """Sums of source tiles full of bf16 `columns`, each picked in order by a bf16 of `weights` in every line."""
    acts = Bits("Float16_b", np.repeat(np.array(columns, np.uint16)[None, :, None], 1024, axis=2))
    tiles = np.zeros((len(weights), 32, 32), np.uint32)
    tiles[:, np.arange(32), np.arange(32)] = np.array(weights, np.uint32)[:, None] << np.uint32(16)
    order = np.arange(len(columns))
    index = order.astype(np.int32)
    index.flags.writeable = False
    tiles = tiles.reshape(-1, 1024)
    ends = np.zeros(len(columns), np.bool_)
    units = KernelUnits("wormhole_b0")
    picking = Picking(picks_of(tiles, order, order, ends), acts, index, NONE, False, "Float16_b", 1, 1)
    pick = units.picker(picking, fidelity, "bf16", None)
    assert pick is not None
    image = np.zeros((1, 1024), np.uint32)
    pick(image, 0, 1)
    words = units.unpack(acts.rows(), "Float16_b")[None]
    product, by_products = Product(1, len(columns), 1, 2, fidelity), np.zeros((1, 1, 1024), np.uint32)
    operands = Words("Float16_b", tiles[None], index, NONE), Words("Float16_b", words, index, NONE)
    ReferenceUnits("wormhole_b0").matmul(
        by_products, range(1), ProductBlock(operands, product, "bf16", range(len(columns)))
    )
    assert np.array_equal(image, by_products[0])


ONE, MINUS = 0x3F80, 0xBF80


@pytest.mark.parametrize(
    ("columns", "weights"),
    [
        ((0x3F80, 0x3F00, 0x3B80, 0x4080), (ONE, ONE, ONE, MINUS)),  # ordinary numbers
        ((0x6E01, 0x6E01, 0x7F00), (ONE, MINUS, ONE)),  # none left, then one that is moved down
        ((0x7F00, 0x7F00, 0x7F00), (ONE, ONE, MINUS)),  # beyond the range and back: saturated in between
        ((0x7F00, 0x7F7F, 0x0800), (ONE, ONE, ONE)),  # moved down, then too small for that
        ((0x3380, 0x7F00), (ONE, ONE)),  # a word too small to be moved
        ((0x7F80, 0x7F81, 0x7F80), (ONE, ONE, MINUS)),  # 255 is an exponent as any other
        ((0x0080, 0x3F80, 0x7F00), (ONE, ONE, ONE)),  # the least one first: integers from then on
        ((0x3F80, 0x0000, 0x3F81), (0x3FC0, ONE, 0x3FC1)),  # no powers of two, and nothing in between
    ],
)
def test_sums_at_the_ends_of_the_range(columns, weights):
    compare_with_the_definition(columns, weights, "HiFi4")
    compare_with_the_definition(columns, weights, "LoFi")


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    middle=st.sampled_from([0, 20, 127, 219, 252, 255]),
    spread=st.sampled_from([0, 2, 9]),
    exponent=st.sampled_from([1, 100, 127, 130, 255]),
    df=st.sampled_from(["Float16_b", "Bfp8_b"]),
)
def test_strips_added_up_in_l1(seed, middle, spread, exponent, df):
    stream = np.random.default_rng(seed)
    acts = stored(stream, df, 8, middle, spread)
    weights = sparse_tiles(stream, df, 3, exponent)
    weight, act_row = stream.integers(0, 3, 4), stream.integers(0, 4, 4)
    ends = np.array([False, True, True, False])
    index = np.arange(8, dtype=np.int32)
    index.flags.writeable = False
    units, definition = KernelUnits("wormhole_b0"), ReferenceUnits("wormhole_b0")
    picking = Picking(picks_of(weights, weight, act_row, ends), acts, index, NONE, False, df, 2, 2)
    add_up = units.l1_picker(picking, "HiFi3", "bf16", "Float16_b")
    assert add_up is not None
    out = Bits.empty("Float16_b", 2)
    add_up(out, 0, 2)

    in_l1 = None
    for first, last in ((0, 2), (2, 3), (3, 4)):
        own = slice(first, last)
        strip = picks_of(weights, weight[own], act_row[own], np.zeros(last - first, np.bool_))
        pick = units.picker(replace(picking, picks=strip), "HiFi3", "bf16", None)
        assert pick is not None
        images = np.zeros((2, 1024), np.uint32)
        pick(images, 0, 2)
        packed = definition.pack(images, PackedAs("bf16", "Float16_b", "Float16_b"))
        in_l1 = packed if in_l1 is None else definition.add_in_l1(in_l1, packed)
    assert np.array_equal(out.datums, in_l1.datums)
    assert units.l1_picker(picking, "HiFi3", "bf16", "Float32") is None
    assert definition.l1_picker(picking, "HiFi3", "bf16", "Float16_b") is None


def test_what_has_no_way_is_multiplied():
    acts = stored(np.random.default_rng(0), "Bfp8", 2, 15, 1)
    index = np.arange(2, dtype=np.int32)
    picks = picks_of(
        np.zeros((1, 1024), np.uint32), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    )
    picking = Picking(picks, acts, index, NONE, False, "Bfp8", 2, 2)
    ends = np.zeros(1, np.bool_)
    units = KernelUnits("wormhole_b0")
    assert units.picker(picking, "LoFi", "fp16", None) is not None
    assert units.picker(picking, "LoFi", "fp32", None) is None, "zeros have an exponent"
    assert units.picker(picking, "LoFi", "fp16", Spill(ends, "Bfp8", "Bfp8", "Bfp8")) is None
    assert ReferenceUnits("wormhole_b0").picker(picking, "LoFi", "fp16", None) is None


@kernel
def spill_in_place(words, way):
    spill_any(words, way)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    middle=st.sampled_from([1, 8, 20, 127, 218, 254]),
    spread=st.sampled_from([0, 1, 3, 20, 250]),
)
def test_words_of_any_exponent_through_blocks(seed, middle, spread):
    stream = np.random.default_rng(seed)
    exponent = np.clip(stream.integers(middle - spread, middle + spread + 1, 1024), 1, 255)
    words = stream.integers(0, 2, 1024) << 31 | exponent << 23 | stream.integers(0, 128, 1024) << 16
    words = np.where(stream.random(1024) < 0.1, 0, words).astype(np.uint32)
    datums, shared = pack((words >> np.uint32(16)).reshape(1, 1024), "bf16", "Bfp8_b", "Bfp8_b", 0, 0, "wormhole_b0")
    back = copy_to_dst(unpack(datums, "Bfp8_b", "Bfp8_b", "wormhole_b0", shared), "b", "bf16", "wormhole_b0")
    mine = words.view(np.int32).copy()
    spill_in_place(mine, SPILLS[MODES["bf16"], "Bfp8_b", "Bfp8_b", "Bfp8_b"])
    assert np.array_equal(mine.view(np.uint32) >> np.uint32(16), back.reshape(1024))


@pytest.mark.tiny
def test_the_least_numbers_count():
    compare_with_the_definition([0x4080, 0x0080], [0x3F80, 0x7E80], "LoFi")  # 4, and 2^-126 times 2^126
    compare_with_the_definition([0x4080, 0x7E80], [0x3F80, 0x0080], "LoFi")
