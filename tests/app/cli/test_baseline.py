"""`--baseline` of `check`, `test` and `perf`, and the verdicts that `test` keeps."""

import json
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from buda_emu.app.cli.main import main
from buda_emu.testing.verify.runs.run_case import run_case
from report.results import nop
from shared_files import ROOT

GOOD = nop().replace("type: Exact", "type: AllClose, atol: 0.1, rtol: 0.1")
BAD = nop()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: tmp_path / "caches")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    for name, content in {"bad.yaml": BAD, "good.yaml": GOOD, "stopped.yaml": nop(broken=True)}.items():
        (tmp_path / "nets" / name).write_text(content)
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command in this process; its exit code, its lines, and the netlists that were really tested."""
    ran = []

    def run_all(cases, _workers, *, timeout, on_result, maxfail, on_kernel):
        for number, case in enumerate(cases):
            ran.append(case.name)
            on_result(number, result := run_case(case))
            maxfail = maxfail - 1 if maxfail and result.status not in ("passed", "skipped") else maxfail
            if maxfail == 0:
                break

    monkeypatch.setattr("buda_emu.app.cli.verbs.test.run_all", run_all)

    def command(*words):
        ran.clear()
        code = main([str(word) for word in words])
        return code, capsys.readouterr().out.splitlines(), list(ran)

    return command


# ------------------------------------------------------------------------------------------------------------ verdicts
def test_unchanged_netlists_are_not_tested_again(run, folder):
    code, first, ran = run("test", "nets")
    assert len(ran) == 3
    assert run("test", "nets")[0] == code == 1
    again = run("test", "nets", "-v")
    assert again[2] == []
    assert again[1][-1].endswith(", 3 of them unchanged since they were tested ==")
    assert [line for line in first if line.startswith("FAILED")] == [x for x in again[1] if x.startswith("FAILED")]
    (folder / "nets/good.yaml").write_text(GOOD + "# edited\n")
    assert run("test", "nets")[2] == ["nets/good.yaml"]
    assert run("test", "nets", "--seed", 1)[2] != []
    assert len(run("test", "nets", "--no-cache")[2]) == 3


def test_maxfail_counts_stored_results(run):
    assert len(run("test", "nets", "--maxfail", 2, "-n", 1)[2]) == 3
    assert run("test", "nets", "-x")[1][-1].startswith("== 1 failed in ")
    assert run("test", "nets", "-x", "--no-cache", "-n", 1)[2] == ["nets/bad.yaml"]
    assert run("test", "nets", "--maxfail", 2, "--no-cache", "-n", 1)[2] == sorted(
        f"nets/{name}.yaml" for name in ("bad", "good", "stopped")
    )


def test_shards_have_every_netlist_once(run):
    parts = [run("test", "nets", "--shard", f"{k}/2", "--no-cache")[2] for k in (1, 2)]
    assert parts == [["nets/bad.yaml", "nets/stopped.yaml"], ["nets/good.yaml"]]
    code, lines, ran = run("test", "nets", "--shard", "4/4")
    assert (code, ran) == (0, [])
    assert "0 netlists of 3, part 4 of 4," in lines[0]
    for wrong in ("0/2", "3/2", "1", "a/b"):
        with pytest.raises(SystemExit, match="2"):
            main(["test", "nets", "--shard", wrong])


def test_the_longest_begin(run, folder):
    run("test", "nets", "-q")
    (known,) = (folder / "caches").rglob("*.json")
    content = json.loads(known.read_text())
    for name, item in content["netlists"].items():
        item["seconds"] = {"bad.yaml": 2, "good.yaml": 50, "stopped.yaml": 7}[name.rpartition("/")[2]]
    known.write_text(json.dumps(content))
    longest = ["nets/good.yaml", "nets/stopped.yaml", "nets/bad.yaml"]
    assert run("test", "nets", "--no-cache", "-n", 2, "--json", "r.json")[2] == longest
    assert [case["netlist"] for case in json.loads((folder / "r.json").read_text())["cases"]] == sorted(longest)


def test_durations(run):
    run("test", "nets")
    lines = run("test", "nets", "--durations", 2)[1]
    at = next(number for number, line in enumerate(lines) if line.split() == ["took", "netlist"])
    assert [line.endswith("from the cache") for line in lines[at + 1 : at + 4]] == [True, True, False]


# ----------------------------------------------------------------------------------------------------------- baselines
def test_a_test_fails_only_for_what_is_new(run, folder):
    assert main(["test", "nets", "--baseline", "known.json"]) == 2  # there is none
    assert main(["test", "nets", "--update-baseline"]) == 2  # which?
    code, lines, _ = run("test", "nets", "--baseline", "known.json", "--update-baseline")
    assert (code, lines[-1]) == (0, "0 mended, 2 new")
    code, lines, _ = run("test", "nets", "--baseline", "known.json")
    assert (code, lines[-1]) == (0, "0 mended, 0 new")
    assert "short summary" not in lines
    (folder / "nets/bad.yaml").write_text(GOOD)
    (folder / "nets/stopped.yaml").write_text(GOOD)
    (folder / "nets/good.yaml").write_text(BAD)
    code, lines, _ = run("test", "nets", "--baseline", "known.json", "--json", "r.json")
    assert (code, lines[-1]) == (1, "2 mended, 1 new")
    assert "new: nets/good.yaml: output o" in lines
    assert "short summary" in lines
    told = json.loads((folder / "r.json").read_text())["baseline"]
    assert ([item["file"] for item in told["new"]], told["holds"]) == (["nets/good.yaml"], False)
    assert run("test", "nets/bad.yaml", "--baseline", "known.json")[1][-1] == "1 mended, 0 new"


@pytest.mark.parametrize("form", ["github", "sarif"])
def test_known_failures_are_no_annotations_and_no_failures_of_junit(form, run, folder, capsys):
    run("test", "nets", "--baseline", "known.json", "--update-baseline")
    words = ["test", "nets", "--format", form, "--junitxml", "junit.xml"]
    assert main([*words, "--baseline", "known.json"]) == 0
    shown = capsys.readouterr().out
    assert "bad.yaml" not in shown
    assert "stopped.yaml" not in shown
    suite = ElementTree.parse(folder / "junit.xml").getroot()[0]
    assert {key: suite.get(key) for key in ("failures", "errors", "skipped")} == {
        "failures": "0",
        "errors": "0",
        "skipped": "2",
    }
    messages = sorted(element.get("message") for element in suite.iter("skipped"))
    assert [message.partition(": ")[0] for message in messages] == ["expected by the baseline"] * 2
    assert main(words) == 1
    assert "bad.yaml" in capsys.readouterr().out


def test_an_expected_failure_says_why(run, folder):
    entry = {"what": "stopped", "reason": "waits for the second chip"}
    run("test", "nets", "--baseline", "known.json", "--update-baseline")
    content = json.loads((folder / "known.json").read_text())
    content["test"]["files"]["nets/stopped.yaml"] = [entry]
    (folder / "known.json").write_text(json.dumps(content))
    code, lines, _ = run("test", "nets", "--baseline", "known.json")
    assert code == 0
    assert "expected: nets/stopped.yaml: stopped: waits for the second chip" in lines
    run("test", "nets", "--baseline", "known.json", "--update-baseline")
    assert json.loads((folder / "known.json").read_text())["test"]["files"]["nets/stopped.yaml"] == [entry]


def test_a_check_fails_only_for_what_is_new(run, folder):
    (folder / "nets/bad.yaml").write_text(BAD.replace("Float16_b", "Float99"))
    assert run("check", "nets")[0] == 2
    assert run("check", "nets", "--baseline", "known.json", "--update-baseline")[0] == 0
    code, lines, _ = run("check", "nets", "--baseline", "known.json")
    assert (code, lines[-1]) == (0, "0 mended, 0 new")
    assert not any("Float99" in line for line in lines)
    (folder / "nets/good.yaml").write_text("\n\n" + BAD.replace("type: nop", "type: nope"))
    code, lines, _ = run("check", "nets", "--baseline", "known.json")
    assert code == 1
    assert lines[-1].startswith("0 mended, ")
    assert any("did you mean 'nop'" in line for line in lines)
    assert not any("Float99" in line for line in lines)
    assert main(["check", "nets", "--strict", "--baseline", "known.json"]) == 2  # other settings


def test_the_file_of_three_verbs_is_what_its_schema_says(run, folder):
    (folder / "nets/wrong.yaml").write_text(BAD.replace("Float16_b", "Float99"))
    (folder / "net.yaml").write_text((ROOT / "netlists/attention.yaml").read_text())
    for verb, path in (("check", "nets"), ("test", "nets"), ("perf", "net.yaml")):
        assert run(verb, path, "--baseline", "known.json", "--update-baseline")[0] == 0
    form = Draft202012Validator(json.loads("\n".join(run("schema", "baseline")[1])))
    content = json.loads((folder / "known.json").read_text())
    assert all(content[verb]["files"] for verb in ("check", "test", "perf"))
    assert form.is_valid(content)
    first = next(iter(content["perf"]["files"].values()))[0]
    for wrong in ({"cycles": "many"}, {"reason": " "}, {"count": 3}):
        kept = dict(first)
        first.update(wrong)
        assert not form.is_valid(content)
        first.clear()
        first.update(kept)
    assert form.is_valid(content)


def test_machines_read_a_check_with_a_baseline(capsys):
    assert main(["check", "nets", "--baseline", "known.json", "--update-baseline", "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["schema_version"] == 1
    assert printed.err.splitlines()[-1].startswith("0 mended, ")


def test_cycles_of_epochs_are_compared(run, folder):
    text = (ROOT / "netlists/attention.yaml").read_text()
    (folder / "net.yaml").write_text(text)
    assert run("perf", "net.yaml", "--baseline", "known.json", "--update-baseline")[0] == 0
    code, lines, _ = run("perf", "net.yaml", "--baseline", "known.json", "-q")
    assert (code, lines[-1]) == (0, "0 mended, 0 new")
    content = json.loads((folder / "known.json").read_text())
    (items,) = content["perf"]["files"].values()
    items[0]["cycles"] *= 0.98
    (folder / "known.json").write_text(json.dumps(content))
    code, lines, _ = run("perf", "net.yaml", "--baseline", "known.json", "-q")
    assert (code, lines[-1]) == (1, "0 mended, 0 new, 1 worse")
    assert run("perf", "net.yaml", "--baseline", "known.json", "-q", "--fail-above", 3)[0] == 0
    items[0]["cycles"] *= 1.1
    (folder / "known.json").write_text(json.dumps(content))
    assert run("perf", "net.yaml", "--baseline", "known.json", "-q")[1][-1] == "0 mended, 0 new, 1 better"
    assert main(["perf", "net.yaml", "--baseline", "known.json", "--sweep", "clock=1000"]) == 2
