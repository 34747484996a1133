"""Ops on integers: element by element, and quantisation (NETLIST V102, V103)."""

from buda_emu.spec.blocking import FULL_TILE
from buda_emu.spec.formats import FORMATS, NETLIST_FORMATS, is_integer, is_raw
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.generator.draft import Formats, NetlistDraft, NoRoomError
from buda_emu.testing.generator.formats import in_ublock
from buda_emu.testing.generator.operands import operand
from buda_emu.testing.generator.shapes import any_shape


def quantization(draft: NetlistDraft, op_type: str) -> None:
    """Any of the three ops of the family."""
    if draft.arch.name == "grayskull":
        raise NoRoomError
    draw = draft.draw
    source = ("Float32",) if op_type == "quantization" else ("Int32", "Int8")
    formats = Formats("Float32" if op_type == "dequantization" else "Int8", "Int32", "Int32")
    shape = any_shape(draft)
    sources = (operand(draft, shape, source), operand(draft, shape, ("Float32",)))
    attributes: dict[str, object] = {}
    if draw.chance(70):
        attributes["zero_point"] = float(draw.integer(-3, 9))
    draft.add(op_type, sources, draft.blocking(shape, in_ublock(draft, formats)), formats, attributes=attributes)


def conversion(draft: NetlistDraft, op_type: str) -> None:
    """A copy of Float32 to any format through any Dst: to integers, opaque words, other floats, or as integers."""
    if draft.arch.name == "grayskull" or draft.tile != FULL_TILE:
        raise NoRoomError
    draw, shape = draft.draw, any_shape(draft)
    left_out = ("UInt16",) if draft.arch.name == "blackhole" else ("UInt16", "Fp8_e4m3")
    out = draw.pick([name for name in NETLIST_FORMATS if name not in left_out])
    acc = draw.pick(("Float32", "Int32", *(() if is_integer(out) else ("Float16", "Float16_b"))))
    formats = Formats(out, acc, acc)
    sources = (operand(draft, shape, ("Float32",)),)
    draft.add(op_type, sources, draft.blocking(shape, in_ublock(draft, formats)), formats)


def elementwise(draft: NetlistDraft, op_type: str) -> None:
    """A copy or arithmetic of integers, or of opaque words where the op only copies."""
    if draft.arch.name == "grayskull" or draft.tile != FULL_TILE:
        raise NoRoomError
    draw, declared = draft.draw, OP_TYPES[op_type]
    legal = [name for name in declared.integers if name != "UInt16"]
    shape = any_shape(draft)
    source = (draw.pick(legal),)
    formats = Formats(draw.pick([name for name in legal if is_integer(name)]), "Int32", "Int32")
    if is_raw(source[0]):
        source = (draw.pick([spec.name for spec in FORMATS.values() if spec.kind == "raw"]),)
        formats = Formats(source[0], "Float16_b", "Float16_b")
    sources = [operand(draft, shape, source) for _ in range(declared.inputs[0])]
    draft.add(op_type, sources, draft.blocking(shape, in_ublock(draft, formats)), formats)
