"""`diff`: finds the differences between two netlists or device images."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from buda_emu.emulator.image.opened import netlist_of
from buda_emu.netlist.model import Buffer, Netlist, Op
from buda_emu.netlist.printer import program_lines
from buda_emu.netlist.sourced import Sourced
from buda_emu.support.errors import BudaError
from buda_emu.support.lazy import lazy
from buda_emu.support.line_changes import hunk_lines

if TYPE_CHECKING:
    from buda_emu.app.api import perf as timing
    from buda_emu.report.pages import comparison as tables
else:
    tables = lazy("buda_emu.report.pages.comparison")
    timing = lazy("buda_emu.app.api.perf")  # numpy, which a comparison without cycles does not need

_PLACEMENT: Final = frozenset({"graph", "target_device", "grid_loc", "grid_transpose", "grid_size"})
_FORMATS: Final = frozenset({"in_df", "out_df", "intermed_df", "acc_df", "df", "math_fidelity"})
_LEFT_OUT: Final = frozenset({"source", "name_node", "broken", "name", "written_name", "ops", "instructions"})


@dataclass(frozen=True)
class FieldChange:
    """A field of an object with different values in the two netlists, as text. `about` is the group that the field
    belongs to: "placement", "formats" or "values"."""

    kind: str
    name: str
    about: str
    field: str
    before: str
    after: str


@dataclass(frozen=True)
class CycleChange:
    """Modelled cycles of a program in both netlists; None where one of them does not have the program. If a netlist
    cannot be modelled there is a single change without name and cycles, whose `reason` says why."""

    name: str
    before: float | None
    after: float | None
    reason: str = ""


@dataclass(frozen=True)
class Difference:
    """The differences between two netlists. `gone` and `new` are objects, as (kind, name), that only the first or only
    the second has; `programs` has the lines of `diff -u` by program."""

    before: str
    after: str
    gone: tuple[tuple[str, str], ...]
    new: tuple[tuple[str, str], ...]
    changes: tuple[FieldChange, ...]
    programs: Mapping[str, tuple[str, ...]]
    cycles: tuple[CycleChange, ...]

    @property
    def same(self) -> bool:
        """True if no object differs; modelled cycles are not looked at, since they follow from the objects."""
        return not (self.gone or self.new or self.changes or self.programs)


def diff(
    before: str | os.PathLike[str], after: str | os.PathLike[str], *, arch: str | None = None, cycles: bool = True
) -> Difference:
    """Compare two netlists or images as they are loaded, object by object; comments, layout and order do not count.

    Objects of one kind and name are compared; a name that only one netlist has is gone or new. `cycles` models both
    netlists as well, which takes most of the time. Raises NetlistError, ImageError, OSError for a file that cannot be
    loaded.
    """
    return compare(netlist_of(before, arch), netlist_of(after, arch), str(before), str(after), cycles=cycles)


def compare(old_netlist: Netlist, new_netlist: Netlist, before: str, after: str, *, cycles: bool = False) -> Difference:
    """Compare two netlists that are loaded; `before` and `after` are the names that the result gives them, `cycles` is
    as in `diff`."""
    gone: list[tuple[str, str]] = []
    new: list[tuple[str, str]] = []
    changes: list[FieldChange] = []
    if old_netlist.arch_name != new_netlist.arch_name:
        changes.append(
            FieldChange(
                kind="netlist",
                name="",
                about="values",
                field="arch",
                before=old_netlist.arch_name,
                after=new_netlist.arch_name,
            )
        )
    for kind, left, right in _object_tables(old_netlist, new_netlist):
        gone += [(kind, name) for name in left if name not in right]
        new += [(kind, name) for name in right if name not in left]
        for name in left:
            if name in right and left[name] != right[name]:
                changes += _field_changes(kind, name, left[name], right[name])
    cycle_changes: tuple[CycleChange, ...] = ()
    if cycles:
        cycle_changes = tuple(_cycle_changes(old_netlist, new_netlist))
    return Difference(
        before=before,
        after=after,
        gone=tuple(gone),
        new=tuple(new),
        changes=tuple(changes),
        programs=_program_changes(old_netlist, new_netlist),
        cycles=cycle_changes,
    )


def structure_of(difference: Difference) -> "tables.Structure":
    """Convert the differences, without cycles, into the tables that a page of a comparison shows."""
    rows = [
        tables.FieldChangeRow(
            kind=change.kind,
            name=change.name,
            subject=change.about,
            field=change.field,
            before=change.before,
            after=change.after,
        )
        for change in difference.changes
    ]
    reasons = [change.reason for change in difference.cycles if change.reason]
    note = ""
    if reasons:
        note = f"No cycles: {reasons[0]}"
    return tables.Structure(
        gone=difference.gone, new=difference.new, changes=rows, programs=difference.programs, note=note
    )


def _object_tables(old: Netlist, new: Netlist) -> Iterator[tuple[str, Mapping[str, Sourced], Mapping[str, Sourced]]]:
    """Yield each kind of object with the objects of both netlists by name."""
    yield "queue", old.queues, new.queues
    yield "graph", old.graphs, new.graphs
    yield "op", old.ops, new.ops
    yield "fused op", old.fused_ops, new.fused_ops
    yield "program", old.programs, new.programs


def _field_changes(kind: str, name: str, left: Sourced, right: Sourced) -> Iterator[FieldChange]:
    """Yield the fields in which two objects of one kind and name differ; `left` is of the first netlist, `right` of the
    second."""
    before = _field_values(left)
    after = _field_values(right)
    for field in dict.fromkeys((*before, *after)):
        if before.get(field) != after.get(field):
            yield FieldChange(
                kind=kind,
                name=name,
                about=_field_group(field),
                field=field,
                before=_text(before.get(field)),
                after=_text(after.get(field)),
            )


def _field_group(field: str) -> str:
    """Return the heading under which a changed field is listed: placement, formats or values."""
    if field in _PLACEMENT:
        return "placement"
    if field in _FORMATS:
        return "formats"
    return "values"


def _field_values(entity: Sourced) -> dict[str, Any]:
    """Return the fields of an object under their names in a netlist; sizes and attributes are fields of their own."""
    values: dict[str, Any] = {}
    for field in fields(entity):
        value = getattr(entity, field.name)
        if field.name in _LEFT_OUT:
            continue
        if field.name == "blocking":
            values |= {part.name: getattr(value, part.name) for part in fields(value)}
        elif field.name == "attributes":
            values |= {name: getattr(value, name) for name in value.given}
        else:
            values[field.name] = value
    if isinstance(entity, Op):
        values.pop("vector")  # loading derives these two from other fields
        values.pop("transpose")
    return values


def _text(value: Any) -> str:
    """Return a field's value as the comparison prints it; "" for None."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        parts: tuple[Any, ...] = value  # pyright: ignore[reportUnknownVariableType] - whatever the field holds
        return f"[{', '.join(map(_text, parts))}]"
    if isinstance(value, Buffer):
        return f"channel {value.channel} at {value.address:#x}"
    return str(value)


def _program_changes(old: Netlist, new: Netlist) -> dict[str, tuple[str, ...]]:
    """Return, for each program of both netlists that differs, the lines of `diff -u` without its two headers."""
    changes: dict[str, tuple[str, ...]] = {}
    for name in old.programs:
        if name not in new.programs:
            continue
        hunks = tuple(hunk_lines(program_lines(old, name), program_lines(new, name), context=1))
        if hunks:
            changes[name] = hunks
    return changes


def _cycle_changes(old: Netlist, new: Netlist) -> Iterator[CycleChange]:
    """Yield the modelled cycles of each program in both netlists; if one of them cannot be modelled, only a change that
    says why."""
    cycles: list[Mapping[str, float]] = []
    for netlist in (old, new):
        try:
            cycles.append(timing.perf(netlist).run.programs())
        except BudaError as error:  # a netlist that cannot be modelled can be compared all the same
            first_line = str(error).partition("\n")[0]
            yield CycleChange("", None, None, f"{netlist.path}: {first_line}")
            return
    left, right = cycles
    for name in dict.fromkeys((*left, *right)):
        yield CycleChange(name, left.get(name), right.get(name))
