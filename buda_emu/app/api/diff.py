"""`diff`: what differs between two netlists, or device images."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

from buda_emu.emulator.image.opened import netlist_of
from buda_emu.netlist.model import Netlist, Op
from buda_emu.netlist.printer import program_lines
from buda_emu.netlist.sourced import Sourced
from buda_emu.support.errors import BudaError
from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    from buda_emu.app.api import perf as timing
else:
    timing = lazy("buda_emu.app.api.perf")  # numpy, which a comparison without cycles does not need

_PLACEMENT: Final = frozenset({"graph", "target_device", "grid_loc", "grid_transpose", "grid_size"})
_FORMATS: Final = frozenset({"in_df", "out_df", "intermed_df", "acc_df", "df", "math_fidelity"})
_LEFT_OUT: Final = frozenset({"source", "name_node", "broken", "name", "written_name", "ops", "instructions"})


@dataclass(frozen=True)
class FieldChange:
    """One field of one object. `about`: "placement", "formats" or "values"; before and after as text."""

    kind: str
    name: str
    about: str
    field: str
    before: str
    after: str


@dataclass(frozen=True)
class CycleChange:
    """Modelled cycles of a program, or of all: None where there is no figure, and then `reason` says why."""

    name: str
    before: float | None
    after: float | None
    reason: str = ""


@dataclass(frozen=True)
class Difference:
    """What `diff` found. `gone` and `new` are (kind, name); `programs` has the lines of `diff -u` by program."""

    before: str
    after: str
    gone: tuple[tuple[str, str], ...]
    new: tuple[tuple[str, str], ...]
    changes: tuple[FieldChange, ...]
    programs: Mapping[str, tuple[str, ...]]
    cycles: tuple[CycleChange, ...]

    @property
    def same(self) -> bool:
        """Whether both say the same; cycles follow from it."""
        return not (self.gone or self.new or self.changes or self.programs)


def diff(
    before: str | os.PathLike[str], after: str | os.PathLike[str], *, arch: str | None = None, cycles: bool = True
) -> Difference:
    """Compare two netlists or images as they are loaded, object by object; comments, layout and order do not count.

    Objects of one kind and name are compared; a name that only one has is gone or new. `cycles`: model both, too, which
    takes most of the time. Raises NetlistError, ImageError, OSError for what cannot be loaded.
    """
    return compare(netlist_of(before, arch), netlist_of(after, arch), str(before), str(after), cycles=cycles)


def compare(one: Netlist, other: Netlist, before: str, after: str, *, cycles: bool = False) -> Difference:
    """Compare two netlists that are loaded; `before` and `after` are the names that the result gives them, `cycles` is
    as in `diff`."""
    gone: list[tuple[str, str]] = []
    new: list[tuple[str, str]] = []
    changes: list[FieldChange] = []
    for kind, left, right in _objects(one, other):
        gone += [(kind, name) for name in left if name not in right]
        new += [(kind, name) for name in right if name not in left]
        for name in left:
            if name in right and left[name] != right[name]:
                changes += _changed(kind, name, left[name], right[name])
    if one.arch_name != other.arch_name:
        changes.insert(
            0,
            FieldChange(
                kind="netlist", name="", about="values", field="arch", before=one.arch_name, after=other.arch_name
            ),
        )
    programs = {
        name: lines for name in one.programs if name in other.programs and (lines := _program(one, other, name))
    }
    figures = tuple(_cycles(one, other)) if cycles else ()
    return Difference(
        before=before,
        after=after,
        gone=tuple(gone),
        new=tuple(new),
        changes=tuple(changes),
        programs=programs,
        cycles=figures,
    )


def _objects(one: Netlist, other: Netlist) -> Iterator[tuple[str, Mapping[str, Sourced], Mapping[str, Sourced]]]:
    yield "queue", one.queues, other.queues
    yield "graph", one.graphs, other.graphs
    yield "op", one.ops, other.ops
    yield "fused op", one.fused_ops, other.fused_ops
    yield "program", one.programs, other.programs


def _changed(kind: str, name: str, left: Sourced, right: Sourced) -> Iterator[FieldChange]:
    before = _values(left)
    after = _values(right)
    for field in dict.fromkeys((*before, *after)):
        if before.get(field) != after.get(field):
            about = "placement" if field in _PLACEMENT else "formats" if field in _FORMATS else "values"
            yield FieldChange(
                kind=kind,
                name=name,
                about=about,
                field=field,
                before=_text(before.get(field)),
                after=_text(after.get(field)),
            )


def _values(item: Sourced) -> dict[str, Any]:
    """The fields of an object as a netlist has them: sizes and attributes one by one."""
    found: dict[str, Any] = {}
    for field in fields(item):
        value = getattr(item, field.name)
        if field.name in _LEFT_OUT:
            continue
        if field.name == "blocking":
            found |= {part.name: getattr(value, part.name) for part in fields(value)}
        elif field.name == "attributes":
            found |= {name: getattr(value, name) for name in value.given}
        else:
            found[field.name] = value
    if isinstance(item, Op):
        found.pop("vector")  # derived from what else differs
        found.pop("transpose")
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        parts: tuple[Any, ...] = value  # pyright: ignore[reportUnknownVariableType] - whatever the field holds
        return f"[{', '.join(map(str, parts))}]"
    return str(value)


def _program(one: Netlist, other: Netlist, name: str) -> tuple[str, ...]:
    left = program_lines(one, name)
    right = program_lines(other, name)
    return tuple(unified_diff(left, right, "before", "after", lineterm="", n=1))[2:]


def _cycles(one: Netlist, other: Netlist) -> Iterator[CycleChange]:
    figures: list[Mapping[str, float]] = []
    for netlist in (one, other):
        try:
            figures.append(timing.perf(netlist).run.programs())
        except BudaError as error:  # what cannot be modelled can be compared all the same
            first = str(error).partition("\n")[0]
            yield CycleChange("", None, None, f"{netlist.path}: {first}")
            return
    left, right = figures
    for name in dict.fromkeys((*left, *right)):
        yield CycleChange(name, left.get(name), right.get(name))
