"""Dense, sparse and depthwise products (OPS 6.1 to 6.3)."""

from typing import Final

from buda_emu.spec.blocking import Blocking
from buda_emu.testing.generator.builders.elementwise import extras
from buda_emu.testing.generator.formats import chosen, in_ublock, operands
from buda_emu.testing.generator.operands import operand
from buda_emu.testing.generator.shapes import any_shape
from buda_emu.testing.generator.sheet import Formats, NoRoomError, Sheet

_OF_SPARSE: Final = frozenset(
    ("identity", "num_sparse_tiles", "num_columns", "indices_len", "fracture_factor", "starting_row", "act_t",
     "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips")
)  # fmt: skip
_OF_INTEGERS: Final = frozenset(("requant", "dequant", "zero_point"))


def matmul(sheet: Sheet, op_type: str) -> None:
    """A product: of floats, of integers, or with sparse tiles."""
    kind, wanted = sheet.draw.integer(0, 9), sheet.draw.wanted
    if kind < 2 or _OF_SPARSE & wanted:
        _sparse(sheet, op_type)
    elif (kind < 4 or _OF_INTEGERS & wanted) and sheet.arch.name != "grayskull":
        _of_integers(sheet, op_type)
    else:
        _dense(sheet, op_type)


def _inner(sheet: Sheet) -> tuple[int, int]:
    """m_k and u_kt."""
    return sheet.draw.pick((1, 1, 2, 3)), sheet.draw.pick((1, 1, 2, 4))


def _dense(sheet: Sheet, op_type: str) -> None:
    draw = sheet.draw
    t, rows, cols = any_shape(sheet)
    m_k, u_kt = _inner(sheet)
    summed = draw.pick((2, 3)) if t < 3 and draw.sometimes(15, "accumulate", "z") else 1
    bias = draw.sometimes(35, "bias")
    gradient = summed == 1 and not bias and draw.sometimes(10, "gradient op", "zero")
    formats = chosen(sheet, sums=m_k > 1 or bias or summed > 1, gradient=gradient)
    inner = m_k * u_kt
    sources = [
        operand(sheet, (t * summed, rows, inner), operands(sheet)),
        operand(sheet, (t * summed, inner, cols), operands(sheet), transposed=not gradient),
    ]
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": u_kt}
    if summed > 1:
        attributes |= {"accumulate": True, "z": summed}
    if bias:
        attributes["bias"] = True
        sources.append(operand(sheet, (t, rows, cols), operands(sheet)))
    if draw.sometimes(10, "sfpu_op"):
        attributes["sfpu_op"] = "gelu"
    if draw.sometimes(10, "min_buffer_input"):
        attributes["min_buffer_input"] = draw.integer(0, 1)
    formats = _sums_in_l1(sheet, formats, attributes)
    attributes |= extras(sheet)
    blocking = sheet.blocking((t, rows, cols), in_ublock(sheet, formats), order="r")
    positive = (
        all(item.value.positive for item in sources) and "relu_mode" not in attributes and "sfpu_op" not in attributes
    )
    fields: dict[str, object] = {"gradient_op": True} if gradient else {}
    sheet.add(op_type, sources, blocking, formats, attributes=attributes, positive=positive, fields=fields)


def _sums_in_l1(sheet: Sheet, formats: Formats, attributes: dict[str, object]) -> Formats:
    """Now and then blocks are added up in L1 (NETLIST V092)."""
    held = formats.intermed in ("Float32", "Float16_b") and sheet.arch.name != "grayskull"
    if not held or not sheet.draw.sometimes(20, "l1_acc"):
        return formats
    attributes["l1_acc"] = True
    return Formats(formats.out, formats.intermed, formats.acc if formats.acc == formats.intermed else "Float16_b")


def _of_integers(sheet: Sheet, op_type: str) -> None:
    """Int8 operands summed in Int32; scaled to Float32, or to Int8 again, or left as they are."""
    draw = sheet.draw
    t, rows, cols = any_shape(sheet)
    m_k, u_kt = _inner(sheet)
    inner, bias = m_k * u_kt, draw.chance(50)
    end = draw.pick(("", "requant", "dequant"))
    sources = [
        operand(sheet, (t, rows, inner), ("Int8",)),
        operand(sheet, (t, inner, cols), ("Int8",)),
    ]
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": u_kt}
    if bias:
        attributes["bias"] = True
        sources.append(operand(sheet, (t, rows, cols), ("Int32",)))
    if end:
        attributes[end] = True
        attributes["zero_point"] = float(draw.integer(0, 5))
        sources.append(operand(sheet, (t, rows, cols), ("Float32",)))
    formats = Formats({"": "Int32", "requant": "Int8", "dequant": "Float32"}[end], "Int32", "Int32")
    blocking = sheet.blocking((t, rows, cols), in_ublock(sheet, formats), order="r")
    sheet.add(op_type, sources, blocking, formats, attributes=attributes)


def _sparse(sheet: Sheet, op_type: str) -> None:
    """Tiles of operand 1 picked by tiles of operand 0, as a stream of indices says (NETLIST 5.2)."""
    draw = sheet.draw
    t, rows, cols = any_shape(sheet)
    tiles, index_tiles = draw.integer(1, 4), draw.integer(1, 2)
    m_k, u_kt = draw.integer(1, 3), draw.integer(1, 2)
    act_t = draw.pick((1, t))
    own: dict[str, object] = {}
    formats = _sums_in_l1(sheet, chosen(sheet, sums=True), own)
    blocking = sheet.blocking((t, rows, cols), in_ublock(sheet, formats), order="r")
    if blocking.block_rows * u_kt > 64:
        raise NoRoomError
    down, across = blocking.grid_size
    attributes: dict[str, object] = {
        "identity": True,
        "num_sparse_tiles": tiles,
        "num_index_tiles": index_tiles,
        "m_k": m_k,
        "u_kt": u_kt,
        "sparse_tile_ptr_bits": 4,
        "sparse_ublock_idx_bits": 5,
        "act_t": act_t,
        "fracture_factor": 1,
        **own,
    }
    formats_of_sparse = [name for name in operands(sheet) if name != "Float32"]
    sources = [
        operand(sheet, (1, down, tiles * across), formats_of_sparse, shaped=False),
        operand(sheet, (act_t, m_k * u_kt, cols), operands(sheet), shaped=False),
        operand(sheet, (1, down, index_tiles), ("RawUInt32",), shaped=False, source="own"),
    ]
    if draw.chance(25):
        attributes["bias"] = True
        sources.append(operand(sheet, (t, rows, cols), operands(sheet)))
    sheet.add(op_type, sources, blocking, formats, attributes=attributes)
    tiles = sources[0].value
    if tiles.is_queue and sheet.document.queues[tiles.name].host_fed and draw.sometimes(30, "sparse"):
        sheet.sparse.append(tiles.name)


def depthwise(sheet: Sheet, op_type: str) -> None:
    """Blocks of columns, each times its own row of weights (OPS 6.3)."""
    draw = sheet.draw
    t, rows, cols = any_shape(sheet)
    m_k = draw.integer(1, 3)
    bias = draw.sometimes(35, "bias")
    formats = chosen(sheet, sums=True)
    found = sheet.blocking((t, rows, cols), in_ublock(sheet, formats), order="r")
    blocking = Blocking((found.grid_size[0], 1), t, (found.mblock[0], cols // found.ublock[1]), found.ublock, "r")
    sources = [
        operand(sheet, (t, rows, cols * m_k), operands(sheet)),
        operand(sheet, (t, m_k, cols), operands(sheet)),
    ]
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": 1}
    if bias:
        attributes["bias"] = True
        sources.append(operand(sheet, (t, rows, cols), operands(sheet)))
    if draw.sometimes(15, "min_buffer_input"):
        attributes["min_buffer_input"] = 0
    sheet.add(op_type, sources, blocking, formats, attributes=attributes | extras(sheet))
