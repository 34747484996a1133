"""The order of an op's steps on the device, put together by hand from the units (DEVICE_NUMERICS 2.8)."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.errors import UnsupportedError
from buda_emu.numerics.stored import Bits
from buda_emu.ops.on_device.base import DeviceCall, reference
from buda_emu.spec.blocking import Blocking
from buda_emu.tensix import l1_acc
from buda_emu.tensix.eltwise import elwadd
from buda_emu.tensix.fidelity import PHASES
from buda_emu.tensix.functions import bind
from buda_emu.tensix.functions import reference as function
from buda_emu.tensix.intermediate import intermediate
from buda_emu.tensix.maxpool import reduce_max
from buda_emu.tensix.moves import copy_to_dst
from buda_emu.tensix.pack import pack
from buda_emu.tensix.tile_matmul import tile_matmul
from buda_emu.tensix.unpack import unpack
from op_examples.example import make_call, operand
from op_examples.fused import fused_call, sub

CORE = "wormhole_b0"
PHASES_RUN = PHASES["HiFi3"]


def bits(seed, *shape, df="Float16_b"):
    values = np.random.default_rng(seed).normal(0, 1, (1, int(np.prod(shape)), 1024)).astype(np.float32)
    return Bits.encoded(df, values)


def device(kind, shapes, /, *, df="Float16_b", intermed="Float16_b", acc="Float16_b", out="Float16_b", gradient=False,
           transpose=False, **attributes):  # fmt: skip
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
