"""The file of rows, and the table that docs/compile/placing.md has of it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum, log
from pathlib import Path
from textwrap import fill
from typing import Any, Final, NamedTuple

from buda_emu.compiler.search_parts import ALL_PARTS

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = Path(__file__).parent / "rows.jsonl"
PAGE: Final = ROOT / "docs" / "compile" / "placing.md"
BEGIN: Final = "<!-- ablation: written by `python -m benchmarks.ablation` -->"
END: Final = "<!-- end of ablation -->"
WIDTH: Final = 120
TOGETHER: Final = " + "
"""Stands between parts that are left out at once."""
LEAST_MEAN: Final = 1.005
LEAST_BEST: Final = 1.03
"""A part stays that gains this factor in the geometric mean, or in one model."""
Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]


def read(path: Path = RESULTS) -> Rows:
    """Return the rows by model and part; the last one where there are several."""
    found: Rows = {}
    if path.exists():
        for line in path.read_text().splitlines():
            row = json.loads(line)
            found.setdefault(row["model"], {})[row["part"]] = row
    return found


def keep(row: Row, path: Path = RESULTS) -> None:
    """Add a row to the file."""
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


class Gain(NamedTuple):
    """What a part gains: the modelled throughput with it as a multiple of that without it, by model, and the processor
    seconds of all searches with and without it. `needed`: models that compile only with it; `asked`: how many models it
    does something in, be it in vain."""

    part: str
    factors: Mapping[str, float]
    seconds: float
    seconds_without: float
    needed: Sequence[str]
    asked: int

    @property
    def mean(self) -> float:
        """The geometric mean of the factors."""
        return exp(fsum(map(log, self.factors.values())) / len(self.factors))

    @property
    def stays(self) -> bool:
        """Whether the part gains enough to stay."""
        return bool(self.needed) or self.mean >= LEAST_MEAN or max(self.factors.values()) >= LEAST_BEST


def gains(found: Rows) -> Iterator[Gain]:
    """Yield what each part gains over all models of which its row is there, and what parts gain that were left out at
    once."""
    together = {part for by_part in found.values() for part in by_part if part and part not in ALL_PARTS}
    for part in (*ALL_PARTS, *sorted(together)):
        factors: dict[str, float] = {}
        needed: list[str] = []
        asked = 0
        seconds = 0.0
        seconds_without = 0.0
        for model, by_part in found.items():
            if "" not in by_part or part not in by_part:
                continue
            base = by_part[""]
            row = by_part[part]
            if "problem" in row:
                needed.append(model)
                continue
            factors[model] = 1.0
            if row["asked"]:
                asked += 1
                factors[model] = row["cycles"] / base["cycles"]
                seconds += base["seconds"]
                seconds_without += row["seconds"]
        if factors:
            yield Gain(part, factors, seconds, seconds_without, needed, asked)


def table(found: Rows) -> str:
    """Return the table in Markdown, the parts that gain most first."""
    lines = [
        "| part | models: changed, searched without it, measured | mean | most | least | processor time |",
        "| --- | ---: | ---: | --- | --- | ---: |",
    ]
    for gain in sorted(gains(found), key=lambda gain: -gain.mean):
        changed = sum(factor != 1 for factor in gain.factors.values())
        most = max(gain.factors, key=lambda model: gain.factors[model])
        least = min(gain.factors, key=lambda model: gain.factors[model])
        share = "-"
        if gain.seconds_without:
            share = f"{100 * (gain.seconds / gain.seconds_without - 1):+.0f} %"
        name = gain.part
        if not set(name.split(TOGETHER)) <= {*ALL_PARTS}:
            name += " (removed)"
        lines.append(
            f"| {name} | {changed}, {gain.asked}, {len(gain.factors)} | {_percent(gain.mean)} | "
            f"{_extreme(gain, most)} | {_extreme(gain, least)} | {share} |"
        )
    return "\n".join(lines)


def _percent(factor: float) -> str:
    """Return a factor as a gain in per cent."""
    return f"{100 * (factor - 1):+.2f} %"


def _extreme(gain: Gain, model: str) -> str:
    """Return the gain of one model with its name, "-" where there is none."""
    factor = gain.factors[model]
    if factor == 1:
        return "-"
    return f"{_percent(factor)}, {model}"


def write_page(found: Rows, path: Path = PAGE) -> None:
    """Put the table and what was measured between the marks of the page."""
    commits = sorted({row["commit"] for by_part in found.values() for row in by_part.values()})
    models = "; ".join(model for model, by_part in found.items() if "" in by_part)
    below = ", ".join(gain.part for gain in gains(found) if gain.part in ALL_PARTS and not gain.stays)
    measured = fill(f"Measured on {', '.join(commits)}: {models}.", WIDTH)
    below = fill(f"Below the bar in these models: {below}.", WIDTH)
    text = f"{BEGIN}\n\n{measured}\n\n{table(found)}\n\n{below}\n\n{END}"
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    path.write_text(pattern.sub(lambda _: text, path.read_text()))
