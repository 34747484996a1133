"""Coverage: lists that come from the tables, features that are found, counts that merge."""

import json
import re
import shutil
import threading
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

import buda_emu as be
from buda_emu.app.cli.coverage import record_coverage
from buda_emu.app.cli.main import main
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing import generate
from buda_emu.testing.coverage.features import features, lists
from buda_emu.testing.coverage.report import Coverage, coverage_of, every_list, read
from example_netlists import DIRECTORY
from shared_files import ROOT

EXAMPLES = sorted(DIRECTORY.glob("**/*.yaml"))


def test_lists_are_those_of_the_tables():
    assert set(lists()["op types"]) == {op.name for op in OP_TYPES.values() if op.runs and OP_TYPES.is_own(op.name)}
    assert "matmul m_k" in lists()["attributes"]
    assert "reduce dim=z" in lists()["attributes"]
    assert "add m_k" not in lists()["attributes"]
    assert all(len(names) == len(set(names)) for names in lists().values())


def test_the_page_states_how_many_names_there_are():
    """Rows of `of N` and `of N each`; where all are exercised, `all of N`."""
    page = (ROOT / "docs/stress/coverage.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+) \| (?:\d+|all) of (\d[\d, and]*)(?: each)? \|", page, re.MULTILINE))
    assert len(rows) == 8
    for subjects, totals in rows.items():
        names = (
            ["operands in a format", "queues in a format"] if " in a format" in subjects and "," in subjects else None
        )
        names = names or [one.strip() for one in subjects.split(",")]
        counts = [len(every_list()[_subject(name)]) for name in names]
        stated = [int(word) for word in re.findall(r"\d+", totals)]
        assert (stated if len(stated) > 1 else stated * len(counts)) == counts, subjects


def _subject(name):
    return "queue settings" if name == "settings" else name


def test_every_feature_is_of_a_list():
    for made in [*(be.load(path) for path in EXAMPLES), *(generate(seed).netlist for seed in range(30))]:
        for subject, names in features(made).items():
            assert names <= set(lists()[subject])


def test_counts_merge_and_are_read_again(tmp_path):
    netlists = [be.load(path) for path in EXAMPLES]
    whole, first, second = coverage_of(netlists), coverage_of(netlists[:4]), coverage_of(netlists[4:])
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps(second.as_json()))
    first.merge(read(path))
    assert first.as_json() == whole.as_json()
    assert 10 < whole.percent < 30


def test_what_a_netlist_adds():
    found = Coverage()
    netlist = be.load(DIRECTORY / "matmul.yaml")
    assert "op types: matmul" in found.add(netlist)
    assert found.add(netlist) == []
    assert found.netlists == 2
    assert "matmul" not in found.missing("op types")


def test_all_names_of_the_language_are_a_hundred_percent():
    found = Coverage()
    assert found.percent == 0
    found.count(lists())
    assert found.percent == 100
    assert all(missing == [] for subject, _, _, missing in found.rows() if subject in lists())


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema_version": 99, "netlists": 1, "counts": {}}'])
def test_another_file_is_refused(tmp_path, text):
    path = tmp_path / "coverage.json"
    path.write_text(text)
    with pytest.raises(be.HostError, match=r"coverage\.json: "):
        read(path)


def test_the_verb(tmp_path, capsys):
    path = tmp_path / "coverage.json"
    command = ["test", str(DIRECTORY / "matmul.yaml"), "-n", "1", "--precision", "format", "--coverage", str(path)]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "op types" in out
    assert "1 netlist" in out
    assert read(path).netlists == 1
    assert main([*command, "--coverage-min", "90", "-q"]) == 1
    assert "is below --coverage-min 90" in capsys.readouterr().err
    assert read(path).netlists == 2


def command_for(path):
    return ["test", str(DIRECTORY / "matmul.yaml"), "-n", "1", "--precision", "format", "-q", "--coverage", str(path)]


@pytest.mark.parametrize(
    ("name", "text"),
    [("coverage.json", "{}"), ("coverage.json", ""), ("coverage.html", None), ("coverage.json.gz", None)],
)
def test_a_file_to_which_nothing_can_be_added_is_refused_before_the_run(name, text, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("buda_emu.app.cli.verbs.test._run_cases", lambda *_: pytest.fail("it ran"))
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    assert main(command_for(path)) == 2
    assert name in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == [name] * (text is not None)


def test_a_least_coverage_of_nothing_is_refused(capsys):
    assert main(["test", str(DIRECTORY / "matmul.yaml"), "--coverage-min", "50"]) == 2
    assert capsys.readouterr().err == "buda-emu: --coverage-min has no effect without --coverage FILE\n"


def test_runs_at_once_keep_what_the_others_add(tmp_path):
    """Each waits where another has read the file and not yet written it."""
    path = tmp_path / "coverage.json"
    exercised = coverage_of([be.load(DIRECTORY / "matmul.yaml")]).counts
    cases = [SimpleNamespace(exercised={name: list(counts) for name, counts in exercised.items()}, netlist="a.yaml")]
    arguments = SimpleNamespace(coverage=path, quiet=True, coverage_min=None)
    runs = [threading.Thread(target=record_coverage, args=(arguments, cases)) for _ in range(8)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert read(path).netlists == 8


def test_each_name_has_the_simplest_netlist_that_has_it(tmp_path, capsys):
    """Of several runs, in any order; the page leads to it from its own folder."""
    (tmp_path / "nets").mkdir()
    (tmp_path / "found").mkdir()
    for name in ("matmul", "attention"):
        shutil.copy(DIRECTORY / f"{name}.yaml", tmp_path / "nets" / f"{name} 1.yaml")
    path = tmp_path / "found" / "coverage.json"
    for name in ("attention", "matmul"):
        file = str(tmp_path / "nets" / f"{name} 1.yaml")
        assert main(["test", file, "-n", "1", "-q", "--precision", "format", "--coverage", str(path)]) == 0
    capsys.readouterr()
    found = read(path)
    assert found.examples["op types"]["matmul"].netlist == "../nets/matmul 1.yaml"
    assert found.examples["op types"]["exp"].netlist == "../nets/attention 1.yaml"
    assert {name: set(names) for name, names in found.examples.items()} == {
        name: set(names) for name, names in found.counts.items()
    }
    page = path.with_suffix(".html").read_text()
    links = set(re.findall(r'href="([^"#]*yaml)"', page))
    assert links == {"../nets/matmul%201.yaml", "../nets/attention%201.yaml"}
    assert all((path.parent / unquote(link)).exists() for link in links)
    assert 'title="exp: 1 netlist, such as ../nets/attention 1.yaml"' in page


@pytest.mark.parametrize(
    "examples",
    [
        {"op types": {"gelu": {"netlist": "a.yaml", "names": 3}}},  # which no netlist has
        {"op types": {"matmul": {"netlist": 1, "names": 3}}},
        {"op types": {"matmul": {"netlist": "a.yaml"}}},
        {"op types": {"matmul": "a.yaml"}},
        {"no such list": {}},
    ],
)
def test_examples_that_are_none_are_refused(examples, tmp_path):
    path = tmp_path / "coverage.json"
    content = coverage_of([be.load(DIRECTORY / "matmul.yaml")]).as_json()
    path.write_text(json.dumps({name: value for name, value in content.items() if name != "examples"}))
    assert read(path).netlists == 1  # of an earlier version
    path.write_text(json.dumps({**content, "examples": examples}))
    with pytest.raises(be.HostError, match=r"coverage\.json: "):
        read(path)


def test_generated_netlists_exercise_most_without_being_asked_to():
    found = coverage_of(generate(seed).netlist for seed in range(200))
    assert found.missing("op types") == []
    assert found.missing("grids") == []
    assert found.percent > 80
