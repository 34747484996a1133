"""The value of a missing field, if its neighbours determine it."""

from collections.abc import Iterable
from typing import Final

from buda_emu.netlist.model import Graph, Op, Queue
from buda_emu.netlist.nodes import Mapping
from buda_emu.netlist.rules.context import Context
from buda_emu.support.checker.fix import putting

Item = Queue | Op | Graph
_SHAPE: Final = ("t", "mblock", "ublock", "grid_size")
_INNER: Final = ("m_k", "u_kt")
_USUAL: Final = {
    "input": "HOST", "type": "queue", "ublock_order": "r", "buf_size_mb": "2", "math_fidelity": "HiFi3",
    "input_count": "1",
}  # fmt: skip
"""What is written most often, where nothing else says more."""


def missing(ctx: Context, item: Item, key: str, hint: str = "") -> str:
    """A hint to write the field; it is a safe fix where nothing else would be accepted (docs/netlists/check.md,
    "Fixes"). Else `hint`."""
    if not isinstance(item, Graph) and item.written_name not in ("", item.name):
        return hint  # one of the copies for several chips
    meant = _around(ctx, item, key)
    if len(meant) == 1:
        text = meant.pop()
        return putting(f"write `{key}: {text}`", key, text)
    text = _guess(ctx, item, key)
    said = f"{hint}: perhaps" if hint else "perhaps"
    return putting(f"{said} `{key}: {text}`", key, text, safe=False) if text else hint


def size_hint(ctx: Context, item: Item, key: str, hint: str = "") -> str:
    """The same of a size, which may also be written and wrong: then `hint`."""
    absent = isinstance(item.source, Mapping) and item.source.find(key) is None
    return missing(ctx, item, key, hint) if absent else hint


def _around(ctx: Context, item: Item, key: str) -> set[str]:
    """The values that what it is connected with demands."""
    if key == "target_device":
        return _chips(ctx, item)
    if isinstance(item, Op) and key in _INNER:
        return _inner(ctx, item, key)
    if isinstance(item, Graph) or key not in _SHAPE:
        return set()
    others: Iterable[Queue | Op] = ctx.fed.get(item.name, ())
    if isinstance(item, Queue):
        others = [ctx.ops[item.input]] if item.input in ctx.ops else []
        if not others and key == "grid_size" and len(item.buffers) == 1:
            return {"[1, 1]"}
    found = [getattr(other.blocking, key) for other in others]
    return {str(value if isinstance(value, int) else list(value)) for value in found if _whole(value)}


def _inner(ctx: Context, op: Op, key: str) -> set[str]:
    """m_k or u_kt of a matmul that has the other: their product is the number of tile columns of input 0."""
    source = ctx.source(op.inputs[0]) if op.inputs and not any(op.input_tms[:1]) else None
    other = op.attributes.u_kt if key == "m_k" else op.attributes.m_k
    columns = source.blocking.shape[2] if source is not None else 0
    return {str(columns // other)} if other > 0 and columns > 0 and columns % other == 0 else set()


def _whole(value: int | tuple[int, int]) -> bool:
    return min((value,) if isinstance(value, int) else value) > 0


def _chips(ctx: Context, item: Item) -> set[str]:
    """Of a netlist of one chip that one; of others that of the op which feeds a queue."""
    net = ctx.netlist
    if isinstance(item, Queue) and item.input in ctx.ops:
        chips = {ctx.ops[item.input].target_device}
    else:
        chips = {one.target_device for one in (*net.graphs.values(), *net.queues.values())}
    return {str(chip) for chip in chips if chip >= 0}


def _guess(ctx: Context, item: Item, key: str) -> str:
    """One of several that would be accepted; "" where there is no good one."""
    if isinstance(item, Graph):
        return _USUAL.get(key, "")
    readers = ctx.readers.get(item.name, ())
    if key == "entries" and isinstance(item, Queue):
        counts = [ctx.netlist.graphs[op.graph].input_count for op in readers]
        return str(max(1, *counts)) if item.type == "queue" and counts else "1" if item.type == "ram" else ""
    if key == "intermed_df" and isinstance(item, Op):
        return item.out_df
    if key == "in_df" and isinstance(item, Op):
        read = [source.df if isinstance(source, Queue) else source.out_df for _, source in ctx.sources(item)]
        return f"[{', '.join(read)}]" if all(read) and len(read) == len(item.inputs) else ""
    if key in ("df", "out_df"):
        source = ctx.ops.get(item.input) if isinstance(item, Queue) else None
        read = [op.in_df[op.inputs.index(item.name)] for op in readers if len(op.in_df) == len(op.inputs)]
        fed = [queue.df for queue in ctx.fed.get(item.name, ())]
        return next((df for df in (source.out_df if source else "", *fed, *read) if df), "")
    return _USUAL.get(key, "")
