"""The order of sub-ops in a fused op, and what each reads and writes (OPS 8)."""

from collections.abc import Mapping, Sequence
from typing import Final

from buda_emu.compiler.lower.tiles import RELU, SubOp, TileOp, Use, kept

MAX_INTERMEDIATES: Final = 8  # V130
MAX_INPUTS: Final = 8
"""FRONTEND 3.3 has 16, 8 of them from DRAM. Which come from DRAM is known when epochs are, so all of them may."""


def scheduled(members: Mapping[str, TileOp], root: str, arch: str) -> tuple[tuple[SubOp, ...], list[Use]] | None:
    """Sub-ops in order, and the operands of the fused op; None where buffers do not suffice. All element-wise, so that
    one schedule holds them: it runs block by block, and an intermediate is a block."""
    order = _ordered(members, root)
    uses = list(dict.fromkeys(use for op in order for use in op.uses if use.source not in members))
    if len(uses) > MAX_INPUTS:
        return None
    places: dict[str, str] = {root: "output"}
    busy: dict[str, str] = {}
    steps: list[SubOp] = []
    for number, op in enumerate(order):
        inputs = tuple(places[use.source] if use.source in members else f"input{uses.index(use)}" for use in op.uses)
        later = {use.source for following in order[number + 1 :] for use in following.uses}
        ended = [slot for slot, value in busy.items() if value not in later]
        if op.name != root:
            following = order[number + 1]
            if op.name not in _sources(order[number + 2 :]) and _through_dest(op, following, arch):
                places[op.name] = "dest"
            else:
                # A buffer that is read here is free only afterwards.
                free = [f"intermed{k}" for k in range(MAX_INTERMEDIATES) if f"intermed{k}" not in busy]
                if not free:
                    return None
                places[op.name] = free[0]
                busy[free[0]] = op.name
        for slot in ended:
            del busy[slot]
        attrs = kept(op.attrs, (*RELU, "exp", "slope"))
        steps.append(SubOp(op.name, op.type, inputs, places[op.name], tuple(ended), attrs))
    return tuple(steps), uses


def _sources(ops: Sequence[TileOp]) -> set[str]:
    return {use.source for op in ops for use in op.uses}


def _ordered(members: Mapping[str, TileOp], root: str) -> list[TileOp]:
    """Operands first, the longer branch before the shorter, so that the last one comes by way of dest."""
    found: dict[str, TileOp] = {}
    depth: dict[str, int] = {}

    def measure(name: str) -> int:
        if name not in depth:
            depth[name] = 1 + max(
                (measure(use.source) for use in members[name].uses if use.source in members), default=0
            )
        return depth[name]

    def visit(name: str) -> None:
        if name in found:
            return
        inner = [use.source for use in members[name].uses if use.source in members]
        for source in sorted(dict.fromkeys(inner), key=lambda item: -measure(item)):
            visit(source)
        found[name] = members[name]

    visit(root)
    return list(found.values())


def _through_dest(op: TileOp, reader: TileOp, arch: str) -> bool:
    """OPS 8.3 rules 6 and 7; V133, V134."""
    places = [number for number, use in enumerate(reader.uses) if use.source == op.name]
    if len(places) != 1 or "maximum" in (op.type, reader.type):
        return False
    return places == [0] or arch != "grayskull"
