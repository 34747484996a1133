"""Predictions against silicon: the model on configurations that its fit did not see, beside the vendor's formulas."""

import csv
from collections import defaultdict
from statistics import median, quantiles

import pytest

from buda_emu.performance.timing import op_cost
from buda_emu.performance.timing.op.cost import math_active_cycles
from buda_emu.performance.timing.op.table import read_row
from fit_op_cost import Sample, error_table, is_held_out
from shared_files import ROOT, SHARED

TABLE = SHARED / "silicon" / "public.csv"
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason=f"no measurements at {TABLE} (set BUDA_EMU_SHARED)")


@pytest.fixture(scope="module")
def rows():
    with TABLE.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def samples(rows):
    return [Sample(read_row(row), float(row["cycles_per_input"]), is_held_out(row)) for row in rows]


def deviations(samples, model="fitted"):
    return [abs(op_cost(sample.call, model=model).cycles / sample.cycles - 1) for sample in samples]


def p90(values):
    return quantiles(values, n=10, method="inclusive")[8]


def test_a_quarter_is_held_out(samples):
    assert 0.2 < sum(sample.held_out for sample in samples) / len(samples) < 0.3


@pytest.mark.parametrize(("arch", "most"), [("wormhole_b0", (0.007, 0.07)), ("grayskull", (0.005, 0.05))])
def test_unseen_configurations(samples, arch, most):
    unseen = [sample for sample in samples if sample.held_out and sample.call.arch == arch]
    values = deviations(unseen)
    assert (median(values) <= most[0], p90(values) <= most[1]) == (True, True), (median(values), p90(values))
    vendor = deviations(unseen, "vendor")
    assert median(values) < median(vendor)
    assert p90(values) < p90(vendor)


def test_every_family_of_twenty_rows(samples):
    families = defaultdict(list)
    for sample in samples:
        families[sample.call.arch, sample.call.kind].append(sample)
    for family, members in families.items():
        if len(members) >= 20:
            assert median(deviations(members)) <= 0.05, family
        unseen = [sample for sample in members if sample.held_out]
        if len(unseen) >= 20:
            assert median(deviations(unseen)) <= 0.05, family


def test_every_measured_row_is_predicted_as_measured(samples):
    said = {op_cost(sample.call).provenance for sample in samples if not sample.held_out}
    assert said == {"measured"}


def test_math_active_cycles_are_exact(rows):
    """The table states them as share and cycles of a run; shares have seven digits, per_input ones fewer."""
    found = 0
    for row in rows:
        call = read_row(row)
        if call.arch == "wormhole_b0" and call.kind == "matmul" and row["math_active_cycles"]:
            resolution = 0.5 + 0.0001 * float(row["cycles_per_input"])
            assert abs(math_active_cycles(call) - float(row["math_active_cycles"])) < resolution, row
            found += 1
    assert found > 700


def test_the_page_states_these_errors(samples):
    assert error_table(samples) in (ROOT / "docs" / "timing" / "timing.md").read_text()
