"""The use of a fused op's inputs: for each input the sub-op that reads it first, and how often it is read (OPS 8)."""

from collections.abc import Mapping
from dataclasses import dataclass

from buda_emu.netlist.model import FusedOp, SubOp


@dataclass(frozen=True, slots=True)
class FusedUse:
    """The use of inputs in a definition of `fused_ops`. `readers` has for each inputN the first sub-op that reads it.
    `forked` has for each input that is read more than once the factor by which its buffer grows. `intermediate_tiles`
    has the sizes of intermediate buffers."""

    readers: Mapping[str, SubOp]
    forked: Mapping[str, int]
    intermediate_tiles: tuple[int, ...]


def fused_use(fused: FusedOp) -> FusedUse:
    """Return how a definition of `fused_ops` uses its inputs, which is the same for all ops that have it."""
    readers: dict[str, SubOp] = {}
    for schedule in fused.schedules:
        for sub in schedule:
            for name in sub.inputs:
                if name.startswith("input"):
                    readers.setdefault(name, sub)
    forked = {name: grows for name in readers if (grows := _growth(fused, name))}
    return FusedUse(readers, forked, _intermediate_tiles(fused))


def _growth(fused: FusedOp, name: str) -> int:
    """Return the factor by which the buffer of input `name` grows: 0 for an input that is read once; else the m_k of
    the product or reduction that ends the schedule in which the input is read first, or 1."""
    uses = 0
    growth = 1
    m_k = 1
    read_here = False
    for schedule in fused.schedules:
        ends_in_sum = False
        for sub in schedule:
            if name in sub.inputs:
                read_here = uses == 0
                uses += 1
            if sub.has("keeps sums"):
                ends_in_sum = True
                m_k = sub.attributes.m_k
        if read_here and ends_in_sum:
            growth = m_k
    if uses > 1:
        return growth
    return 0


def _grown_buffer(last: SubOp) -> tuple[str, int]:
    """Return the intermediate that the last sub-op of a schedule reads again for each of its columns, and by what
    factor that buffer grows; ("", 1) if there is none."""
    if last.has("rows by columns") and last.mblock[1] > 1 and last.inputs[0].startswith("intermed"):
        return last.inputs[0], last.attributes.m_k
    return "", 1


def _intermediate_tiles(fused: FusedOp) -> tuple[int, ...]:
    """Return the tiles of each intermediate buffer of a fused op, at least 1."""
    sizes = [0] * max(fused.intermediates, 0)
    for schedule in fused.schedules:
        grows, factor = _grown_buffer(schedule[-1])
        for sub in schedule:
            if not sub.output.startswith("intermed"):
                continue
            number = int(sub.output[-1])
            tiles = sub.ublock[0] * sub.ublock[1]
            if sub.output == grows and not sub.has("rows by columns"):
                tiles *= factor
            if number < len(sizes):
                sizes[number] = max(sizes[number], tiles)
    return tuple(max(size, 1) for size in sizes)
