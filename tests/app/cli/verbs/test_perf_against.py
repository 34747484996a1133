"""`perf --against`: what changed between two runs, and which resource changed it."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from buda_emu.app.api.perf import perf as model
from buda_emu.app.cli.main import main
from buda_emu.app.cli.verbs import perf as perf_verb
from buda_emu.performance.timing.uncertainty import LISTED_LINKS
from buda_emu.report.perf_against import against
from buda_emu.support.errors import HostError
from example_netlists import DIRECTORY
from report.unpacked import unpack_page

MATMUL = DIRECTORY / "matmul.yaml"


def run_perf(*words):
    return main(["perf", *map(str, words)])


@pytest.mark.parametrize("name", ["matmul", "attention", "two_chips", "training"])
def test_a_netlist_against_itself_has_no_difference(name, capsys):
    path = DIRECTORY / f"{name}.yaml"
    assert run_perf(path, "--against", path, "--fail-above", "0") == 0
    assert capsys.readouterr().out.endswith("no difference\n")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--what-if", "link_bytes=60,port_bytes=56"), "link_bytes 60, port_bytes 56"),
        (("--board", "n150"), "board n150"),
        (("--grid", "4x4"), "grid 4x4"),
        (("--board", "n150", "--what-if", "clock=900"), "board n150, clock 900"),
    ],
)
def test_what_both_sides_have_is_named(options, words, tmp_path, capsys):
    path = DIRECTORY / "matmul.yaml"
    page = tmp_path / "page"
    assert run_perf(path, *options, "--against", path, "--report", page) == 0
    assert f"both:   {words} (" in capsys.readouterr().out
    assert f"Both are modelled with {words}." in (page / "comparison.html").read_text()
    assert ", ".join(json.loads((page / "comparison.json").read_text())["shared_conditions"]) == words


def test_a_grid_that_the_earlier_run_did_not_have_is_named(tmp_path, capsys):
    before = tmp_path / "before.json"
    assert run_perf(MATMUL, "-q", "--json", before) == 0
    assert run_perf(MATMUL, "--grid", "4x4", "--against", before) == 0
    assert "\ngrid: 10x8, now 4x4\n" in capsys.readouterr().out
    older = json.loads(before.read_text())
    del older["grid"]
    before.write_text(json.dumps(older))
    assert run_perf(MATMUL, "--grid", "4x4", "--against", before) == 0
    assert "grid:" not in capsys.readouterr().out


def test_one_changed_attribute_names_the_op(tmp_path, capsys):
    text = MATMUL.read_text()
    changed = tmp_path / "changed.yaml"
    assert "HiFi3" in text
    changed.write_text(text.replace("math_fidelity: HiFi3", "math_fidelity: LoFi"))
    comparison = against(model(changed).to_json(), model(MATMUL).to_json())
    (epoch,) = comparison.changed_epochs
    assert [(unit.kind, unit.name) for unit in epoch.units] == [("op", "product")]
    assert epoch.units[0].difference > 0
    assert "product" in epoch.reason
    assert comparison.worst_percent() == pytest.approx(max(epoch.percent, 0.0), rel=0.5)
    assert run_perf(MATMUL, "--against", changed) == 0
    assert "op product" in capsys.readouterr().out


def slower_by(share, out):
    """The JSON of a netlist in which one op of the critical path takes that much longer, in both figures and parts."""
    found = model(MATMUL).to_json()
    (epoch,) = found["epochs"]
    part = next(part for part in epoch["parts"] if part["unit"] == "op product")
    more = share * part["cycles"]
    part["cycles"] += more
    for name in ("total_cycles", "run_cycles"):
        epoch[name] += more
    for name in ("first_input_cycles", "cycles_per_input"):
        epoch[name] = epoch[name] and epoch[name] * epoch["total_cycles"] / (epoch["total_cycles"] - more)
    epoch["ops"][0]["cost_cycles"] *= 1 + share
    found["program_cycles"] = {name: cycles + epoch["runs"] * more for name, cycles in found["program_cycles"].items()}
    out.write_text(json.dumps(found))
    return out


@pytest.mark.parametrize(("share", "words"), [(0.001, "within"), (1.0, "more than")])
def test_a_difference_is_held_against_the_uncertainty_of_the_model(share, words, tmp_path, capsys):
    before = slower_by(share, tmp_path / "before.json")
    assert run_perf(MATMUL, "--against", before) == 0
    lines = capsys.readouterr().out.splitlines()
    for start in ("program run_fwd: -", "steady cycles: -"):
        (line,) = [line for line in lines if line.startswith(start)]
        assert line.endswith(f", {words} the model's uncertainty")
    comparison = against(json.loads(before.read_text()), model(MATMUL).to_json())
    ((before_cycles, after_cycles),) = comparison.programs.values()
    (interval,) = comparison.intervals.values()
    assert interval.low < after_cycles - before_cycles < interval.high
    alone = model(MATMUL).program_intervals["run_fwd"]
    assert interval.high - interval.low < (alone.high - alone.low) / 2  # what is the same in both cancels


def test_a_run_without_intervals_is_compared_all_the_same(tmp_path, capsys):
    before = slower_by(0.5, tmp_path / "before.json")
    content = json.loads(before.read_text())
    del content["epochs"][0]["parts"]
    before.write_text(json.dumps(content))
    assert run_perf(MATMUL, "--against", before) == 0
    assert "the earlier run has no intervals" in capsys.readouterr().out


def test_an_epoch_of_one_run_has_no_uncertain_difference(capsys):
    assert run_perf(MATMUL, "--against", DIRECTORY / "softmax.yaml") == 0
    shown = capsys.readouterr().out
    assert "not any more" in shown
    assert "no intervals" not in shown


def test_runs_with_other_clocks_are_compared_in_time(tmp_path, capsys):
    before = tmp_path / "before.json"
    assert run_perf(MATMUL, "-q", "--what-if", "clock=500", "--json", before) == 0
    assert run_perf(MATMUL, "--against", before, "--report", tmp_path / "r") == 0
    old, new = model(MATMUL, what_if={"clock": 500}), model(MATMUL)
    change = f"{1e3 * old.seconds:.4g} ms, now {1e3 * new.seconds:.4g} ms"
    assert f"program run_fwd: {change}" in capsys.readouterr().out
    assert f"Program run_fwd: {change}" in (tmp_path / "r" / "comparison.html").read_text()
    assert run_perf(MATMUL, "--against", MATMUL) == 0
    assert " ms, now " not in capsys.readouterr().out


def test_the_time_of_the_whole_run_is_given_where_the_host_link_bounds_it(tmp_path, capsys):
    sentence = r"the whole run, which the host link bounds: ([\d.,]+) ms, now ([\d.,]+) ms \(-"
    words = ("--what-if", "host_gbps=0.01", "--json", tmp_path / "slow.json")
    assert run_perf(MATMUL, "-q", *words) == 0
    slow = json.loads((tmp_path / "slow.json").read_text())
    capsys.readouterr()
    assert run_perf(MATMUL, "--against", tmp_path / "slow.json", "--what-if", "host_gbps=0.02,clock=1200") == 0
    before, after = re.search(sentence, capsys.readouterr().out).groups()
    milliseconds = 1e3 * slow["overall_seconds"]
    assert [float(before), float(after)] == pytest.approx([milliseconds, milliseconds / 2], rel=1e-3)
    assert run_perf(MATMUL, "--against", MATMUL, "--what-if", "clock=1200") == 0
    assert "host link bounds" not in capsys.readouterr().out


def test_the_page_says_how_sure_a_difference_is(tmp_path, capsys):
    faster = tmp_path / "faster.yaml"
    faster.write_text(Path(MATMUL).read_text().replace("HiFi3", "LoFi"))
    assert run_perf(faster, "--against", MATMUL, "--report", tmp_path / "r") == 0
    shown = " ".join(capsys.readouterr().out.split())
    page = unpack_page(tmp_path / "r" / "comparison.html")
    sentences = re.findall(r"<p>((?:Program run_fwd|Steady cycles): .*?)\.</p>", page)
    assert len(sentences) == 2
    for sentence in sentences:
        assert unescape(sentence)[1:] in shown


def test_equal_new_and_gone_units():
    """A unit that costs nothing before and after did not change; one that is new costs all of what it does."""

    def run(**costs):
        found = model(MATMUL).to_json()
        (epoch,) = found["epochs"]
        (op,) = epoch["ops"]
        epoch["ops"] = [{**op, "op": name, "cost_cycles": cycles} for name, cycles in costs.items()]
        return found

    def units(before, after):
        return {unit.name: unit.difference for epoch in against(before, after).epochs for unit in epoch.units}

    assert units(run(a=0, b=5), run(a=0, b=5)) == {}
    assert units(run(a=1e12), run(a=1e12 + 1)) == {}
    assert units(run(a=0, b=5), run(b=9, c=3)) == {"b": 4, "c": 3, "a": 0}
    assert units(run(a=7, b=5), run(b=5)) == {"a": -7}
    assert list(units(run(a=1, b=9, c=4), run(a=2, b=1, c=6))) == ["b", "c", "a"]  # the greatest first


def test_a_link_that_a_run_does_not_list_is_not_taken_for_unused():
    """A run lists its busiest links only: one that the other run does not list works there as long as the last of
    them, at most."""

    def run(**cycles):
        found = model(MATMUL).to_json()
        (epoch,) = found["epochs"]
        links = {f"link {number}": 100.0 for number in range(LISTED_LINKS - len(cycles))} | cycles
        epoch["noc_links"] = [{"name": name, "cycles": figure} for name, figure in links.items()]
        return found

    def units(before, after):
        (epoch,) = against(before, after).epochs
        return {unit.name: (unit.figures(), unit.difference) for unit in epoch.units if "link" not in unit.name}

    assert units(run(a=100.0), run(b=90.0)) == {"a": (("100", "<= 90", "-", "-"), -10)}  # b may be as busy before
    assert units(run(a=100.0), run(b=1300.0)) == {"b": (("<= 100", "1,300", "-", "-"), 1200)}
    shorter = run(a=100.0)
    shorter["epochs"][0]["noc_links"].pop(0)  # it lists all
    assert units(shorter, run(b=90.0))["b"] == (("-", "90", "-", "-"), 90)


def test_slower_than_allowed_is_exit_code_1(tmp_path, capsys):
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    assert run_perf(MATMUL, "-q", "--json", before) == 0
    slow = (MATMUL, "-q", "--what-if", "dram_gbps=0.5", "--against", before)
    assert run_perf(*slow, "--json", after) == 0
    found = json.loads(after.read_text())
    assert found["schema_version"] == 1
    assert found["worst_percent"] > 10
    assert found["conditions"] == ["what-if dram_gbps: none, now 0.5"]
    assert any(unit["kind"] == "memory" for epoch in found["epochs"] for unit in epoch["units"])
    assert run_perf(*slow, "--fail-above", str(found["worst_percent"] + 0.1)) == 0
    assert run_perf(*slow, "--fail-above", str(found["worst_percent"] - 0.1)) == 1
    assert "more than" in capsys.readouterr().out


def test_epochs_that_come_and_go(capsys):
    matmul, training = model(MATMUL).to_json(), model(DIRECTORY / "training.yaml").to_json()
    reasons = {epoch.reason for epoch in against(matmul, training).epochs}
    assert {"not before", "not any more"} <= reasons
    assert run_perf(DIRECTORY / "training.yaml", "--against", MATMUL) == 0
    assert "not any more" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["{}", "{", '{"netlist": 1, "arch": 2, "clock_mhz": 3}', "{\x00"])
def test_a_file_that_is_not_an_earlier_run_is_refused(content, tmp_path, capsys):
    path = tmp_path / "old.json"
    path.write_text(content)
    assert run_perf(MATMUL, "-q", "--against", path) == 2
    assert str(path) in capsys.readouterr().err


def test_another_schema_version_and_missing_keys(tmp_path, capsys):
    found = model(MATMUL).to_json()
    path = tmp_path / "old.json"
    path.write_text(json.dumps({**found, "schema_version": 99}))
    assert run_perf(MATMUL, "-q", "--against", path) == 2
    assert "schema version 99" in capsys.readouterr().err
    del found["epochs"][0]["ops"]
    with pytest.raises(HostError, match="write it again"):
        against(found, model(MATMUL).to_json())


def test_the_earlier_file_is_not_there(capsys):
    assert run_perf(MATMUL, "--against", Path("nowhere.json")) == 2
    assert "nowhere.json" in capsys.readouterr().err


@pytest.mark.parametrize("mode", perf_verb.WITHOUT_EFFECT)
def test_options_that_would_do_nothing_are_refused(mode, capsys, tmp_path):
    """Every option of perf is either of a mode or refused in it by name; a file that was asked for is never left out
    without a word."""
    values = {
        "--sort": "cycles", "--model": "vendor", "--workers": "2", "--fail-above": "1", "--top": "3", "--grid": "4x4",
        "--harvest": "2", "--what-if": "clock=900",
    }  # fmt: skip
    flags = ("--update-baseline", "--update-expectations", "--sensitivity")
    given = {"--sweep": ["--sweep", "clock=900"], "--against": ["--against", MATMUL], "": []}[mode]
    for option in perf_verb.WITHOUT_EFFECT[mode]:
        value = [] if option in flags else [values.get(option, str(tmp_path / "out"))]
        assert run_perf(MATMUL, *given, option, *value) == 2
        said = capsys.readouterr().err
        assert f"{option} has no effect with" in said
        assert (mode or "--sweep") in said
    assert not list(tmp_path.iterdir())
