"""Attributes and operands of netlist ops on tiles: what the tables of the netlist language say of them, and the few
attributes that only the compiler knows."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from buda_emu.checker.text import plural
from buda_emu.compiler.lower.picker import PickTable
from buda_emu.compiler.lower.tiles import Shape, TileGraph, TileOp, Tm, after
from buda_emu.netlist.rules.ops.shapes import Expected, shape_text
from buda_emu.spec.attributes import ATTRIBUTES, AttributeSpec
from buda_emu.spec.ops import OP_TYPES

OWN: Final[Mapping[str, type]] = {
    "untilize": bool, "gradient": bool, "strips": tuple, "table": PickTable, "rows": int,
    **dict.fromkeys((f"input{number}" for number in range(8)), tuple),
}  # fmt: skip
"""Attributes of the compiler: the host reads the result, it is added to a ram, strips of each row of cores, the matrix
of an identity matmul and the rows of cores that its operands are made for, turns of a splice."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "int": (int, np.integer), "bool": (bool,), "float": (float, int, np.floating), "ints": (tuple, list),
    "word": (str,), "text": (str,),
}  # fmt: skip
_MANY: Final = 9
"""Operands from which on the table means any number."""
TMS: Final = ("transpose", "broadcast", "hslice", "vslice", "hstack", "vstack")


def attribute_problems(op: TileOp) -> Iterator[str]:
    """An unknown op, an attribute that it does not have, a value of another type."""
    if op.type not in OP_TYPES:
        yield f"there is no op type {op.type}"
        return
    for name, value in op.attrs.items():
        spec = ATTRIBUTES.get(name)
        if name in OWN:
            if not isinstance(value, OWN[name]):
                yield f"attribute {name} is no {OWN[name].__name__}"
            elif isinstance(value, PickTable) and not _is_within(value):
                yield f"pairs of its {name} are outside of it"
        elif spec is None or (spec.types is not None and op.type not in spec.types):
            yield f"attribute {name} is not one of {op.type}"
        elif not _has_type(spec, value):
            yield f"attribute {name} of type {spec.kind} cannot be {value!r}"
    if op.inner < 0 or any(min(step.columns, step.across, step.inner) < 0 for step in op.steps):
        yield "a number of tiles is negative"
    for step in op.steps:
        if step.type not in OP_TYPES or not OP_TYPES[step.type].in_fused:
            yield f"step {step.name}: {step.type} is not an op of a fused op"
        for name, value in step.attrs.items():
            if name not in ATTRIBUTES or not _has_type(ATTRIBUTES[name], value):
                yield f"step {step.name}: attribute {name} cannot be {value!r}"


def _is_within(table: PickTable) -> bool:
    """Whether all pairs of tiles are in the result, and of tiles that there are."""
    parts = (table.slice, table.row, table.which, table.inner)
    most = (table.t, table.rows, len(table.tiles), np.iinfo(np.int32).max)
    return len({part.shape for part in parts}) == 1 and all(
        part.dtype.kind == "i" and bool(((part >= 0) & (part < limit)).all())
        for part, limit in zip(parts, most, strict=True)
    )


def _has_type(spec: AttributeSpec, value: Any) -> bool:
    if spec.kind == "int" and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES.get(spec.kind, (object,))) and (not spec.words or value in spec.words)


def operand_problems(tiles: TileGraph, op: TileOp, queues: Mapping[str, str], arch: str) -> Iterator[str]:
    """A wrong number of operands, one that no step reads, a TM that does not divide, an operand that may not be
    transposed, an operand or result of another shape (OPS 2, 7). `queues`: those that may be read, with the ops that
    write them; `arch`: "" where it is not known."""
    if len(op.shape) != 3 or min(op.shape) < 1:
        yield f"shape {list(op.shape)} is not slices, rows and columns of tiles"
        return
    least, most = OP_TYPES[op.type].inputs
    if not least <= len(op.uses) <= most:
        most_said = f" to {most}" if least < most < _MANY else ""
        yield f"{plural(len(op.uses), 'operand')}, it takes {least}{most_said}"
        return
    seen: list[Shape] = []
    read = {name for step in op.steps for name in step.inputs}
    for number, use in enumerate(op.uses):
        if op.steps and f"input{number}" not in read:
            yield f"operand {number}: no step reads it"
            return
        try:
            shape = tiles.shape_of(queues.get(use.source, use.source))
            for tm in use.tms:
                shape = _behind(tm, shape)
        except (ValueError, TypeError) as error:
            yield f"operand {number}: {error}"
            return
        seen.append(shape)
        if ("transpose",) in use.tms and (refusal := OP_TYPES[op.type].transpose_refusal(number, arch)):
            yield f"operand {number}: {refusal}"
            return
    expected = list(_expected(op))
    if expected and len(expected) != len(seen):
        yield f"{plural(len(seen), 'operand')}, it takes {len(expected)}"
        return
    for number, (have, want) in enumerate(zip(seen, expected, strict=False)):
        if any(size not in (None, own) for own, size in zip(have, want, strict=True)):
            yield f"operand {number} is {list(have)} tiles after its TMs, not {shape_text(want)}"


def _behind(tm: Tm, shape: Shape) -> Shape:
    """As `after`. Raises ValueError for a TM that there is not, or that does not divide."""
    if tm[0] not in TMS or len(tm) != {"transpose": 1, "broadcast": 3}.get(tm[0], 2):
        raise ValueError(f"there is no TM {' '.join(map(str, tm))}")
    if tm[0] == "transpose":
        return after(tm, shape)
    count = tm[-1]
    if type(count) is not int or count < 1 or (tm[0] == "broadcast" and tm[1] not in ("z", "r", "c")):
        raise ValueError(f"there is no TM {' '.join(map(str, tm))}")
    cut = {"hslice": shape[2], "vslice": shape[1], "hstack": shape[0], "vstack": shape[0]}.get(tm[0], 0)
    if cut % count:
        raise ValueError(f"{tm[0]} {count} does not divide {cut}")
    return after(tm, shape)


def _expected(op: TileOp) -> Iterator[Expected]:
    """What each operand has to be; none where all is for the op's own rules to say."""
    t, rows, columns = op.shape
    attrs, family = op.attrs, OP_TYPES[op.type].family
    if family in ("unary", "sfpu"):
        yield op.shape
    elif family in ("binary", "quantization"):
        yield from (op.shape, op.shape)
    elif op.type == "matmul" and attrs.get("identity"):
        yield from ((None, None, None), (None, op.inner, columns), (None, None, None))
        yield from [op.shape] * (len(op.uses) - 3)
    elif op.type == "matmul":
        slices = t * int(attrs.get("z", 1)) if attrs.get("accumulate") else t
        yield from ((slices, rows, op.inner or None), (slices, op.inner or None, columns))
        yield from [op.shape] * _more(op)
    elif op.type == "depthwise":
        yield from ((t, rows, columns * op.inner), (t, op.inner, columns))
        yield from [op.shape] * _more(op)
    elif op.has("reduces"):
        dim = attrs.get("dim")
        along = {
            "z": (t * int(attrs.get("z", 1)), rows, columns),
            "r": (t, op.inner or None, columns),
            "c": (t, rows, op.inner or None),
        }
        yield along.get(str(dim), (None, None, None))
    elif op.steps:
        yield from (op.operand_shape(number) for number in range(len(op.uses)))


def _more(op: TileOp) -> int:
    """Operands of a product beside its two factors."""
    return bool(op.attrs.get("bias")) + bool(op.attrs.get("dequant"))
