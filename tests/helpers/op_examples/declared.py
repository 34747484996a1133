"""Examples that follow from an op type's declaration alone, for every op type that works tile by tile: what its
operands may be, its attributes, its tiles. A new op type is covered by them before anybody writes its own."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.emulator.ops.base import Operand
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.ops import OP_TYPES, OpType
from op_examples.example import Example, make_call, operand

SHAPE = (2, 1, 2)
TINY_TILES = (((16, 32), (16, 32)), ((1, 32), (32, 32)), ((32, 32), (32, 16)), ((8, 32), (4, 32)))
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "bool": (False, True), "int": (-1, 1, 2), "float": (0.0, 0.25, 1.0),
}  # fmt: skip


def is_covered(op: OpType) -> bool:
    """Whether examples follow from the declaration of an op type."""
    return op.runs and op.has("tile by tile") and op.has("keeps shape")


def values_of(op: OpType) -> str:
    """What operands of the type may hold, a word of `op_examples.example.VALUES`."""
    return "not negative" if op.has("takes positive numbers") else "adversarial"


def broadcast(shape: tuple[int, int, int]) -> Operand:
    """An operand whose single tile repeats over `shape`."""
    index = np.zeros(int(np.prod(shape)), np.int32)
    index.flags.writeable = False
    return Operand(TileMap((1, 1, 1), shape, index, 0.0))


def declared(type: str) -> list[Example]:
    """The examples of an op type. Raises ValueError where none follow from its declaration."""
    op = OP_TYPES[type]
    if not is_covered(op):
        raise ValueError(
            f"op type {type} does not work tile by tile: write a function with its examples in"
            " tests/helpers/op_examples, and enter it in FAMILIES"
        )
    return list(_examples(op))


def _examples(op: OpType) -> Iterator[Example]:
    count = op.inputs[0]
    values = (values_of(op),) * count

    def example(id: str, operands: list[Operand], **others: Any) -> Example:
        return Example(id, make_call(op.name, operands, **others), values)

    yield example("in place", [operand(SHAPE)] * count)
    yield example("mapped", [operand(SHAPE, 1 + place) for place in range(count)])
    yield example("padded", [operand(SHAPE, 3 + place, -1.5) for place in range(count)])
    yield example("other shape", [operand((1, 3, 2), 5 + place) for place in range(count)])
    for place in range(count):
        operands = [operand(SHAPE)] * count
        operands[place] = broadcast(SHAPE)
        yield example(f"broadcast {place}", operands)
    if op.transposed is not None:
        yield example("transposed", [operand(SHAPE, 7 + place) for place in range(count)], transpose=True)
    for in_dim, out_dim in TINY_TILES:
        yield example(f"tile {in_dim} to {out_dim}", [operand(SHAPE, tile_dim=in_dim)] * count, tile_dim=out_dim)
    for name in op.attributes:
        spec = ATTRIBUTES[name]
        for value in spec.words or _NUMBERS.get(spec.kind, ()):
            yield example(f"{name} {value}", [operand(SHAPE, 9)] * count, attributes={name: value})
