"""The public tables, each as a card of the scorecard: what was modelled, over what was measured."""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from buda_emu.support.errors import HostError
from conditions import SHARED

from . import collectives, gemm, noc

SILICON: Final = SHARED / "silicon"
NETLISTS: Final = SHARED / "corpus" / "expectations.tsv"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure beside the modelled one. `part` says whether a fit has seen it; figures of one `group` share
    most of what makes them differ from silicon."""

    chip: str
    family: str
    part: str
    ratio: float  # modelled over measured
    group: str = ""


FITTED: Final = "fitted"
KEPT_BACK: Final = "kept back"
NOT_FITTED: Final = "not fitted"


@dataclass(frozen=True, slots=True)
class Card:
    """One public table: what it is, its file, and its figures."""

    name: str
    title: str
    about: str
    source: Path
    figures: Callable[[Path], Iterator[Figure]]


def op_figures(path: Path) -> Iterator[Figure]:
    """Yield the cycles of single ops."""
    from buda_emu.performance.timing import op_cost
    from buda_emu.performance.timing.op.table import read_row
    from fit_op_cost import is_held_out

    with path.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            call = read_row(row)
            part = KEPT_BACK if is_held_out(row) else FITTED
            family = call.kind.replace("_", " ") if call.kind.startswith(("matmul", "reduce")) else "other ops"
            yield Figure(call.arch, family, part, op_cost(call).cycles / float(row["cycles_per_input"]))


def graph_figures(path: Path) -> Iterator[Figure]:
    """Yield what public netlists state for silicon in `performance-check`."""
    from buda_emu.emulator.inputs.entries import default_parameters
    from buda_emu.netlist.load import load
    from buda_emu.netlist.test_config import read_performance_checks
    from buda_emu.performance.timing.checks import evaluate
    from buda_emu.performance.timing.model import model_netlist

    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    for name in dict.fromkeys(row["netlist"] for row in rows):
        netlist = load(path.parent / "netlists" / name)
        bodies = list(netlist.programs.values())
        run = model_netlist(netlist, bodies, default_parameters(bodies, {}))
        checks = evaluate(netlist, run, read_performance_checks(netlist.path, netlist.sections))
        observed = {(check.graph, check.bound.metric): check.observed for check in checks}
        for row in rows:
            if row["netlist"] == name:
                modelled = observed[row["graph"], row["metric"]]
                if modelled is None:
                    raise HostError(f"{path}: {name} has no {row['metric']} of {row['graph']} in the model")
                ratio = modelled / float(row["expected"])
                yield Figure(netlist.arch_name, row["metric"], NOT_FITTED, ratio, group=name)


def noc_figures(path: Path) -> Iterator[Figure]:
    """Yield the cycles of transactions of 512 bytes and more."""
    for row in noc.read_rows(path):
        part = KEPT_BACK if row.held_out else FITTED
        for size, cycles in row.measured.items():
            if size >= 512:
                yield Figure(row.arch, row.family, part, noc.predict(row, size) / cycles)


def dram_figures(path: Path) -> Iterator[Figure]:
    """Yield the rates of readers of blackhole's DRAM in three set-ups (metal.md a), which the file repeats."""
    text = path.read_text(encoding="utf-8")
    for words, places, size, count in (
        ("per-tile (2 KB) reads, barrier per block", "in a row", 2048, 8),
        ("16 KB packets + trid double-buffer, arbitrary cores", "in a row", 16384, 1024),
        ("+ bank-adjacent optimal NOC0 placement", "beside", 16384, 1024),
    ):
        measured = re.search(rf"^\| {re.escape(words)} \| ([0-9.]+) \|", text, re.M)
        if measured is not None:
            ratio = noc.reader_rate(places, size, count) / float(measured[1])
            yield Figure("blackhole", f"{size >> 10} KiB, readers {places}", NOT_FITTED, ratio)


def product_figures(path: Path) -> Iterator[Figure]:
    """Yield the cycles of whole-chip products, beside those of the math kernel and those of the whole op."""
    with path.open(newline="", encoding="utf-8") as stream:
        for line, row in enumerate(csv.DictReader(stream), 2):
            product = gemm.parse_product(row, f"{path}, line {line}")
            cycles = gemm.predict(product)
            blocking = "tuned" if product.tuned else "out of the box"
            if product.kernel_cycles is not None:
                yield Figure(product.arch, f"{blocking}, math kernel", NOT_FITTED, cycles / product.kernel_cycles)
            if product.ns is not None:
                whole = product.ns * product.chip.clock / 1000
                yield Figure(product.arch, f"{blocking}, whole op", NOT_FITTED, cycles / whole)


def collective_figures(path: Path) -> Iterator[Figure]:
    """Yield the cycles of collectives of chips (metal.md c)."""
    for row in collectives.read_rows(path):
        part = KEPT_BACK if row.held_out else FITTED
        kind = row.collective.kind.replace("_", " ")
        yield Figure(row.arch, kind, part, collectives.predict(row) / row.cycles)


def model_figures(path: Path) -> Iterator[Figure]:
    """Yield the throughput of published models, as `python -m benchmarks.published` has modelled it."""
    from published.models import MODELS
    from published.table import key, read

    cells = read(path)
    for name, model in MODELS.items():
        for board in model.figures:
            cell = cells.get(key(name, board, "torch"))
            ratio = model.ratio(cell["rate"], board) if cell and not cell["problem"] else None
            if ratio is not None:
                chip = "grayskull" if board.startswith("e") else "wormhole_b0"
                yield Figure(chip, board, NOT_FITTED, ratio)


CARDS: Final[dict[str, Card]] = {
    card.name: card
    for card in (
        Card(
            "ops",
            "Single ops",
            "Cycles of one op on one core ([timing.md](timing.md)).",
            SILICON / "public.csv",
            op_figures,
        ),
        Card(
            "graphs",
            "Graphs",
            "What public netlists state for silicon, by metric. One factor, for vector ops in graphs of grayskull, was "
            "fitted to three of these netlists ([perf.md](perf.md#beside-silicon)).",
            NETLISTS,
            graph_figures,
        ),
        Card(
            "noc",
            "Transactions",
            "Cycles of reads, writes and multicasts between cores and with DRAM, of 512 bytes and more "
            "([transfers.md](transfers.md)).",
            SILICON / "noc.csv",
            noc_figures,
        ),
        Card(
            "dram",
            "DRAM of Blackhole",
            "Bytes a cycle of one of eight readers, one for each channel. They follow from where the readers stand. "
            "Where the vendor's stood that were not beside their channels is not published; here they are the first of "
            "a row.",
            SILICON / "metal.md",
            dram_figures,
        ),
        Card(
            "products",
            "Whole-chip products",
            "The vendor's newer stack multiplies with another kernel, so this is a ratio, not an error. *Tuned* rows "
            "state their blocking; for the others the fastest one under the model is taken. *Whole op*: beside the "
            "host's time for an op, which includes the start of its kernels.",
            SILICON / "gemm.csv",
            product_figures,
        ),
        Card(
            "collectives",
            "Collectives",
            "Cycles of what 2 or 4 chips in a line, or 8 in a ring, do together over Ethernet, with arrays of 4 KiB to "
            "16 GiB in DRAM ([transfers.md](transfers.md#collectives)). They were measured with the kernels of the "
            "vendor's newer stack. Ten numbers of each chip were fitted. All 493 rows that are published are here.",
            SILICON / "metal.md",
            collective_figures,
        ),
        Card(
            "models",
            "Whole models",
            "Inputs a second of [published models](../compile/published.md), by board (`n300:1`: one of the two chips "
            "of an n300): ours, modelled, over another compiler's, on silicon. Figures of the vendor's newer stack are "
            "[there](../compile/published.md#newer-figures-of-the-vendor).",
            Path(__file__).parents[1] / "published" / "results.json",
            model_figures,
        ),
    )
}
