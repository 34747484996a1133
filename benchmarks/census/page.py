"""The page of the census, written from its rows."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from statistics import median, quantiles
from textwrap import fill
from typing import Final

from .rows import ERROR, PCC, VERDICTS, Row

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "compile" / "census.md"
ROWS: Final = Path(__file__).parent / "rows.jsonl.gz"
_COUNTED: Final = tuple(verdict for verdict in VERDICTS if verdict != "unbuilt")
_GOOD: Final = ("right", "parted")
_SLOWEST: Final = 10
_WIDTH: Final = 120
"""Characters of a line of prose, as in the other pages."""
_EXAMPLES: Final = 3
"""Models that are named beside a refused operator."""

_HEAD: Final = f"""\
# The census

Model classes that other people wrote, each in a small configuration with random weights, compiled and compared with the
original: which compile, which are refused and why. The models are enumerated, not chosen: every class that
transformers' automatic classes name, all of `timm.list_models()`, and so on for the other libraries. Nothing is
downloaded. The page is made by `python -m benchmarks.census`, which runs what has no row yet, one of each family first;
`--report` only writes the page again (extra `census`). The twelve libraries list about 5,200 models; those that are not
counted here were not run yet.

A model is right if for each of its outputs in `ideal` the correlation with the original's is at least {PCC} or the
largest error at most {ERROR:.0e} of the scale. Seconds are processor time, memory is the most that the process held,
torch and the libraries included, on a machine that had other work."""


def write_page(rows: Iterable[Row]) -> None:
    """Write docs/compile/census.md."""
    PAGE.write_text(page(list(rows)), encoding="utf-8")


def page(rows: Sequence[Row]) -> str:
    """Return the text of the page."""
    ordered = sorted(rows, key=lambda row: (row.library, row.family, row.name, row.form, row.arch, row.effort))
    counted = [row for row in ordered if row.verdict in _COUNTED]
    parts = [
        _HEAD,
        _totals(counted, ordered),
        _libraries(counted, ordered),
        _refusals(counted),
        _failures(counted),
        _findings(counted),
        _distributions(counted),
        _slowest(counted),
        _families(counted),
        _unbuilt(ordered),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(headers: Sequence[str], lines: Iterable[Sequence[object]], right: int) -> str:
    """Return a table of Markdown; columns from `right` on are numbers."""
    marks = ["---" if place < right else "---:" for place in range(len(headers))]
    cells = [headers, marks, *lines]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in cells)


def _counts(rows: Sequence[Row]) -> list[object]:
    """Return the number of rows, of each verdict, and the share of those that are right."""
    counts = Counter(row.verdict for row in rows)
    share = sum(counts[verdict] for verdict in _GOOD) / len(rows) if rows else 0.0
    return [len(rows), *(counts[verdict] for verdict in _COUNTED), f"{100 * share:.1f} %"]


def _totals(counted: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return the section about all runs, by architecture, effort and form."""
    models = len({(row.library, row.name) for row in counted})
    families = len({(row.library, row.family) for row in counted})
    options = sorted({(row.arch, row.effort, row.form) for row in counted})
    lines: list[list[object]] = []
    for option in options:
        selected = [row for row in counted if (row.arch, row.effort, row.form) == option]
        lines.append([*option, *_counts(selected)])
    installed = chain.from_iterable(row.versions.items() for row in rows)
    versions = sorted({f"{name} {version}" for name, version in installed})
    commits = ", ".join(sorted({row.commit for row in rows}))
    return (
        f"## Totals\n\n{models} models of {families} families were run, {len(counted)} runs in all. "
        f"Versions: {', '.join(versions)}; commits: {commits} (`+`: with uncommitted changes).\n\n"
        + "\n".join(f"* **{verdict}**: {text}" for verdict, text in VERDICTS.items())
        + "\n\n"
        + _without_masks(counted)
        + _table(("architecture", "effort", "form", "runs", *_COUNTED, "right or parted"), lines, 3)
    )


def _without_masks(counted: Sequence[Row]) -> str:
    """Return a paragraph about the runs that are right without the masks among their inputs; nothing if none is."""
    number = sum(row.without_masks and row.verdict in _GOOD for row in counted)
    if not number:
        return ""
    return (
        f"{number} of the runs that are right are of models that decide in Python by values of a mask. They are "
        "refused with the mask among their inputs, and were compiled without it, as the refusal advises.\n\n"
    )


def _libraries(counted: Sequence[Row], rows: Sequence[Row]) -> str:
    """Return the section about runs by library."""
    lines: list[list[object]] = []
    for library in sorted({row.library for row in rows}):
        selected = [row for row in counted if row.library == library]
        unbuilt = sum(row.library == library and row.verdict == "unbuilt" for row in rows)
        families = len({row.family for row in selected})
        lines.append([f"`{library}`", families, *_counts(selected), unbuilt])
    headers = ("library", "families", "runs", *_COUNTED, "right or parted", "unbuilt")
    return "## By library\n\n" + _table(headers, lines, 1)


def _refusals(counted: Sequence[Row]) -> str:
    """Return the refused operators by frequency, with models and the message of the first."""
    places: dict[str, list[Row]] = {}
    for row in counted:
        if row.verdict == "refused":
            for operator in row.operators or ("unnamed",):
                places.setdefault(operator, []).append(row)
    if not places:
        return ""
    lines = [
        [_cell(operator), _examples(rows), len(rows)]
        for operator, rows in sorted(places.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    ]
    return "## What is refused\n\n" + _table(("operator or rule", "models", "runs"), lines, 2)


def _examples(rows: Sequence[Row]) -> str:
    """Return the names of the first models, with dots if there are more."""
    names = list(dict.fromkeys(f"`{row.name}`" for row in rows))
    return ", ".join(names[:_EXAMPLES]) + (", ..." if len(names) > _EXAMPLES else "")


def _failures(counted: Sequence[Row]) -> str:
    """Return the section about models that were wrong, crashed or exceeded the limits."""
    lines = [
        [row.verdict, row.library, f"`{row.name}`", f"{row.form} {row.arch} {row.effort}", _cell(row.why)]
        for row in counted
        if row.verdict in ("wrong", "crash", "slow")
    ]
    if not lines:
        return "## What is wrong\n\nNothing: no model was wrong, crashed, or took more than the limits."
    return "## What is wrong\n\n" + _table(("verdict", "library", "model", "run", "why"), lines, 5)


def _findings(counted: Sequence[Row]) -> str:
    """Return the section about findings of `check --strict`."""
    lines = [
        [row.library, f"`{row.name}`", f"{row.form} {row.arch} {row.effort}", _cell(row.findings[0]), len(row.findings)]
        for row in counted
        if row.findings
    ]
    if not lines:
        return "## Findings\n\n`check --strict` has no finding in any of the netlists."
    return "## Findings of `check --strict`\n\n" + _table(("library", "model", "run", "first", "number"), lines, 4)


def _distributions(counted: Sequence[Row]) -> str:
    """Return the section about time and memory of models that are right."""
    lines: list[list[object]] = []
    for option in sorted({(row.arch, row.effort, row.form) for row in counted}):
        selected = [row for row in counted if (row.arch, row.effort, row.form) == option and row.verdict in _GOOD]
        if not selected:
            continue
        seconds = [row.seconds["compiling"] for row in selected]
        memory = [row.memory / 2**20 for row in selected]
        lines.append([*option, "compile, seconds", len(selected), *(f"{value:.1f}" for value in _spread(seconds))])
        lines.append([*option, "memory, MiB", len(selected), *(f"{value:.0f}" for value in _spread(memory))])
    headers = ("architecture", "effort", "form", "figure", "models", "median", "90 %", "99 %", "most")
    text = "Of models that are right. The compilation of a torch module includes torch's export."
    return f"## Time and memory\n\n{text}\n\n" + _table(headers, lines, 4)


def _spread(values: Sequence[float]) -> tuple[float, float, float, float]:
    """Return the median, the 90th and the 99th percentile, and the greatest value."""
    if len(values) == 1:
        return values[0], values[0], values[0], values[0]
    percentiles = quantiles(values, n=100, method="inclusive")
    return median(values), percentiles[89], percentiles[98], max(values)


def _slowest(counted: Sequence[Row]) -> str:
    """Return the section about the slowest models."""
    slowest = sorted(counted, key=lambda row: -sum(row.seconds.values()))[:_SLOWEST]
    lines = [
        [
            row.library, f"`{row.name}`", f"{row.form} {row.arch} {row.effort}", _reason(row),
            f"{row.seconds.get('compiling', 0.0):.1f}", f"{sum(row.seconds.values()):.1f}", f"{row.memory / 2**20:.0f}",
        ]
        for row in slowest
    ]  # fmt: skip
    headers = ("library", "model", "run", "reason", "compile s", "in all s", "MiB")
    return "## The slowest ten\n\n" + _table(headers, lines, 4)


def _reason(row: Row) -> str:
    """Return the size of the netlist and the stage that took most of the time."""
    stage = max(row.seconds, key=lambda name: row.seconds[name])
    share = 100 * row.seconds[stage] / (sum(row.seconds.values()) or 1.0)
    return f"{row.ops:,} ops in {row.epochs} epochs, {row.parameters:,} parameters; {stage} takes {share:.0f} %"


def _families(counted: Sequence[Row]) -> str:
    """Return the families that are not all right, line by line, and the names of the others."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in counted:
        groups.setdefault((row.library, row.family), []).append(row)
    lines: list[list[object]] = []
    clean: dict[str, list[str]] = {}
    for (library, family), rows in sorted(groups.items()):
        if all(row.verdict in _GOOD for row in rows):
            clean.setdefault(library, []).append(f"{family} {len(rows)}" if len(rows) > 1 else family)
        else:
            lines.append([library, family, *_counts(rows)])
    parts = ["## By family"]
    if lines:
        parts.append("Families with a run that is not right:")
        parts.append(_table(("library", "family", "runs", *_COUNTED, "right or parted"), lines, 2))
    if clean:
        parts.append("Families whose runs are all right, with their number if it is not 1:")
        parts.append("\n".join(_paragraph(library, names) for library, names in clean.items()))
    return "\n\n".join(parts)


def _paragraph(library: str, names: Sequence[str]) -> str:
    """Return the families of one library that are all right, as an item of a list with short lines."""
    text = f"* `{library}` ({len(names)}): {', '.join(names)}"
    return fill(text, width=_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _unbuilt(rows: Sequence[Row]) -> str:
    """Return how many models were left out, by reason."""
    reasons = Counter(_kind(row.why) for row in rows if row.verdict == "unbuilt")
    if not reasons:
        return ""
    lines = [[_cell(reason), count] for reason, count in sorted(reasons.items(), key=lambda entry: -entry[1])]
    text = "No model could be built small and run by torch: its configuration could not be guessed, or it is too large."
    return f"## Left out\n\n{text}\n\n" + _table(("reason", "runs"), lines, 1)


def _kind(why: str) -> str:
    """Return the kind of a message: the part before its first colon, or the sentence."""
    text = re.sub(r"\d[\d,]*", "N", why.partition(" (")[0])
    kind, _, _ = text.partition(": ")
    if kind == "ValueError" and "larger than" in text:
        return "larger than the census takes"
    if kind == "NetworkRefusedError" or "couldn't connect" in text or "offline" in text:
        return "it downloads a part of itself"
    return kind[:80]


def _cell(text: str) -> str:
    """Return a text for a cell of a table: one line, without bars, cut where it is long."""
    line = " ".join(text.split()).replace("|", "\\|").replace("<", "\\<").replace("*", "\\*").replace("[", "\\[")
    return line if len(line) <= 220 else f"{line[:220]} ..."
