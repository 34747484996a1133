"""Advice as lines for a terminal."""

from types import SimpleNamespace

import pytest

from buda_emu.performance.advice.accuracy import Loss
from buda_emu.performance.advice.result import Point
from buda_emu.report.terminal.advice import advice_lines
from buda_emu.report.terminal.text import relative
from buda_emu.spec.devices import device
from report.columns import is_right_aligned, table_with

GRAPHS = ("encoder",)
REPORT = SimpleNamespace(pace=9.0, graphs=GRAPHS, bottleneck=SimpleNamespace(sentence="op a sets the pace"))


def proposal(move, host=""):
    return SimpleNamespace(move=move, sentence=f"what {move} does", host=host)


def variant(cycles, slowest, loading=12.0):
    return SimpleNamespace(cycles=cycles, slowest=slowest, reports=[REPORT], loading=loading)


def advice_text(loading=12.0, **more):
    grid = {"saved": 12_345.0, "after": 7_655.0, "loss": None, "proposal": proposal("grid")}
    fidelity = {"saved": 7.0, "after": 19_993.0, "loss": Loss("a", 1.0, 0.75, 0.1), "proposal": proposal("fidelity")}
    tried = [SimpleNamespace(before=20_000.0, epoch=0, **one) for one in (grid, fidelity)]
    taken = [(proposal("grid"), None), (proposal("queue", "pushes less"), Loss("b", 1.0, 0.5, 0.1))]
    steps = [variant(1_000_000.0, 7_655.0), variant(99.0, 98.0, loading)]
    front = [Point("as it is", 2_000_000.0, 20_000.0, 0.0), Point("grid", 99.0, 1.0, 0.5)]
    advice = SimpleNamespace(
        netlist="n.yaml",
        chip=device("wormhole_b0"),
        before=variant(2_000_000.0, 20_000.0, 1234.0),
        after=steps[-1],
        ranked=tried,
        found=SimpleNamespace(taken=taken, steps=steps, refused=[], unsplit=[]),
        front=lambda: front,
        lost=0.5,
    )
    return "\n".join(advice_lines(advice, **more))


def test_figures_stand_right():
    text = advice_text()
    for table, headings in (
        ("move   ", ("cycles", "%", "PCC lost")),
        ("# ", ("#", "slowest", "all cycles", "PCC lost")),
        ("with", ("all cycles", "slowest", "PCC lost")),
    ):
        for heading in headings:
            assert is_right_aligned(table_with(text, table), heading), (table, heading)


def test_moves_taken_are_summed_up():
    text = advice_text()
    assert "slowest epoch: 20,000 cycles for each input, then 98 (-99.5 %)" in text
    assert "all programs: 2,000,000 cycles, then 99 (-100.0 %); PCC lost: 0.5" in text
    assert "\nloading epochs takes 1,234 of these cycles, then 12\n" in text
    assert text.endswith("the host then pushes less")


def test_a_change_is_never_minus_nothing():
    assert relative(871_661, 871_600) == "-0.007"
    assert relative(871_661, 871_661) == "0"
    assert [relative(100, after) for after in (99.94, 99.96, 112.34, 0)] == ["-0.1", "-0.04", "+12.3", "-100.0"]
    assert relative(0, 3) == "-"


def test_a_few_rows_of_each_table_and_how_many_are_left():
    text = advice_text(top=1)
    assert text.count("... and 1 more (--top 0 shows all)") == 3
    assert "fidelity" not in text
    assert "more" not in advice_text(top=0)
    assert advice_text(top=2) == advice_text()


@pytest.mark.parametrize(("loading", "dominates"), [(49.0, False), (50.0, True)])
def test_where_loading_dominates_the_way_out_is_told(loading, dominates):
    assert ("(input_count) it is loaded less often" in advice_text(loading)) == dominates
