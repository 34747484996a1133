"""The closed list of classes whose objects travel between processes (`wire.py`).

All are plain data: records, named tuples, and classes with nothing but slots. An object is made again of its fields
alone; no method of it is called. A class with a `__reduce__`, a resource or code of its own has no place here.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin

from buda_emu.support.errors import BudaError
from buda_emu.support.records import dataclass

NAMES: Final[Mapping[str, str]] = {
    "buda_emu.app.api.faults": "Maker Subject",
    "buda_emu.app.api.sweep": "Point _About",
    "buda_emu.compiler.lower.layout": "Layout Piece",
    "buda_emu.compiler.lower.picker": "Counts Cut PickTable Picker",
    "buda_emu.compiler.lower.tiles": "Constant InputQueue OutputQueue State Store SubOp TileGraph TileOp Use",
    "buda_emu.compiler.memory_watch": "Trial Work",
    "buda_emu.compiler.place.blocks": "Blocks",
    "buda_emu.compiler.place.candidates": "Choice",
    "buda_emu.compiler.place.decision": "PlacementDecision",
    "buda_emu.compiler.place.placement": "Detour Placed Placement Queue",
    "buda_emu.compiler.search.candidate_table": "CandidateTable",
    "buda_emu.compiler.search.improve": "Start",
    "buda_emu.compiler.search.speculative": "_Shape",
    "buda_emu.compiler.target": "Objective Precision Target",
    "buda_emu.emulator.distributed.part": "About Cut",
    "buda_emu.emulator.inputs.input_used": "InputUsed",
    "buda_emu.emulator.inputs.reference": "ContentFiles DirectoryFiles",
    "buda_emu.emulator.op_errors.numerics_result": "NewValue OpError Repair",
    "buda_emu.emulator.op_errors.op_apart": "Parts",
    "buda_emu.emulator.op_errors.op_variants": "Ideal",
    "buda_emu.foreign.gemini.sweep": "Point",
    "buda_emu.foreign.vpux.model": "VpuxDiagnostic",
    "buda_emu.netlist.cache": "_LateMapping _LateSequence _Tree",
    "buda_emu.netlist.model": (
        "Allocate Buffer Deallocate Declare EndLoop Execute FusedOp Graph Loop Netlist Op Pad Param Program Queue "
        "QueueSettings SubOp TemporalGraph Tm VarInst"
    ),
    "buda_emu.netlist.nodes": "Mapping Scalar Sequence",
    "buda_emu.performance.advice.edits": "Edit",
    "buda_emu.performance.advice.evaluate": "Figures _About",
    "buda_emu.spec.archs": "Arch",
    "buda_emu.spec.attributes": "Attributes",
    "buda_emu.spec.blocking": "Blocking",
    "buda_emu.spec.boards": "Cluster",
    "buda_emu.spec.devices": "Device",
    "buda_emu.spec.test_config": "Comparison",
    "buda_emu.support.checker.diagnostic": "ByteOffset Diagnostic TextPlace",
    "buda_emu.support.checker.fix": "Edit Fix",
    "buda_emu.support.errors": (
        "BudaError DocumentError HostError HostTimeoutError InternalError NetlistError PackageError ProgramError "
        "RunCancelledError ScheduleError UnsupportedError VpuxError"
    ),
    "buda_emu.support.stopped": "OpAtFault QueueState Round Stopped Transfer Wait",
    "buda_emu.support.workers.job": "Job Lost Shared Workers",
    "buda_emu.testing.injection.campaign": "Settings",
    "buda_emu.testing.injection.fault": "Fault",
    "buda_emu.testing.injection.result": "Effect",
    "buda_emu.testing.verify.result": (
        "CaseResult FirstBad OpResult OutputDetail OutputResult PerformanceResult TilePlace ValueStats"
    ),
    "buda_emu.testing.verify.runs.collect": "Case Settings",
}
"""By module. An exception of another class travels as the nearest of these that it is derived from."""
_Kinds = tuple[type[Any], ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A class of the list. `fields`: names, in their order; `kinds`: for each the classes of which its value is, as
    far as the declaration says, None where it may be anything."""

    title: str
    kind: type[Any]
    fields: tuple[str, ...]
    kinds: tuple[_Kinds | None, ...]

    def values(self, item: Any, unset: Any) -> list[Any]:
        """Those of an object's fields, `unset` for a slot without one."""
        return [getattr(item, name, unset) for name in self.fields]

    def fill(self, item: Any, values: list[Any], unset: Any) -> None:
        """Give an object of `kind.__new__` its fields. Raises TypeError for values that are not declared so."""
        for name, kinds, value in zip(self.fields, self.kinds, values, strict=True):
            if value is unset:
                continue
            if kinds is not None and not isinstance(value, kinds):
                raise TypeError(f"{self.title}.{name} cannot be a {type(value).__name__}")
            object.__setattr__(item, name, value)


@cache
def listed(title: str) -> Listed:
    """By "module:Name". Raises TypeError for a class that is not on the list; nothing is imported for it."""
    module, _, name = title.partition(":")
    if name not in NAMES.get(module, "").split():
        raise TypeError(f"{title} does not travel between workers")
    return _described(title, getattr(import_module(module), name))


@cache
def listed_class(kind: type[Any]) -> Listed:
    """The same for a class itself, of an exception the nearest. Raises TypeError."""
    nearest = kind.__mro__ if issubclass(kind, BudaError) else (kind,)
    for base in nearest:
        if base.__qualname__ in NAMES.get(base.__module__, "").split():
            return listed(f"{base.__module__}:{base.__qualname__}")
    raise TypeError(f"{kind.__module__}:{kind.__qualname__} does not travel between workers")


def _described(title: str, kind: type[Any]) -> Listed:
    if is_dataclass(kind):
        declared = fields(kind)
        return Listed(title, kind, tuple(item.name for item in declared), tuple(_kinds(item.type) for item in declared))
    names = tuple(getattr(kind, "_fields", kind.__dict__.get("__slots__", ())))
    return Listed(title, kind, names, (None,) * len(names))


def _kinds(declared: Any) -> _Kinds | None:
    """The classes of which a value declared so may be; None where the declaration is no limit that can be looked at."""
    origin = get_origin(declared)
    if origin in (Union, UnionType):
        parts = [_kinds(part) for part in get_args(declared)]
        return None if None in parts else tuple(kind for part in parts if part is not None for kind in part)
    if origin is Literal:
        words: tuple[Any, ...] = get_args(declared)
        return tuple(cast("type[Any]", type(word)) for word in words)
    kind = NoneType if declared is None else origin or declared
    return _kinds_of_class(kind) if isinstance(kind, type) else None


def _kinds_of_class(kind: type[Any]) -> _Kinds | None:
    if kind in (bool, int, float):
        return None  # numpy's numbers stand for all of them
    try:
        isinstance(None, kind)
    except TypeError:  # a protocol or a typed dict
        return None
    return None if kind.__module__.partition(".")[0] == "numpy" else (kind,)
