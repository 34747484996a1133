"""Schedules of fused ops: the order of sub-ops, and the buffers that each reads and writes (OPS 8)."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from buda_emu.compiler.lower.tiles import RELU, SubOp, TileAttributes, TileOp, Use, select_attributes
from buda_emu.spec.ops import OfOpType

MAX_INTERMEDIATES: Final = 8  # V130
MAX_INPUTS: Final = 8
"""Largest number of operands. FRONTEND 3.3 allows 16, 8 of them from DRAM; which ones come from DRAM is only known once
epochs are chosen, so the limit assumes that all of them do."""


@dataclass(frozen=True, slots=True)
class Part(OfOpType):
    """A future sub-op. `operands` are other parts by name, and uses that the fused op reads; the other fields are those
    of `SubOp`."""

    name: str
    type: str
    operands: tuple[str | Use, ...]
    attrs: TileAttributes = field(default_factory=TileAttributes)
    spread: str = ""
    columns: int = 0
    across: int = 0
    inner: int = 0

    @staticmethod
    def of(op: TileOp, members: Container[str]) -> "Part":
        """Return the part of an element-wise op; operands without TMs that are members of the fused op become parts."""
        operands = tuple(use.source if use.source in members and not use.tms else use for use in op.uses)
        return Part(op.name, op.type, operands, select_attributes(op.attrs, (*RELU, "exp", "slope")))

    @property
    def parts_read(self) -> Iterator[str]:
        """The names of the parts of the same fused op whose results this part reads; its other operands come from
        outside."""
        return (operand for operand in self.operands if isinstance(operand, str))


def schedule_parts(parts: Mapping[str, Part], root: str, arch: str) -> tuple[tuple[SubOp, ...], list[Use]] | None:
    """Return the sub-ops of a fused op in order, and its operands; None if buffers do not suffice. `root`: the part
    whose result is that of the op. A schedule runs block by block, and an intermediate is a block; a sum ends its
    schedule."""
    order = _order_parts(parts, root)
    operands = chain.from_iterable(part.operands for part in order)
    uses = list(dict.fromkeys(operand for operand in operands if isinstance(operand, Use)))
    if len(uses) > MAX_INPUTS:
        return None
    places: dict[str, str] = {root: "output"}
    busy: dict[str, str] = {}
    steps: list[SubOp] = []
    for number, part in enumerate(order):
        inputs = tuple(
            places[operand] if isinstance(operand, str) else f"input{uses.index(operand)}" for operand in part.operands
        )
        later = set(chain.from_iterable(following.parts_read for following in order[number + 1 :]))
        ended = [slot for slot, value in busy.items() if value not in later]
        if part.name != root:
            place = _result_place(part, order[number + 1 :], busy, arch)
            if place is None:
                return None
            places[part.name] = place
            if place != "dest":
                busy[place] = part.name
        for slot in ended:
            del busy[slot]
        step = SubOp(
            name=part.name,
            type=part.type,
            inputs=inputs,
            output=places[part.name],
            pop=tuple(ended),
            attrs=part.attrs,
            spread=part.spread,
        )
        steps.append(replace(step, columns=part.columns, across=part.across, inner=part.inner))
    return tuple(steps), uses


def _result_place(part: Part, following: Sequence[Part], busy: Container[str], arch: str) -> str | None:
    """Return the place of a part's result: dest if the next part is its only reader and can read dest, else a free
    buffer; None if no buffer is free. A buffer that the part itself reads is not free yet."""
    if part.name not in _names_of_parts_read(following[1:]) and _passes_through_dest(part, following[0], arch):
        return "dest"
    free = (f"intermed{number}" for number in range(MAX_INTERMEDIATES))
    return next((slot for slot in free if slot not in busy), None)


def schedules(steps: Sequence[SubOp]) -> list[list[SubOp]]:
    """Group steps by schedule: a maximum or a sum of rows is the last step of its own (OPS 8.3)."""
    groups: list[list[SubOp]] = [[]]
    for step in steps:
        groups[-1].append(step)
        if step.inner:
            groups.append([])
    return [schedule for schedule in groups if schedule]


def kept_columns(steps: Sequence[SubOp], columns: int) -> int:
    """Return the width, in tiles, of the widest intermediate that is read behind a sum that does not depend on it, 0 if
    there is none: it has to be one block (OPS 8.3). `columns`: width of the fused op."""
    widest = 0
    written: dict[str, tuple[int, int]] = {}  # by buffer: the schedule that wrote it, its columns
    for number, schedule in enumerate(schedules(steps)):
        for step in schedule:
            for name in step.inputs:
                when, wide = written.get(name, (number, 0))
                widest = max(widest, wide if when < number else 0)
            written[step.output] = number, 0 if step.inner else step.columns or columns
    return widest


def _names_of_parts_read(parts: Sequence[Part]) -> set[str]:
    """Return the names of all parts that the given parts read."""
    return set(chain.from_iterable(part.parts_read for part in parts))


def _order_parts(parts: Mapping[str, Part], root: str) -> list[Part]:
    """Return the parts that `root` needs, in order: operands first, the longer branch before the shorter, so that the
    last operand comes through dest."""
    ordered: dict[str, Part] = {}
    depth: dict[str, int] = {}

    def measure(name: str) -> int:
        """Return the length of the longest chain of parts that ends with a part."""
        if name not in depth:
            depth[name] = 1 + max((measure(source) for source in parts[name].parts_read), default=0)
        return depth[name]

    def visit(name: str) -> None:
        """Add a part to the order after its sources, those with the longest chains first."""
        if name in ordered:
            return
        for source in sorted(dict.fromkeys(parts[name].parts_read), key=lambda part_name: -measure(part_name)):
            visit(source)
        ordered[name] = parts[name]

    visit(root)
    return list(ordered.values())


def _passes_through_dest(part: Part, reader: Part, arch: str) -> bool:
    """Return whether a part can pass its result to the next one in dest (OPS 8.3 rules 6 and 7; V133, V134); dest has
    no TMs (OPS 8.1)."""
    places = [number for number, source in enumerate(reader.operands) if source == part.name]
    if len(places) != 1 or "maximum" in (part.type, reader.type) or part.inner or reader.inner:
        return False
    return places == [0] or (arch != "grayskull" and not reader.spread)
