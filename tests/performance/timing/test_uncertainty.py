"""Intervals: how errors of parts add up, what of them two runs share, and whether they hold on silicon."""

import csv
import random

import pytest

import buda_emu as be
from buda_emu.performance.timing import Transactions, op_cost, transfer_cycles, transfer_interval
from buda_emu.performance.timing.op.call import OpCall
from buda_emu.performance.timing.op.table import read_row
from buda_emu.performance.timing.transfers import transactions
from buda_emu.performance.timing.uncertainty import (
    IN_GRAPHS,
    Interval,
    Part,
    error_families,
    error_family,
    interval_of,
    interval_of_difference,
)
from fit_op_cost import is_held_out
from shared_files import SHARED

ENCODER = SHARED / "corpus" / "netlists" / "verif" / "graph_tests" / "netlists" / "netlist_encoder_grid.yaml"
OPS = SHARED / "silicon" / "public.csv"
needs_table = pytest.mark.skipif(not OPS.is_file(), reason=f"no measurements at {OPS} (set BUDA_EMU_SHARED)")
MEASURED = "wormhole_b0 other ops, measured"
MATMUL = "wormhole_b0 matmul, measured"
MATRIX = OpCall(
    op_type="matmul", mblock_m=2, mblock_n=2, ublock_rt=2, ublock_ct=4, m_k=4, u_kt=4, in0_df="Bfp8_b", fidelity="LoFi"
)


def drawn_parts(random_numbers, count=12):
    """Parts of random size in random families, some of them of one unit."""
    names = sorted(error_families())
    return [
        Part(f"unit {random_numbers.randrange(8)}", random_numbers.choice(names), random_numbers.uniform(1, 1e6))
        for _ in range(count)
    ]


def test_an_interval_holds_its_figure_and_grows_with_it():
    random_numbers = random.Random(59)
    for _ in range(200):
        parts = drawn_parts(random_numbers)
        total = sum(part.cycles for part in parts if part.family != IN_GRAPHS)
        interval = interval_of(parts)
        assert interval.low <= total <= interval.high
        twice = interval_of([*parts, *parts])
        assert (twice.low, twice.high) == pytest.approx((2 * interval.low, 2 * interval.high))


def test_errors_of_one_family_add_up_and_those_of_several_partly_cancel():
    one = error_family(MEASURED)
    same = interval_of([Part("a", MEASURED, 700), Part("b", MEASURED, 300)])
    assert (same.low, same.high) == pytest.approx((1000 * one.low, 1000 * one.high))
    mixed = interval_of([Part("a", MEASURED, 1000), Part("b", MATMUL, 1000)])
    apart = [interval_of([Part("a", family, 1000)]) for family in (MEASURED, MATMUL)]
    widest = max(interval.high - 1000 for interval in apart)
    assert widest < mixed.high - 2000 < sum(interval.high - 1000 for interval in apart)


def test_the_error_of_a_graph_adds_no_cycles():
    alone = interval_of([Part("a", MEASURED, 1000)])
    in_graph = interval_of([Part("a", MEASURED, 1000), Part("graph", IN_GRAPHS, 1000)])
    assert in_graph.low < alone.low < 1000 < alone.high < in_graph.high
    assert in_graph.high - 1000 < alone.high - 1000 + 1000 * (error_family(IN_GRAPHS).high - 1)


def test_what_both_runs_have_cancels():
    random_numbers = random.Random(6)
    for _ in range(100):
        shared = drawn_parts(random_numbers)
        nothing = interval_of_difference(shared, list(reversed(shared)), {part.unit for part in shared})
        assert (nothing.low, nothing.high) == pytest.approx((0, 0), abs=1e-3)
        before = Part("changed", MATMUL, 1000.0)
        after = Part("changed", MATMUL, 600.0)
        alone = interval_of_difference([before], [after], set())
        among = interval_of_difference([before, *shared], [after, *shared], {part.unit for part in shared})
        assert (among.low, among.high) == pytest.approx((alone.low, alone.high), abs=1e-3)
        assert alone.low < -400 < alone.high < 0


def test_a_small_change_is_within_what_two_versions_of_an_op_differ_by():
    pair = error_family(MATMUL).pair
    assert 0 < pair < 0.2
    for share, certain in ((pair / 3, False), (3 * pair, True)):
        interval = interval_of_difference(
            [Part("op a", MATMUL, 1000.0)], [Part("op a", MATMUL, 1000 * (1 - share))], set()
        )
        assert (interval.high < 0) == certain, share


def test_runs_of_two_chips_share_nothing():
    before = [Part("op a", MATMUL, 1000.0)]
    after = [Part("op a", "grayskull matmul, measured", 1000.0)]
    apart = interval_of_difference(before, after, set())
    ends = [interval_of(parts) for parts in (before, after)]
    assert apart.high == pytest.approx(((ends[1].high - 1000) ** 2 + (1000 - ends[0].low) ** 2) ** 0.5, rel=0.5)
    assert apart.low < 0 < apart.high


def test_what_a_chip_has_no_rows_of_takes_those_of_all_chips():
    assert error_family("blackhole reduce, another chip").name == "any chip ops, another chip"
    assert error_family("grayskull DRAM channels").name == "any chip DRAM channels"
    assert error_family("wormhole loading of epochs").name == "any chip loading of epochs"
    with pytest.raises(KeyError, match="no errors for blackhole poetry"):
        error_family("blackhole poetry")


def test_what_is_estimated_has_a_wider_interval_than_what_was_measured():
    def width(call):
        cost = op_cost(call)
        assert cost.interval.low <= cost.cycles <= cost.interval.high
        return cost.interval.high / cost.interval.low

    measured, elsewhere = MATRIX, OpCall(**{**_fields(MATRIX), "arch": "blackhole"})
    assert op_cost(measured).family == MATMUL
    assert op_cost(elsewhere).family == "blackhole matmul, another chip"
    assert 1 < width(measured) < 1.2 < width(elsewhere)
    larger = OpCall(**{**_fields(MATRIX), "m_k": 100})
    assert op_cost(larger).family == "wormhole_b0 matmul, beyond sizes"
    assert width(measured) < width(larger)


def _fields(call):
    return {name: getattr(call, name) for name in type(call).__slots__}


def test_every_transfer_and_op_has_an_interval():
    for chip, core, bank in (("wormhole_b0", (1, 2), (0, 11)), ("blackhole", (1, 2), (0, 11))):
        for kind in transactions.KINDS:
            for cores in ((core,), (core, (2, 2))):
                for partner in ((3, 3), bank):
                    for size in (64, 4096):
                        transfers = Transactions(
                            kind=kind, cores=cores, partners=((partner,),) * len(cores), size=size, count=32
                        )
                        interval = transfer_interval(transfers, chip)
                        assert interval.low < transfer_cycles(transfers, chip) < interval.high
    random_numbers = random.Random(1)
    for _ in range(100):
        call = OpCall(
            op_type=random_numbers.choice(("nop", "add", "gelu", "topk", "matmul", "reduce", "embedding")),
            arch=random_numbers.choice(("grayskull", "wormhole_b0", "blackhole")),
            mblock_m=random_numbers.randrange(1, 9),
            mblock_n=random_numbers.randrange(1, 9),
            ublock_rt=1,
            ublock_ct=2,
            m_k=2,
            u_kt=2,
            reduce_dim="r",
            in0_df=random_numbers.choice(("Float16_b", "Bfp8_b", "Float32")),
        )
        cost = op_cost(call, model=random_numbers.choice(("fitted", "vendor")))
        assert 0 < cost.interval.low <= cost.cycles <= cost.interval.high


def test_an_interval_reads_as_low_to_high():
    assert str(Interval(1189999.6, 1300000.4)) == "90 %: 1,190,000 to 1,300,000"


def test_intervals_hold_on_other_rows_than_they_come_from():
    judged = [family for family in error_families().values() if family.coverage is not None]
    assert len(judged) > 40
    assert all(family.coverage >= 0.85 for family in judged)
    large = [family for family in judged if family.rows >= 60 and family.name.endswith((", measured", "cores", "core"))]
    assert len(large) > 6
    assert all(0.85 <= family.coverage <= 0.95 for family in large)


@needs_table
def test_intervals_hold_for_ops_that_the_fit_has_not_seen():
    inside = {}
    with OPS.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if is_held_out(row):
                cost = op_cost(read_row(row))
                hit = cost.interval.low <= float(row["cycles_per_input"]) <= cost.interval.high
                inside.setdefault(cost.family, []).append(hit)
    for family, hits in inside.items():
        if len(hits) >= 60:
            assert 0.85 <= sum(hits) / len(hits) <= 0.96, family


@pytest.mark.skipif(not ENCODER.is_file(), reason=f"no netlist at {ENCODER} (set BUDA_EMU_SHARED)")
def test_what_a_netlist_states_for_silicon_lies_in_the_interval_of_its_epoch():
    (intervals,) = be.perf(ENCODER).epoch_intervals
    assert intervals.pace.low < 35_500 < intervals.pace.high  # cycles-per-tensor
    assert intervals.pace.low < 1.2e9 / 33_800 < intervals.pace.high  # tensors-per-second at 1.2 GHz
