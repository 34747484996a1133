"""Ops that become part of the op in front of them: a bias row, a clamp, GELU with tanh, and dequantisation in products
of integers.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.fuse.chains import Readers
from buda_emu.compiler.lower.integers import PRODUCT, requantise
from buda_emu.compiler.lower.layout import TILE
from buda_emu.compiler.lower.tiles import (
    RELU,
    Constant,
    TileAttributes,
    TileGraph,
    TileOp,
    Use,
    over,
    select_attributes,
)
from buda_emu.compiler.target import Precision

_TAKEN: Final = ("bias", "identity", "relu_en", "sfpu_op")


def fuse_bias(tiles: TileGraph) -> TileGraph:
    """Fuse biases in the graph itself, and return it: `p = matmul(x, w); y = add(p, row)` becomes
    `y = matmul(x, w, row) {bias}`, if p has no other reader. `row` is a constant of equal rows, or a product with ones
    that copies row 0 into all rows, which goes if nothing else reads it."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        for operand in (0, 1) if op.type == "add" else ():
            product = readers.only_source(op, operand)
            other = op.uses[1 - operand].source
            if product is None or not is_product(product):
                continue
            row = _bias_row(tiles, op.uses[1 - operand], op.program)
            if row is None:
                continue
            attrs: TileAttributes = {"bias": True, **select_attributes(op.attrs, RELU)}
            readers.join(product, op, [*product.uses, row], **attrs)
            if row.source != other and not readers.of(other):
                readers.drop(tiles.ops[other])
            break
    return tiles


def is_product(op: TileOp) -> bool:
    """Return whether an op is a product (`matmul` or `depthwise`) into which nothing is fused yet."""
    return op.has("inner dimension") and not any(op.attrs.get(key) for key in _TAKEN)


def _bias_row(tiles: TileGraph, use: Use, program: str) -> Use | None:
    """Return the use whose row 0 in each tile the math unit adds to all rows as a bias; None if the rows differ."""
    constant = tiles.constants.get(use.source)
    if constant is not None:
        if constant.kind == "value" and _rows_are_equal(constant):
            return use
        return None
    op = tiles.ops.get(use.source)
    if op is None or op.program != program or not _copies_row_0(tiles, op):
        return None
    tms = op.uses[1].tms
    if ("transpose",) in tms or any(tm[0] != "broadcast" for tm in use.tms):  # a product transposes no third operand
        return None
    return replace(op.uses[1], tms=tms + use.tms)


def _copies_row_0(tiles: TileGraph, op: TileOp) -> bool:
    """Return whether an op only repeats row 0 of each tile over the tile: it is the product of ones in column 0 with
    one row of tiles."""
    if not (op.type == "matmul" and op.inner == op.shape[1] == 1 and is_product(op)):
        return False
    left = tiles.constants.get(op.uses[0].source)
    ones_in_column_0 = np.zeros((TILE, TILE), np.float32)
    ones_in_column_0[:, 0] = 1.0
    return (
        left is not None
        and left.kind == "value"
        and left.shape == (1, 1, 1)
        and bool(np.all(left.values == ones_in_column_0))
    )


def _rows_are_equal(constant: Constant) -> bool:
    """Return whether the rows of each tile are equal."""
    t, rows, columns = constant.values.shape
    by_tile = constant.values.reshape(t, rows // TILE, TILE, columns)
    return bool(np.all(by_tile == by_tile[:, :, :1]))


def fuse_relu(tiles: TileGraph) -> TileGraph:
    """Fuse clamps in the graph itself, and return it: `s = add(x, y); z = nop(s) {relu_en}` becomes
    `z = add(x, y) {relu_en}`, if s has no other reader."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        if op.type != "nop" or not op.attrs.get("relu_en") or op.attrs.get("untilize"):
            continue
        before = readers.only_source(op, 0)
        if before is not None and before.has("clamps") and not before.attrs.get("relu_en"):
            readers.join(before, op, before.uses, **op.attrs)
    return tiles


def fuse_activation(tiles: TileGraph) -> TileGraph:
    """Fuse GELU in the graph itself, and return it: `p = matmul(x, w); y = gelu(p)` becomes `y = matmul(x, w) {sfpu_op:
    gelu}`, if p has no other reader."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        if op.type == "gelu":
            product = readers.only_source(op, 0)
        else:
            product = None
        if product is None or product.type != "matmul":
            continue
        if not any(product.attrs.get(key) for key in ("identity", "relu_en", "sfpu_op")):
            readers.join(product, op, product.uses, sfpu_op="gelu")
    return tiles


_MOST: Final = 127  # OPS 4.3
_OFF: Final = 1e-4
"""Largest distance of a weight from an integer: float32 rounds it by 127 / 2^23."""
_LARGEST: Final = 1 << 30  # half of what int32 holds
Floats = NDArray[np.float32]


def use_integers(tiles: TileGraph) -> TileGraph:
    """Multiply integers, in the graph itself, and return it: `y = matmul(dequantization(q), w)` becomes `y = matmul(q,
    codes, terms, scale) {bias, dequant}`. A row that is added behind it becomes part of the terms, if it is a multiple
    of their unit."""
    if not any(op.type == "dequantization" for op in tiles.ops.values()):
        return tiles
    new_ops: dict[str, TileOp] = {}
    for op in tiles.ops.values():
        for entry in _multiply_integers(tiles, new_ops, op):
            new_ops[entry.name] = entry
    tiles.ops = new_ops
    _join_rows(tiles)
    _remove_unread(tiles)
    return tiles


def _remove_unread(tiles: TileGraph) -> None:
    """Remove `dequantization` ops that nothing reads any more, and constants that no op reads."""
    read = {output.op for output in tiles.outputs.values()}
    for op in tiles.ops.values():
        read.update(use.source for use in op.uses)
    for op in list(tiles.ops.values()):
        if op.type == "dequantization" and op.name not in read:
            del tiles.ops[op.name]
    used: set[str] = set()
    for op in tiles.ops.values():
        used.update(use.source for use in op.uses)
    tiles.constants = {name: constant for name, constant in tiles.constants.items() if name in used}


def _multiply_integers(tiles: TileGraph, new_ops: dict[str, TileOp], op: TileOp) -> list[TileOp]:
    """Turn a product of dequantised integers by weights that are integer multiples of a unit into a product of
    integers, with constants of its own, and return it behind the ops that it needs. Any other op is returned alone and
    unchanged. `new_ops`: the ops in front of it."""
    weights = _constant_weights(tiles, op)
    if weights is None:
        return [op]
    dequantization = _find_dequantization(tiles, op.uses[0].source)
    if dequantization is not None:
        split = _split_into_units(weights.values)
    else:
        split = None
    if dequantization is None or split is None:
        return [op]
    left = op.uses[0]
    before = list[TileOp]()
    if left.source == dequantization.name:  # nothing has been moved since
        codes = dequantization.uses[0].source
    else:
        codes = f"{left.source}.int8"
        if codes not in new_ops:
            before = requantise(tiles, left.source, dequantization)
    zero = float(dequantization.attrs["zero_point"])
    step = float(tiles.constants[dequantization.uses[1].source].values.flat[0])
    terms = np.repeat(-zero * split.codes.sum(1, keepdims=True, dtype=np.float64), 32, 1)
    scale = np.repeat(split.unit * np.float32(step), 32, 1)
    constants = {
        "codes": (split.codes, "codes"),
        "terms": (terms.astype(np.float32), "sums"),
        "scale": (scale, "scale"),
    }
    for suffix, (values, kind) in constants.items():
        tiles.constants[f"{op.name}.{suffix}"] = Constant(f"{op.name}.{suffix}", values, kind)
    count = op.shape[0] // weights.shape[0]
    rows = over((count, op.shape[1], 1))
    op.uses = [
        Use(codes, left.tms),
        Use(f"{op.name}.codes", op.uses[1].tms),
        Use(f"{op.name}.terms", rows),
        Use(f"{op.name}.scale", rows),
    ]
    op.attrs |= {"bias": True, "dequant": True}
    op.precision = PRODUCT
    return [*before, op]


def _constant_weights(tiles: TileGraph, op: TileOp) -> Constant | None:
    """Return the weights of a plain product by a constant; None for another op."""
    if op.type != "matmul" or len(op.uses) != 2 or op.attrs or op.precision != Precision():
        return None
    weights = tiles.constants.get(op.uses[1].source)
    if weights is None or weights.kind != "value":
        return None
    return weights


def _find_dequantization(tiles: TileGraph, name: str) -> TileOp | None:
    """Return the `dequantization` op whose numbers a tensor holds, moved or not, beside zeros; None if there is
    none."""
    op = tiles.ops.get(name)
    while op is not None and op.type != "dequantization":
        operand = _copy_source(tiles, op)
        if operand is not None:
            op = tiles.ops.get(operand.source)
        else:
            op = None
    return op


def _copy_source(tiles: TileGraph, op: TileOp) -> Use | None:
    """Return the operand whose numbers an op only copies, among zeros; None if it does anything else."""
    if op.type == "nop":
        if op.attrs.get("relu_threshold"):
            return None
        return op.uses[0]
    if op.attrs.get("identity"):
        if tiles.constants[op.uses[0].source].kind == "picker":
            return op.uses[1]
        return None
    if len(op.uses) == 2 and _copies_by_constant(op, tiles.constants.get(op.uses[1].source)):
        return op.uses[0]
    return None


def _copies_by_constant(op: TileOp, constant: Constant | None) -> bool:
    """Return whether an op multiplies by zeros and ones so that its result has only numbers of its first operand."""
    if constant is None:
        return False
    if op.type == "multiply":
        return bool(np.isin(constant.values, (0, 1)).all())
    return op.type == "matmul" and constant.kind == "picker" and bool(constant.values.sum(1).max() <= 1)


@dataclass(frozen=True, slots=True)
class _Split:
    """Weights as integers: `codes` [t, rows, columns] times `unit` [t, 1, columns]."""

    codes: Floats
    unit: Floats


def _split_into_units(weights: NDArray[Any]) -> _Split | None:
    """Find for each column a unit in which all its numbers are integers of at most 127: the largest that fits a sample
    of rows or, if that fails, a 127th of the largest number. None if a column has none."""
    largest = np.abs(weights).max(1, keepdims=True).astype(np.float64)
    largest[largest == 0] = 1
    part = weights[:, _sample_rows(weights), :] / largest  # a few rows tell nearly always
    unit = np.zeros_like(largest)
    for count in range(_MOST, 0, -1):
        scaled = part * count
        fits = (np.abs(scaled - np.rint(scaled)) < _OFF * 2).all(1, keepdims=True)
        unit[fits] = (largest / count)[fits]
    if not unit.all():
        return None
    codes = np.rint(weights / unit)
    if np.abs(weights / unit - codes).max() > _OFF * 2:
        unit = largest / _MOST  # what a few rows do not tell
        codes = np.rint(weights / unit)
        if np.abs(weights / unit - codes).max() > _OFF * 2:
            return None
    return _Split(codes.astype(np.float32), unit.astype(np.float32))


def _sample_rows(weights: NDArray[Any]) -> NDArray[np.int64]:
    """Return the numbers of up to 127 rows, evenly spread, of those with a number other than 0; only 0 if there is no
    such row."""
    rows = np.flatnonzero(np.abs(weights).max((0, 2)) > 0)
    if len(rows):
        return rows[:: max(1, len(rows) // 64)]
    return np.zeros(1, np.int64)


def _join_rows(tiles: TileGraph) -> None:
    """Add constant rows that are added behind integer products to the terms of the products, in the graph itself, where
    the rows are multiples of the unit of the terms."""
    readers = Readers(tiles)
    for op in list(tiles.ops.values()):
        for operand in (0, 1) if op.type == "add" and len(op.uses) == 2 else ():
            product = readers.only_source(op, operand)
            row = op.uses[1 - operand]
            if product is None or not product.attrs.get("dequant") or product.attrs.get("relu_en"):
                continue
            terms, scale = (tiles.constants[use.source] for use in product.uses[2:])
            added_terms = _in_units(tiles.constants.get(row.source), scale)
            if added_terms is None:
                continue
            name = f"{op.name}.terms"
            tiles.constants[name] = Constant(name, terms.values + added_terms, "sums")
            uses = [*product.uses[:2], Use(name, product.uses[2].tms), product.uses[3]]
            readers.join(product, op, uses, **select_attributes(op.attrs, RELU))
            break


def _in_units(row: Constant | None, scale: Constant) -> Floats | None:
    """Return a constant row of numbers in the units `scale`, as integers; None if there is no constant or it has
    different rows, another shape, or numbers that are no multiples of the units."""
    if row is None or row.kind != "value":
        return None
    if row.values.shape != scale.values.shape or (row.values != row.values[:, :1]).any():
        return None
    in_units = row.values / scale.values.astype(np.float64)
    integers = np.rint(in_units)
    if np.abs(in_units - integers).max() > 1e-6 * max(1e3, np.abs(in_units).max()) or np.abs(integers).max() > _LARGEST:
        return None
    return integers.astype(np.float32)
