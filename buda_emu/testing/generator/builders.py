"""Builders of ops: element by element, on integers, and ops that pick, sort and move."""

from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.blocking import FULL_TILE, Blocking, Shape
from buda_emu.spec.formats import FORMATS, NETLIST_FORMATS, is_integer, is_raw
from buda_emu.spec.ops import OP_TYPES, OpType
from buda_emu.testing.generator.draft import Formats, NetlistDraft, NoRoomError, Operand, any_shape
from buda_emu.testing.generator.operands import draw_formats, draw_operand, operand_formats, tiles_in_ublock


def quantization(draft: NetlistDraft, op_type: str) -> None:
    """Add one of the three ops of the quantization family, with drawn operands, to the open graph. Raises NoRoomError
    on grayskull, or if it does not fit."""
    if draft.arch.name == "grayskull":
        raise NoRoomError
    draw = draft.draw
    if op_type == "quantization":
        source = ("Float32",)
    else:
        source = ("Int32", "Int8")
    formats = Formats("Float32" if op_type == "dequantization" else "Int8", "Int32", "Int32")
    shape = any_shape(draft)
    sources = (draw_operand(draft, shape, source), draw_operand(draft, shape, ("Float32",)))
    attributes: dict[str, object] = {}
    if draw.chance(70):
        attributes["zero_point"] = float(draw.integer(-3, 9))
    draft.add(op_type, sources, draft.blocking(shape, tiles_in_ublock(draft, formats)), formats, attributes=attributes)


def conversion(draft: NetlistDraft, op_type: str) -> None:
    """Add a copy of Float32 to any format through any Dst: to integers, opaque words, other floats, or as integers.
    Raises NoRoomError on grayskull, for tiles that are not full, or if it does not fit."""
    if draft.arch.name == "grayskull" or draft.tile != FULL_TILE:
        raise NoRoomError
    draw = draft.draw
    shape = any_shape(draft)
    if draft.arch.name == "blackhole":
        left_out = ("UInt16",)
    else:
        left_out = ("UInt16", "Fp8_e4m3")
    out = draw.pick([name for name in NETLIST_FORMATS if name not in left_out])
    acc = draw.pick(("Float32", "Int32", *(() if is_integer(out) else ("Float16", "Float16_b"))))
    formats = Formats(out, acc, acc)
    sources = (draw_operand(draft, shape, ("Float32",)),)
    draft.add(op_type, sources, draft.blocking(shape, tiles_in_ublock(draft, formats)), formats)


def elementwise(draft: NetlistDraft, op_type: str) -> None:
    """Add a copy or arithmetic of integers, or of opaque words if the op only copies. Raises NoRoomError on grayskull,
    for tiles that are not full, or if it does not fit."""
    if draft.arch.name == "grayskull" or draft.tile != FULL_TILE:
        raise NoRoomError
    draw = draft.draw
    declared = OP_TYPES[op_type]
    legal = [name for name in declared.integers if name != "UInt16"]
    shape = any_shape(draft)
    source = (draw.pick(legal),)
    formats = Formats(draw.pick([name for name in legal if is_integer(name)]), "Int32", "Int32")
    if is_raw(source[0]):
        source = (draw.pick([spec.name for spec in FORMATS.values() if spec.kind == "raw"]),)
        formats = Formats(source[0], "Float16_b", "Float16_b")
    sources = [draw_operand(draft, shape, source) for _ in range(declared.inputs[0])]
    draft.add(op_type, sources, draft.blocking(shape, tiles_in_ublock(draft, formats)), formats)


def unary(draft: NetlistDraft, op_type: str) -> None:
    """Add an op with one operand, a function or a copy, now and then one on integers or a conversion. Raises
    NoRoomError if it does not fit."""
    declared = OP_TYPES[op_type]
    if declared.has("Int32 sums of floats") and draft.draw.sometimes(4, "conversion"):
        return conversion(draft, op_type)
    if not declared.has("vector unit") and draft.draw.sometimes(12, "integers"):
        return elementwise(draft, op_type)
    gradient = _draw_gradient(draft, declared)
    formats = draw_formats(draft, gradient=gradient)
    shape = any_shape(draft)
    source = draw_operand(
        draft,
        shape,
        operand_formats(draft),
        transposed=declared.transposed == 0,
        positive=declared.has("takes positive numbers"),
    )
    attributes = _draw_function_attributes(draft, declared) | extras(draft)
    return _add_tile_by_tile_op(draft, declared, (source,), shape, formats, attributes, gradient=gradient)


def binary(draft: NetlistDraft, op_type: str) -> None:
    """Add arithmetic of two operands, now and then of integers. Raises NoRoomError if it does not fit."""
    declared = OP_TYPES[op_type]
    if draft.draw.sometimes(12, "integers"):
        return elementwise(draft, op_type)
    gradient = _draw_gradient(draft, declared)
    formats = draw_formats(draft, gradient=gradient)
    shape = any_shape(draft)
    may_transpose = declared.transposed == 0 and draft.arch.name != "grayskull" and not gradient
    sources = (
        draw_operand(draft, shape, operand_formats(draft), transposed=may_transpose),
        draw_operand(draft, shape, operand_formats(draft)),
    )
    return _add_tile_by_tile_op(draft, declared, sources, shape, formats, extras(draft), gradient=gradient)


def _draw_gradient(draft: NetlistDraft, declared: OpType) -> bool:
    """Draw whether an op of a type adds to its previous result; False if it cannot (NETLIST V031, V095)."""
    if draft.arch.name == "grayskull" or declared.one_input:
        possible = declared.has("sums gradients on grayskull")
    else:
        possible = not declared.has("no gradient")
    return possible and draft.draw.sometimes(8, "gradient op", "gradient_op", "zero")


def ethernet(draft: NetlistDraft, op_type: str) -> None:
    """Add a copy over the link to the second chip, whose graph then reads it (NETLIST V159, V366). Raises NoRoomError
    if the open graph is not of the first of two chips, or by chance, so that such copies stay few."""
    if draft.chips == 1 or draft.graph.chip != 0 or (draft.graph.ops and draft.draw.chance(50)):
        raise NoRoomError
    formats = draw_formats(draft)
    shape = any_shape(draft)
    source = draw_operand(draft, shape, operand_formats(draft), shaped=False)
    formats = Formats(source.value.df, formats.intermed, formats.acc)
    blocking = draft.blocking(shape, tiles_in_ublock(draft, formats), one_core=True)
    attributes: dict[str, object] = {"ingress_channels": (0,), "egress_channels": (0,), "dest_device": 1}
    draft.add(
        op_type,
        (source,),
        blocking,
        formats,
        attributes=attributes,
        fields={"on_ethernet": True},
        positive=source.value.positive,
    )


def _add_tile_by_tile_op(
    draft: NetlistDraft,
    declared: OpType,
    sources: tuple[Operand, ...],
    shape: Shape,
    formats: Formats,
    attributes: dict[str, object],
    *,
    gradient: bool = False,
) -> None:
    """Add an op that works tile by tile, with a drawn blocking. Its result is known to be positive if op, operands and
    relu make it so. With `gradient` the op adds to its previous result. Raises NoRoomError if it does not fit."""
    blocking = draft.blocking(shape, tiles_in_ublock(draft, formats))
    stays_positive = declared.has("keeps positive") and all(source.value.positive for source in sources)
    capped = attributes.get("relu_mode") == "max"
    positive = declared.has("gives positive") or (stays_positive and not capped)
    fields: dict[str, object] = {"gradient_op": True} if gradient else {}
    draft.add(declared.name, sources, blocking, formats, attributes=attributes, positive=positive, fields=fields)


def _draw_function_attributes(draft: NetlistDraft, declared: OpType) -> dict[str, object]:
    """Draw the attributes of functions of the vector unit, and those that only the op type `declared` has."""
    draw = draft.draw
    attributes: dict[str, object] = {}
    if declared.has("vector unit"):
        if draw.sometimes(25, "approximate_mode"):
            attributes["approximate_mode"] = draw.chance(50)
        if draw.sometimes(15, "vector"):
            attributes["vector"] = _draw_vector_mode(draft)
    values = {"p": (0.0, 0.25, 0.5), "seed": (0, 7), "slope": (0.1, 0.01, 1.5), "exp": (2, 3)}
    for name in declared.attributes:
        if name in values and (draw.sometimes(60, name) or name == "exp"):
            attributes[name] = draw.pick(values[name])
    if "sfpu_execution_thread" in declared.attributes and draw.sometimes(10, "sfpu_execution_thread"):
        if draft.arch.name == "grayskull":
            words = ("math",)
        else:
            words = ATTRIBUTES["sfpu_execution_thread"].words
        attributes["sfpu_execution_thread"] = draw.pick(words)
    return attributes


def _draw_vector_mode(draft: NetlistDraft) -> str:
    """Draw a vector mode; tiles that are not full must have the one along their full side (NETLIST V059)."""
    if draft.tile == FULL_TILE:
        return draft.draw.pick(ATTRIBUTES["vector"].words)
    if draft.tile[0] == FULL_TILE[0]:
        return "c"
    return "r"


def extras(draft: NetlistDraft) -> dict[str, object]:
    """Draw attributes that any op may have: relu, and stochastic rounding that is off."""
    draw = draft.draw
    attributes: dict[str, object] = {}
    if draw.sometimes(12, "relu_en", "relu_threshold", "relu_mode"):
        attributes["relu_en"] = True
        attributes["relu_threshold"] = draw.pick((0.0, 0.5, 1.5))
        attributes["relu_mode"] = draw.pick(ATTRIBUTES["relu_mode"].words)
    if draw.chance(3):
        attributes["stoch_rnd_mode"] = "none"
    return attributes


def reduce(draft: NetlistDraft, op_type: str) -> None:
    """Add a maximum along rows, columns or t. Raises NoRoomError if it does not fit."""
    draw = draft.draw
    on_device = tuple(word for word in ATTRIBUTES["dim"].words if word != "rc")  # NETLIST V331
    dim = draw.pick(ATTRIBUTES["dim"].words if "rc" in draw.wanted else on_device)
    t, rows, cols = any_shape(draft)
    m_k = draw.pick((1, 2, 3))
    u_kt = draw.pick((1, 2))
    many = m_k * u_kt
    attributes: dict[str, object] = {"type": "max", "dim": dim}
    if dim == "z":
        many = draw.pick((2, 3))
        attributes["z"] = many
        formats = draw_formats(draft)
        formats = Formats(formats.out, formats.out, formats.acc)
        shape = (t, rows, cols)
        source = (t * many, rows, cols)
        accepted: tuple[str, ...] = (formats.out,)
    else:
        attributes |= {"m_k": m_k, "u_kt": u_kt}
        formats = draw_formats(draft, sums=m_k > 1)
        shape = (t, rows, cols)
        source = shape
        if "r" in dim:
            shape = (t, 1, shape[2])
            source = (t, many, source[2])
        if "c" in dim:
            shape = (t, shape[1], 1)
            source = (t, source[1], many)
        accepted = operand_formats(draft)
    if draft.graph.family == "a" and formats.acc == "Float32":  # NETLIST V039
        formats = Formats(formats.out, formats.intermed, "Float16")
    operand_0 = draw_operand(draft, source, accepted)
    blocking = draft.blocking(shape, tiles_in_ublock(draft, formats), order="r")
    if dim == "r":
        blocking = Blocking(
            grid_size=(1, blocking.grid_size[1]),
            t=t,
            mblock=(1, blocking.mblock[1]),
            ublock=(1, blocking.ublock[1]),
            ublock_order="r",
        )
    positive = operand_0.value.positive
    extra_attributes = extras(draft)
    draft.add(
        op_type,
        (operand_0,),
        blocking,
        formats,
        attributes=attributes | extra_attributes,
        positive=positive and "relu_mode" not in extra_attributes,
    )


def splice(draft: NetlistDraft, op_type: str) -> None:
    """Add a splice, which puts slices of t, or ublocks, of several operands one after the other. Raises NoRoomError if
    it does not fit."""
    draw = draft.draw
    count = draw.integer(1, 3)
    df = draw.pick(operand_formats(draft))
    by_t = draw.chance(60)
    formats = draw_formats(draft, out=(df,))
    formats = Formats(df, df, formats.acc)
    t, rows, cols = any_shape(draft)
    rounds = draw.pick((1, 1, 2))
    lengths = [draw.integer(1, 2) for _ in range(count)]
    skipped = [draw.pick((0, 0, 1)) for _ in range(count)]
    units = [(skip + length) * rounds for skip, length in zip(skipped, lengths, strict=True)]
    total = sum(lengths) * rounds
    if by_t:
        shape = (total, rows, cols)
        sources = [draw_operand(draft, (unit, rows, cols), (df,)) for unit in units]
        blocking = draft.blocking(shape, tiles_in_ublock(draft, formats))
    else:
        blocking = Blocking(
            grid_size=(1, 1), t=t, mblock=(1, total), ublock=(1, draw.pick((1, 2))), ublock_order=draw.pick("rc")
        )
        sources = [draw_operand(draft, (t, 1, unit * blocking.ublock[1]), (df,)) for unit in units]
    triples = tuple(
        (number, (skip, length, length)) for number, (skip, length) in enumerate(zip(skipped, lengths, strict=True))
    )
    attributes: dict[str, object] = {"granularity": "t" if by_t else "ublock", "inputs": triples}
    positive = all(source.value.positive for source in sources)
    draft.add(op_type, sources, blocking, formats, attributes=attributes, positive=positive)


def embedding(draft: NetlistDraft, op_type: str) -> None:
    """Add a lookup of rows of a table by their numbers. Raises NoRoomError if it does not fit."""
    draw = draft.draw
    t = 1
    blocks = draw.integer(1, 2)
    cols = draw.integer(1, 3)
    df = draw.pick([name for name in operand_formats(draft) if name in ("Float16_b", "Float16", "Float32")])
    formats = draw_formats(draft, out=(df,))
    formats = Formats(df, df, formats.acc)
    table = draw_operand(draft, (1, draw.integer(1, 3), cols), (df,), shaped=False, source="flat")
    indices = draw_operand(draft, (1, 1, 1), ("RawUInt32",), shaped=False, source="own stream")
    width = draw.divisor(cols, tiles_in_ublock(draft, formats))
    blocking = Blocking(grid_size=(1, 1), t=t, mblock=(blocks, cols // width), ublock=(1, width), ublock_order="r")
    draft.add(op_type, (table, indices), blocking, formats, attributes={"num_indices": 32 * blocks})


def tilizer(draft: NetlistDraft, op_type: str) -> None:
    """Add a conversion of the rows of a flat queue to tiles. Raises NoRoomError if it does not fit."""
    shape = any_shape(draft)
    df = draft.draw.pick([name for name in operand_formats(draft) if name in ("Float16_b", "Float16", "Float32")])
    formats = draw_formats(draft)
    source = draw_operand(draft, shape, (df,), shaped=False, source="flat")
    queue_blocking = draft.document.queues[source.value.name].blocking
    wide = 1
    if queue_blocking.cols <= tiles_in_ublock(draft, formats):
        wide = queue_blocking.cols
    blocking = Blocking(
        grid_size=(1, 1), t=shape[0], mblock=(shape[1], shape[2] // wide), ublock=(1, wide), ublock_order="r"
    )
    if queue_blocking.ublock[0] > 1 or queue_blocking.cells > 1:
        raise NoRoomError
    draft.add(op_type, (source,), blocking, formats, positive=True)


def topk(draft: NetlistDraft, op_type: str) -> None:
    """Add a selection of the greatest elements of each row, or of their places. Raises NoRoomError if it does not
    fit."""
    draw = draft.draw
    k = draw.pick((1, 4, 8, 16, 32, 64))
    sort = draw.pick(("max", "argmax"))
    cols = max(2, draw.pick((1, 2, 4)), 2 * k // 32)
    t = draw.pick((1, 1, 2))
    rows = draw.pick((1, 1, 2))
    df = draw.pick([name for name in operand_formats(draft) if name in ("Float16_b", "Float16")])
    if sort == "max":
        accepted = ("RawUInt32", "UInt16")
    else:
        accepted = ("UInt16",)
    values = draw_operand(draft, (t, rows, cols), (df,), shaped=False)
    numbers = draw_operand(draft, (t, rows, cols), accepted, shaped=False, source="own")
    if sort == "max":
        out = df
    else:
        out = numbers.value.df
    formats = Formats(out, df, df)
    wide = -(-k // 32)
    blocking = Blocking(grid_size=(1, 1), t=t, mblock=(rows, 1), ublock=(1, wide), ublock_order="r")
    attributes: dict[str, object] = {"k": k, "sort": sort, "m_k": 1, "u_kt": cols}
    if cols > tiles_in_ublock(draft, formats) or wide > cols:
        raise NoRoomError
    if draw.chance(15):
        attributes["kreduce"] = True
    positive = sort == "max" and values.value.positive
    draft.add(op_type, (values, numbers), blocking, formats, attributes=attributes, positive=positive)
