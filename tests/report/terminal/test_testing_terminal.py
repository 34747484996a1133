"""Results as lines for a terminal."""

import shlex
from dataclasses import replace

import pytest

from buda_emu.report.terminal import testing
from buda_emu.testing.verify.result import STATUSES, CaseResult, OpResult, PerformanceResult, TestRun
from report.results import finished_run


def failed_case():
    return finished_run().cases[2]


def test_every_status_has_a_mark_of_its_own():
    assert set(testing.MARKS) == set(STATUSES)
    assert len(set(testing.MARKS.values())) == len(STATUSES)
    assert all(len(mark) == 1 for mark in testing.MARKS.values())


def test_the_line_of_an_output_that_does_not_hold():
    (output,) = failed_case().outputs
    first, reason = testing.failure_line(output).splitlines()
    assert first.startswith("o: PCC 0.99999")
    assert ", match " in first
    assert ", max error 0.00" in first
    assert first.endswith(", first bad tile: entry 0, t 0, tile [0, 0]")
    assert reason == f"    {output.reason}"


def test_lost_values_are_reported():
    (output,) = failed_case().outputs
    spoilt = replace(output, not_finite_observed=3, first_bad_tile=None, pcc=None, max_error=None)
    line = testing.failure_line(spoilt).splitlines()[0]
    assert line.startswith("o: PCC -, match ")
    assert line.endswith(", max error -, not finite: 3 observed, 0 expected")
    assert testing.failure_line(replace(spoilt, reason="")).count("\n") == 0


def test_everything_about_a_netlist_that_stopped():
    stopped = finished_run().cases[4]
    lines = list(testing.case_lines(stopped))
    assert lines[0] == "stopped.yaml: stopped"
    assert lines[1:] == [f"  {line}" for line in stopped.message.splitlines()]


def test_the_summary_is_of_those_that_did_not_pass():
    lines = list(testing.summary_lines(finished_run().cases))
    names = [shlex.split(line.partition(" - ")[0]) for line in lines]
    assert [words[0] for words in names] == ["FAILED", "REJECTED", "STOPPED", "CRASHED"]
    assert [words[1] for words in names] == [case.netlist for case in finished_run().cases[2:]]
    assert lines[-1] == "CRASHED crashed.yaml - its worker process died (signal SIGKILL)"
    assert list(testing.summary_lines([CaseResult("a", "skipped", "nothing to compare")])) == []


def test_the_summary_of_several_outputs():
    (output,) = failed_case().outputs
    three = replace(failed_case(), outputs=(output, replace(output, passed=True), output, output))
    (line,) = testing.summary_lines([three])
    assert line == f"FAILED lossy.yaml - o: {output.reason} (and 2 more outputs)"


def test_the_table_of_outputs():
    header, row, by = testing.outputs_table(failed_case()).splitlines()
    assert header.split() == ["output", "verdict", "PCC", "match", "max", "error", "bad", "tiles", "format", "shape"]
    assert row.split()[:2] == ["o", "FAILED"]
    assert row.split()[-3:] == ["1/1", "Float16_b", "1x1x32x32"]
    assert by == "compared by Exact"


def test_the_kind_of_comparison_stands_in_each_row_if_it_differs():
    (output,) = failed_case().outputs
    other = replace(output, queue="p", comparison=replace(output.comparison, type="AllClose"))
    header, *rows = testing.outputs_table(replace(failed_case(), outputs=(output, other))).splitlines()
    assert header.split()[-2:] == ["compared", "by"]
    assert [row.split()[-1] for row in rows] == ["Exact", "AllClose"]


def test_the_table_of_ops_and_the_first_bad_one():
    case = failed_case()
    rows = testing.per_op_table(case.ops).splitlines()
    assert [row.split()[:4] for row in rows[1:]] == [["0", "n", "nop", "Float16_b"]]
    assert list(testing.first_bad_lines(case)) == ["no op is past the threshold"]
    assert list(testing.first_bad_lines(CaseResult("a", "passed"))) == []


@pytest.mark.parametrize(
    ("expected", "observed", "text"),
    [(0.0, 0.0, "-"), (0.0, 0.25, "25.00 % (0 % expected)"), (0.5, 0.0, "0 % (50.00 % expected)")],
)
def test_lost_values_of_ops(expected, observed, text):
    op = replace(failed_case().ops[0], not_finite_expected=expected, not_finite_observed=observed)
    assert isinstance(op, OpResult)
    header, row = testing.per_op_table([op]).splitlines()
    assert ("not finite" in header) is (text != "-")
    assert text == "-" or row.endswith(f"  {text}")


@pytest.mark.parametrize(
    ("modelled", "text"), [(123_456.7, "123,457"), (1_234_567.0, "1,234,567"), (0.1234567, "0.123457")]
)
def test_a_modelled_figure_has_six_digits_at_least_where_it_is_whole(modelled, text):
    found = PerformanceResult("config", "g", "", "cycles", "1", modelled, True)
    lines = testing.performance_table(replace(failed_case(), performance=(found,))).splitlines()
    assert text in lines[1].split()


def test_the_last_line():
    def closing(*statuses):
        return testing.closing_line(TestRun(tuple(CaseResult("a", status) for status in statuses), "1", 1.25, {}))

    assert closing() == "nothing ran in 1.2 s"
    assert closing("passed", "skipped", "passed", "failed", "crashed") == (
        "1 crashed, 1 failed, 2 passed, 1 skipped in 1.2 s"
    )
