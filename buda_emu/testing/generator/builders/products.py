"""Dense, sparse and depthwise products (OPS 6.1 to 6.3)."""

from typing import Final

from buda_emu.spec.blocking import Blocking
from buda_emu.testing.generator.builders.elementwise import extras
from buda_emu.testing.generator.draft import Formats, NetlistDraft, NoRoomError
from buda_emu.testing.generator.formats import chosen, in_ublock, operands
from buda_emu.testing.generator.operands import operand
from buda_emu.testing.generator.shapes import any_shape

_OF_SPARSE: Final = frozenset(
    ("identity", "num_sparse_tiles", "num_columns", "indices_len", "fracture_factor", "starting_row", "act_t",
     "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips")
)  # fmt: skip
_OF_INTEGERS: Final = frozenset(("requant", "dequant", "zero_point"))


def matmul(draft: NetlistDraft, op_type: str) -> None:
    """A product: of floats, of integers, or with sparse tiles."""
    kind, wanted = draft.draw.integer(0, 9), draft.draw.wanted
    if kind < 2 or _OF_SPARSE & wanted:
        _sparse(draft, op_type)
    elif (kind < 4 or _OF_INTEGERS & wanted) and draft.arch.name != "grayskull":
        _of_integers(draft, op_type)
    else:
        _dense(draft, op_type)


def _inner(draft: NetlistDraft) -> tuple[int, int]:
    """m_k and u_kt."""
    return draft.draw.pick((1, 1, 2, 3)), draft.draw.pick((1, 1, 2, 4))


def _dense(draft: NetlistDraft, op_type: str) -> None:
    draw = draft.draw
    t, rows, cols = any_shape(draft)
    m_k, u_kt = _inner(draft)
    summed = draw.pick((2, 3)) if t < 3 and draw.sometimes(15, "accumulate", "z") else 1
    bias = draw.sometimes(35, "bias")
    gradient = summed == 1 and not bias and draw.sometimes(10, "gradient op", "zero")
    formats = chosen(draft, sums=m_k > 1 or bias or summed > 1, gradient=gradient)
    inner = m_k * u_kt
    sources = [
        operand(draft, (t * summed, rows, inner), operands(draft)),
        operand(draft, (t * summed, inner, cols), operands(draft), transposed=not gradient),
    ]
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": u_kt}
    if summed > 1:
        attributes |= {"accumulate": True, "z": summed}
    if bias:
        attributes["bias"] = True
        sources.append(operand(draft, (t, rows, cols), operands(draft)))
    if draw.sometimes(10, "sfpu_op"):
        attributes["sfpu_op"] = "gelu"
    if draw.sometimes(10, "min_buffer_input"):
        attributes["min_buffer_input"] = draw.integer(0, 1)
    formats = _sums_in_l1(draft, formats, attributes)
    attributes |= extras(draft)
    blocking = draft.blocking((t, rows, cols), in_ublock(draft, formats), order="r")
    positive = (
        all(item.value.positive for item in sources) and "relu_mode" not in attributes and "sfpu_op" not in attributes
    )
    fields: dict[str, object] = {"gradient_op": True} if gradient else {}
    draft.add(op_type, sources, blocking, formats, attributes=attributes, positive=positive, fields=fields)


def _sums_in_l1(draft: NetlistDraft, formats: Formats, attributes: dict[str, object]) -> Formats:
    """Now and then blocks are added up in L1 (NETLIST V092)."""
    held = formats.intermed in ("Float32", "Float16_b") and draft.arch.name != "grayskull"
    if not held or not draft.draw.sometimes(20, "l1_acc"):
        return formats
    attributes["l1_acc"] = True
    return Formats(formats.out, formats.intermed, formats.acc if formats.acc == formats.intermed else "Float16_b")


def _of_integers(draft: NetlistDraft, op_type: str) -> None:
    """Int8 operands summed in Int32; scaled to Float32, or to Int8 again, or left as they are."""
    draw = draft.draw
    t, rows, cols = any_shape(draft)
    m_k, u_kt = _inner(draft)
    inner, bias = m_k * u_kt, draw.chance(50)
    end = draw.pick(("", "requant", "dequant"))
    sources = [
        operand(draft, (t, rows, inner), ("Int8",)),
        operand(draft, (t, inner, cols), ("Int8",)),
    ]
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": u_kt}
    if bias:
        attributes["bias"] = True
        sources.append(operand(draft, (t, rows, cols), ("Int32",)))
    if end:
        attributes[end] = True
        attributes["zero_point"] = float(draw.integer(0, 5))
        sources.append(operand(draft, (t, rows, cols), ("Float32",)))
    formats = Formats({"": "Int32", "requant": "Int8", "dequant": "Float32"}[end], "Int32", "Int32")
    blocking = draft.blocking((t, rows, cols), in_ublock(draft, formats), order="r")
    draft.add(op_type, sources, blocking, formats, attributes=attributes)


def _sparse(draft: NetlistDraft, op_type: str) -> None:
    """Tiles of operand 1 picked by tiles of operand 0, as a stream of indices says (NETLIST 5.2)."""
    draw = draft.draw
    t, rows, cols = any_shape(draft)
    tiles, index_tiles = draw.integer(1, 4), draw.integer(1, 2)
    m_k, u_kt = draw.integer(1, 3), draw.integer(1, 2)
    act_t = draw.pick((1, t))
    own: dict[str, object] = {}
    formats = _sums_in_l1(draft, chosen(draft, sums=True), own)
    blocking = draft.blocking((t, rows, cols), in_ublock(draft, formats), order="r")
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
    formats_of_sparse = [name for name in operands(draft) if name != "Float32"]
    sources = [
        operand(draft, (1, down, tiles * across), formats_of_sparse, shaped=False),
        operand(draft, (act_t, m_k * u_kt, cols), operands(draft), shaped=False),
        operand(draft, (1, down, index_tiles), ("RawUInt32",), shaped=False, source="own"),
    ]
    if draw.chance(25):
        attributes["bias"] = True
        sources.append(operand(draft, (t, rows, cols), operands(draft)))
    draft.add(op_type, sources, blocking, formats, attributes=attributes)
    tiles = sources[0].value
    if tiles.is_queue and draft.document.queues[tiles.name].host_fed and draw.sometimes(30, "sparse"):
        draft.sparse.append(tiles.name)


def depthwise(draft: NetlistDraft, op_type: str) -> None:
    """Blocks of columns, each times its own row of weights (OPS 6.3)."""
    draw = draft.draw
    t, rows, cols = any_shape(draft)
    m_k = draw.integer(1, 3)
    bias = draw.sometimes(35, "bias")
    formats = chosen(draft, sums=True)
    found = draft.blocking((t, rows, cols), in_ublock(draft, formats), order="r")
    blocking = Blocking((found.grid_size[0], 1), t, (found.mblock[0], cols // found.ublock[1]), found.ublock, "r")
    sources = [
        operand(draft, (t, rows, cols * m_k), operands(draft)),
        operand(draft, (t, m_k, cols), operands(draft)),
    ]
    attributes: dict[str, object] = {"m_k": m_k, "u_kt": 1}
    if bias:
        attributes["bias"] = True
        sources.append(operand(draft, (t, rows, cols), operands(draft)))
    if draw.sometimes(15, "min_buffer_input"):
        attributes["min_buffer_input"] = 0
    draft.add(op_type, sources, blocking, formats, attributes=attributes | extras(draft))
