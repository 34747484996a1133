"""TM lists: `input_tms` of queues, `input_N_tms` of ops and scheduled ops (NETLIST 1.6, 11.2 B5, OPS 7)."""

from collections.abc import Sequence as Series
from typing import Literal

from buda_emu.checker.suggest import near
from buda_emu.checker.text import quoted
from buda_emu.netlist.model import Tm
from buda_emu.netlist.nodes import Mapping, Node, Scalar, Sequence
from buda_emu.netlist.reader.context import Context
from buda_emu.netlist.reader.maps import keyed
from buda_emu.netlist.reader.values import kind_of, text_of
from buda_emu.netlist.scalars import leading_integer, parse_float, parse_int
from buda_emu.spec.ops import OP_TYPES

MALFORMED = "V038"
SLICES = ("hslice", "hstack", "vslice", "vstack")
BROADCAST_DIMS = ("r", "c", "z")
TM_WORDS = ("transpose", "broadcast", *SLICES, "tile_broadcast", "pad")

Owner = Literal["queue", "op", "scheduled op"]


def read_tms(context: Context, name: str, node: Node, owner: Owner) -> list[Tm]:
    """The TMs of a list, in order. Any scalar, `None` and nothing included, is a list without TMs."""
    if isinstance(node, Scalar):
        return []
    if isinstance(node, Mapping):
        context.report(MALFORMED, node, f"{name} needs a list of TMs, not a map")
        return []
    tms: list[Tm] = []
    for item in node.items:
        if isinstance(item, Mapping):
            for word, key, value in keyed(context, item):
                tms.extend(_with_argument(context, name, word, key, value, owner))
        elif isinstance(item, Scalar) and text_of(item) == "transpose":
            tms.append(Tm("transpose", (), item.mark))
        else:
            hint = near(item.text, TM_WORDS) if isinstance(item, Scalar) else ""
            if isinstance(item, Scalar) and item.text in TM_WORDS:
                hint = f"it needs an argument: {{{item.text}: ...}}"
            context.report(MALFORMED, item, f"{name}: {kind_of(item)} is not a TM", hint)
    return tms


def _with_argument(context: Context, name: str, word: str, key: Scalar, value: Node, owner: Owner) -> list[Tm]:
    if word == "broadcast":
        return _broadcast(context, name, key, value)
    if word in SLICES:
        count = parse_int(value.text) if isinstance(value, Scalar) else None
        if count is None:
            context.report(MALFORMED, value, f"{name}: {word} needs an integer, not {kind_of(value)}")
            return []
        return [Tm(word, (count,), key.mark)]
    if word == "pad":
        return _pad(context, name, key, value)
    if word == "tile_broadcast" and owner == "op":
        context.report(MALFORMED, key, f"{name}: tile_broadcast exists in fused schedules only")
    elif word == "tile_broadcast" and isinstance(value, Scalar):
        return [Tm(word, (text_of(value),), key.mark)]
    elif word == "tile_broadcast":
        context.report(MALFORMED, value, f"{name}: tile_broadcast needs r, c or rc, not {kind_of(value)}")
    else:
        hint = "transpose takes no argument" if word == "transpose" else near(word, TM_WORDS)
        context.report(MALFORMED, key, f"{name}: {quoted(word)} is not a TM", hint)
    return []


def _broadcast(context: Context, name: str, key: Scalar, value: Node) -> list[Tm]:
    """One TM for each key. The arguments of one map accumulate: the second TM holds both numbers (NETLIST 1.6)."""
    if isinstance(value, Sequence):
        context.report(MALFORMED, value, f"{name}: broadcast needs a map such as {{r: 2}}, not a list")
        return []
    tms: list[Tm] = []
    counts: tuple[int, ...] = ()
    for dim, dim_key, item in keyed(context, value) if isinstance(value, Mapping) else ():
        count = parse_int(item.text) if isinstance(item, Scalar) else None
        if dim not in BROADCAST_DIMS:
            context.report(MALFORMED, dim_key, f"{name}: broadcast has no dimension {quoted(dim)}, only r, c and z")
        elif count is None:
            context.report(MALFORMED, item, f"{name}: broadcast {dim} needs an integer, not {kind_of(item)}")
        else:
            counts = (*counts, count)
            tms.append(Tm("broadcast", (dim, *counts), key.mark))
    return tms


def _pad(context: Context, name: str, key: Scalar, value: Node) -> list[Tm]:
    items = value.items if isinstance(value, Sequence) and len(value.items) == 3 else []
    rows, columns, fill = [item.text if isinstance(item, Scalar) else "" for item in items] or ("", "", "")
    rt, ct, number = parse_int(rows), parse_int(columns), parse_float(fill)
    if rt is None or ct is None or number is None:
        context.report(MALFORMED, value, f"{name}: pad needs [rows, columns, value]")
        return []
    return [Tm("pad", (rt, ct, number), key.mark)]


def input_index(context: Context, key: str, key_node: Scalar, inputs: int | None) -> int | None:
    """N of `input_N_tms` and its like: the integer between the first and the last underscore, below `inputs`.

    None when there is none, which is reported; with `inputs` None (they could not be read) the index is not judged.
    """
    first, last = key.find("_"), key.rfind("_")
    index = leading_integer(key[first + 1 : last]) if first < last else None
    if index is None:
        hint = "write input_0_tms, input_1_pad, ..."
        context.report(MALFORMED, key_node, f"{quoted(key)} does not name an input", hint)
        return None
    if inputs is None:
        return None
    if not 0 <= index < inputs:
        context.report(MALFORMED, key_node, f"{key}: there is no input {index}, the op has {inputs}")
        return None
    return index


def check_transposes(
    context: Context, name: str, tms: Series[Tm], op_type: str, index: int, in_df: tuple[str, ...]
) -> None:
    """Report every transpose that this operand cannot have (NETLIST 1.6, OPS 7.4). An unknown type is not judged."""
    transposes = [tm for tm in tms if tm.name == "transpose"]
    if not transposes or op_type not in OP_TYPES:
        return
    refusal = OP_TYPES[op_type].transpose_refusal(index, context.arch, next(iter(in_df), ""))
    for tm in transposes if refusal else ():
        context.report(MALFORMED, tm.mark, f"{name}: {refusal}")
