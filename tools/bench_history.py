"""Benchmark results that last: a file for each machine, what got slower since, and the page of the history.

Seconds say little on a machine that is slower while its neighbours are busy. So what is kept are ratios: each
repetition beside a yardstick that was measured just before and after it. `run` counts the GFLOP that numpy's sgemm
would have done meanwhile, `push` and `pop` the GB that numpy would have copied, and `load` is a multiple of the time in
which libyaml hands out the events of the same text.

File: {"schema_version", "machine": {...}, "runs": [{"at", "version", "threads", "precision", "yardsticks": {name:
number}, "ratios": {netlist: {stage: [one for each repetition]}}}]}, the latest run last.
"""

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from buda_emu.support.version import RESULT_VERSION

STAGES: Final = {"load": "x libyaml", "push": "GB", "run": "GFLOP", "pop": "GB"}
NOISE: Final = 1.1
"""The least factor that counts. A smaller one says nothing, however well the repetitions agree: the layout of memory
alone makes so much."""
Ratios = Mapping[str, Mapping[str, Sequence[float]]]


class Change(NamedTuple):
    """A stage of a netlist that takes `factor` times as long as before."""

    netlist: str
    stage: str
    factor: float


def file_of(machine: Mapping[str, Any], folder: Path) -> Path:
    """Return the file with the results of a machine."""
    words = re.sub(r"[^a-z0-9.]+", "-", f"{machine['processor']} {machine['cores']} cores".lower())
    return folder / f"{words.strip('-')}.json"


def read(path: Path) -> dict[str, Any]:
    """Return the content of a file of results. Raises ValueError for a file of another kind or version."""
    results = json.loads(path.read_text(encoding="utf-8"))
    version = results.get("schema_version") if isinstance(results, dict) else None
    if version != RESULT_VERSION:
        raise ValueError(f"{path}: schema_version {version!r}, not {RESULT_VERSION}: no file of benchmark results")
    return results


def keep(path: Path, machine: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Add a run to a machine's results."""
    results: dict[str, Any] = {"schema_version": RESULT_VERSION, "machine": dict(machine), "runs": []}
    if path.exists():
        results = read(path)
    results["runs"].append(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def latest(results: Mapping[str, Any], run: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the last of a machine's runs that can be compared with this one: as many threads, the same precision."""
    same = [old for old in results["runs"] if all(old[key] == run[key] for key in ("threads", "precision"))]
    return same[-1] if same else None


def changes(old: Ratios, new: Ratios) -> list[Change]:
    """Return the differences beyond noise, the slowest first: every repetition of one run is above three quarters of
    the other's, and the medians differ by more than NOISE."""
    differences: list[Change] = []
    for netlist, stages in new.items():
        for stage, ratios in stages.items():
            before = old.get(netlist, {}).get(stage)
            if not before:
                continue
            _, middle, upper = _quartiles(ratios)
            _, middle_before, upper_before = _quartiles(before)
            factor = middle / middle_before
            if (min(ratios) > upper_before and factor > NOISE) or (min(before) > upper and factor < 1 / NOISE):
                differences.append(Change(netlist, stage, factor))
    return sorted(differences, key=lambda change: -change.factor)


def page(folder: Path) -> str:
    """Return the page of the history, with all machines of a folder."""
    return PAGE + "\n".join(_machine(read(path)) for path in sorted(folder.glob("*.json")))


PAGE: Final = """\
# How fast it was

This page has the results of `python benchmarks/run.py --keep`, on each machine and over time. Seconds depend on the
load of a machine, so the figures are ratios to a yardstick that was measured with each repetition: `run` counts the
GFLOP that numpy's sgemm would have done in that time on one thread, `push` and `pop` the GB that numpy would have
copied, and `load` is a multiple of the time in which libyaml hands out the events of the text. The figures are medians,
with half the distance of the quartiles in per cent; small is fast. [contributing.md](../contributing.md#benchmarks)
says how to measure and compare.

"""


def _machine(results: Mapping[str, Any]) -> str:
    """Return the section of one machine."""
    machine = results["machine"]
    lines = [f"## {machine['processor']}, {machine['cores']} cores, Python {machine['python']}", ""]
    runs: Sequence[Mapping[str, Any]] = results["runs"]
    titles = [f"{run['at']}, {run['version']}, {run['precision']}, {run['threads']} threads" for run in runs]
    lines += [f"| netlist | stage | {' | '.join(titles)} |", f"|---|---|{'---:|' * len(runs)}"]
    stages: dict[tuple[str, str], None] = {}
    for run in runs:
        for name, kinds in run["ratios"].items():
            stages.update(dict.fromkeys((name, stage) for stage in kinds))
    for name, stage in stages:
        cells = [_cell(run["ratios"].get(name, {}).get(stage)) for run in runs]
        lines.append(f"| {name} | {stage}, {STAGES[stage]} | {' | '.join(cells)} |")
    for key, unit in (("sgemm", "GFLOP/s"), ("copy", "GB/s"), ("libyaml", "MB/s")):
        figures = [f"{run['yardsticks'][key]:.3g}" for run in runs]
        lines.append(f"| yardstick | {key}, {unit} | {' | '.join(figures)} |")
    return "\n".join(lines) + "\n"


def _cell(ratios: Sequence[float] | None) -> str:
    """Return the median with half the distance of the quartiles in per cent."""
    if not ratios:
        return "-"
    lower, middle, upper = _quartiles(ratios)
    return f"{middle:.3g} ± {50 * (upper - lower) / middle:.0f} %"


def _quartiles(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the quartiles; of a single ratio, that ratio three times."""
    if len(ratios) == 1:
        return ratios[0], ratios[0], ratios[0]
    lower, middle, upper = statistics.quantiles(ratios, n=4, method="inclusive")
    return lower, middle, upper
