"""The intervals of the model by family, from the errors of silicon rows that no fit has seen, and their file.

The interval of a family reaches from the 5th to the 95th percentile of its errors, as conformal prediction counts them:
of n rows, of which the next one is as likely to have any rank, (n + 1) / 20, rounded down, lie outside on each side.
Families of few rows have one percentile of the errors' size, for both sides. Rows that share their causes are of one
fold; the interval from all other folds is judged on each.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from math import ceil, exp, floor
from pathlib import Path
from typing import Final

from buda_emu.performance.timing.parts import HOST, LOADING
from buda_emu.performance.timing.uncertainty import ANY_CHIP, DATA, SHARE, ErrorFamily

TARGET: Final = Path(__file__).parents[2] / "buda_emu" / "performance" / "timing" / "data" / DATA
FOLDS: Final = 4
LEAST: Final = 12
"""Rows of the smallest family: three quarters of them have a percentile."""
SIGNED: Final = 40
"""Rows from which on each end of an interval is a percentile of its own."""
HOLDS: Final = 0.87
"""The share of rows of other folds that an interval has to contain."""
FAILS: Final = 0.85
"""The share below which even the widest interval of a family is not used: that of all chips takes its place."""
WIDER: Final = (SHARE, 0.92, 0.94, 0.96, 0.98, 0.99, 1.0)
"""The shares of its own rows that an interval may contain to that end."""
MOST_PAIRS: Final = 2000
"""Pairs of one group that are looked at."""


def _stated_errors(name: str, low: float, high: float) -> ErrorFamily:
    """Return the errors of what nobody has measured."""
    return ErrorFamily(name=name, low=low, high=high, pair=0.0, rows=0, coverage=None)


STATED: Final = (
    # DRAM at its theoretical rate would take 0.79 to 0.98 of the modelled cycles; start-up and streams are left out
    _stated_errors(f"{ANY_CHIP} {LOADING}", 0.5, 2.0),
    # the tolerance with which netlists state its rate
    _stated_errors(f"{ANY_CHIP} {HOST}", 0.9, 1.111),
    # measured ops are never estimated from another kind, so nothing tells how far they would be off
    _stated_errors(f"{ANY_CHIP} ops, another op", 0.5, 2.0),
)


@dataclass(frozen=True, slots=True)
class RowError:
    """The error of one row: its chip and topic, the logarithm of measured over modelled cycles, the fold that it
    belongs to, and the group of rows that share most of their causes (one op, one pattern of transactions)."""

    chip: str
    topic: str
    value: float
    fold: str
    group: str


def fold_of(key: object) -> str:
    """Return one of a few folds for a row, by hash of what identifies it and those that share its causes."""
    return str(hashlib.sha256(repr(key).encode()).digest()[1] % FOLDS)


def percentiles(values: Sequence[float], share: float = SHARE) -> tuple[float, float] | None:
    """Return the ends of the interval that holds a share of values like these; None if they are too few."""
    count = len(values)
    if count >= SIGNED:
        outside = max(floor((1 - share) / 2 * (count + 1)), 1)
        ordered = sorted(values)
        return ordered[outside - 1], ordered[-outside]
    rank = ceil(share * (count + 1))
    if rank > count:
        return None
    size = sorted(map(abs, values))[rank - 1]
    return -size, size


def coverage(errors: Sequence[RowError], share: float = SHARE) -> float | None:
    """Return the share of rows that lie in the interval of the rows of other folds; None if no fold can be judged."""
    judged = 0
    inside = 0
    for fold in sorted({error.fold for error in errors}):
        ends = percentiles([error.value for error in errors if error.fold != fold], share)
        if ends is None:
            continue
        values = [error.value for error in errors if error.fold == fold]
        judged += len(values)
        inside += sum(ends[0] <= value <= ends[1] for value in values)
    return inside / judged if judged else None


def pair_error(errors: Sequence[RowError]) -> float:
    """Return the difference of errors that `SHARE` of the pairs of one group do not exceed."""
    groups: dict[str, list[float]] = {}
    for error in errors:
        groups.setdefault(error.group, []).append(error.value)
    differences: list[float] = []
    for values in groups.values():
        pairs = list(combinations(values, 2))
        step = max(len(pairs) // MOST_PAIRS, 1)
        differences += [abs(first - second) for first, second in pairs[::step]]
    if not differences:
        return 0.0
    return sorted(differences)[min(ceil(SHARE * len(differences)), len(differences)) - 1]


def family(name: str, errors: Sequence[RowError]) -> ErrorFamily | None:
    """Return the errors of a family; None if it has too few rows. Rows of a fold that err alike, as those of one op do
    whose parameters are another's, need a wider interval to hold in other folds: the least one that does is taken. Rows
    that are all of one fold are judged row by row."""
    result: ErrorFamily | None = None
    if len(errors) < LEAST:
        return None
    errors = _in_several_folds(errors)
    values = [error.value for error in errors]
    for share in WIDER:
        ends = percentiles(values, share)
        covered = coverage(errors, share)
        if ends is None or covered is None:
            break
        if covered >= FAILS:
            result = _family(name, errors, ends, covered)
        if covered >= HOLDS:
            break
    return result


def _in_several_folds(errors: Sequence[RowError]) -> Sequence[RowError]:
    """Return the errors; if all are of one fold, each row in turn counts to another fold."""
    if len({error.fold for error in errors}) > 1:
        return errors
    return [replace(error, fold=str(number % FOLDS)) for number, error in enumerate(errors)]


def _family(name: str, errors: Sequence[RowError], ends: tuple[float, float], covered: float) -> ErrorFamily:
    """Return the errors of a family with an interval."""
    return ErrorFamily(
        name=name,
        low=round(exp(min(ends[0], 0.0)), 4),
        high=round(exp(max(ends[1], 0.0)), 4),
        pair=round(pair_error(errors), 4),
        rows=len(errors),
        coverage=round(covered, 3),
    )


def families(errors: Iterable[RowError]) -> list[ErrorFamily]:
    """Return all families: those of each chip, those of all chips together, and of each basis those of all ops."""
    by_name: dict[str, list[RowError]] = {}
    for error in errors:
        by_name.setdefault(f"{error.chip} {error.topic}", []).append(error)
        if error.chip != ANY_CHIP:
            by_name.setdefault(f"{ANY_CHIP} {error.topic}", []).append(error)
        kind, comma, basis = error.topic.rpartition(", ")
        if comma and kind in _OPS:
            by_name.setdefault(f"{ANY_CHIP} ops, {basis}", []).append(error)
    entries = [family(name, rows) for name, rows in sorted(by_name.items())]
    return [*(entry for entry in entries if entry is not None), *STATED]


_OPS: Final = ("matmul", "sparse matmul", "reduce", "other ops")


def write(entries: Sequence[ErrorFamily], path: Path = TARGET) -> None:
    """Write the file of the package."""
    content = {
        "schema_version": 1,
        "written_by": "python -m benchmarks.scorecard intervals",
        "share": SHARE,
        "families": [asdict(entry) for entry in entries],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
