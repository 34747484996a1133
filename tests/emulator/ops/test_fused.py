"""Hand-checked schedules, and what a fused op refuses (OPS 8.1)."""

import numpy as np
import pytest

from buda_emu.emulator import ops
from buda_emu.emulator.ops import fused
from buda_emu.emulator.ops.fused import is_tile_wise
from buda_emu.emulator.ops.fused_plan import fused_plan
from buda_emu.netlist.model import Tm
from buda_emu.support.errors import ProgramError, UnsupportedError
from op_examples.example import operand, reference, run
from op_examples.fused import broadcast, fused_call, sub, tile_broadcast

pytestmark = pytest.mark.tiny
SHAPE = (1, 1, 1)
ONE = operand(SHAPE)


def filled(*values):
    return [np.full((1, *SHAPE, 32, 32), value, np.float32) for value in values]


def value_of(call, *values):
    """Element (5, 20) of both faces, where the inputs are constant."""
    sources = filled(*values)
    expected = reference(call, sources)
    np.testing.assert_array_equal(run(call, sources).view(np.uint32), np.array(expected).view(np.uint32))
    return float(expected[0, 0, 0, 0, 5, 20])


def test_inputs_intermediates_and_dest():
    call = fused_call(
        [ONE] * 3,
        [
            sub("add", "input0 input1", "intermed0"),
            sub("multiply", "intermed0 input2", "dest"),
            sub("subtract", "dest intermed0", "output", pop="intermed0"),
        ],
    )
    assert value_of(call, 1, 2, 10) == 27


def test_intermediates_are_not_rounded_to_float_formats():
    call = fused_call(
        [ONE] * 2,
        [sub("add", "input0 input1", "intermed0"), sub("subtract", "intermed0 input0", "output", pop="intermed0")],
        intermed_df="Bfp2_b",
        acc_df="Float16_b",
        out_df="Bfp4_b",
    )
    assert value_of(call, 1, 2**-20) == 2**-20


def test_relu_of_the_base_op_is_for_output_only():
    schedule = [sub("subtract", "input0 input1", "dest"), sub("multiply", "dest input1", "output")]
    relu = {"relu_en": True, "relu_threshold": 2.0, "relu_mode": "max"}
    assert value_of(fused_call([ONE] * 2, schedule, attributes=relu), -1, -3) == 0, "2 * -3"
    assert value_of(fused_call([ONE] * 2, schedule, attributes=relu), -4, -1) == 2, "-3 * -1, clamped"


def test_relu_of_sub_ops():
    call = fused_call([ONE] * 2, [sub("subtract", "input0 input1", "dest", relu_en=True), sub("nop", "dest", "output")])
    assert value_of(call, 1, 2) == 0
    assert value_of(call, 2, 1) == 1


def test_relu_of_sub_op_and_base_op_must_agree():
    def call(**own):
        return fused_call(
            [ONE],
            [sub("nop", "input0", "output", relu_en=True, **own)],
            attributes={"relu_en": True, "relu_threshold": 0.5, "relu_mode": "max"},
        )

    assert value_of(call(relu_threshold=0.5, relu_mode="max"), 7) == 0.5
    with pytest.raises(ProgramError, match="relu differs"):
        fused_plan(call(relu_threshold=0.25, relu_mode="max"))
    with pytest.raises(ProgramError, match="relu differs"):
        fused_plan(call(relu_threshold=0.5, relu_mode="min"))


@pytest.mark.parametrize(
    ("formats", "expected"),
    [
        ({}, 2.7),
        ({"acc_df": "Int32"}, 2.0),
        ({"acc_df": "Int8"}, 3.0),
        ({"out_df": "Int32"}, 2.0),
        ({"intermed_df": "Int32"}, 2.7),
    ],
)
def test_integer_buffers_convert(formats, expected):
    call = fused_call([ONE], [sub("nop", "input0", "dest"), sub("nop", "dest", "output")], **formats)
    assert value_of(call, 2.7) == np.float32(expected)


def test_quantisation_is_int8_whatever_the_buffer():
    call = fused_call(
        [ONE] * 2,
        [
            sub("quantization", "input0 input1", "intermed0", zero_point=1.0),
            sub("nop", "intermed0", "output", pop="intermed0"),
        ],
        intermed_df="Int32",
    )
    assert value_of(call, 2.0, 2.3) == 6  # 5.6 rounded; Int32 would give 5
    assert value_of(call, 100.0, 2.0) == 127


def test_dequantisation_with_dest_as_input_1_swaps():
    # OPS 8.1: (dest + -zero_point) * input0
    call = fused_call(
        [ONE] * 2, [sub("nop", "input1", "dest"), sub("dequantization", "input0 dest", "output", zero_point=3.0)]
    )
    assert value_of(call, 0.5, 10.0) == 3.5
    plain = fused_call([ONE] * 2, [sub("dequantization", "input0 input1", "output", zero_point=3.0)])
    assert value_of(plain, 0.5, 10.0) == -25.0


def test_zero_point_does_not_fall_back():
    call = fused_call([ONE] * 2, [sub("quantization", "input0 input1", "output")], attributes={"zero_point": 5.0})
    assert value_of(call, 2.0, 2.0) == 4.0


def test_vector_region_keeps_in_place_and_zeroes_elsewhere():
    # OPS 5.2; element (5, 20) is outside of both regions
    kept = fused_call(
        [ONE], [sub("nop", "input0", "dest"), sub("square", "dest", "dest", vector="r"), sub("nop", "dest", "output")]
    )
    assert value_of(kept, 3) == 3
    moved = fused_call([ONE], [sub("nop", "input0", "dest"), sub("square", "dest", "output", vector="r")])
    assert value_of(moved, 3) == 0
    same = fused_call(
        [ONE],
        [
            sub("nop", "input0", "intermed0"),
            sub("square", "intermed0", "intermed0", pop="intermed0", vector="c"),
            sub("nop", "intermed0", "output", pop_last="intermed0"),
        ],
    )
    assert value_of(same, 3) == 3
    assert value_of(fused_call([ONE], [sub("square", "input0", "output")], vector="r"), 3) == 9, "no fall back"


def test_broadcasts_and_tile_broadcast():
    row, column = operand((1, 1, 3)), operand((1, 2, 1))
    call = fused_call(
        [row, column],
        [
            sub("nop", "input0", "intermed0"),
            sub("nop", "input1", "intermed1"),
            sub(
                "add",
                "intermed0 intermed1",
                "output",
                pop="intermed0 intermed1",
                tms={0: (broadcast("r", 2),), 1: (broadcast("c", 3), tile_broadcast("c"))},
            ),
        ],
    )
    assert ops.implementation("fused_op").shape(call) == (1, 2, 3)
    sources = [
        np.arange(3, dtype=np.float32).reshape(1, 1, 1, 3, 1, 1) * np.ones((32, 32), np.float32),
        np.arange(2 * 32 * 32, dtype=np.float32).reshape(1, 1, 2, 1, 32, 32) * 100,
    ]
    result = run(call, sources)
    np.testing.assert_array_equal(result, reference(call, sources))
    assert result[0, 0, 1, 2, 3, 7] == 2 + 100 * (1024 + 3 * 32)


def test_the_last_writer_of_output_wins():
    call = fused_call([ONE] * 2, [sub("nop", "input0", "output"), sub("nop", "input1", "output")])
    assert value_of(call, 1, 2) == 2


@pytest.mark.parametrize("tiles", [1, 2, 5, 100])
@pytest.mark.parametrize("tms", [{}, {0: (broadcast("z", 1), broadcast("r", 1))}], ids=["tile-wise", "not"])
def test_any_partition_gives_the_same(monkeypatch, tiles, tms):
    monkeypatch.setattr(fused, "PART_TILES", tiles)
    monkeypatch.setattr(fused, "GROUP_TILES", tiles)
    shape = (1, 1, 3)
    schedule = [
        sub("add", "input0 input1", "intermed0"),
        sub("subtract", "intermed0 input1", "dest", tms=tms),
        sub("multiply", "dest intermed0", "output", pop="intermed0"),
    ]
    if tms:
        schedule.insert(0, sub("reduce", "input2", "intermed1", dim="c", m_k=3, u_kt=1))
        schedule.insert(1, sub("nop", "intermed1", "dest", pop="intermed1"))
    call = fused_call([operand(shape, 1, 2.5), operand(shape), operand(shape, 2)], schedule, attributes={"type": "max"})
    assert is_tile_wise(fused_plan(call)) == (not tms)
    rng = np.random.default_rng(1)
    sources = [
        rng.normal(size=(w, *one.map.source_shape, 32, 32)).astype(np.float32)
        for w, one in zip((5, 1, 5), call.operands, strict=True)
    ]
    np.testing.assert_array_equal(run(call, sources), reference(call, sources))


def test_labels_follow_the_last_writer():
    bfp, plain = operand(SHAPE, label="Bfp4_b"), operand(SHAPE, label="Tf32")
    label = ops.implementation("fused_op").label
    assert label(fused_call([bfp, plain], [sub("add", "input1 input0", "output")])) == "Tf32"
    assert (
        label(fused_call([bfp, plain], [sub("add", "input0 input1", "dest"), sub("nop", "dest", "output")])) == "Bfp4_b"
    )
    assert label(fused_call([bfp, plain], [sub("add", "input0 input1", "output")], out_df="Int8")) == "Int8"
    integers = [sub("quantization", "input0 input1", "dest"), sub("nop", "dest", "output")]
    assert label(fused_call([bfp, plain], integers)) == "Int8"


ABORTS = {
    "dest is read before it is written": [sub("add", "input0 dest", "output")],
    "intermed1 is read before it is written": [sub("add", "input0 intermed1", "output")],
    "intermed0 is written again before it is popped": [
        sub("nop", "input0", "intermed0"),
        sub("nop", "input0", "intermed0"),
        sub("nop", "intermed0", "output", pop="intermed0"),
    ],
    "intermed0 is not popped at the end": [sub("nop", "input0", "intermed0"), sub("nop", "intermed0", "output")],
    "intermed0 is popped before it is written": [sub("nop", "input0", "output", pop_last="intermed0")],
    "a TM on dest": [sub("nop", "input0", "dest"), sub("nop", "dest", "output", tms={0: (broadcast("r", 1),)})],
    r"TM transpose .*cannot run": [sub("nop", "input0", "output", tms={0: (Tm("transpose"),)})],
    r"TM hslice .*cannot run": [sub("nop", "input0", "output", tms={0: (Tm("hslice", (1,)),)})],
    r"TM tile_broadcast .*cannot run": [sub("add", "input0 input0", "output", tms={1: (tile_broadcast("z"),)})],
    "input 1 of a binary": [sub("add", "input0 input0", "output", tms={0: (tile_broadcast("r"),)})],
    "splice cannot be part": [sub("splice", "input0", "output")],
    "relu cannot be part": [sub("relu", "input0", "output")],
    "no input 'input3'": [sub("nop", "input3", "output")],
    "no input 'foo'": [sub("nop", "foo", "output")],
    "takes 1 input": [sub("exp", "input0 input0", "output")],
    "dim r or c, not 'z'": [sub("reduce", "input0", "output", dim="z")],
    "different dims": [sub("add", "input0 input0", "output", tms={1: (broadcast("r", 2),)})],
    "writes output": [sub("nop", "input0", "dest")],
    "m_k > 1 cannot pop": [
        sub("nop", "input0", "intermed0"),
        sub("matmul", "intermed0 input0", "intermed0", pop="intermed0", m_k=2, u_kt=1),
        sub("nop", "intermed0", "output", pop="intermed0"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("message", ABORTS)
def test_what_the_reference_aborts_on(message):
    operands = [operand((1, 2, 2))]
    with pytest.raises(ProgramError, match=f"op a_fused_op.*{message}"):
        ops.implementation("fused_op").shape(fused_call(operands, ABORTS[message]))


def test_dest_is_gone_after_a_sub_op_that_does_not_read_it():
    schedule = [sub("nop", "input0", "dest"), sub("nop", "input0", "intermed0"), sub("add", "dest intermed0", "output")]
    with pytest.raises(ProgramError, match="dest is read before"):
        fused_plan(fused_call([ONE], schedule))


def test_identity_matmul_is_refused():
    call = fused_call([ONE] * 2, [sub("matmul", "input0 input1", "output")], attributes={"identity": True})
    with pytest.raises(ProgramError, match="identity matmul"):
        fused_plan(call)


def test_a_region_of_a_broadcast_in_place_is_not_supported():
    schedule = [
        sub("nop", "input0", "intermed0"),
        sub("exp", "intermed0", "intermed0", pop="intermed0", vector="r", tms={0: (broadcast("r", 2),)}),
        sub("nop", "intermed0", "output", pop="intermed0"),
    ]
    with pytest.raises(UnsupportedError, match="vector mode"):
        fused_plan(fused_call([ONE], schedule))


def test_equal_calls_with_other_definitions_are_told_apart():
    first = fused_call([ONE] * 2, [sub("add", "input0 input1", "output")])
    second = fused_call([ONE] * 2, [sub("subtract", "input0 input1", "output")])
    assert value_of(first, 5, 3) == 8
    assert value_of(second, 5, 3) == 2
