"""Names that occur twice: the hint to leave out what is the same again, or to write the name that is missing.

A fix never removes text that differs from what stays: in a netlist where a name was typed twice, most likely another
name is missing, and then the repetition is renamed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, Protocol

from buda_emu.netlist.model import Allocate, Deallocate, Execute, Graph, Op, Program, Queue
from buda_emu.netlist.nodes import Node, Scalar, same
from buda_emu.netlist.sourced import Sourced
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.fix import removing, replacing
from buda_emu.support.records import dataclass

Kind = Literal["queue", "op", "graph"]
_DIFFERENT: Final = "leave one of them out, or choose another name for it"
_HOST: Final = "HOST"


@dataclass(frozen=True, slots=True)
class Repetition:
    """A second object of a name. `finding` is the index of the finding about it, `first` the earlier object, None
    where it was not read."""

    kind: Kind
    name: str
    key: Scalar
    body: Node
    first: Sourced | None
    finding: int


class NamedObjects(Protocol):
    """The objects of a netlist as it was read, and the findings about it."""

    @property
    def queues(self) -> Mapping[str, Queue]: ...  # noqa: D102
    @property
    def graphs(self) -> Mapping[str, Graph]: ...  # noqa: D102
    @property
    def programs(self) -> Mapping[str, Program]: ...  # noqa: D102
    @property
    def diagnostics(self) -> list[Diagnostic]: ...  # noqa: D102


def repetition_hint(first: Node | None, second: Node, hint: str = _DIFFERENT, *, safe: bool = True) -> str:
    """Return the hint for something that occurs twice: to remove the second if both are equal, which is a safe fix if
    `safe`; else `hint`, which changes nothing by itself."""
    if first is not None and same(first, second):
        return removing("it is the same again: leave it out", safe=safe)
    return hint


def suggest_missing_names(document: NamedObjects, repetitions: Sequence[Repetition]) -> None:
    """Give the findings about repetitions the hint to rename one of the two objects, where exactly one name is missing
    that the netlist uses for such an object."""
    different = [repetition for repetition in repetitions if not _is_equal(repetition)]
    if not different:
        return
    missing = _missing_names(document)
    candidates = [missing[repetition.kind] for repetition in different]
    for repetition, names in zip(different, candidates, strict=True):
        if len(names) == 1 and sum(not names.isdisjoint(others) for others in candidates) == 1:
            _suggest_name(document, repetition, next(iter(names)))


def _is_equal(repetition: Repetition) -> bool:
    """Return whether the second object of a name has the content of the first, in which case no renaming is suggested.
    False where the first one was not read."""
    if repetition.first is None or repetition.first.source is None:
        return False
    return same(repetition.first.source, repetition.body)


def _suggest_name(document: NamedObjects, repetition: Repetition, missing: str) -> None:
    """Put into the finding about a repetition the hint that one of the two objects is meant to have the name
    `missing`: which, a check of both texts tells.
    """
    finding = document.diagnostics[repetition.finding]
    first = _first_key(document, repetition)
    elsewhere = None
    if first is not None:
        elsewhere = (first.line, first.column)
    text = f"is one of them '{missing}', which is missing?"
    hint = replacing(text, repetition.name, missing, safe=False, elsewhere=elsewhere)
    document.diagnostics[repetition.finding] = replace(finding, hint=hint)


def _first_key(document: NamedObjects, repetition: Repetition) -> Scalar | None:
    """Return the node that names the first of the two objects of a repetition, None if it is not found."""
    if repetition.first is not None:
        return repetition.first.name_node
    return next((op.name_node for op in _ops(document) if op.name == repetition.name), None)


def _missing_names(document: NamedObjects) -> dict[Kind, set[str]]:
    """Return the names that are used for objects of each kind and that no object has."""
    ops = {op.name for op in _ops(document)}
    sources = ops | document.queues.keys() | {_HOST}
    read = {name for name in _names_read(document) if name not in sources}
    in_programs = set(_queues_of_programs(document)) - document.queues.keys()
    feeding = {queue.input for queue in document.queues.values() if queue.input} - sources
    executed = {step.graph for step in _executes(document) if step.graph} - document.graphs.keys()
    # What only ops read may be either; settings are given for queues alone, and queues are fed by ops alone.
    return {"queue": (read - feeding) | in_programs, "op": (read - in_programs) | feeding, "graph": executed}


def _ops(document: NamedObjects) -> Iterator[Op]:
    """Yield the ops of all graphs."""
    for graph in document.graphs.values():
        yield from graph.ops


def _names_read(document: NamedObjects) -> Iterator[str]:
    """Yield the inputs of all ops: names of queues and ops."""
    for op in _ops(document):
        yield from op.inputs


def _queues_of_programs(document: NamedObjects) -> Iterator[str]:
    """Yield the names of queues in the programs: those with settings and those that are allocated."""
    for program in document.programs.values():
        for step in program.instructions:
            if isinstance(step, Execute):
                yield from (settings.queue for settings in step.queue_settings)
            elif isinstance(step, Allocate | Deallocate):
                yield from step.queues


def _executes(document: NamedObjects) -> Iterator[Execute]:
    """Yield the executes of all programs."""
    for program in document.programs.values():
        yield from (step for step in program.instructions if isinstance(step, Execute))
