"""Hints that supply the value of a missing field, if its neighbours determine it or make it likely."""

from collections.abc import Iterable
from typing import Final

from buda_emu.netlist.model import Graph, Op, Queue
from buda_emu.netlist.nodes import Mapping
from buda_emu.netlist.rules.context import Context
from buda_emu.support.checker.fix import putting

Subject = Queue | Op | Graph
_SHAPE: Final = ("t", "mblock", "ublock", "grid_size")
_INNER: Final = ("m_k", "u_kt")
_USUAL: Final = {
    "input": "HOST", "type": "queue", "ublock_order": "r", "buf_size_mb": "2", "math_fidelity": "HiFi3",
    "input_count": "1",
}  # fmt: skip
"""The most frequent values, for fields that no neighbour determines."""


def missing(ctx: Context, subject: Subject, key: str, hint: str = "") -> str:
    """Return a hint to write the missing field `key`, or `hint` if no value suggests itself. The hint is a safe fix
    where no other value would be accepted (docs/netlists/check.md, "Fixes").
    """
    if not isinstance(subject, Graph) and subject.written_name not in ("", subject.name):
        return hint  # one of the copies for several chips
    required = _required_values(ctx, subject, key)
    if len(required) == 1:
        text = required.pop()
        return putting(f"write `{key}: {text}`", key, text)
    text = _guess_value(ctx, subject, key)
    if not text:
        return hint
    start = f"{hint}: perhaps" if hint else "perhaps"
    return putting(f"{start} `{key}: {text}`", key, text, safe=False)


def size_hint(ctx: Context, subject: Subject, key: str, hint: str = "") -> str:
    """Return a hint to write a missing size, or `hint` for a size that is written and wrong."""
    absent = isinstance(subject.source, Mapping) and subject.source.find(key) is None
    return missing(ctx, subject, key, hint) if absent else hint


def _required_values(ctx: Context, subject: Subject, key: str) -> set[str]:
    """Return the values of a field that the connected queues and ops demand, as texts."""
    if key == "target_device":
        return _possible_chips(ctx, subject)
    if isinstance(subject, Op) and key in _INNER:
        return _inner_sizes(ctx, subject, key)
    if isinstance(subject, Graph) or key not in _SHAPE:
        return set()
    return _required_shapes(ctx, subject, key)


def _required_shapes(ctx: Context, subject: Queue | Op, key: str) -> set[str]:
    """Return the values that a field of the blocking has in the queues which an op fills, or in the op which fills a
    queue. For a queue of one buffer that no op fills, the grid is one core."""
    neighbours: Iterable[Queue | Op] = ctx.fed.get(subject.name, ())
    if isinstance(subject, Queue):
        if subject.input in ctx.ops:
            neighbours = [ctx.ops[subject.input]]
        else:
            neighbours = []
        if not neighbours and key == "grid_size" and len(subject.buffers) == 1:
            return {"[1, 1]"}
    values = [getattr(neighbour.blocking, key) for neighbour in neighbours]
    return {str(value if isinstance(value, int) else list(value)) for value in values if _is_positive(value)}


def _inner_sizes(ctx: Context, op: Op, key: str) -> set[str]:
    """Return m_k or u_kt of a matmul that has the other of the two, as text: their product is the number of tile
    columns of input 0. Empty if these are not known or not divisible."""
    if op.inputs and not any(op.input_tms[:1]):
        source = ctx.source(op.inputs[0])
    else:
        source = None
    if key == "m_k":
        other = op.attributes.u_kt
    else:
        other = op.attributes.m_k
    if source is not None:
        columns = source.blocking.shape[2]
    else:
        columns = 0
    if other <= 0 or columns <= 0 or columns % other:
        return set()
    return {str(columns // other)}


def _is_positive(value: int | tuple[int, int]) -> bool:
    """Return whether a size, or both of a pair, are above 0."""
    return min((value,) if isinstance(value, int) else value) > 0


def _possible_chips(ctx: Context, subject: Subject) -> set[str]:
    """Return the chip of the op that feeds a queue; for other objects all chips of the netlist."""
    netlist = ctx.netlist
    if isinstance(subject, Queue) and subject.input in ctx.ops:
        chips = {ctx.ops[subject.input].target_device}
    else:
        chips = {placed.target_device for placed in (*netlist.graphs.values(), *netlist.queues.values())}
    return {str(chip) for chip in chips if chip >= 0}


def _guess_input_formats(ctx: Context, op: Op) -> str:
    """Return the formats of an op's inputs as text, "" if one of them is not known."""
    formats = [source.df if isinstance(source, Queue) else source.out_df for _, source in ctx.sources(op)]
    if all(formats) and len(formats) == len(op.inputs):
        return f"[{', '.join(formats)}]"
    return ""


def _guess_value(ctx: Context, subject: Subject, key: str) -> str:
    """Return one of several values that would be accepted, "" if none is likely."""
    if isinstance(subject, Graph):
        return _USUAL.get(key, "")
    if key == "entries" and isinstance(subject, Queue):
        return _guess_entries(ctx, subject)
    if key == "intermed_df" and isinstance(subject, Op):
        return subject.out_df
    if key == "in_df" and isinstance(subject, Op):
        return _guess_input_formats(ctx, subject)
    if key in ("df", "out_df"):
        return _guess_format(ctx, subject)
    return _USUAL.get(key, "")


def _guess_entries(ctx: Context, queue: Queue) -> str:
    """Return enough entries for one execution of the graphs that read a queue; one entry for a ram."""
    counts = [ctx.netlist.graphs[op.graph].input_count for op in ctx.readers.get(queue.name, ())]
    if queue.type == "queue" and counts:
        return str(max(1, *counts))
    return "1" if queue.type == "ram" else ""


def _guess_format(ctx: Context, subject: Queue | Op) -> str:
    """Return the format that the neighbours of a queue or op suggest: that of the op that feeds the queue, else that of
    a queue that the op feeds, else the one in which a reader declares it; "" if there is none."""
    formats: list[str] = []
    if isinstance(subject, Queue) and subject.input in ctx.ops:
        formats.append(ctx.ops[subject.input].out_df)
    formats += [queue.df for queue in ctx.fed.get(subject.name, ())]
    for op in ctx.readers.get(subject.name, ()):
        if len(op.in_df) == len(op.inputs):
            formats.append(op.in_df[op.inputs.index(subject.name)])
    return next((df for df in formats if df), "")
