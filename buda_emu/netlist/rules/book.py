"""The book of all rules, in order of their ids, and the run of their checks over one netlist (NETLIST 1.1, 2).

Importing the rule files below declares the rules and their checks. There are three phases: broken fields of single
objects (`basic` checks); then all other rules that loading enforces, only about intact objects; last the rules of the
device's compiler and runtime, and those on programs, only in a netlist that loads.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache
from typing import Any, Final, Literal

from buda_emu.netlist.model import FusedOp, Netlist, Op
from buda_emu.netlist.rules import elsewhere, fused_schedules, fused_sizes, graphs, habits, routing
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.fused_use import FusedUse
from buda_emu.netlist.rules.ops import fields, formats, pipes, placement, shapes, types
from buda_emu.netlist.rules.ops import fields as effects
from buda_emu.netlist.rules.ops import shapes as tiles
from buda_emu.netlist.rules.programs import flow, steps
from buda_emu.netlist.rules.queues import fields as queue_fields
from buda_emu.netlist.rules.queues import memory
from buda_emu.netlist.rules.registry import (
    DECLARED,
    STAGES,
    Checks,
    fused_check,
    graph_check,
    netlist_check,
    op_check,
    program_check,
    queue_check,
)
from buda_emu.netlist.rules.routing import NET2PIPE, PIPEGEN2
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker import Check, Checker, Diagnostic, Rule, RuleBook
from buda_emu.support.checker.checks import MAX_FINDINGS, RecordingChecker, TooManyFindingsError, in_order
from buda_emu.support.checker.result import Steps

SUBJECTS: Final = (
    elsewhere,
    fields,
    types,
    effects,
    tiles,
    formats,
    pipes,
    shapes,
    placement,
    graphs,
    fused_schedules,
    fused_sizes,
    steps,
    flow,
    queue_fields,
    memory,
    habits,
    routing,
)

_CHIP: Final = "the chip's compiler or runtime"
_RUN: Final = "`run`"
REFUSALS: Final[Mapping[str, str]] = {
    "N": _CHIP, "R": _CHIP, "T": "`test`", "X": _RUN,
    "V179": _RUN, "V208": _RUN,  # by `require_runnable` of buda_emu.emulator.inputs.prepared
}  # fmt: skip
"""Who refuses a netlist that `check` only warns about, by stage of a rule or by its id."""

NOT_CHECKED: Final = frozenset(("V057", "V073", "V075", "V153", "V157", "V163"))
"""Rules that nothing can break, or that cannot be checked from a netlist alone; the text of each gives the reason."""

BOOK: Final = RuleBook("netlist", "V", stages=STAGES, refusals=REFUSALS, unchecked=NOT_CHECKED)
for _id in sorted(DECLARED):
    BOOK.add(DECLARED[_id])

RULES: Final[Mapping[str, Rule]] = BOOK.rules
"""All rules by id, in order of the ids."""

ROUTED: Final = frozenset(("V081", "V084", "V160")) | {
    name for name, rule in RULES.items() if rule.source.startswith((NET2PIPE, PIPEGEN2))
}
"""Rules that are checked while pipes and streams are made (`buda_emu.performance.routing`), by `check --strict`."""


Phase = Literal["basic", "load", "device"]


def verifying(
    netlist: Netlist,
    *,
    strict: bool = False,
    skip: Set[str] = frozenset(),
    read: Set[str] = frozenset(),
    asked: set[str] | None = None,
) -> Steps[list[Diagnostic]]:
    """Check a netlist in steps of a few milliseconds; return the findings by object, not yet sorted by line.

    `skip` names objects that could not be read as a whole. `read` holds the rules that reading found broken;
    findings that follow from them are left out, such as a missing name where another occurs twice. `strict` turns
    findings of the device's rules (N and R) into errors. `asked` receives the ids of rules that looked at an object
    at least once (docs/stress/coverage.md). The renderer fills in `source_line`.
    """
    if asked is None:
        checker = Checker(netlist.path, strict, read=read, most_errors=MAX_FINDINGS)
    else:
        checker = RecordingChecker(netlist.path, strict, read, MAX_FINDINGS, asked)
    run = _Run(checker)
    try:
        yield from _check_in_phases(run, netlist, skip)
    except TooManyFindingsError as error:
        return [*run.checker.diagnostics, error.last]
    return run.checker.diagnostics


def _check_in_phases(run: "_Run", netlist: Netlist, skip: Set[str]) -> Steps[None]:
    """Check a netlist in the three phases (module docstring), the later ones without objects that an earlier one
    found broken. Raises TooManyFindingsError.
    """
    context = Context.of(netlist, frozenset(skip) | _names_with_reading_errors(netlist))
    broken: set[str] = set(context.broken)
    for name in run.phase(context, "basic"):
        if name:
            broken.add(name)
        yield
    context = context.without(frozenset(broken))
    for _ in run.phase(context, "load"):
        yield
    if not run.checker.errors and not context.broken:
        for _ in run.phase(context, "device"):
            yield


class _Run:
    """The verification of one netlist by one checker."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self._uses: tuple[FusedUse, ...] | None = None

    def phase(self, ctx: Context, phase: Phase) -> Iterator[str]:
        """Run the checks of one phase on every intact object. Yields for each object its name if a check failed,
        else ""."""
        netlist = ctx.netlist
        self.checker.check(_of_phase(netlist_check, phase), ctx, netlist)
        yield from self._check_each(ctx, "graph", netlist.graphs.items(), _of_phase(graph_check, phase))
        yield from self._check_each(ctx, "queue", netlist.queues.items(), _of_phase(queue_check, phase))
        for name, op in ctx.ops.items():
            yield from self._check_each(ctx, "op", ((name, op),), _of_type(op.type, phase))
        if self._uses is None:
            self._uses = _fused_uses(ctx)
        uses = ((f"fused op {use.definition.id}", use) for use in self._uses if use.op.name not in ctx.broken)
        yield from self._check_each(ctx, "", uses, _of_phase(fused_check, phase))
        checks = _of_phase(program_check, phase)
        for name, program in netlist.programs.items():  # the checks step over what is broken in one
            self.checker.check(checks, ctx, program, name=f"program {name}")
            yield ""

    def _check_each(
        self, ctx: Context, kind: str, objects: Iterable[tuple[str, Any]], checks: tuple[Check, ...]
    ) -> Iterator[str]:
        """Run checks on each intact object. Yields for each object its name if a check failed, else "". `kind` goes
        before the name in findings, "" if the name says it.
        """
        if not checks:
            return
        for name, subject in objects:
            label = f"{kind} {name}" if kind else name
            failed = name not in ctx.broken and self.checker.check(checks, ctx, subject, name=label)
            yield name if failed else ""


def _names_with_reading_errors(netlist: Netlist) -> frozenset[str]:
    """Return the names of objects in which reading found an error. Programs are not among them: their checks skip the
    broken instructions."""
    objects = (*netlist.queues.values(), *netlist.graphs.values(), *netlist.ops.values())
    fused = {f"fused op {definition.id}" for definition in netlist.fused_ops.values() if definition.broken}
    return frozenset(parsed.name for parsed in objects if parsed.broken) | fused


def _has_sub_ops(op: Op) -> bool:
    """Return whether the op runs the schedules of a fused op."""
    declaration = OP_TYPES.get(op.type)
    return declaration is not None and declaration.has("sub-ops")


def _fused_uses(ctx: Context) -> tuple[FusedUse, ...]:
    """Return the uses of fused ops: one for each definition and each set of op properties that its rules look at."""
    uses: dict[tuple[object, ...], tuple[Op, FusedOp]] = {}
    for op in ctx.ops.values():
        if not _has_sub_ops(op) or op.name in ctx.broken:
            continue
        definition = ctx.netlist.fused_ops.get(op.attributes.fused_op_id)
        if definition is not None:
            attributes = op.attributes
            relu = (attributes.relu_en, attributes.relu_threshold, attributes.relu_mode)
            formats = (op.in_df, op.intermed_df, op.acc_df, op.out_df)
            blocks = (op.blocking.mblock, op.blocking.ublock, len(op.inputs))
            uses.setdefault((definition.id, formats, blocks, relu), (op, definition))
    return tuple(FusedUse.of(op, definition) for op, definition in uses.values())


@cache
def _of_phase(checks: Checks[Any], phase: Phase) -> tuple[Check, ...]:
    """Return the checks of one kind of object that belong to a phase, in the order in which they run."""
    return in_order([check for check in checks.all if _phase_of(check) == phase])


@cache
def _of_type(op_type: str, phase: Phase) -> tuple[Check, ...]:
    """Return the checks of a phase for ops of a type: those for all types, its family, or one of its traits."""
    declaration = OP_TYPES.get(op_type)
    words = frozenset[str]()
    if declaration is not None:
        words = frozenset((declaration.name, declaration.family, *declaration.traits))
    return tuple(check for check in _of_phase(op_check, phase) if check.kinds is None or check.kinds & words)


def _phase_of(check: Check) -> Phase:
    """Return the phase of a check. Rules of the device's compiler and runtime, and those on what programs do, come
    last (NETLIST 2, "by")."""
    if check.rule.stage in ("N", "R", "X", "W"):
        return "device"
    return "basic" if check.basic else "load"
