"""Results of `buda-emu numerics` as lines of text."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from buda_emu.emulator.op_errors.numerics_result import (
    CAUSES,
    WORTH_REPAIRING,
    Cause,
    Numerics,
    OpNumerics,
    inherent_cause,
    own_error,
)
from buda_emu.report.terminal.text import correlation, number, table
from buda_emu.support.checker.text import plural

_GROWS: Final = 2.0  # an error so many times that of the op itself and that of its operands is worth a sentence
_LOW_PCC: Final = 0.99  # the threshold of `test`, below which a reader takes an op for wrong
_SMALL_SPREAD: Final = 0.1  # spread of values relative to their rms: below it a PCC compares mostly their errors
_HEADERS = ("#", "op", "type", "format", "run: error", "PCC", "op: error", "max error")


def numerics_lines(run: Numerics, top: int | None = None) -> Iterator[str]:
    """Yield a table of ops, the `top` worst by their own error or all in order (None), and sentences on errors and
    repairs."""
    shown = worst(run.ops, top)
    note = ""
    if len(shown) < len(run.ops):
        note = f", the worst {len(shown)} of them by their own error"
    yield f"{run.netlist} ({run.arch}): {plural(len(run.ops), 'op')}{note}"
    yield ""
    vectors = any(op.without.get("vector") is not None for op in shown)
    causes: list[Cause] = [cause for cause in CAUSES if cause != "vector" or vectors]
    headers = (*_HEADERS, *(f"-{cause}" for cause in causes), "main cause")
    yield table(headers, (_op_row(op, causes) for op in shown), right=(0, *range(4, len(headers) - 1)), whole=(3,))
    lines = list(chain.from_iterable(map(_op_sentences, shown)))
    if lines:
        yield ""
        yield from lines


def worst(ops: tuple[OpNumerics, ...], top: int | None) -> tuple[OpNumerics, ...]:
    """Return the `top` ops with the largest error of their own, the largest first; all ops in their order if `top` is
    None."""
    if top is None:
        return ops
    return tuple(sorted(ops, key=lambda op: -own_error(op))[:top])


def _op_row(op: OpNumerics, causes: Sequence[Cause]) -> tuple[str, ...]:
    """Return the row of an op in the table; `causes` are those whose removal has a column."""
    local_error = None
    largest_error = None
    if op.local is not None:
        local_error = op.local.rms
        largest_error = op.local.max_error
    return (
        str(op.index),
        op.name,
        op.type,
        op.out_df,
        _error_text(op.total.rms),
        correlation(op.total.pcc),
        _error_text(local_error),
        number(largest_error, 3),
        *(_error_text(op.without.get(cause)) for cause in causes),
        op.cause or "-",
    )


def _error_text(value: float | None) -> str:
    """Return an error as text; "-" for None."""
    if value is None:
        return "-"
    return "0" if value == 0 else f"{value:.1e}"


def _op_sentences(op: OpNumerics) -> Iterator[str]:
    """Yield sentences on one op: on values that were left out, on an error that grows, on a PCC that says little, and
    on the change that would repair it."""
    yield from _value_sentences(op)
    yield from _error_sentences(op)
    yield from _repair_sentences(op)


def _value_sentences(op: OpNumerics) -> Iterator[str]:
    """Yield sentences on values that are not finite in one precision, or too large for the output's format."""
    if op.total.not_finite:
        yield (
            f"op {op.name}: {plural(op.total.not_finite, 'value')} left out: infinite or NaN in one precision, not in "
            "the other"
        )
    if op.beyond and op.largest is not None:
        yield f"op {op.name}: {plural(op.beyond, 'value')} above {op.largest:g}, the largest that {op.out_df} holds"


def _error_sentences(op: OpNumerics) -> Iterator[str]:
    """Yield sentences on an op that magnifies the error of its operands, and on a PCC that says little."""
    total = op.total.rms or 0.0
    own_rms = own_error(op)
    if op.operands and total >= max(WORTH_REPAIRING, _GROWS * op.operands, _GROWS * own_rms):
        yield (
            f"op {op.name}: the error of its operands, {_error_text(op.operands)}, becomes {_error_text(total)}: "
            "its terms cancel, or its function is steep"
        )
    spread = op.total.spread
    has_low_pcc = op.total.pcc is None or op.total.pcc < _LOW_PCC
    if total and has_low_pcc and spread is not None and spread < _SMALL_SPREAD:
        values = "are all the same"
        if spread:
            values = f"differ by {_error_text(spread)} of their size"
        yield f"op {op.name}: its PCC says little: the values {values}, and the error is {_error_text(total)}"


def _repair_sentences(op: OpNumerics) -> Iterator[str]:
    """Yield a sentence on the change that reduces an op's own error, or on why there is none."""
    if op.local is None:
        yield f"op {op.name}: not taken apart: {op.note}"
    elif op.repair is not None:
        changes = " and ".join(f"{change.field} {change.before} -> {change.after}" for change in op.repair.changes)
        verb = "take" if len(op.repair.changes) > 1 else "takes"
        errors = f"{_error_text(op.local.rms)} to {_error_text(op.repair.error)}"
        yield f"op {op.name}: {changes} {verb} the error from {errors}"
    elif own_error(op) >= WORTH_REPAIRING:
        sentence = f"op {op.name}: no change halves the error of {_error_text(op.local.rms)}"
        cause = inherent_cause(op)
        if cause:
            sentence += f": it is inherent in {cause} ({op.type})"
        yield sentence
