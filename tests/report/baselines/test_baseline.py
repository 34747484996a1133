"""Baselines: what is new, worse, mended; the file and what it refuses."""

import json

import pytest

from buda_emu.report.baselines import BaselineEntry, Item, Measure, compare, read_baseline
from buda_emu.support.errors import HostError

SETTINGS = {"precision": "device", "programs": ()}


def sides(known, found, section="test", **more):
    result = compare(section, {"a": known}, {"a": found}, **more)
    return {
        name: [change.what for change in getattr(result, name)]
        for name in ("new", "worse", "better", "mended", "known", "unlisted")
        if getattr(result, name)
    }


def test_items_are_new_worse_mended_or_known():
    assert sides([], [Item("x")]) == {"new": ["x"]}
    assert sides([BaselineEntry("x")], []) == {"mended": ["x"]}
    assert sides([BaselineEntry("x")], [Item("x", 5.0)]) == {"known": ["x"]}  # at any level
    assert sides([BaselineEntry("x", 0.5)], [Item("x", 0.5009)]) == {"known": ["x"]}
    assert sides([BaselineEntry("x", 0.5)], [Item("x", 0.502)]) == {"worse": ["x"]}
    assert sides([BaselineEntry("x", 0.5)], [Item("x", 0.498)]) == {"better": ["x"]}
    assert sides([BaselineEntry("x", 1)], [Item("x", 2.0)], "check") == {"worse": ["x"]}
    assert sides([], [Item("e", 100.0, fails=False)], "perf") == {"unlisted": ["e"]}
    slower = [Item("e", 103.0, fails=False)]
    assert sides([BaselineEntry("e", 100)], slower, "perf") == {"worse": ["e"]}
    assert sides([BaselineEntry("e", 100)], slower, "perf", measure=Measure("cycles", relative=0.05)) == {
        "known": ["e"]
    }


def test_cycles_are_worse_beyond_what_the_file_rounds_off():
    """A baseline keeps nine digits (a change of 1e-9 is none), and one cycle in sixty million is seen."""
    known = [BaselineEntry("e", 60_000_000.0)]
    assert sides(known, [Item("e", 60_000_000.5, fails=False)], "perf") == {"known": ["e"]}
    assert sides(known, [Item("e", 60_000_001.0, fails=False)], "perf") == {"worse": ["e"]}
    assert sides(known, [Item("e", 59_999_999.0, fails=False)], "perf") == {"better": ["e"]}
    assert sides([BaselineEntry("e", 80_000_000.0)], [Item("e", 80_000_001.0, fails=False)], "perf") == {"worse": ["e"]}


def test_a_failure_that_is_smaller_is_still_known():
    result = compare("test", {"a": [BaselineEntry("output o", 0.0523)]}, {"a": [Item("output o", 0.0421)]})
    assert list(result.lines()) == ["better: a: output o (error 0.0523, now 0.0421)", "0 mended, 0 new, 1 better"]
    assert result.holds
    assert result.known_files == {"a"}
    assert [change["what"] for change in result.as_json()["better"]] == ["output o"]


def test_files_that_were_not_looked_at_say_nothing():
    result = compare("test", {"a": [BaselineEntry("x")], "b": [BaselineEntry("x")]}, {"b": [Item("x")]})
    assert result.mended == ()
    assert result.holds
    assert result.known_files == {"b"}


def test_the_last_line_is_the_sum():
    known = {
        "a": [BaselineEntry("x"), BaselineEntry("y", reason="on purpose"), BaselineEntry("z"), BaselineEntry("w", 0.1)]
    }
    result = compare("test", known, {"a": [Item("y"), Item("new"), Item("w", 0.5)]})
    *lines, last = result.lines()
    assert last == "2 mended, 1 new, 1 worse"
    assert lines == [
        "new: a: new",
        "worse: a: w (error 0.1, now 0.5)",
        "mended: a: x",
        "mended: a: z",
        "expected: a: y: on purpose",
        "1 as in the baseline",
    ]
    assert list(compare("test", {"a": [BaselineEntry("x")]}, {"a": []}).lines())[-1] == "1 mended, 0 new"
    assert not result.holds
    assert result.known_files == frozenset()


@pytest.mark.parametrize(("count", "last"), [(20, []), (21, ["and 1 more new"]), (1835, ["and 1815 more new"])])
def test_the_first_of_a_long_list_stand_for_it(count, last):
    *lines, total = compare("test", {}, {f"{number:04}": [Item("x")] for number in range(count)}).lines()
    assert lines == [*(f"new: {number:04}: x" for number in range(20)), *last]
    assert total == f"0 mended, {count} new"


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    for name in "abc":
        (tmp_path / "nets" / f"{name}.yaml").touch()
    return tmp_path / "baseline.json"


def update_file(path, found, section="test", settings=SETTINGS):
    baseline = read_baseline(str(path), section, settings, update=True)
    baseline.keep(found)
    return baseline.against(found)


def compare_with_file(path, found, section="test", settings=SETTINGS):
    return read_baseline(str(path), section, settings).against(found)


def test_a_written_baseline_is_read_back(path):
    found = {"nets/a.yaml": [Item("output q", 0.123456789012)], "nets/b.yaml": [], "nets/c.yaml": [Item("stopped")]}
    assert [change.file for change in update_file(path, found).new] == ["nets/a.yaml", "nets/c.yaml"]
    assert json.loads(path.read_text()) == {
        "schema_version": 1,
        "test": {
            "settings": {"precision": "device", "programs": []},
            "files": {
                "nets/a.yaml": [{"what": "output q", "error": 0.123456789}],
                "nets/c.yaml": [{"what": "stopped"}],
            },
        },
    }
    assert compare_with_file(path, found).holds
    assert len(compare_with_file(path, found).known) == 2


def test_names_are_relative_to_the_file(path, tmp_path, monkeypatch):
    update_file(path, {"nets/a.yaml": [Item("stopped")]})
    monkeypatch.chdir(tmp_path / "nets")
    for name in ("a.yaml", str(tmp_path / "nets/a.yaml"), "../nets/a.yaml"):
        assert compare_with_file("../baseline.json", {name: [Item("stopped")]}).holds
    assert compare_with_file("../baseline.json", {"../a.yaml": [Item("stopped")]}).new


def test_an_update_keeps_reasons_other_files_and_other_sections(path):
    update_file(path, {"nets/a.yaml": [Item("count", 1.0)]}, "check", {"strict": True})
    update_file(path, {"nets/a.yaml": [Item("x", 0.1), Item("y", 0.2), Item("z", 0.3)], "nets/b.yaml": [Item("x")]})
    content = json.loads(path.read_text())
    x, _, z = content["test"]["files"]["nets/a.yaml"]
    x["reason"] = z["reason"] = "known"
    del z["error"]
    path.write_text(json.dumps(content))
    assert [
        change.what for change in compare_with_file(path, {"nets/a.yaml": [Item("x", 0.1), Item("z", 9.0)]}).mended
    ] == ["y"]
    update_file(path, {"nets/a.yaml": [Item("x", 0.4), Item("z", 0.5)]})
    after = json.loads(path.read_text())
    assert after["test"]["files"] == {
        "nets/a.yaml": [{"what": "x", "error": 0.4, "reason": "known"}, {"what": "z", "reason": "known"}],
        "nets/b.yaml": [{"what": "x"}],
    }
    assert after["check"] == content["check"]


def test_an_update_forgets_files_that_are_no_more(path, tmp_path):
    update_file(path, {"nets/a.yaml": [Item("x")], "nets/b.yaml": [Item("x")]})
    (tmp_path / "nets" / "a.yaml").unlink()
    update_file(path, {"nets/c.yaml": []})
    assert list(json.loads(path.read_text())["test"]["files"]) == ["nets/b.yaml"]


def test_other_settings_are_refused_and_begin_anew(path):
    update_file(path, {"nets/a.yaml": [Item("x")], "nets/b.yaml": [Item("x")]})
    other = {**SETTINGS, "precision": "ideal"}
    with pytest.raises(HostError, match=r'other settings \(precision "device", now "ideal"\); --update-baseline'):
        compare_with_file(path, {}, settings=other)
    assert update_file(path, {"nets/a.yaml": [Item("x")]}, settings=other).new
    assert list(json.loads(path.read_text())["test"]["files"]) == ["nets/a.yaml"]


def section(**files):
    return {"schema_version": 1, "test": {"settings": dict(SETTINGS, programs=[]), "files": files}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not a baseline: "),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "not a baseline: "),
        ({}, "the key 'schema_version' is missing"),
        ({"schema_version": 2}, "schema version 2, this version reads 1"),
        ({"schema_version": 1, "tests": {}}, "unknown key 'tests' (did you mean 'test'?); keys: "),
        ({"schema_version": 1}, "it has nothing of `test` yet; --update-baseline adds it"),
        ({"schema_version": 1, "test": {"files": {}}}, "test: the key 'settings' is missing"),
        ({"schema_version": 1, "check": {"settings": [], "files": {}}}, "check: settings: not a JSON object"),
        (section(a={}), "test: files: a: not a list"),
        (section(a=["x"]), "test: files: a: item 1: not a JSON object"),
        (section(a=[{"what": "x"}, {"reason": "y"}]), "item 2: the key 'what' is missing"),
        (section(a=[{"what": "x", "error": "0.1"}]), "item 1: error: must be a number"),
        (section(a=[{"what": "x", "error": True}]), "item 1: error: must be a number"),
        (section(a=[{"what": "x", "count": 1}]), "unknown key 'count'"),
        (section(a=[{"what": "x", "reason": " "}]), "item 1: reason: must be words"),
        (
            section(a=[{"what": "x", "error": 0.1}, {"what": "y"}, {"what": "x", "error": 0.9}]),
            "test: files: a: item 3: x is there already: remove one, as after a merge",
        ),
    ],
)
def test_a_file_that_is_not_a_baseline_is_refused_with_its_place(content, said, path):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(HostError) as error:
        compare_with_file(path, {})
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)


def test_a_baseline_that_is_not_there(path):
    with pytest.raises(HostError, match=r"there is no such baseline; --update-baseline makes it"):
        compare_with_file(path, {})


def test_a_figure_that_an_update_adds_is_not_said_to_be_missing():
    result = compare("perf", {"a": []}, {"a": [Item("e", 100.0, fails=False)]})
    assert list(result.lines()) == ["1 figure not in the baseline yet", "0 mended, 0 new"]
    assert list(result.lines(updated=True)) == ["1 figure added to the baseline", "0 mended, 0 new"]
