"""The scorecard: rows of public tables as the model sees them, predictions for tables, and the errors that hold."""

import csv
import json
import random
import re
from collections import defaultdict
from dataclasses import asdict, replace
from math import exp
from statistics import median, quantiles

import pytest

from buda_emu.performance.timing.transfers.collectives import collective_cost, link_share
from buda_emu.spec.devices import device
from buda_emu.support.errors import HostError
from scorecard import collectives, fit, gemm, intervals, noc, page
from scorecard.cards import CARDS, FITTED, Card, Figure
from scorecard.tables import predict_table
from shared_files import SHARED

METAL = SHARED / "silicon" / "metal.md"
NOC = SHARED / "silicon" / "noc.csv"
GEMM = SHARED / "silicon" / "gemm.csv"
needs_tables = pytest.mark.skipif(not NOC.is_file(), reason=f"no measurements at {NOC} (set BUDA_EMU_SHARED)")

SOME_TRANSACTIONS = """\
num_transactions,num_subordinates,same_axis,stateful,arch,memory,pattern,mechanism,loopback,noc_index,1024,8192,65536
256,0,,,,,0,,,1,9770,73634,584620
64,0,true,,3,,1,,,,1694,8671,67784
25,25,true,,,,3,,,,1255,6973,52781
64,9,true,,,,3,1,true,,7874,22450,176861
256,0,,,3,2,1,,,,7030,,
"""
SOME_PRODUCTS = """\
board,section,M,K,N,grid,in0_storage,in1_storage,out_storage,dtype,fidelity,device_utilization,in0_block_w,per_core_M,\
per_core_N,out_block_h,out_block_w,out_subblock_h,out_subblock_w
N150,tuned,512,512,512,8x8,L1,DRAM,L1,BFLOAT16,HiFi4,40.77,2,2,2,2,2,1,2
P150,tuned,5120,6656,6656,13x10,DRAM,DRAM,DRAM,BFLOAT16,HiFi2,80.37,16,16,16,8,8,4,2
P150,out_of_box,2560,3328,3328,13x10,DRAM,DRAM,DRAM,BFLOAT16,HiFi2,85.66,,,,,,,
"""
SOME_COLLECTIVES = """\
board,collective,chips,layout,bytes,links,microseconds
blackhole,all_gather,4,line,8192,2,7.36
P150,all_gather,8,ring,8589934592,,79930.8
p150,reduce_scatter,2,line,67108864,2,926.07
p150,all_to_all,2,line,1073741824,2,18169.98
wormhole_b0,all_gather,2,line,2097152,1,171.42
n300,all_reduce,8,ring,8388608,1,820.94
n150,all_reduce,4,,67108864,1,9168.96
n150,all_to_all,8,ring,1048576,1,138.96
"""


def predicted(tmp_path, text):
    """The rows that `predict_table` writes for a table."""
    table, target = tmp_path / "table.csv", tmp_path / "out.csv"
    table.write_text(text)
    predict_table(table, target)
    with target.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_a_table_of_transactions_is_copied_with_cycles_for_every_size(tmp_path):
    rows = predicted(tmp_path, SOME_TRANSACTIONS)
    given = list(csv.DictReader(SOME_TRANSACTIONS.splitlines()))
    assert [{key: row[key] for key in given[0]} for row in rows] == given
    assert [name for name in rows[0] if name.startswith("predicted_")] == [f"predicted_{size}" for size in noc.SIZES]
    for row in rows:
        for size in (1024, 8192, 65536):
            if row[str(size)]:
                assert float(row[f"predicted_{size}"]) == pytest.approx(float(row[str(size)]), rel=0.2)


def test_without_a_column_for_it_reads_use_noc_1_and_writes_noc_0(tmp_path):
    header, *lines = SOME_TRANSACTIONS.splitlines()
    cut = [",".join((*line.split(",")[:9], *line.split(",")[10:])) for line in (header, *lines)]
    with_column, without = predicted(tmp_path, SOME_TRANSACTIONS), predicted(tmp_path, "\n".join(cut) + "\n")
    assert [row["predicted_4096"] for row in without] == [row["predicted_4096"] for row in with_column]


def test_a_table_of_products_is_copied_with_the_cycles_of_one_product(tmp_path):
    rows = predicted(tmp_path, SOME_PRODUCTS)
    for number, row in enumerate(rows):
        product = gemm.parse_product(row, f"row {number}")
        assert float(row["predicted"]) >= max(gemm.bounds(product).values())
        assert float(row["predicted"]) == pytest.approx(product.kernel_cycles, rel=0.35)


def test_a_table_of_collectives_is_copied_with_their_cycles(tmp_path):
    rows = predicted(tmp_path, SOME_COLLECTIVES)
    assert len(rows) == len(SOME_COLLECTIVES.splitlines()) - 1
    for row in rows:
        clock = 1350 if row["board"].lower() in ("p150", "blackhole") else 1000
        assert float(row["predicted"]) / clock == pytest.approx(float(row["microseconds"]), rel=0.1), row
        assert float(row["low"]) < float(row["predicted"]) < float(row["high"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "not a table of transactions, products or collectives"),
        ("", "not a table of transactions, products or collectives"),
        (SOME_COLLECTIVES.replace("8192", "8k"), "line 2: not a row of collectives: invalid literal"),
        (SOME_COLLECTIVES.replace("all_gather,4", "scan,4"), "line 2: not a row of collectives: .*kind 'scan' is not"),
        (
            SOME_COLLECTIVES.replace("n300,", "e150,"),
            "line 7: not a row of collectives: .*e150.* has no Ethernet links",
        ),
        (SOME_COLLECTIVES.replace("n300,", "n301,"), "line 7: not a row of collectives: .*no device table"),
        (SOME_TRANSACTIONS.replace("256,0,,,,,0,", "256,0,,,7,,0,"), "line 2: not a row of measured transactions"),
        (SOME_TRANSACTIONS.replace("256,0,,,,,0,", "256,0,,,,,12,"), "line 2: pattern, mechanism or memory is out of"),
        (
            SOME_PRODUCTS.replace("HiFi4", "HiFi9"),
            "line 2: not a row of measured products: ValueError fidelity 'HiFi9'",
        ),
        (SOME_PRODUCTS.replace("N150", "N151"), "line 2: not a row of measured products: ValueError board 'N151'"),
    ],
)
def test_what_is_no_such_table_is_refused_and_nothing_is_written(tmp_path, text, words):
    with pytest.raises(HostError, match=words):
        predicted(tmp_path, text)
    assert not (tmp_path / "out.csv").exists()


def test_no_product_is_modelled_below_its_bounds():
    random_numbers = random.Random(59)
    for _ in range(40):
        board = random_numbers.choice(("N150", "P150"))
        product = gemm.Product(
            board=board,
            tuned=False,
            shape=tuple(32 * random_numbers.randrange(1, 80) for _ in range(3)),
            grid=(random_numbers.randrange(1, 9), random_numbers.randrange(1, 9)),
            df=random_numbers.choice(tuple(gemm.FORMATS.values())),
            fidelity=random_numbers.choice(tuple(gemm.PHASES)),
            in0_in_dram=True,
            out_in_dram=True,
            blocking=None,
            utilization=None,
            ns=None,
        )
        assert gemm.predict(product) >= max(gemm.bounds(product).values()), product


def test_predictions_lie_in_their_intervals(tmp_path):
    for row in predicted(tmp_path, SOME_TRANSACTIONS):
        for size in noc.SIZES:
            low, figure, high = (float(row[f"{word}_{size}"]) for word in ("low", "predicted", "high"))
            assert low < figure < high
    for row in predicted(tmp_path, SOME_PRODUCTS):
        assert float(row["low"]) < float(row["predicted"]) < float(row["high"])


def drawn_errors(random_numbers, count, spread, chip="wormhole_b0", shared=(0.0, 0.0, 0.0, 0.0)):
    """Errors of a family; `shared` is what all rows of each fold err by."""
    errors = []
    for number in range(count):
        fold = number % len(shared)
        value = shared[fold] + random_numbers.gauss(0, spread)
        errors.append(intervals.RowError(chip, "matmul, measured", value, str(fold), f"op {number % 5}"))
    return errors


@pytest.mark.parametrize("count", [16, 60, 800])
def test_an_interval_holds_nine_tenths_of_other_rows_like_its_own(count):
    random_numbers = random.Random(count)
    shares = []
    for _ in range(30):
        ends = intervals.percentiles([random_numbers.gauss(0.02, 0.1) for _ in range(count)])
        others = [random_numbers.gauss(0.02, 0.1) for _ in range(200)]
        shares.append(sum(ends[0] <= value <= ends[1] for value in others) / len(others))
    assert 0.88 <= sum(shares) / len(shares) <= 0.96  # of 16 rows none may lie outside


def test_rows_that_err_alike_within_a_fold_make_an_interval_wider():
    random_numbers = random.Random(2)
    shares = []
    for shared in ((0.0, 0.0, 0.0, 0.0), (-0.03, -0.01, 0.01, 0.03)):
        errors = drawn_errors(random_numbers, 400, 0.02, shared=shared)
        found = intervals.family("x", errors)
        assert 0.85 <= found.coverage <= 0.95
        shares.append(sum(found.low <= exp(error.value) <= found.high for error in errors) / len(errors))
    assert shares[0] <= 0.91 < 0.93 < shares[1]
    assert intervals.family("x", drawn_errors(random_numbers, 400, 0.01, shared=(-0.3, -0.1, 0.1, 0.3))) is None


def test_too_few_rows_are_no_family_but_count_for_all_chips():
    random_numbers = random.Random(3)
    few = drawn_errors(random_numbers, 8, 0.1, "grayskull")
    many = drawn_errors(random_numbers, 200, 0.1)
    names = {entry.name for entry in intervals.families([*few, *many])}
    assert "grayskull matmul, measured" not in names
    assert {"wormhole_b0 matmul, measured", "any chip matmul, measured", "any chip ops, measured"} <= names
    assert {stated.name for stated in intervals.STATED} <= names


def test_rows_of_one_op_that_err_alike_make_a_small_pair_error():
    errors = [
        intervals.RowError("wormhole_b0", "matmul, measured", 0.1 * op + 0.001 * row, str(row % 4), f"op {op}")
        for op in range(5)
        for row in range(20)
    ]
    assert intervals.pair_error(errors) < 0.02
    assert intervals.family("x", errors).high > 1.2


def p90(values):
    return quantiles(values, n=10, method="inclusive")[8]


@needs_tables
@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_transactions_agree_with_silicon(arch, held_out):
    rows = [row for row in noc.read_rows(NOC) if row.arch == arch and row.held_out == held_out]
    errors = defaultdict(list)
    for row in rows:
        loose = bool(row.memory) or row.pattern in noc.SOME_TO_SOME
        for size, cycles in row.measured.items():
            if size >= 512:
                errors[loose].append(abs(noc.predict(row, size) / cycles - 1))
    assert median(errors[False]) <= 0.02
    assert p90(errors[False]) <= 0.1
    assert median(errors[True]) <= 0.12


@needs_tables
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_products_agree_with_silicon(arch):
    with GEMM.open(newline="") as stream:
        products = [gemm.parse_product(row, str(line)) for line, row in enumerate(csv.DictReader(stream), 2)]
    products = [product for product in products if product.arch == arch]
    ratios = []
    for product in products:
        cycles = gemm.predict(product)
        assert cycles >= max(gemm.bounds(product).values()), product
        if product.tuned:
            ratios.append(cycles / product.kernel_cycles)
    assert 0.85 <= median(ratios) <= 1.15
    assert p90([max(ratio, 1 / ratio) for ratio in ratios]) <= 1.4


ROWS_OF_COLLECTIVES = {
    ("wormhole_b0", False): 160,
    ("wormhole_b0", True): 78,
    ("blackhole", False): 167,
    ("blackhole", True): 88,
}


@needs_tables
@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_collectives_agree_with_silicon(arch, held_out):
    rows = [row for row in collectives.read_rows(METAL) if row.arch == arch and row.held_out == held_out]
    errors = defaultdict(list)
    for row in rows:
        errors[row.collective.kind].append(abs(collectives.predict(row) / row.cycles - 1))
    assert len(rows) == ROWS_OF_COLLECTIVES[arch, held_out]
    assert max(map(median, errors.values())) <= 0.07
    assert max(map(p90, errors.values())) <= 0.17
    assert len(errors) == 4


@needs_tables
def test_the_ways_of_pieces_are_those_by_which_the_source_counts_the_rate_of_a_link():
    for row in collectives.read_rows(METAL):
        collective = row.collective
        if collective.kind == "all_to_all" and collective.layout == "ring":
            share = link_share(collective) / 1.25  # the source halves what goes half around
        else:
            share = link_share(collective) * (2 if collective.kind == "all_reduce" else 1)
        rate = share * collective.size / collective.links / row.microseconds / 1000
        assert rate == pytest.approx(row.link_rate, rel=0.01, abs=0.006), row


@needs_tables
def test_an_all_reduce_of_silicon_takes_as_long_as_its_two_parts():
    times = {(row.arch, row.collective): row.microseconds for row in collectives.read_rows(METAL)}
    compared = 0
    for (arch, collective), time in times.items():
        if collective.kind == "all_reduce" and collective.size >= 64 << 20:
            parts = [times.get((arch, replace(collective, kind=kind))) for kind in ("reduce_scatter", "all_gather")]
            assert sum(parts) == pytest.approx(time, rel=0.03)
            compared += 1
    assert compared == 43


@needs_tables
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_the_costs_of_collectives_are_what_a_fit_of_the_rows_that_it_may_see_gives(arch):
    rows = [row for row in collectives.read_rows(METAL) if row.arch == arch and not row.held_out]
    fitted = asdict(collectives.fit_cost(rows, device(arch)))
    assert asdict(collective_cost(arch)) == {name: pytest.approx(value, rel=1e-3) for name, value in fitted.items()}


def test_a_page_without_collectives_is_not_fitted(tmp_path):
    page_of_others = tmp_path / "others.md"
    page_of_others.write_text("### Blackhole, all_gather, n=2, line dram\n\nnone\n")
    with pytest.raises(HostError, match="no tables of collectives, with headings such as"):
        collectives.fit_file(page_of_others)


def figures_of(chips):
    """The figures of errors that a file of costs states, as the tables of transfers.md have them."""
    rows = []
    for name, entry in chips.items():
        cells = [f"{entry[part][word]:{form}}" for part in ("fitted", "held_back") for word, form in _CELLS.items()]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


_CELLS = {"cells": "", "median": ".1f", "p90": ".1f"}


@pytest.mark.parametrize("target", [fit.TARGET, collectives.TARGET])
def test_the_page_of_transfers_has_the_errors_of_the_fits(target):
    text = (page.PAGE.parent / "transfers.md").read_text(encoding="utf-8")
    rows = figures_of(json.loads(target.read_text(encoding="utf-8"))["chips"])
    assert len(rows) == 2
    assert [row for row in rows if row not in text] == []


@needs_tables
@pytest.mark.parametrize(
    "name",
    ["dram", "collectives", pytest.param("ops", marks=pytest.mark.slow), pytest.param("noc", marks=pytest.mark.slow)],
)
def test_the_page_has_what_the_model_says_today(name):
    card = CARDS[name]
    today, stored = page.result_of(card, card.figures(card.source)), page.read_results(page.RESULTS)[name]
    assert today["rows"] == stored["rows"]
    assert today["curves"] == stored["curves"]


def test_the_page_is_made_from_the_results():
    results = page.read_results(page.RESULTS)
    assert set(results) == set(CARDS)
    assert page.PAGE.read_text(encoding="utf-8") == page.page(results)
    for name, result in results.items():
        drawn = (page.PICTURES / f"scorecard-{name}.svg").read_text(encoding="utf-8")
        assert drawn == page.picture(CARDS[name].title, result["curves"])


def test_a_card_is_made_again_when_its_table_changes(tmp_path, monkeypatch):
    table, kept = tmp_path / "table", tmp_path / "results.json"
    figures = [Figure("chip", "family", FITTED, ratio) for ratio in (0.5, 1.0, 1.1, 1.2)]
    card = Card("ops", "Ops", "About them.", table, lambda _: iter(figures))
    monkeypatch.setitem(CARDS, "ops", card)
    others = {name: {"fingerprint": page.fingerprint(other)} for name, other in CARDS.items() if other.source.is_file()}
    assert card not in page.missing(others)  # its table is not there
    table.write_text("1")
    assert card in page.missing(others)
    result = page.result_of(card, card.figures(table))
    assert result["rows"][0]["worst"] == 50.0
    assert result["curves"]["chip"][-1] == 1.0  # half is as far off as twice
    page.keep_result(kept, "ops", result)
    results = {**others, **page.read_results(kept)}
    assert card not in page.missing(results)
    table.write_text("2")
    assert card in page.missing(results)
    assert page.missing(results, ["noc"]) == [CARDS["noc"]]


def test_a_row_of_a_card_has_the_deviations_of_its_figures():
    assert page.summary([0.5, 1.0, 1.1, 1.2]) == {
        "figures": 4,
        "ratio": 1.05,
        "median": 15.0,
        "p90": 41.0,
        "worst": 50.0,
    }
    assert page.summary([2.0])["p90"] == 100.0


def test_a_curve_rises_from_none_to_all():
    drawn = page.picture("Some & others", {"chip": page.percentiles([0.0, 0.01, 0.1, 1.0])})
    points = re.search(r'points="([^"]+)"', drawn)[1].split()
    xs, ys = zip(*(map(float, point.split(",")) for point in points), strict=True)
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys, reverse=True)
    assert "Some &amp; others" in drawn


@needs_tables
def test_a_fit_starts_within_reach_and_lowers_the_loss():
    chip = noc.measured_chip("blackhole")
    rows = [row for row in noc.read_rows(NOC) if row.arch == "blackhole" and row.pattern in (0, 1) and not row.memory]
    cells = fit.cells_of(rows[:12], chip)
    found = fit.fit_cost(cells, chip)
    assert fit.loss(cells, found, chip) < 0.8 * fit.loss(cells, fit.START, chip)
