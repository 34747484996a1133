"""Ops that pick, sort and move (OPS 6.7 to 6.11)."""

from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.blocking import Blocking
from buda_emu.testing.generator.builders.elementwise import extras
from buda_emu.testing.generator.draft import Formats, NetlistDraft, NoRoomError
from buda_emu.testing.generator.formats import chosen, in_ublock, operands
from buda_emu.testing.generator.operands import operand
from buda_emu.testing.generator.shapes import any_shape


def reduce(draft: NetlistDraft, op_type: str) -> None:
    """The maximum along rows, columns or t."""
    draw = draft.draw
    on_device = tuple(word for word in ATTRIBUTES["dim"].words if word != "rc")  # NETLIST V331
    dim = draw.pick(ATTRIBUTES["dim"].words if "rc" in draw.wanted else on_device)
    t, rows, cols = any_shape(draft)
    m_k, u_kt = draw.pick((1, 2, 3)), draw.pick((1, 2))
    many = m_k * u_kt
    attributes: dict[str, object] = {"type": "max", "dim": dim}
    if dim == "z":
        many = draw.pick((2, 3))
        attributes["z"] = many
        formats = chosen(draft)
        formats = Formats(formats.out, formats.out, formats.acc)
        shape, source = (t, rows, cols), (t * many, rows, cols)
        accepted: tuple[str, ...] = (formats.out,)
    else:
        attributes |= {"m_k": m_k, "u_kt": u_kt}
        formats = chosen(draft, sums=m_k > 1)
        down, across = (many if "r" in dim else rows), (many if "c" in dim else cols)
        shape, source = (t, 1 if "r" in dim else rows, 1 if "c" in dim else cols), (t, down, across)
        accepted = operands(draft)
    if draft.graph.family == "a" and formats.acc == "Float32":  # NETLIST V039
        formats = Formats(formats.out, formats.intermed, "Float16")
    operand_0 = operand(draft, source, accepted)
    blocking = draft.blocking(shape, in_ublock(draft, formats), order="r")
    if dim == "r":
        blocking = Blocking((1, blocking.grid_size[1]), t, (1, blocking.mblock[1]), (1, blocking.ublock[1]), "r")
    positive = operand_0.value.positive
    more = extras(draft)
    draft.add(
        op_type,
        (operand_0,),
        blocking,
        formats,
        attributes=attributes | more,
        positive=positive and "relu_mode" not in more,
    )


def splice(draft: NetlistDraft, op_type: str) -> None:
    """Slices of t, or ublocks, of several operands one after the other."""
    draw = draft.draw
    count = draw.integer(1, 3)
    df = draw.pick(operands(draft))
    by_t = draw.chance(60)
    formats = chosen(draft, out=(df,))
    formats = Formats(df, df, formats.acc)
    t, rows, cols = any_shape(draft)
    rounds = draw.pick((1, 1, 2))
    lengths = [draw.integer(1, 2) for _ in range(count)]
    skipped = [draw.pick((0, 0, 1)) for _ in range(count)]
    units = [(skip + length) * rounds for skip, length in zip(skipped, lengths, strict=True)]
    total = sum(lengths) * rounds
    if by_t:
        shape = (total, rows, cols)
        sources = [operand(draft, (unit, rows, cols), (df,)) for unit in units]
        blocking = draft.blocking(shape, in_ublock(draft, formats))
    else:
        blocking = Blocking((1, 1), t, (1, total), (1, draw.pick((1, 2))), draw.pick("rc"))
        sources = [operand(draft, (t, 1, unit * blocking.ublock[1]), (df,)) for unit in units]
    triples = tuple(
        (number, (skip, length, length)) for number, (skip, length) in enumerate(zip(skipped, lengths, strict=True))
    )
    attributes: dict[str, object] = {"granularity": "t" if by_t else "ublock", "inputs": triples}
    positive = all(item.value.positive for item in sources)
    draft.add(op_type, sources, blocking, formats, attributes=attributes, positive=positive)


def embedding(draft: NetlistDraft, op_type: str) -> None:
    """Rows of a table, by number."""
    draw = draft.draw
    t, blocks = 1, draw.integer(1, 2)
    cols = draw.integer(1, 3)
    df = draw.pick([name for name in operands(draft) if name in ("Float16_b", "Float16", "Float32")])
    formats = chosen(draft, out=(df,))
    formats = Formats(df, df, formats.acc)
    table = operand(draft, (1, draw.integer(1, 3), cols), (df,), shaped=False, source="flat")
    indices = operand(draft, (1, 1, 1), ("RawUInt32",), shaped=False, source="own stream")
    width = draw.divisor(cols, in_ublock(draft, formats))
    blocking = Blocking((1, 1), t, (blocks, cols // width), (1, width), "r")
    draft.add(op_type, (table, indices), blocking, formats, attributes={"num_indices": 32 * blocks})


def tilizer(draft: NetlistDraft, op_type: str) -> None:
    """Rows of a flat queue as tiles."""
    shape = any_shape(draft)
    df = draft.draw.pick([name for name in operands(draft) if name in ("Float16_b", "Float16", "Float32")])
    formats = chosen(draft)
    source = operand(draft, shape, (df,), shaped=False, source="flat")
    found = draft.document.queues[source.value.name].blocking
    wide = found.cols if found.cols <= in_ublock(draft, formats) else 1
    blocking = Blocking((1, 1), shape[0], (shape[1], shape[2] // wide), (1, wide), "r")
    if found.ublock[0] > 1 or found.cells > 1:
        raise NoRoomError
    draft.add(op_type, (source,), blocking, formats, positive=True)


def topk(draft: NetlistDraft, op_type: str) -> None:
    """The greatest of each row, or where they stand."""
    draw = draft.draw
    k = draw.pick((1, 4, 8, 16, 32, 64))
    sort = draw.pick(("max", "argmax"))
    cols = max(2, draw.pick((1, 2, 4)), 2 * k // 32)
    t, rows = draw.pick((1, 1, 2)), draw.pick((1, 1, 2))
    df = draw.pick([name for name in operands(draft) if name in ("Float16_b", "Float16")])
    accepted = ("RawUInt32", "UInt16") if sort == "max" else ("UInt16",)
    values = operand(draft, (t, rows, cols), (df,), shaped=False)
    numbers = operand(draft, (t, rows, cols), accepted, shaped=False, source="own")
    out = df if sort == "max" else numbers.value.df
    formats = Formats(out, df, df)
    wide = -(-k // 32)
    blocking = Blocking((1, 1), t, (rows, 1), (1, wide), "r")
    attributes: dict[str, object] = {"k": k, "sort": sort, "m_k": 1, "u_kt": cols}
    if cols > in_ublock(draft, formats) or wide > cols:
        raise NoRoomError
    if draw.chance(15):
        attributes["kreduce"] = True
    positive = sort == "max" and values.value.positive
    draft.add(op_type, (values, numbers), blocking, formats, attributes=attributes, positive=positive)
