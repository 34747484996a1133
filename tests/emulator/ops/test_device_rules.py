"""The order of an op's steps on the device, put together by hand from the units (DEVICE_NUMERICS 2.8)."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.conversions import pack as l1_acc
from buda_emu.arithmetic.tensix.conversions.pack import intermediate, pack
from buda_emu.arithmetic.tensix.conversions.unpack import unpack
from buda_emu.arithmetic.tensix.elementwise import copy_to_dst, elwadd, reduce_max
from buda_emu.arithmetic.tensix.functions.table import bind
from buda_emu.arithmetic.tensix.functions.table import reference as function
from buda_emu.arithmetic.tensix.products import tile_matmul
from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator.ops.on_device.base import DeviceCall, reference
from buda_emu.spec.blocking import Blocking
from buda_emu.spec.precision import PHASES
from buda_emu.support.errors import UnsupportedError
from op_examples.example import make_call, operand
from op_examples.fused import fused_call, sub

CORE = "wormhole_b0"
PHASES_RUN = PHASES["HiFi3"]


def bits(seed, *shape, df="Float16_b"):
    values = np.random.default_rng(seed).normal(0, 1, (1, int(np.prod(shape)), 1024)).astype(np.float32)
    return Bits.encode(df, values)


def device(
    kind,
    shapes,
    /,
    *,
    df="Float16_b",
    intermed="Float16_b",
    acc="Float16_b",
    out="Float16_b",
    gradient=False,
    transpose=False,
    **attributes,
):
    operands = [operand(shape, label=df) for shape in shapes]
    call = make_call(kind, operands, attributes=attributes, transpose=transpose)
    return DeviceCall(replace(call, out_df=out, intermed_df=intermed, acc_df=acc), CORE, "HiFi3", gradient)


def words(stored, register="Float16_b"):
    """uint32[tiles, 32, 32] of one entry."""
    return unpack(stored.datums, stored.df, register, CORE, stored.exponents)[0].reshape(-1, 32, 32)


def packed(image, df, mode="bf16"):
    return Bits(df, *pack(image.reshape(1, -1, 1024), mode, intermediate(mode, df), df))


def reloaded(stored, register="Float16_b", mode="bf16"):
    return copy_to_dst(words(stored, register), "b", mode, CORE)[0]


def product(dst, a, b, mode="bf16"):
    return tile_matmul(dst, a, b, PHASES_RUN, "b", mode, CORE)


def same(found, expected):
    assert np.array_equal(found.datums.reshape(-1), expected.datums.reshape(-1))
    if expected.exponents is not None:
        assert np.array_equal(found.exponents.reshape(-1), expected.exponents.reshape(-1))


ZEROS = np.zeros((32, 32), np.uint32)
PAIR = ((1, 1, 2), (1, 2, 1))


@pytest.mark.parametrize(("intermed", "acc", "mode", "register"), [
    ("Float16_b", "Float16_b", "bf16", "Float16_b"),
    ("Bfp8_b", "Float16_b", "bf16", "Bfp8_b"),
    ("Float32", "Float32", "fp32", "Tf32"),
])  # fmt: skip
def test_between_blocks_sums_go_through_intermed_df(intermed, acc, mode, register):
    a, b = bits(1, 2), bits(2, 2)
    call = device("matmul", PAIR, intermed=intermed, acc=acc, out="Float32", m_k=2, u_kt=1)
    first = product(ZEROS, words(a)[:1], words(b)[:1], mode)
    again = copy_to_dst(words(packed(first, intermed, mode), register), "b", mode, CORE)[0]
    same(reference(call, [a, b]), packed(product(again, words(a)[1:], words(b)[1:], mode), "Float32", mode))


def test_one_block_is_not_spilled():
    a, b = bits(1, 2), bits(2, 2)
    call = device("matmul", PAIR, intermed="Bfp2_b", m_k=1, u_kt=2)
    same(reference(call, [a, b]), packed(product(ZEROS, words(a), words(b)), "Float16_b"))


def test_input_1_is_transposed_inside():
    a, b = bits(1, 1), bits(2, 1)
    call = device("matmul", ((1, 1, 1), (1, 1, 1)), transpose=True, m_k=1, u_kt=1)
    same(reference(call, [a, b]), packed(product(ZEROS, words(a), words(b).swapaxes(1, 2)), "Float16_b"))


def test_bias_is_added_to_the_packed_sum_by_its_first_row():
    a, b, bias = bits(1, 2), bits(2, 2), bits(3, 1)
    call = device("matmul", (*PAIR, (1, 1, 1)), intermed="Bfp8_b", m_k=1, u_kt=2, bias=True)
    partial = words(packed(product(ZEROS, words(a), words(b)), "Bfp8_b"), "Bfp8_b")[0]
    row = np.ascontiguousarray(np.broadcast_to(words(bias)[0, :1], (32, 32)))
    same(reference(call, [a, b, bias]), packed(elwadd(None, partial, row, "b", "bf16", CORE), "Float16_b"))


def test_l1_acc_adds_what_is_packed():
    a, b = bits(1, 2), bits(2, 2)
    call = device("matmul", PAIR, m_k=2, u_kt=1, l1_acc=True)
    blocks = [packed(product(ZEROS, words(a)[k : k + 1], words(b)[k : k + 1]), "Float16_b") for k in range(2)]
    total = l1_acc.accumulate("Float16_b", blocks[0].datums, blocks[1].datums)
    same(reference(call, [a, b]), Bits("Float16_b", total))


def test_l1_acc_reloads_for_the_last_block_where_the_output_has_another_format():
    a, b = bits(1, 3), bits(2, 3)
    call = device("matmul", ((1, 1, 3), (1, 3, 1)), out="Float32", m_k=3, u_kt=1, l1_acc=True)
    blocks = [packed(product(ZEROS, words(a)[k : k + 1], words(b)[k : k + 1]), "Float16_b") for k in range(2)]
    total = Bits("Float16_b", l1_acc.accumulate("Float16_b", blocks[0].datums, blocks[1].datums))
    last = product(reloaded(total), words(a)[2:], words(b)[2:])
    same(reference(call, [a, b]), packed(last, "Float32"))


def test_l1_acc_of_blocks_is_refused():
    call = device("matmul", PAIR, intermed="Bfp8_b", m_k=2, u_kt=1, l1_acc=True)
    with pytest.raises(UnsupportedError, match="l1_acc with intermed_df Bfp8_b"):
        reference(call, [bits(1, 2), bits(2, 2)])


def test_a_gradient_matmul_starts_from_its_sum():
    a, b, before = bits(1, 2), bits(2, 2), bits(3, 1)
    call = device("matmul", PAIR, m_k=1, u_kt=2, gradient=True)
    same(reference(call, [a, b], before), packed(product(reloaded(before), words(a), words(b)), "Float16_b"))
    same(reference(call, [a, b]), packed(product(ZEROS, words(a), words(b)), "Float16_b"))


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [("nop", {"gradient": True}), ("add", {"gradient": True}), ("multiply", {"gradient": True}),
     ("matmul", {"m_k": 1, "u_kt": 1, "gradient": True}), ("matmul", {"m_k": 2, "u_kt": 1}),
     ("reduce", {"type": "max", "dim": "z", "z": 2})],
)  # fmt: skip
@pytest.mark.parametrize("acc", ["Float16_b", "Float32"])
def test_what_comes_back_has_the_exponents_of_the_inputs(kind, attributes, acc):
    """The chip's tools take no op whose inputs and intermediate buffer differ in that."""
    tiles = attributes.get("m_k", attributes.get("z", 1))
    one, pair = ((1, 1, 1),), ((1, 1, 1),) * 2
    shapes = {"nop": one, "reduce": ((tiles, 1, 1),), "matmul": ((1, 1, tiles), (1, tiles, 1))}.get(kind, pair)
    call = device(kind, shapes, intermed="Float16", out="Float16", acc=acc, **attributes)
    with pytest.raises(UnsupportedError, match="intermed_df Float16 is reloaded into a Dst of"):
        reference(call, [bits(n, tiles) for n in range(len(shapes))])


def test_z_slices_are_blocks_as_well():
    a, b = bits(1, 2), bits(2, 2)
    call = device("matmul", ((2, 1, 1), (2, 1, 1)), intermed="Bfp8_b", m_k=1, u_kt=1, accumulate=True, z=2)
    first = packed(product(ZEROS, words(a)[:1], words(b)[:1]), "Bfp8_b")
    same(reference(call, [a, b]), packed(product(reloaded(first, "Bfp8_b"), words(a)[1:], words(b)[1:]), "Float16_b"))


def test_reduce_z_keeps_the_maximum_in_intermed_df():
    x = bits(1, 3)
    call = device("reduce", ((3, 1, 1),), type="max", dim="z", z=3)
    found = reference(call, [x]).values()
    assert np.array_equal(found[0, 0], x.values()[0].max(axis=0))


def test_reduce_z_takes_a_tile_of_each_slice_at_the_same_place():
    x = bits(1, 4, 2, 2)
    found = reference(device("reduce", ((4, 2, 2),), type="max", dim="z", z=2), [x]).values()
    assert np.array_equal(found.reshape(2, 4, 1024), x.values().reshape(2, 2, 4, 1024).max(axis=1))


def test_a_pad_beside_a_single_tile_is_of_its_value():
    x = bits(1, 1)
    call = device("reduce", ((1, 2, 1),), type="max", dim="r")
    padded = TileMap((1, 1, 1), (1, 2, 1), np.array([0, -1], np.int32), 2.5)
    call = replace(call, op=replace(call.op, operands=(replace(call.op.operands[0], map=padded),)))
    found = reference(call, [x]).values().reshape(32, 32)[0]
    assert np.array_equal(found, np.maximum(x.values().reshape(32, 32).max(axis=0), 2.5))


def test_reduce_r_goes_over_all_tiles_of_a_column():
    x = bits(1, 4)
    call = device("reduce", ((1, 2, 2),), type="max", dim="r")
    expected = reduce_max(words(x).reshape(2, 2, 32, 32).swapaxes(0, 1), "r", "Float16_b", "bf16", CORE)
    same(reference(call, [x]), packed(expected, "Float16_b"))


def test_outside_of_the_vector_mode_the_input_stays():
    """Other than in the reference, which leaves zeros (3.2)."""
    x = bits(1, 1)
    call = device("exp", ((1, 1, 1),))
    call = replace(call, op=replace(call.op, vector="r"))
    found = reference(call, [x]).values().reshape(32, 32)
    assert np.array_equal(found[4:], x.values().reshape(32, 32)[4:])
    assert (found[:4] > 0).all()


def test_dest_is_not_rounded_but_intermediate_buffers_are():
    x = bits(1, 1, df="Float16_b")
    one = [operand((1, 1, 1), label="Float16_b")]
    formats = {"out_df": "Float32", "intermed_df": "Float16_b", "acc_df": "Float32"}
    through_dest = fused_call(one, [sub("square", "input0", "dest"), sub("square", "dest", "output")])
    through_l1 = fused_call(
        one, [sub("square", "input0", "intermed0"), sub("square", "intermed0", "output", pop="intermed0")]
    )
    blocking = Blocking((1, 1), 1, (1, 1), (1, 1), "r")
    found = [
        reference(DeviceCall(replace(call, blocking=blocking, **formats), CORE, "HiFi3"), [x])
        for call in (through_dest, through_l1)
    ]
    square = bind("square", CORE, approximate=False)
    image = copy_to_dst(words(x), "b", "fp32", CORE)
    squared = function(square, "fp32", image)
    same(found[0], packed(function(square, "fp32", squared), "Float32", "fp32"))
    again = copy_to_dst(words(packed(squared, "Float16_b", "fp32")), "b", "fp32", CORE)
    same(found[1], packed(function(square, "fp32", again), "Float32", "fp32"))
    assert not np.array_equal(found[0].datums, found[1].datums)


def test_relu_is_the_packers():
    x = bits(1, 1)
    call = device("nop", ((1, 1, 1),), relu_en=True, relu_threshold=0.5, relu_mode="max")
    expected = np.clip(x.values(), 0, 0.5)
    assert np.array_equal(reference(call, [x]).values(), expected)


@pytest.mark.parametrize("l1", [False, True])
@pytest.mark.parametrize("start", [False, True])
def test_a_gradient_matmul_has_no_relu_and_no_gelu_and_sums_up_in_l1_after_its_first_block(l1, start):
    """DEVICE_NUMERICS 10: 6.2."""
    a, b, before = bits(1, 3), bits(2, 3), bits(3, 1) if start else None
    call = device(
        "matmul", ((1, 1, 3), (1, 3, 1)), m_k=3, u_kt=1, gradient=True, l1_acc=l1, relu_en=True, sfpu_op="gelu"
    )
    total = packed(product(ZEROS if before is None else reloaded(before), words(a)[:1], words(b)[:1]), "Float16_b")
    for k in (1, 2):
        dst = ZEROS if l1 else reloaded(total)
        new = packed(product(dst, words(a)[k : k + 1], words(b)[k : k + 1]), "Float16_b")
        total = Bits("Float16_b", l1_acc.accumulate("Float16_b", total.datums, new.datums)) if l1 else new
    found = reference(call, [a, b], before)
    same(found, total)
    assert (found.values() < 0).any()


def test_other_gradient_ops_keep_their_relu():
    a, b = bits(1, 1), bits(2, 1)
    call = device("multiply", ((1, 1, 1), (1, 1, 1)), gradient=True, relu_en=True)
    assert (reference(call, [a, b]).values() >= 0).all()


@pytest.mark.parametrize("out", ["Bfp8_b", "Bfp4_b", "Float16_b"])
@pytest.mark.parametrize("first", ["Float32", "Float16_b"])
def test_an_output_made_from_a_float32_goes_into_blocks_with_one_rounding(first, out):
    """DEVICE_NUMERICS 10: 4.1. What is spilled is rounded twice all the same."""
    x = bits(1, 1, df=first)
    call = device("nop", ((1, 1, 1),), df=first, out=out, intermed="Bfp8_b")
    held_as = "Float16_b" if first == "Float32" else intermediate("bf16", out)
    image = copy_to_dst(words(x), "b", "bf16", CORE)
    same(reference(call, [x]), Bits(out, *pack(image.reshape(1, -1, 1024), "bf16", held_as, out)))

    a, b = bits(1, 2, df=first), bits(2, 2, df=first)
    product_call = device("matmul", PAIR, df=first, out=out, intermed="Bfp8_b", m_k=2, u_kt=1)
    spilled = packed(product(ZEROS, words(a)[:1], words(b)[:1]), "Bfp8_b")
    last = product(reloaded(spilled, "Bfp8_b"), words(a)[1:], words(b)[1:])
    expected = Bits(out, *pack(last.reshape(1, -1, 1024), "bf16", held_as, out))
    same(reference(product_call, [a, b]), expected)


def test_float16_blocks_of_a_float32_have_one_rounding_too():
    x = bits(1, 1, df="Float32")
    call = device("nop", ((1, 1, 1),), df="Float32", out="Bfp8", intermed="Float16", acc="Float16")
    image = copy_to_dst(words(x, "Float16"), "a", "fp16", CORE)
    same(reference(call, [x]), Bits("Bfp8", *pack(image.reshape(1, -1, 1024), "fp16", "Float16", "Bfp8")))


def fused_relu(formats, steps, x, core=CORE):
    call = fused_call([operand((1, 1, 1), label=x.df)], steps)
    blocking = Blocking((1, 1), 1, (1, 1), (1, 1), "r")
    return reference(DeviceCall(replace(call, blocking=blocking, **formats), core, "HiFi3"), [x]).values().reshape(-1)


@pytest.mark.parametrize(("acc", "df"), [("Float32", "Float32"), ("Float16_b", "Float16_b"), ("Float16", "Float16")])
@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold", [0.0, 1e-5, 0.5])
def test_relu_on_dest_has_no_threshold_below_its_smallest(acc, df, mode, threshold):
    """DEVICE_NUMERICS 10: 3.3: code 0, the default's, is 2^-15."""
    values = np.resize(np.float32([2.0**-13, 2.0**-14, -1, 0.25, 0.5, 3, 0, 2.0**-12]), (1, 1, 1024))
    relu = {"relu_en": True, "relu_mode": mode, "relu_threshold": threshold}
    steps = [sub("nop", "input0", "dest", **relu), sub("nop", "dest", "output")]
    found = fused_relu({"out_df": df, "intermed_df": df, "acc_df": acc}, steps, Bits.encode(df, values))
    limit = max(threshold, 2.0**-15) if threshold > 2.0**-14 else 2.0**-15
    given = values.reshape(-1)
    expected = np.where(given < limit, 0, given) if mode == "min" else np.clip(given, 0, limit)
    if mode == "max" and df == "Float16" and threshold < 0.5:
        expected = np.zeros_like(given)  # 2^-15 is not fp16 of the packer: exponent 0 is a zero
    assert np.array_equal(found, expected.astype(np.float32))


def test_the_packers_relu_of_a_fused_op_has_the_threshold_in_bits_of_family_a_from_any_dest():
    """DEVICE_NUMERICS 10: 6: 0.5 is 0x3800 there, which beside fp32 words is 2^-15."""
    x = Bits.encode("Float16_b", np.resize(np.float32([2.0**-13, 0.25, 0.75, -1]), (1, 1, 1024)))
    steps = [sub("nop", "input0", "output", relu_en=True, relu_mode="max", relu_threshold=0.5)]
    formats = {"intermed_df": "Float32", "acc_df": "Float32"}
    found = fused_relu({"out_df": "Float16", **formats}, steps, x)
    # Above the limit 0x38000000 each becomes it, and a Float16 has nothing so small.
    assert np.array_equal(found, np.zeros(1024, np.float32))
    single = device(
        "nop",
        ((1, 1, 1),),
        out="Float16",
        intermed="Float32",
        acc="Float32",
        relu_en=True,
        relu_mode="max",
        relu_threshold=0.5,
    )
    assert np.array_equal(reference(single, [x]).values().reshape(-1)[:4], [2.0**-13, 0.25, 0.5, 0])
