"""What a run and the checker exercise: device steps, queues and rams, rules."""

import pytest

from buda_emu.app.cli.main import main
from buda_emu.support.checker.checks import Checker
from buda_emu.testing import generate
from buda_emu.testing.coverage.features import asked_of_objects, found_by_check, outcomes
from buda_emu.testing.coverage.report import Coverage, every_list, read
from buda_emu.testing.coverage.run_features import EVENTS, device_steps
from buda_emu.testing.verify.runs.collect import Case, Settings
from buda_emu.testing.verify.runs.run_case import run_case
from example_netlists import DIRECTORY
from netlist.rules.test_rules import CASES


def exercised(text, **settings):
    case = Case("net.yaml", "net.yaml", text.encode(), settings=Settings(coverage=True, cache=False, **settings))
    return run_case(case).exercised


def test_what_a_run_on_the_device_does():
    found = exercised((DIRECTORY / "attention.yaml").read_text())
    steps = set(found["device steps"])
    assert {"function exp", "function reciprocal", "matmul", "multiply", "pack bf16 to Float16_b"} <= steps
    assert "function gelu" not in steps
    assert {"queue: push by the host", "queue: push by an op", "queue: read pointer wraps"} <= set(
        found["queues and rams"]
    )
    assert found["op types"] == ("add", "exp", "matmul", "multiply", "reciprocal")


def test_other_precisions_have_no_device_steps():
    found = exercised((DIRECTORY / "matmul.yaml").read_text(), precision="format")
    assert found["device steps"] == ()
    assert found["queues and rams"]


def test_a_run_with_figures_of_ops_notes_the_same():
    text = (DIRECTORY / "matmul.yaml").read_text()
    alone, beside = exercised(text), exercised(text, per_op=True)
    assert alone["device steps"] == beside["device steps"]
    assert set(alone["queues and rams"]) - {"inputs together"} == set(beside["queues and rams"])


def test_nothing_is_noted_unless_it_is_asked_for():
    text = (DIRECTORY / "matmul.yaml").read_bytes()
    assert run_case(Case("net.yaml", "net.yaml", text, settings=Settings(cache=False))).exercised == {}


def test_everything_noted_is_of_a_list():
    for seed in range(25):
        for subject, names in exercised(generate(seed).text).items():
            assert set(names) <= set(every_list()[subject])


@pytest.mark.parametrize("case", [CASES[0], CASES[40], CASES[-1]], ids=lambda case: case.rule)
def test_a_rule_is_passed_or_broken(case):
    from netlist.rules.cases import edited

    clean = outcomes(case.base.encode(), "net.yaml", case.arch)
    broken = outcomes(edited(case.base, case.broken).encode(), "net.yaml", case.arch)
    assert case.rule in clean["rules passed"]
    assert case.rule not in clean["rules broken"]
    assert case.rule in broken["rules broken"]
    assert case.rule not in broken["rules passed"]


def test_a_rule_that_is_asked_of_nothing_here_is_neither():
    found = outcomes((DIRECTORY / "matmul.yaml").read_bytes(), "net.yaml", None)
    assert "V130" in asked_of_objects()  # of fused ops
    assert "V130" not in {*found["rules passed"], *found["rules broken"]}


def test_a_text_that_is_none_breaks_a_rule():
    assert outcomes(b"\xff\xfe\xfa", "net.yaml", None)["rules broken"] == ("V000",)
    assert outcomes(b"a: [", "net.yaml", "WORMHOLE_B0")["rules broken"]


def test_who_does_not_ask_pays_nothing():
    """The checker of an ordinary check is the plain one."""
    from buda_emu.netlist.rules.book import _Run

    assert type(_Run(Checker("net.yaml")).checker) is Checker


def test_lists_are_complete():
    assert len(EVENTS) == len(set(EVENTS))
    assert len(device_steps()) == len(set(device_steps()))
    assert {"unpack Float32 to Tf32", "pack int32 to Int8", "pack fp16 to Bfp8"} <= set(device_steps())
    assert set(asked_of_objects()) <= set(found_by_check())
    assert "V153" not in found_by_check()
    assert "V350" not in found_by_check()


def test_a_refused_netlist_counts_for_the_rules_alone(tmp_path, capsys):
    path, bad = tmp_path / "coverage.json", tmp_path / "bad.yaml"
    bad.write_text((DIRECTORY / "matmul.yaml").read_text().replace("type: matmul", "type: matmull"))
    assert main(["test", str(bad), "-n", "1", "--coverage", str(path), "--no-cache"]) == 2
    found = read(path)
    assert not any(found.counts[subject] for subject in ("op types", "device steps", "queues and rams"))
    assert found.counts["rules broken"]
    assert found.percent == 0
    assert "rules broken" in capsys.readouterr().out


def test_counts_of_runs_merge():
    once, twice = Coverage(), Coverage()
    found = exercised((DIRECTORY / "matmul.yaml").read_text())
    new = once.count(found)
    assert "device steps: matmul in blocks" in new
    twice.count(found)
    twice.merge(once)
    assert twice.counts["device steps"]["matmul in blocks"] == 2
    assert once.count(found) == []
