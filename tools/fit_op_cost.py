"""Fit the op cost model to measured cycles and write its parameter file (docs/timing/timing.md, "How to refit").

    python tools/fit_op_cost.py public.csv

A quarter of the configurations, chosen by hash, is kept from the fit; errors on both parts go into the file. Weights
are found by a damped Gauss-Newton descent on the logarithm of predicted over measured cycles, with the maximum of each
overlap softened at first, from many seeded starting points.
"""

import argparse
import csv
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import MODELS, Family, family_of, op_cycles, sizes_of
from buda_emu.performance.timing.op.features import Form, Serial, Stage, evaluate, features, form_of, fpu_cycles, stages
from buda_emu.performance.timing.op.table import COLUMNS, read_row

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "buda_emu" / "performance" / "timing" / "data" / "op_cost.json"
SOURCE = (
    "single ops measured on silicon, normalised from the performance sweeps published in tenstorrent/tt-budabackend "
    "(Apache License 2.0)"
)
NOISE = 0.004  # relative deviations well below it count squared, well above it by their size
SOFTNESS = (2.0, 5.0, 12.0, 40.0, 160.0)  # exponents of the norm that stands for the maximum while fitting
SPARING = 0.1  # measurements that a weight must be worth: what few of them ask for stays 0
NOTHING = 1e-6  # share of the cost below which a weight is 0
HELD_OUT = 64  # of 256 hash values


@dataclass(frozen=True)
class Sample:
    """One measurement."""

    call: OpCall
    cycles: float
    held_out: bool


def is_held_out(row: Mapping[str, str]) -> bool:
    """Return whether the fit must not see this configuration: a quarter of them, by hash of the describing columns."""
    key = "|".join(row.get(column) or "" for column in sorted(COLUMNS))
    return hashlib.sha256(key.encode()).digest()[0] < HELD_OUT


def read(path: Path) -> list[Sample]:
    """Return all measurements of a table."""
    with path.open(newline="") as stream:
        return [
            Sample(read_row(row), float(row["cycles_per_input"]), is_held_out(row)) for row in csv.DictReader(stream)
        ]


class Problem:
    """One form against the measurements of one family: cycles and their derivatives for a vector of parameters.

    Weights are squares of parameters, so none is negative; each is in units of the cost that its count alone would
    explain.
    """

    def __init__(self, form: Form, samples: list[Sample]) -> None:
        self.form = form
        self.counts = [features(sample.call) for sample in samples]
        self.measured = np.array([sample.cycles for sample in samples])
        self.product_cycles = np.array([float(fpu_cycles(sample.call)) for sample in samples])
        self.columns: dict[str, np.ndarray] = {}
        self.units: dict[str, np.ndarray] = {}
        self.fixed: dict[str, np.ndarray] = {}
        self.slices: dict[str, slice] = {}
        size = 0
        for stage in stages(form):
            values = np.stack([[count[name] for count in self.counts] for name in stage.counts], 1)
            units = np.array([self._unit(column) for column in values.T])
            self.columns[stage.name] = values * units
            self.units[stage.name] = units
            self.fixed[stage.name] = self._fixed_cycles(stage)
            self.slices[stage.name] = slice(size, size + len(stage.counts))
            size += len(stage.counts)
        self.size = size

    def _unit(self, column: np.ndarray) -> float:
        present = column > 0
        return float(np.median(self.measured[present] / column[present])) if present.any() else 0.0

    def _fixed_cycles(self, stage: Stage) -> np.ndarray:
        if not stage.ideal:
            return np.zeros(len(self.measured))
        return self.product_cycles * np.array([count[stage.ideal] for count in self.counts])

    def run(self, theta: np.ndarray, softness: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the cycles of every sample and their derivatives."""
        return self._run(self.form, theta, softness)

    def _run(self, form: Form, theta: np.ndarray, softness: float) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(form, Stage):
            part = self.slices[form.name]
            columns = self.columns[form.name]
            slope = np.zeros((len(self.measured), self.size))
            slope[:, part] = columns * (2 * theta[part])
            return columns @ theta[part] ** 2 + self.fixed[form.name] + 1e-9, slope
        values, slopes = zip(*(self._run(part, theta, softness) for part in form.parts), strict=True)
        if isinstance(form, Serial):
            return sum(values), sum(slopes)
        stacked = np.stack(values, 1)
        top = stacked.max(1)
        norm = top * ((stacked / top[:, None]) ** softness).sum(1) ** (1 / softness)
        shares = (stacked / norm[:, None]) ** (softness - 1)
        return norm, sum(shares[:, [i]] * slope for i, slope in enumerate(slopes))

    def weights(self, theta: np.ndarray) -> dict[str, dict[str, float]]:
        """Return the cycles for each unit of each count."""
        weights: dict[str, dict[str, float]] = {}
        for stage in stages(self.form):
            shares = theta[self.slices[stage.name]] ** 2
            values = np.where(shares > NOTHING, shares, 0.0) * self.units[stage.name]
            weights[stage.name] = {
                name: float(f"{value:.6g}") for name, value in zip(stage.counts, values, strict=True)
            }
        return weights


def agreed(samples: list[Sample]) -> list[Sample]:
    """Return the samples with the cycles on which most samples of the same description agree.

    Some sweeps differ in what their tables do not tell: the same columns, cycles up to a fifth apart. The middle of the
    shortest range that holds half of them is what they have in common; a mean would fit none.
    """
    groups: dict[OpCall, list[float]] = defaultdict(list)
    for sample in samples:
        groups[sample.call].append(sample.cycles)
    middle: dict[OpCall, float] = {}
    for call, cycles in groups.items():
        cycles.sort()
        half = (len(cycles) + 1) // 2
        ranges = [(cycles[i + half - 1] - cycles[i], i) for i in range(len(cycles) - half + 1)]
        first = min(ranges)[1]
        middle[call] = (cycles[first] + cycles[first + half - 1]) / 2
    return [Sample(sample.call, middle[sample.call], sample.held_out) for sample in samples]


def loss(deviation: np.ndarray, theta: np.ndarray) -> float:
    """Return the mean of a rounded absolute value, plus the price of the weights."""
    return float(np.mean(np.sqrt(deviation**2 + NOISE**2) - NOISE) + SPARING * np.sum(theta**2) / len(deviation))


def descend(problem: Problem, theta: np.ndarray, softness: float, steps: int) -> tuple[np.ndarray, float]:
    """Return the parameters and the loss after damped Gauss-Newton steps on reweighted squares."""
    damping = 1e-2
    predicted, slope = problem.run(theta, softness)
    deviation = np.log(predicted / problem.measured)
    best = loss(deviation, theta)
    for _ in range(steps):
        trust = 1 / np.sqrt(deviation**2 + NOISE**2)
        relative = slope / predicted[:, None]
        price = 2 * SPARING
        square = (relative * trust[:, None]).T @ relative + price * np.eye(len(theta))
        pull = (relative * trust[:, None]).T @ deviation + price * theta
        brake = np.diag(np.diag(square) + 1e-5 * np.trace(square) / len(square) + 1e-12)
        for _ in range(8):
            trial = np.abs(theta - np.linalg.solve(square + damping * brake, pull))
            trial_loss = loss(np.log(problem.run(trial, softness)[0] / problem.measured), trial)
            if trial_loss < best:
                break
            damping *= 5
        else:
            break
        gain = best - trial_loss
        best = trial_loss
        theta = trial
        damping = max(damping / 5, 1e-9)
        predicted, slope = problem.run(theta, softness)
        deviation = np.log(predicted / problem.measured)
        if gain < 1e-6:
            break
    return theta, best


def solve(problem: Problem, seed: int, starts: int, hops: int) -> np.ndarray:
    """Return the best parameters of many descents: random starts, then jumps away from the best ones."""
    rng = np.random.default_rng(seed)
    pool: list[tuple[float, np.ndarray]] = []
    for _ in range(starts):
        theta = np.sqrt(rng.uniform(0, 0.8, problem.size) / 2) * (rng.random(problem.size) < 0.7) + 0.03
        for softness in SOFTNESS[:-1]:
            theta, reached = descend(problem, theta, softness, 40)
        pool.append((reached, theta))
    pool.sort(key=lambda entry: entry[0])
    best, theta = pool[0]
    for hop in range(hops):
        origin = pool[int(rng.integers(min(3, len(pool))))][1] if hop < hops // 2 else theta
        trial = origin * np.exp(rng.normal(0, rng.choice([0.1, 0.4, 1.0]), problem.size))
        shaken = rng.random(problem.size) < 0.15
        trial[shaken] += rng.uniform(0, 0.4, int(shaken.sum()))
        for softness in SOFTNESS[-3 + hop % 2 : -1]:
            trial, reached = descend(problem, trial, softness, 40)
        if reached < best:
            best = reached
            theta = trial
    return descend(problem, theta, SOFTNESS[-1], 300)[0]


def errors(weights: Mapping[str, Mapping[str, float]], form: Form, samples: Iterable[Sample]) -> list[float]:
    """Return the absolute values of the relative errors."""
    return [abs(evaluate(form, weights, features(s.call), fpu_cycles(s.call)) / s.cycles - 1) for s in samples]


def summary(values: list[float]) -> dict[str, float]:
    """Return rows, median, p90 and worst of relative errors."""
    if not values:
        return {"rows": 0}
    median, p90 = np.quantile(values, [0.5, 0.9])
    return {
        "rows": len(values),
        "median": round(float(median), 5),
        "p90": round(float(p90), 5),
        "max": round(max(values), 5),
    }


def fit_family(family: Family, samples: list[Sample], starts: int, hops: int) -> dict[str, Any]:
    """Return the entry of one family in the parameter file."""
    seen = [sample for sample in samples if not sample.held_out]
    unseen = [sample for sample in samples if sample.held_out]
    form = form_of(family[1])
    problem = Problem(form, agreed(seen))
    weights = problem.weights(solve(problem, 0, starts, hops))
    sizes = [sizes_of(sample.call) for sample in seen]
    arch, kind, approximate, l1_acc, numbers = family
    return {
        "arch": arch,
        "kind": kind,
        "approximate": approximate,
        "l1_acc": l1_acc,
        "numbers": numbers,
        "in_dfs": sorted({sample.call.data_df for sample in seen}),
        "out_dfs": sorted({sample.call.result_df for sample in seen}),
        "phases": sorted({sample.call.phases for sample in seen}),
        "ranges": {name: [min(s[name] for s in sizes), max(s[name] for s in sizes)] for name in sizes[0]},
        "rows": len(samples),
        "fitted": summary(errors(weights, form, seen)),
        "held_out": summary(errors(weights, form, unseen)),
        "weights": weights,
    }


def family_key(entry: Mapping[str, Any]) -> Family:
    """Return the family of an entry of the parameter file."""
    return entry["arch"], entry["kind"], entry["approximate"], entry["l1_acc"], entry["numbers"]


def error_table(samples: list[Sample]) -> str:
    """Return a table in Markdown of the errors on the rows that the fit did not see, of this model and of the vendor's,
    by kind of op."""
    groups: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.call.arch, "**all**"].append(sample)
        groups[sample.call.arch, sample.call.kind].append(sample)
    lines = [
        "| architecture | op | rows | unseen | median % | p90 % | vendor median % | vendor p90 % |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (arch, kind), members in sorted(groups.items()):
        unseen = [sample for sample in members if sample.held_out]
        quoted: list[str] = []
        for model in MODELS:
            deviations = [abs(op_cycles(sample.call, model=model) / sample.cycles - 1) for sample in unseen]
            quoted += [f"{100 * float(value):.2f}" for value in np.quantile(deviations, [0.5, 0.9])]
        lines.append(f"| {arch} | {kind} | {len(members)} | {len(unseen)} | {' | '.join(quoted)} |")
    return "\n".join(lines)


def main() -> int:
    """Fit every family and write the file."""
    parser = argparse.ArgumentParser(description="Fit the op cost model to measured cycles.")
    parser.add_argument("table", type=Path, help="CSV of measurements: the columns of opcycles and cycles_per_input")
    parser.add_argument("-o", "--output", type=Path, default=TARGET)
    parser.add_argument("--starts", type=int, default=12)
    parser.add_argument("--hops", type=int, default=100)
    parser.add_argument("--only", help="fit the families whose name contains this, keep the others")
    parser.add_argument("--errors", action="store_true", help="fit nothing, print the errors of the model as it is")
    args = parser.parse_args()
    if args.errors:
        print(error_table(read(args.table)))
        return 0
    groups: dict[Family, list[Sample]] = defaultdict(list)
    for sample in read(args.table):
        groups[family_of(sample.call)].append(sample)
    sets: list[dict[str, Any]] = []
    for family, samples in sorted(groups.items()):
        if args.only and args.only not in " ".join(map(str, family)):
            continue
        entry = fit_family(family, samples, args.starts, args.hops)
        sets.append(entry)
        print(*family, len(samples), "fitted", entry["fitted"], "held out", entry["held_out"], flush=True)
    if args.only:
        fitted = {family_key(entry) for entry in sets}
        earlier = json.loads(args.output.read_text())["sets"]
        sets = sorted([*(entry for entry in earlier if family_key(entry) not in fitted), *sets], key=family_key)
    content = {"schema_version": 1, "source": SOURCE, "written_by": "tools/fit_op_cost.py", "sets": sets}
    args.output.write_text(json.dumps(content, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
