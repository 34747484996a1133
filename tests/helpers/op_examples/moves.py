"""Examples of the ops that move tiles, rows or elements: splice, embedding, tilizer, topk."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.ops.base import Operand
from buda_emu.emulator.ops.moves import ZERO_ROW_INDEX
from buda_emu.spec.blocking import Blocking
from op_examples.example import VALUES, Example, make_call, operand


def splices(type: str) -> list[Example]:
    triples = ((0, (0, 2, 2)), (1, (0, 1, 2)), (2, (1, 1, 1)))  # in two rounds: 4, 4 and 4 units, and 8 in the result
    along_t = Blocking((1, 1), 8, (2, 1), (1, 2), "r")
    slices = [operand((4, 2, 2), 1, 1.5), operand((4, 2, 2)), operand((4, 2, 2), 3)]
    found = [
        ("t slices", make_call(type, slices, blocking=along_t, attributes={"granularity": "t", "inputs": triples}))
    ]
    blocks = [operand((2, 4, 8)), operand((2, 8, 4), 4, 2.5), operand((2, 4, 8), 5)]
    for order in "rc":
        for mblock in ((2, 4), (8, 1)):
            blocking = Blocking((2, 2), 2, mblock, (1, 2), order)
            made = make_call(type, blocks, blocking=blocking, attributes={"inputs": triples})
            found.append((f"ublocks, order {order}, mblock {mblock}", made))
    return [Example(name, made, ("bits",) * 3, same_nans=True) for name, made in found]


def row_numbers(rows: int, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Words that are row numbers below `rows`, and the one that means a row of zeros."""
    numbers = rng.integers(0, rows, shape).astype(np.uint32)
    return np.where(rng.integers(0, 8, shape) == 0, np.uint32(ZERO_ROW_INDEX), numbers).view(np.float32)


VALUES["rows of 128"] = partial(row_numbers, 128)
VALUES["rows of 130"] = partial(row_numbers, 130)


def embeddings(type: str) -> list[Example]:
    two_rows = Blocking((2, 1), 2, (2, 2), (1, 1), "r")
    two_columns = Blocking((1, 2), 1, (2, 1), (1, 1), "r")
    table = operand((1, 4, 2))
    mapped = operand((2, 2, 2), 1, 0.25)

    def raw(one: Operand) -> Operand:
        return Operand(one.map, label="RawUInt32")

    found: list[tuple[str, list[Operand], Blocking, int, str]] = [
        ("raw words", [table, raw(operand((1, 4, 2)))], two_rows, 64, "rows of 128"),
        ("plain words", [table, operand((1, 2, 2))], two_rows, 64, "rows of 128"),
        ("mapped", [mapped, raw(operand((2, 2, 1), 2))], two_rows, 64, "rows of 128"),
        ("grid columns", [table, raw(operand((1, 1, 1)))], two_columns, 64, "rows of 128"),
        ("part of a tile", [table, raw(operand((1, 1, 1)))], two_columns, 40, "rows of 128"),
        ("beyond the table", [table, raw(operand((1, 4, 2)))], two_rows, 64, "rows of 130"),
    ]
    return [
        Example(
            name,
            make_call(type, operands, blocking=blocking, attributes={"num_indices": count}, out_df="Float16_b"),
            ("bits", numbers),
            same_nans=True,
        )
        for name, operands, blocking, count, numbers in found
    ]


def tilizers(type: str) -> list[Example]:
    shape = (2, 2, 3)
    raw = Operand(operand(shape).map, (8, 32), label="RawUInt32")
    tiles = [((32, 32), (32, 32)), ((8, 32), (32, 32)), ((32, 16), (32, 16)), ((32, 32), (4, 32))]
    found = [
        Example(f"tile {tile} to {out}", make_call(type, [operand(shape, tile_dim=tile)], out), ("adversarial",))
        for tile, out in tiles
    ]
    return [*found, Example("raw words", make_call(type, [raw]), ("bits",), same_nans=True)]


def ties(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Few different values, zeros of both signs among them."""
    return rng.choice(np.array([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0], np.float32), shape)


VALUES["ties"] = ties


def topks(type: str) -> list[Example]:
    found: list[Example] = []

    def add(
        shape: tuple[int, int, int], cores: int, k: int, values: str, seed: int | None = None, **others: Any
    ) -> None:
        tile_dim = others.pop("tile_dim", (32, 32))
        operands = [operand(shape, seed, -3.0, tile_dim=tile_dim), operand(shape, seed and seed + 1)]
        blocking = Blocking((1, cores), shape[0], (shape[1], 1), (1, -(-k // 32)), "r", tile_dim)
        attributes = {"k": k, "sort": "max", **others}
        made = make_call(type, operands, blocking=blocking, attributes=attributes)
        name = f"{shape} on {cores}, k {k}, {values} {others}"
        found.append(Example(name, made, (values, "plain" if values == "plain" else "adversarial")))

    add((1, 1, 1), 1, 1, "plain")
    add((1, 2, 1), 1, 4, "ties", 1)
    add((1, 1, 1), 1, 4, "ties", sort="argmax")
    add((2, 1, 1), 1, 32, "adversarial", sort="argmax")
    add((1, 1, 4), 2, 64, "ties", 2, sort="argmax")
    add((1, 1, 6), 2, 32, "ties", sort="other")
    add((1, 1, 4), 1, 64, "ties", sort="argmax")
    add((1, 1, 4), 1, 128, "plain")
    add((1, 1, 2), 1, 8, "ties", kreduce=True, sort="argmax")
    add((1, 1, 4), 1, 32, "ties", 3, kreduce=True)
    add((1, 1, 1), 1, 16, "adversarial", tile_dim=(16, 32))
    return found
