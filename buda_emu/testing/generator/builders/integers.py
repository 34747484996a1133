"""Quantisation: floats to Int8 and back (NETLIST V103)."""

from buda_emu.testing.generator.formats import in_ublock
from buda_emu.testing.generator.operands import operand
from buda_emu.testing.generator.shapes import any_shape
from buda_emu.testing.generator.sheet import Formats, NoRoomError, Sheet


def quantization(sheet: Sheet, op_type: str) -> None:
    """Any of the three ops of the family."""
    if sheet.arch.name == "grayskull":
        raise NoRoomError
    draw = sheet.draw
    source = ("Float32",) if op_type == "quantization" else ("Int32", "Int8")
    formats = Formats("Float32" if op_type == "dequantization" else "Int8", "Int32", "Int32")
    shape = any_shape(sheet)
    sources = (operand(sheet, shape, source), operand(sheet, shape, ("Float32",)))
    attributes: dict[str, object] = {}
    if draw.chance(70):
        attributes["zero_point"] = float(draw.integer(-3, 9))
    sheet.add(op_type, sources, sheet.blocking(shape, in_ublock(sheet, formats)), formats, attributes=attributes)
