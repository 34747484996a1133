"""Examples of fused ops: schedules written as tuples, one for each sub-op."""

from typing import Any

from buda_emu.emulator.ops.base import Operand, PlannedOp
from buda_emu.netlist.model import FusedOp, SubOp, Tm
from buda_emu.spec.attributes import Attributes
from op_examples.example import Example, make_call, operand

SHAPE = (2, 2, 3)


def broadcast(dim: str, factor: int) -> Tm:
    return Tm("broadcast", (dim, factor))


def tile_broadcast(dim: str) -> Tm:
    return Tm("tile_broadcast", (dim,))


def sub(type: str, inputs: str, output: str, *, pop: str = "", pop_last: str = "", **others: Any) -> SubOp:
    """A sub-op; `inputs` and pops are words between blanks; tms: {position: (Tm, ...)}; zero_point; attributes."""
    words = tuple(inputs.split())
    tms: dict[int, tuple[Tm, ...]] = others.pop("tms", {})
    zero_point = others.pop("zero_point", 0.0)
    return SubOp(
        name=f"{type}_to_{output}",
        type=type,
        inputs=words,
        output=output,
        mblock=(2, 3),
        ublock=(1, 1),
        pop=tuple(pop.split()),
        pop_last=tuple(pop_last.split()),
        zero_point=zero_point,
        input_tms=tuple(tms.get(position, ()) for position in range(len(words))),
        attributes=Attributes(given=frozenset(others), **others),
    )


def fused_call(operands: list[Operand], *schedules: list[SubOp], **others: Any) -> PlannedOp:
    """A fused op on these operands."""
    definition = FusedOp(id="0", inputs=len(operands), intermediates=8, schedules=tuple(map(tuple, schedules)))
    return make_call("fused_op", operands, fused=definition, **others)


def schedules(type: str) -> list[Example]:
    assert type == "fused_op"
    three = [operand(SHAPE, 1, 1.25), operand(SHAPE), operand(SHAPE, 2)]
    odd = ("adversarial",) * 3
    small = operand((2, 2, 1), 3), operand((2, 1, 3), 4)
    integers = {"acc_df": "Int32", "intermed_df": "Int32", "out_df": "Int32"}
    return [
        Example(
            "dest chain",
            fused_call(
                three,
                [
                    sub("add", "input0 input1", "dest"),
                    sub("tanh", "dest", "dest"),
                    sub("multiply", "input2 dest", "output"),
                ],
            ),
            odd,
        ),
        Example(
            "intermediates, popped and written again",
            fused_call(
                three,
                [
                    sub("subtract", "input0 input1", "intermed0"),
                    sub("square", "intermed0", "intermed1"),
                    sub("multiply", "intermed0 intermed1", "intermed0", pop="intermed0", pop_last="intermed1"),
                ],
                [sub("maximum", "intermed0 input2", "output", pop="intermed0")],
            ),
            odd,
        ),
        Example(
            "broadcasts",
            fused_call(
                [three[0], *small],
                [
                    sub("exp", "input1", "intermed0"),
                    sub("abs", "input2", "intermed1"),
                    sub(
                        "multiply",
                        "intermed0 intermed1",
                        "intermed2",
                        pop="intermed0 intermed1",
                        tms={0: (broadcast("c", 3),), 1: (broadcast("r", 2), tile_broadcast("r"))},
                    ),
                    sub("add", "input0 intermed2", "dest", pop="intermed2", tms={1: (tile_broadcast("c"),)}),
                    sub("add", "dest input0", "output", tms={1: (tile_broadcast("r"), tile_broadcast("c"))}),
                ],
            ),
            odd,
        ),
        Example(
            "relu of base and sub-ops",
            fused_call(
                three,
                [
                    sub("add", "input0 input1", "dest", relu_en=True, relu_threshold=0.5, relu_mode="min"),
                    sub("subtract", "dest input2", "output"),
                ],
                attributes={"relu_en": True, "relu_threshold": 1.5, "relu_mode": "max"},
            ),
            odd,
        ),
        Example(
            "vector regions in place and not",
            fused_call(
                three,
                [
                    sub("add", "input0 input1", "intermed0"),
                    sub("exp", "intermed0", "intermed0", pop="intermed0", vector="r"),
                    sub("exp", "intermed0", "dest", vector="r"),
                    sub("exp", "dest", "dest", vector="c"),
                    sub("add", "dest intermed0", "dest", pop="intermed0"),
                    sub("power", "dest", "output", exp=2, vector="c"),
                ],
            ),
            ("plain",) * 3,
        ),
        Example(
            "a failing sub-op",
            fused_call(three, [sub("sqrt", "input0", "dest"), sub("add", "dest input1", "output")]),
            odd,
        ),
        Example(
            "reduce and broadcast back",
            fused_call(
                three[:2],
                [sub("reduce", "input0", "intermed0", dim="c", m_k=3, u_kt=1)],
                [
                    sub(
                        "subtract",
                        "input1 intermed0",
                        "output",
                        pop_last="intermed0",
                        tms={1: (broadcast("c", 3), tile_broadcast("c"))},
                    )
                ],
                attributes={"type": "max"},
            ),
            odd[:2],
        ),
        Example(
            "matmul with m_k and u_kt of the base op",
            fused_call(
                [operand((2, 2, 4), 5), operand((2, 4, 3), 6), three[0]],
                [sub("matmul", "input0 input1", "intermed0")],
                [sub("add", "intermed0 input2", "output", pop="intermed0")],
                attributes={"m_k": 2, "u_kt": 2},
            ),
            ("plain",) * 3,
        ),
        Example(
            "output written twice",
            fused_call(three[:2], [sub("add", "input0 input1", "output"), sub("nop", "input1", "output")]),
            ("bits",) * 2,
            same_nans=True,
        ),
        Example(
            "quantise, add, dequantise",
            fused_call(
                three,
                [
                    sub("quantization", "input0 input1", "intermed0", zero_point=3.0),
                    sub("add", "intermed0 input2", "dest", pop="intermed0"),
                    sub("dequantization", "input1 dest", "output", zero_point=-7.0),
                ],
                acc_df="Int32",
                intermed_df="Int32",
                out_df="Float32",
            ),
            ("plain", "plain", "small integers"),
        ),
        Example(
            "integer buffers",
            fused_call(
                three, [sub("multiply", "input0 input1", "dest"), sub("add", "dest input2", "output")], **integers
            ),
            ("plain",) * 3,
        ),
    ]
