"""Errors of the model on silicon rows that no fit has seen, by what a figure rests on.

* Ops as measured: the quarter of the rows that was kept from the fit. Ops by another parameter set: every row,
  modelled as if its own set, or its chip, had not been measured. Ops beyond the measured sizes: the
  larger half of each set's rows, by weights that are fitted to the smaller half.
* Transactions: every row, by parameters that are fitted to the other folds. Collectives likewise.
* Transfers in an epoch: rows of transactions with the rates of the epoch model, to which none was fitted.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from math import log
from typing import Final

from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.cost import (
    Basis,
    Family,
    ParameterSets,
    basis_of,
    choose,
    error_family_name,
    family_of,
    op_cost,
    parameter_sets,
    sizes_of,
)
from buda_emu.performance.timing.op.features import evaluate, features, form_of, fpu_cycles
from buda_emu.performance.timing.parts import CHANNELS, CROSSINGS, TRANSFERS
from buda_emu.performance.timing.transfers.collectives import error_topic as error_topic_of_collective
from buda_emu.performance.timing.transfers.rates import Rates, speed
from buda_emu.performance.timing.transfers.transactions import error_topic, traffic_of
from buda_emu.performance.timing.uncertainty import ANY_CHIP, IN_GRAPHS
from buda_emu.spec.devices import Device, device

from . import collectives, noc
from .cards import CARDS, Figure
from .fit import cells_of, fit_cost
from .intervals import FOLDS, RowError, fold_of

BULK: Final = 16384
"""Bytes that a core moves in all from which on the rates of the epoch model are compared, which know no start-up."""
PACKET: Final = 1024
"""Bytes of a transaction from which on they are: epochs move tiles."""
LARGE: Final = 64 << 20
"""Bytes from which on a collective is limited by its links, not by its start."""
SINGLE: Final = (0, 1, 2, 3, 6, 7, 8, 9)
"""Patterns whose transfers an epoch could have: all but those in which all cores begin with the same partner."""


def all_errors() -> Iterator[RowError]:
    """Yield the errors of all tables, and tell on the error stream which one is read."""
    for name, read in _TABLES.items():
        print(f"intervals: {name}", file=sys.stderr, flush=True)
        yield from read()


def _samples() -> "Iterator[tuple[OpCall, float, bool]]":
    """Yield the measured ops with their cycles, and whether the fit has not seen them."""
    from fit_op_cost import read

    for sample in read(CARDS["ops"].source):
        yield sample.call, sample.cycles, sample.held_out


def _op_error(call: OpCall, basis: Basis | str, modelled: float, measured: float, fold: str) -> RowError:
    """Return the error of an op."""
    return RowError(
        chip=call.arch,
        topic=error_family_name(call, basis).removeprefix(f"{call.arch} "),
        value=log(measured / modelled),
        fold=fold,
        group=_set_name(call),
    )


def _set_name(call: OpCall) -> str:
    """Return the name of an op's own set of parameters."""
    return " ".join(map(str, family_of(call)))


def measured_op_errors() -> Iterator[RowError]:
    """Yield the errors of ops on which the fit has seen others like them."""
    for call, cycles, held_out in _samples():
        if held_out and basis_of(call, choose(call).parameters) == "measured":
            yield _op_error(call, "measured", op_cost(call).cycles, cycles, fold_of(call))


def relative_op_errors() -> Iterator[RowError]:
    """Yield the errors of ops by the set that is nearest without their own, and without those of their chip."""
    every = parameter_sets()
    without: Mapping[Basis, Callable[[Family, Family], bool]] = {
        "another format": lambda family, own: family == own,
        "another chip": lambda family, own: family[0] == own[0],
    }
    for call, cycles, _ in _samples():
        own = family_of(call)
        for basis, is_left_out in without.items():
            rest = {family: entry for family, entry in every.items() if not is_left_out(family, own)}
            if _can_stand_in(call, rest, basis):
                modelled = op_cost(call, sets=rest).cycles
                yield _op_error(call, basis, modelled, cycles, _set_name(call))
                if basis == "another format" and call.kind not in ("matmul", "depthwise"):
                    yield _op_error(call, "interpolated", modelled, cycles, _set_name(call))


def _can_stand_in(call: OpCall, sets: ParameterSets, basis: Basis) -> bool:
    """Return whether a set of the same kind is left on which the prediction of an op rests in this way."""
    if all(entry.kind != call.kind for entry in sets.values()):
        return False
    return basis_of(call, choose(call, sets).parameters) == basis


def larger_op_errors() -> Iterator[RowError]:
    """Yield the errors of the larger ops of each set, by weights that are fitted to the smaller ones."""
    from fit_op_cost import Problem, Sample, agreed, solve

    groups: dict[Family, list[Sample]] = defaultdict(list)
    for call, cycles, held_out in _samples():
        groups[family_of(call)].append(Sample(call, cycles, held_out))
    for family, samples in sorted(groups.items()):
        sizes = sorted(_size(sample.call) for sample in samples)
        middle = sizes[len(sizes) // 2]
        smaller = [sample for sample in samples if _size(sample.call) <= middle]
        form = form_of(family[1])
        problem = Problem(form, agreed(smaller))
        weights = problem.weights(solve(problem, 0, starts=4, hops=12))
        for sample in samples:
            if _size(sample.call) > middle:
                modelled = evaluate(form, weights, features(sample.call), fpu_cycles(sample.call))
                yield _op_error(sample.call, "beyond sizes", modelled, sample.cycles, _set_name(sample.call))


def _size(call: OpCall) -> int:
    """Return the size of an op: its tiles times its inner dimension."""
    sizes = sizes_of(call)
    return sizes["ublocks"] * sizes["ublock_tiles"] * sizes["inner"]


def vendor_op_errors() -> Iterator[RowError]:
    """Yield the errors of the vendor's formulas."""
    for call, cycles, _ in _samples():
        yield _op_error(call, "vendor formula", op_cost(call, model="vendor").cycles, cycles, _set_name(call))


_MATMULS: Final = {"wormhole_b0": "matmul, interpolated", "blackhole": "matmul, another chip"}
"""Whole-chip products are the only silicon of matmuls with another fidelity, and of any op of blackhole."""


def product_errors() -> Iterator[RowError]:
    """Yield the errors of whole-chip products, beside their math kernel."""
    card = CARDS["products"]
    for number, figure in enumerate(card.figures(card.source)):
        blocking, _, kernel = figure.family.partition(", ")
        if kernel == "math kernel":
            yield _figure_error(figure, f"whole-chip products, {blocking}", number, -log(figure.ratio))
            if blocking == "tuned":
                yield _figure_error(figure, _MATMULS[figure.chip], number, -log(figure.ratio))


def _figure_error(figure: Figure, topic: str, key: object, value: float) -> RowError:
    """Return the error of a figure of a card."""
    return RowError(chip=figure.chip, topic=topic, value=value, fold=fold_of(key), group=figure.family)


def transaction_errors() -> Iterator[RowError]:
    """Yield the errors of transactions, each by parameters that are fitted to the other folds."""
    rows = noc.read_rows(CARDS["noc"].source)
    for arch in sorted({row.arch for row in rows}):
        chip = noc.measured_chip(arch)
        ours = [row for row in rows if row.arch == arch]
        for fold in map(str, range(FOLDS)):
            cost = fit_cost(cells_of([row for row in ours if fold_of(row) != fold], chip), chip)
            for row in ours:
                if fold_of(row) == fold:
                    for cell in cells_of([row], chip):
                        yield RowError(
                            chip=arch,
                            topic=error_topic(cell.transactions, chip),
                            value=-log(cell.modelled(cost, chip) / cell.measured),
                            fold=fold,
                            group=f"{row.pattern} {row.memory} {row.mechanism} {row.noc}",
                        )


def epoch_transfer_errors() -> Iterator[RowError]:
    """Yield the errors of large transfers by the rates of the epoch model: the fullest port, link or channel."""
    better: dict[object, tuple[float, RowError]] = {}
    for row in noc.read_rows(CARDS["noc"].source):
        if row.mechanism or not (row.memory or row.pattern in SINGLE):
            continue
        for size, cycles in row.measured.items():
            if size < PACKET or size * row.count < BULK:
                continue
            error = RowError(
                chip=row.arch,
                topic=CHANNELS if row.memory else TRANSFERS,
                value=log(cycles / _epoch_cycles(row, size)),
                fold=fold_of((row.arch, row.pattern, row.memory, row.count, row.partners)),
                group=f"{row.pattern} {row.memory}",
            )
            key = (row.arch, row.pattern, row.memory, row.count, row.partners, row.same_axis, row.stateful, size)
            if key not in better or cycles < better[key][0]:
                better[key] = (cycles, error)  # on the NoC that suits it better, as the backend would choose
    for _, error in better.values():
        yield error


def _epoch_cycles(row: noc.Row, size: int) -> float:
    """Return the cycles of transactions by the rates of the epoch model."""
    chip = noc.measured_chip(row.arch)
    rates = speed(device(row.arch), {}).rates()
    traffic = traffic_of(noc.transactions_of(row, size), chip)
    packets = rates.of_packets(size)
    core = min(rates.port, packets)
    link = min(rates.link, packets)
    slowest = max(traffic.source / core, traffic.x / link, traffic.y / link, 1 / min(rates.stream, packets))
    if row.memory:
        slowest = max(slowest, _memory_cycles(row, traffic.bank, rates, chip))
    else:
        slowest = max(slowest, traffic.target / core)
    return rates.read[3] + row.count * size * slowest


def _memory_cycles(row: noc.Row, load: float, rates: Rates, chip: Device) -> float:
    """Return the cycles of a byte at the fullest DRAM core, or at the channel that several of them share."""
    port = rates.memory_ports[row.pattern in noc.READS]
    several = row.pattern in noc.SOME_TO_SOME
    sharing = len(noc.BANKS[row.arch]) / chip.dram_channels if several else 1.0
    return max(load / port, load * sharing / rates.dram)


def crossing_errors() -> Iterator[RowError]:
    """Yield the errors of links between chips: their rate in epochs, beside that of gathers of 64 MiB and more."""
    large = [row for row in collectives.read_rows(CARDS["collectives"].source) if row.collective.size >= LARGE]
    for number, row in enumerate(large):
        if row.collective.kind == "all_gather":
            chip = device(row.arch)
            rate = speed(chip, {}).ethernet / chip.neighbour_links / 1e9
            value = log(rate / row.link_rate)
            yield RowError(chip=row.arch, topic=CROSSINGS, value=value, fold=fold_of(number), group="all gather")


def collective_errors() -> Iterator[RowError]:
    """Yield the errors of collectives, each by parameters that are fitted to those of other causes."""
    rows = collectives.read_rows(CARDS["collectives"].source)
    for arch in sorted({row.arch for row in rows}):
        for row, causes, value in collectives.errors_without_own(rows, arch):
            topic = error_topic_of_collective(row.collective)
            yield RowError(chip=arch, topic=topic, value=value, fold=causes, group=f"{row.collective.kind} {causes}")


def graph_errors() -> Iterator[RowError]:
    """Yield the errors of whole graphs. Rates count upside down."""
    card = CARDS["graphs"]
    topic = IN_GRAPHS.removeprefix(f"{ANY_CHIP} ")
    for number, figure in enumerate(card.figures(card.source)):
        sign = -1 if figure.family == "cycles-per-tensor" else 1
        yield RowError(
            chip=ANY_CHIP, topic=topic, value=sign * log(figure.ratio), fold=str(number % FOLDS), group=figure.group
        )


_TABLES: Final[Mapping[str, Callable[[], Iterator[RowError]]]] = {
    "ops as measured": measured_op_errors,
    "ops by another set": relative_op_errors,
    "ops beyond the measured sizes": larger_op_errors,
    "ops by the vendor's formulas": vendor_op_errors,
    "whole-chip products": product_errors,
    "transfers in an epoch": epoch_transfer_errors,
    "links between chips": crossing_errors,
    "collectives": collective_errors,
    "graphs": graph_errors,
    "transactions": transaction_errors,
}
