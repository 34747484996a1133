"""The page of the scorecard: results, which stay in a file until what they come from changes, tables and pictures."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import log10
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from buda_emu.performance.timing.uncertainty import error_families
from buda_emu.support.strict_json import read_object

from .cards import CARDS, FITTED, KEPT_BACK, NOT_FITTED, Card, Figure

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "timing" / "scorecard.md"
PICTURES: Final = ROOT / "docs" / "pictures"
RESULTS: Final = Path(__file__).parent / "results.json"
SCHEMA: Final = 1
MODEL: Final = ("buda_emu/performance/timing", "buda_emu/spec", "benchmarks/scorecard")
"""What the modelled figures depend on, apart from the table."""
PARTS: Final = (FITTED, KEPT_BACK, NOT_FITTED)
Results = dict[str, dict[str, Any]]


def read_results(path: Path) -> Results:
    """Return the results by card; none of a file that is not there. Raises ValueError for a file of another schema."""
    if not path.exists():
        return {}
    content = read_object(path.read_bytes(), str(path), "the file of results", "take it from the repository again")
    if content.get("schema_version") != SCHEMA:
        raise ValueError(f"{path}: schema version {content.get('schema_version')}, this reads {SCHEMA}")
    return content["cards"]


def keep_result(path: Path, name: str, result: Mapping[str, Any]) -> None:
    """Put the result of a card into the file, in place of an older one. The file is written whole or not at all."""
    cards = {**read_results(path), name: dict(result)}
    beside = path.with_suffix(".part")
    ordered = {name: cards[name] for name in CARDS if name in cards}
    beside.write_text(json.dumps({"schema_version": SCHEMA, "cards": ordered}, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def fingerprint(card: Card) -> str:
    """Return what changes if the table or the model does."""
    digest = hashlib.sha256(card.source.read_bytes())
    for folder in MODEL:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".json") and path != RESULTS:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def missing(results: Results, only: Sequence[str] = ()) -> list[Card]:
    """Return the cards to make again: those named, or those whose table is there and whose result is absent or of
    another table or model."""
    if only:
        return [CARDS[name] for name in only]
    cards: list[Card] = []
    for name, card in CARDS.items():
        if card.source.is_file() and results.get(name, {}).get("fingerprint") != fingerprint(card):
            cards.append(card)
    return cards


def result_of(card: Card, figures: Iterable[Figure]) -> dict[str, Any]:
    """Return the result of a card: a row for each chip, family and part, and the deviations for its picture."""
    groups: dict[tuple[str, str, str], list[float]] = {}
    curves: dict[str, list[float]] = {}
    for figure in figures:
        groups.setdefault((figure.chip, figure.family, figure.part), []).append(figure.ratio)
        curves.setdefault(figure.chip, []).append(max(figure.ratio, 1 / figure.ratio) - 1)
    rows: list[dict[str, Any]] = []
    for chip, family, part in sorted(groups, key=lambda key: (key[0], key[1], PARTS.index(key[2]))):
        rows.append({"chip": chip, "family": family, "part": part, **summary(groups[chip, family, part])})
    return {
        "fingerprint": fingerprint(card),
        "rows": rows,
        "curves": {chip: percentiles(values) for chip, values in sorted(curves.items())},
    }


def summary(ratios: Sequence[float]) -> dict[str, float]:
    """Return number, median ratio, and median, 90th percentile and greatest deviation in per cent."""
    deviations = sorted(abs(ratio - 1) for ratio in ratios)
    return {
        "figures": len(ratios),
        "ratio": round(median(ratios), 3),
        "median": round(100 * median(deviations), 2),
        "p90": round(100 * percentile_90(deviations), 1),
        "worst": round(100 * deviations[-1], 1),
    }


def percentile_90(values: Sequence[float]) -> float:
    """Return the 90th percentile, interpolated; of a single value that one."""
    return quantiles(values, n=10, method="inclusive")[8] if len(values) > 1 else values[0]


def percentiles(values: Sequence[float]) -> list[float]:
    """Return the values below which 0, 2, 4 ... 100 per cent of all lie."""
    ordered = sorted(values)
    return [round(ordered[round(percent / 100 * (len(ordered) - 1))], 5) for percent in range(0, 101, 2)]


def page(results: Results) -> str:
    """Return docs/timing/scorecard.md."""
    sections = ["\n".join(_section(card, results[card.name])) for card in CARDS.values() if card.name in results]
    return "\n\n".join([_HEAD, *sections, "\n".join(_intervals()), _TABLES]) + "\n"


def _section(card: Card, result: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {card.title}"
    yield ""
    yield card.about
    yield ""
    yield f"![How far modelled figures are from measured ones](../pictures/scorecard-{card.name}.svg)"
    yield ""
    yield "| chip | family | part | figures | modelled / measured | median % | p90 % | worst % |"
    yield "|---|---|---|---:|---:|---:|---:|---:|"
    for row in result["rows"]:
        yield (
            f"| {row['chip']} | {row['family']} | {row['part']} | {row['figures']} | {row['ratio']:.2f} "
            f"| {row['median']:.1f} | {row['p90']:.1f} | {row['worst']:.1f} |"
        )


def _intervals() -> Iterator[str]:
    """Yield the section about the intervals of the model."""
    yield _INTERVALS
    yield ""
    yield "| figures | silicon takes | two of them differ by | rows | inside |"
    yield "|---|---|---:|---:|---:|"
    for family in sorted(error_families().values(), key=lambda family: family.name):
        judged = "stated" if family.coverage is None else f"{100 * family.coverage:.0f} %"
        yield (
            f"| {family.name} | {family.low:.2f} to {family.high:.2f} | {100 * family.pair:.1f} % "
            f"| {family.rows or '-'} | {judged} |"
        )


def write_page(results: Results) -> None:
    """Write the page and its pictures."""
    PAGE.write_text(page(results), encoding="utf-8")
    for name, result in results.items():
        drawn = picture(CARDS[name].title, result["curves"])
        (PICTURES / f"scorecard-{name}.svg").write_text(drawn, encoding="utf-8")


_WIDTH: Final = 640
_HEIGHT: Final = 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 620, 30, 160
_DECADES: Final = (-4, 1)
"""Powers of ten of the deviations that the picture shows, from 0.01 % to tenfold."""
_COLOURS: Final = ("#3b7dd8", "#d87a3b", "#3ba864")


def picture(title: str, curves: Mapping[str, Sequence[float]]) -> str:
    """Return an SVG: for each chip the share of figures, upward, whose deviation is at most that at the bottom."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sc" role="img" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        f"<title>{escape(title)}: share of figures within a deviation</title>",
        _STYLE,
        '<rect width="100%" height="100%" style="fill:var(--page)"/>',
    ]
    for power in range(_DECADES[0], _DECADES[1] + 1):
        x = _across(10.0**power)
        parts.append(f'<path class="grid" d="M{x:.0f} {_TOP}V{_BOTTOM}"/>')
        parts.append(f'<text x="{x:.0f}" y="{_BOTTOM + 16}" text-anchor="middle">{100 * 10.0**power:g} %</text>')
    for share in (0, 50, 90, 100):
        y = _BOTTOM - share / 100 * (_BOTTOM - _TOP)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.0f}H{_RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{share} %</text>')
    for number, (chip, values) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{_across(value):.1f},{_up(index, len(values)):.1f}" for index, value in enumerate(values))
        parts.append(f'<polyline points="{points}" style="stroke:{colour}"/>')
        parts.append(f'<text x="{_LEFT + 150 * number}" y="18" style="fill:{colour}">{escape(chip)}</text>')
    parts.append(f'<text x="{_RIGHT}" y="{_HEIGHT - 6}" text-anchor="end">deviation of modelled from measured</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


_STYLE: Final = """\
<style>
.sc{--ink:#1b1f24;--line:#d5d9de;--page:#fff;font:11px ui-monospace,Menlo,Consolas,monospace;background:var(--page)}
.sc text{fill:var(--ink)}.sc .grid{stroke:var(--line)}.sc polyline{fill:none;stroke-width:2;stroke-linejoin:round}
@media (prefers-color-scheme:dark){.sc{--ink:#e6e9ed;--line:#3a414a;--page:#12151a}}
</style>"""


def _across(deviation: float) -> float:
    """Return the x of a deviation on the logarithmic axis."""
    low, high = _DECADES
    power = min(max(log10(max(deviation, 1e-9)), low), high)
    return _LEFT + (power - low) / (high - low) * (_RIGHT - _LEFT)


def _up(index: int, count: int) -> float:
    """Return the y of a point of a curve."""
    return _BOTTOM - index / max(count - 1, 1) * (_BOTTOM - _TOP)


_HEAD: Final = """\
# The scorecard

Every public silicon figure that the timing model can be held against, and how far the model is from it. **Modelled
figures are over measured ones**: a ratio above 1 of a time says that silicon was faster, of a rate that it was slower.
`fitted` rows took part in fitting the model, `kept back` rows did not: a quarter of each table, chosen by hash, and of
collectives those whose size is a power of eight. Nothing was fitted to the rest, but for one factor of graphs. Tables
are described where they come from (the shared folder's `silicon/README.md`); all are published by Tenstorrent under the
Apache License 2.0. Two tables of them (`metal.md` d and e) are not here: floors of the vendor's tests of data movement,
which silicon exceeds by an unknown amount, and bandwidths of one core of which nothing says how they were measured.

The columns in per cent are the distance of modelled / measured from 1: half of the measured figure is 50 % off, twice
is 100 %. The pictures show for each chip the share of figures (upward) whose deviation is at most the one at the
bottom; there, half and twice the measured figure are both 100 % off.

```sh
python -m benchmarks.scorecard               # makes what is missing or out of date, and this page
python -m benchmarks.scorecard --only noc    # one card again
```

Each card is stored when it is done (`benchmarks/scorecard/results.json`), and made again when its table or the model
has changed."""

_INTERVALS: Final = """\
## How often intervals hold

Every modelled figure has a 90 % interval: `perf`, its `--json`, Python results and the page of `perf` show it. It
comes from errors of what the figure is made of, on silicon rows that no fit has seen. Figures that share an error are
a family; the table has all families.

* **The interval of a family** reaches from the 5th to the 95th percentile of measured over modelled cycles, as
  conformal prediction counts them, and always includes 1. With fewer than 40 rows one percentile of the error's size
  counts for both sides.
* **How often it holds** (*inside*): rows that share causes are of one fold: transactions of one row of the table, or
  all ops of one parameter set where the set itself is not used. The interval from all other folds is judged on each
  fold. Where intervals of nine tenths held less than 87 % of the rows of other folds, percentiles farther out were
  taken; families of two sets or of few rows may then hold more than 95 %.
* **Ops** differ by what their figure rests on, their provenance ([timing.md](timing.md#how-far-to-trust-a-figure)).
  *measured*: the quarter of the rows that the fit did not see. *another format*, *interpolated*: all rows, each
  modelled by the nearest set of parameters that is not its own. *another chip*: all rows of grayskull and wormhole_b0,
  each modelled by the sets of the other chip. *beyond sizes*: the larger half of each set's rows, by weights fitted to
  the smaller half. For matmuls of another fidelity, and of blackhole, whole-chip products take their place: they are
  the only silicon of these.
* **Transactions**: all rows, each by parameters that were fitted to the other folds.
* **Epochs** have rates of their own ([perf.md](perf.md#what-is-modelled-and-what-is-not)). *transfers between cores*
  and *DRAM channels* are rows of large transactions by these rates, with the fullest port, link or channel, on the NoC
  that suits them better. Nothing was fitted to them. Not among them: rows in which all cores begin with the same
  partner, as no pipe does.
* **links between chips** is the rate of a link in epochs beside that of gathers of 64 MiB and more. Two Wormhole chips
  gather at about half of the rate of four ([transfers.md](transfers.md#collectives)); hence its width.
* **Collectives**: all rows, each by parameters that were fitted without those of as many chips (all_to_all and the
  other kinds apart); *small*: arrays below 1 MiB.
* **Ops together in a graph** is what the graphs above err by. It counts in addition to the errors of ops and
  transfers. The ten rates and cycles of an input that netlists state for silicon all lie in the intervals of `perf`.
* **Stated**: nothing is published. The loading of an epoch takes half to twice its figure. An op that is estimated
  from another kind of op does, too.

A figure is a sum over the critical path: cycles of ops, transfers, memory channels, and loading. Errors of one family
are taken to be the same in all of its parts, so they add up; errors of different families are independent, so their
squares add up. The first is cautious: parts of one family err alike where they have one cause, such as a rate, and in
part cancel where they do not. The second holds since families were measured by different kernels on different units.

`perf --against` compares two runs of one model, which share most of their errors. What takes the same cycles in both
cancels. Of what differs, the difference errs by as much as its family; in addition, two versions of an op do not err
alike: in nine of ten pairs of rows of one op or pattern, the errors differ by at most the share in the table. A
difference is larger than the model's uncertainty if its interval does not contain 0.

Grayskull has no rows of transactions; it takes the families of *any chip*, as every family does that has fewer than 12
rows. The interval is one for the chip as it was measured: it does not cover another clock or a host."""

_TABLES: Final = """\
## Tables

`predict` copies a table and adds what the model says of each row, for example of rows that nobody has fitted:

```sh
python -m benchmarks.scorecard predict noc.csv -o predicted.csv
```

* **Transactions**: the columns of `noc.csv` (`num_transactions`, `num_subordinates`, `same_axis`, `stateful`, `arch`,
  `memory`, `pattern`, `mechanism`, `loopback`, `noc_index`; empty cells have the defaults of that table). It adds
  `predicted_64` to `predicted_65536`, cycles for transactions of so many bytes, and `low_64` to `high_65536`, their
  intervals. A table without the column `noc_index`
  means NoC 0 for writes and NoC 1 for reads.
* **Products**: the columns of `gemm.csv`. It adds `predicted`, the cycles of one product on the chip, with the interval
  `low` to `high`, beside which the measured cycles of the math kernel belong (`M*K*N/32768 * cycles_per_tile / cores *
  100 / device_utilization`). Rows without a blocking get the fastest one under the model. A product takes as long as
  its operands need to arrive (`transfer_cycles`) or to be multiplied (`op_cost`), whichever is slower, and never less
  than FPU, DRAM and the ports of a core allow.
* **Collectives**: the columns `board` (or an architecture), `collective` (`all_gather`, `reduce_scatter`, `all_reduce`,
  `all_to_all`), `chips`, `layout` (`line`, `ring`), `bytes` of the whole array, and perhaps `links` of each hop
  ([transfers.md](transfers.md#collectives)). It adds `predicted`, `low` and `high`, in cycles.

`fit` fits the costs of transactions or of collectives again ([transfers.md](transfers.md#fit-again)), and `intervals`
finds the errors of all families again and writes `buda_emu/performance/timing/data/intervals.json` (some minutes)."""
