"""Choices of ops, which those that are alike share."""

import pytest

from buda_emu.compiler.lower.tiles import InputQueue, OutputQueue, SubOp, TileGraph, TileOp, Use
from buda_emu.compiler.place.blocks import buffer_bytes
from buda_emu.compiler.search.candidate_table import CandidateTable
from buda_emu.compiler.target import Precision, Target

SHAPE, HOST = (1, 1, 40), (1, 32, 1280)
WIDE = Precision("Float16_b")
TARGET = Target.from_names("grayskull", "Bfp8_b", "HiFi3", "")


def fused(name, intermediates):
    """exp of exp of exp ... each in a buffer of its own."""
    steps, before = [], "input0"
    for number in range(intermediates):
        after = f"intermed{number}"
        steps.append(SubOp(f"{name}.{number}", "exp", (before,), after, () if number == 0 else (before,)))
        before = after
    last = SubOp(f"{name}.last", "exp", (before,), "output", (before,))
    return TileOp(name, "fused_op", [Use("x")], SHAPE, steps=(*steps, last))


@pytest.mark.parametrize(
    ("light", "heavy"),
    [
        (
            TileOp("a", "exp", [Use("x")], SHAPE),
            TileOp("b", "exp", [Use("x")], SHAPE, precision=WIDE),
        ),
        (fused("a", 1), fused("b", 8)),
    ],
    ids=["formats", "sub-ops"],
)
def test_a_larger_op_of_the_same_shape_has_choices_of_its_own(light, heavy):
    tiles = TileGraph(
        {"a": light, "b": heavy},
        inputs={"x": InputQueue("x", "x", SHAPE, HOST)},
        outputs={f"y{name}": OutputQueue(f"y{name}", name, name, SHAPE, HOST, "float32") for name in "ab"},
    )
    found = CandidateTable.of(tiles, TARGET)
    for op, own in zip(found.ops, found.corrected, strict=True):
        target = TARGET.of(op.precision)
        assert all(buffer_bytes(target, op, choice.blocks) <= target.buffer_room for choice in own), op.name
