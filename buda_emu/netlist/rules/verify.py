"""Runs the checks over one netlist and leaves follow-on findings out (NETLIST 1.1, 2).

Three phases: objects with broken fields of their own (`basic` checks); then everything else that loading refuses, only
about intact objects; last what the device's compiler and runtime refuse, and what programs do, only in a netlist that
can be loaded.
"""

from collections.abc import Iterable, Iterator, Set
from functools import cache
from typing import Any, Literal

from buda_emu.netlist.model import FusedOp, Netlist, Op
from buda_emu.netlist.rules.context import Context
from buda_emu.netlist.rules.fused_use import FusedUse
from buda_emu.netlist.rules.registry import (
    Checks,
    fused_check,
    graph_check,
    netlist_check,
    op_check,
    program_check,
    queue_check,
)
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.checker import Check, Checker, Diagnostic
from buda_emu.support.checker.checks import MAX_FINDINGS, RecordingChecker, TooManyFindingsError, in_order
from buda_emu.support.checker.result import Steps

Phase = Literal["basic", "load", "device"]


def verifying(
    netlist: Netlist,
    *,
    strict: bool = False,
    skip: Set[str] = frozenset(),
    read: Set[str] = frozenset(),
    asked: set[str] | None = None,
) -> Steps[list[Diagnostic]]:
    """Every finding about a netlist that was read, by object, not yet sorted by line; in steps of a few milliseconds.

    `skip`: names of objects that could not be read as a whole. `read`: rules that reading found broken; what follows
    from them is left out, such as a name that is missing where another occurs twice. `strict` makes the device's rules
    (N and R) errors. `asked` gets the rules that are asked of something (docs/stress/coverage.md). `source_line` of the
    findings is left to the renderer.
    """
    most = MAX_FINDINGS
    if asked is None:
        run = _Run(Checker(netlist.path, strict, read=read, most_errors=most))
    else:
        run = _Run(RecordingChecker(path=netlist.path, strict=strict, read=read, most_errors=most, applied_rules=asked))
    try:
        yield from _phases(run, netlist, skip)
    except TooManyFindingsError as error:
        return [*run.checker.diagnostics, error.last]
    return run.checker.diagnostics


def _phases(run: "_Run", netlist: Netlist, skip: Set[str]) -> Steps[None]:
    """One after the other. Raises TooManyFindingsError."""
    context = Context.of(netlist, frozenset(skip) | _unread(netlist))
    broken: set[str] = set(context.broken)
    for name in run.phase(context, "basic"):
        broken.update((name,) if name else ())
        yield
    context = context.without(frozenset(broken))
    for _ in run.phase(context, "load"):
        yield
    if not run.checker.errors and not context.broken:
        for _ in run.phase(context, "device"):
            yield


class _Run:
    """One verification."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self._uses: tuple[FusedUse, ...] | None = None

    def phase(self, ctx: Context, phase: Phase) -> Iterator[str]:
        """Run the checks of one phase on every intact object; yields for each its name where it failed one, else
        ""."""
        netlist = ctx.netlist
        self.checker.check(_of_phase(netlist_check, phase), ctx, netlist)
        yield from self._each(ctx, "graph", netlist.graphs.items(), _of_phase(graph_check, phase))
        yield from self._each(ctx, "queue", netlist.queues.items(), _of_phase(queue_check, phase))
        for name, op in ctx.ops.items():
            yield from self._each(ctx, "op", ((name, op),), _of_type(op.type, phase))
        if self._uses is None:
            self._uses = _fused_uses(ctx)
        uses = ((f"fused op {use.definition.id}", use) for use in self._uses if use.op.name not in ctx.broken)
        yield from self._each(ctx, "", uses, _of_phase(fused_check, phase))
        checks = _of_phase(program_check, phase)
        for name, program in netlist.programs.items():  # the checks step over what is broken in one
            self.checker.check(checks, ctx, program, name=f"program {name}")
            yield ""

    def _each(
        self, ctx: Context, kind: str, objects: Iterable[tuple[str, Any]], checks: tuple[Check, ...]
    ) -> Iterator[str]:
        for name, item in objects if checks else ():
            said = f"{kind} {name}" if kind else name
            failed = name not in ctx.broken and self.checker.check(checks, ctx, item, name=said)
            yield name if failed else ""


def _unread(netlist: Netlist) -> frozenset[str]:
    """Names of objects in which reading found an error. Of programs only the broken parts are left out."""
    items = (*netlist.queues.values(), *netlist.graphs.values(), *netlist.ops.values())
    fused = {f"fused op {item.id}" for item in netlist.fused_ops.values() if item.broken}
    return frozenset(item.name for item in items if item.broken) | fused


def _has_sub_ops(op: Op) -> bool:
    known = OP_TYPES.get(op.type)
    return known is not None and known.has("sub-ops")


def _fused_uses(ctx: Context) -> tuple[FusedUse, ...]:
    """Every definition as it is used, once for each set of properties that its rules look at."""
    uses: dict[tuple[object, ...], tuple[Op, FusedOp]] = {}
    for op in ctx.ops.values():
        definition = ctx.netlist.fused_ops.get(op.attributes.fused_op_id) if _has_sub_ops(op) else None
        if definition is not None and op.name not in ctx.broken:
            own = op.attributes
            relu = (own.relu_en, own.relu_threshold, own.relu_mode)
            formats = (op.in_df, op.intermed_df, op.acc_df, op.out_df)
            blocks = (op.blocking.mblock, op.blocking.ublock, len(op.inputs))
            uses.setdefault((definition.id, formats, blocks, relu), (op, definition))
    return tuple(FusedUse.of(op, definition) for op, definition in uses.values())


@cache
def _of_phase(checks: Checks[Any], phase: Phase) -> tuple[Check, ...]:
    return in_order([check for check in checks.all if _phase(check) == phase])


@cache
def _of_type(op_type: str, phase: Phase) -> tuple[Check, ...]:
    known = OP_TYPES.get(op_type)
    words = frozenset((known.name, known.family, *known.traits)) if known is not None else frozenset[str]()
    return tuple(check for check in _of_phase(op_check, phase) if check.kinds is None or check.kinds & words)


def _phase(check: Check) -> Phase:
    """Rules of the device compiler and runtime, and of what programs do, come last (NETLIST 2, "by")."""
    return "device" if check.rule.stage in ("N", "R", "X", "W") else "basic" if check.basic else "load"
