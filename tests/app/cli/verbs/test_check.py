import json
from collections import Counter

import pytest
import yaml

import buda_emu as be
from buda_emu.app.cli.main import main
from buda_emu.app.documents.kinds import kind_of
from buda_emu.emulator.image.pack import Contents, write_image
from buda_emu.netlist.rules import RULES
from netlist.rules import bases
from netlist.rules.cases import edited
from shared_files import ROOT, corpus_files

GOOD = "netlists/matmul.yaml"


@pytest.fixture
def faulty_netlist(root, tmp_path):
    """A netlist with one error (a misspelt queue type) and its line number."""
    text = (
        (root / GOOD)
        .read_text()
        .replace("type: queue, entries: 2, grid_size: [1, 1]", "type: qeue, entries: 2, grid_size: [1, 1]")
    )
    path = tmp_path / "faulty_netlist.yaml"
    path.write_text(text)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "qeue" in line)
    return path, line


def test_a_sound_netlist(root, capsys):
    assert main(["check", str(root / GOOD), "--strict"]) == 0
    assert capsys.readouterr().out == "1 file: no findings\n"


def test_a_finding_has_place_line_caret_and_hint(faulty_netlist, capsys):
    path, line = faulty_netlist
    assert main(["check", str(path)]) == 2
    shown = capsys.readouterr().out
    assert f"{path}:{line}:" in shown
    assert "error[V013]" in shown
    assert "did you mean 'queue'?" in shown
    assert "^^^^" in shown
    assert shown.splitlines()[-1].startswith("1 error; `buda-emu explain V013`")


def test_json(faulty_netlist, root, capsys):
    path, line = faulty_netlist
    assert main(["check", str(path), str(root / GOOD), "--format", "json"]) == 2
    content = json.loads(capsys.readouterr().out)
    assert content["schema_version"] == 1
    assert content["files"] == [
        {"path": str(path), "kind": "netlist", "accepted": False},
        {"path": str(root / GOOD), "kind": "netlist", "accepted": True},
    ]
    (found,) = content["diagnostics"]
    assert (found["rule"], found["line"], found["severity"]) == ("V013", line, "error")


def test_github_annotations(faulty_netlist, capsys):
    path, line = faulty_netlist
    assert main(["check", str(path), "--format", "github"]) == 2
    (annotation,) = capsys.readouterr().out.splitlines()
    assert annotation.startswith(f"::error file={path},line={line},col=")


def test_strict_makes_device_findings_errors(root, tmp_path, capsys):
    path = tmp_path / "far.yaml"
    path.write_text(
        (root / GOOD).read_text().replace("grid_loc: [0, 0]", "grid_loc: [9, 0]")
    )  # two rows from row 9 of 10
    assert main(["check", str(path)]) == 0
    assert "warning[V150]" in capsys.readouterr().out
    assert main(["check", str(path), "--strict"]) == 2
    assert "error[V150]" in capsys.readouterr().out


def test_arch_is_taken_from_the_list(root, capsys):
    assert main(["check", str(root / GOOD), "--arch", "grayskull"]) == 0
    assert main(["check", str(root / "netlists/two_chips.yaml"), "--arch", "wormhole_b0"]) == 0
    capsys.readouterr()


JUNK = {
    "empty": b"",
    "not yaml": b"{[}",
    "a list": b"- 1\n- 2\n",
    "a word": b"netlist",
    "binary": bytes(range(256)) * 40,
    "utf-16": "devices:".encode("utf-16"),
    "tabs": b"devices:\n\tarch: grayskull\n",
    "deep": b"[" * 200 + b"]" * 200,
    "deep maps": b"".join(b" " * i + b"a:\n" for i in range(200)),
    "no sections": b"devices: {arch: wormhole_b0}\n",
    "template": b"devices:\n  arch: $TEMPLATE_arch\nqueues: {$TEMPLATE_queues}\n",
    "self alias": b"a: &a [*a]\n",
    "aliases": b"a: &a [x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 8)) for i in range(9)),
    "null": b"~\n",
    "two documents": b"devices: {arch: grayskull}\n---\ndevices: {arch: grayskull}\n",
}


@pytest.mark.parametrize("verb", ["check", "run"])
@pytest.mark.parametrize("junk", JUNK)
def test_junk_is_refused_with_a_finding(verb, junk, tmp_path, capsys):
    path = tmp_path / "junk.yaml"
    path.write_bytes(JUNK[junk])
    assert main([verb, str(path)]) == 2
    shown = capsys.readouterr()
    assert f"{path}:" in shown.out + shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("verb", ["check", "run"])
def test_missing_files_and_directories_are_refused(verb, tmp_path, capsys):
    assert main([verb, str(tmp_path / "none.yaml")]) == 2
    assert main([verb, str(tmp_path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("keep", [1, 10, 25, 50, 75, 90, 99])
def test_a_truncated_netlist_never_crashes(keep, root, tmp_path, capsys):
    data = (root / "netlists/attention.yaml").read_bytes()
    path = tmp_path / "cut.yaml"
    path.write_bytes(data[: len(data) * keep // 100])
    assert main(["check", str(path)]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("path", corpus_files("netlists/verif/error_tests/netlists/invalid/**/*.yaml"))
def test_invalid_netlists_of_the_corpus(path, capsys):
    assert main(["check", str(path)]) in (0, 2)  # the verdicts themselves are held by tests/netlist
    assert "Traceback" not in capsys.readouterr().err


def test_sarif(faulty_netlist, capsys):
    path, line = faulty_netlist
    assert main(["check", str(path), "--format", "sarif"]) == 2
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["V013"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == line


@pytest.mark.parametrize("head", [b"PK\x03\x04rest", b"x" * 257 + b"ustar\x0000"])
def test_an_image_is_known_by_its_content(head, tmp_path, capsys):
    path = tmp_path / "model.bin"
    path.write_bytes(head)
    assert main(["check", str(path)]) == 2
    assert "error[image-archive]" in capsys.readouterr().out


def test_an_unknown_file_is_read_as_a_netlist(tmp_path, capsys):
    path = tmp_path / "x.gz"
    path.write_bytes(b"\x1f\x8b" + b"junk")
    assert main(["check", str(path)]) == 2
    assert "error[V000]" in capsys.readouterr().out


def test_a_folder_is_what_it_holds(faulty_netlist, capsys):
    path, _ = faulty_netlist
    below = path.parent / "below"
    below.mkdir()
    (below / "good.yaml").write_text("devices: {arch: grayskull}\nqueues: {}\n")
    (below / "other.yaml").write_text("queues: of another kind\n")  # no netlist: one section only
    (below / "broken.tti").write_bytes(b"")
    assert main(["check", str(path.parent), "--format", "json"]) == 2
    files = {item["path"]: item["accepted"] for item in json.loads(capsys.readouterr().out)["files"]}
    names = {name.rpartition("/")[2]: accepted for name, accepted in files.items()}
    assert set(names) == {"faulty_netlist.yaml", "good.yaml", "broken.tti"}
    (path.parent / "empty").mkdir()
    assert main(["check", str(path.parent / "empty")]) == 2
    assert "no document that can be checked in this folder" in capsys.readouterr().err


def test_a_netlist_from_standard_input(root, monkeypatch, capsys):
    import io
    import sys

    stream = io.TextIOWrapper(io.BytesIO((root / GOOD).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["check", "-"]) == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"queues: {q: {type: qeue}}")))
    assert main(["check", "-"]) == 2
    assert "-:1:" in capsys.readouterr().out


def test_an_image_is_known_by_what_it_holds(tmp_path):
    """A tar says what it is after its first name, mode and sizes: at byte 257."""
    for name, before in (("a", 257), ("b", 256)):
        (tmp_path / name).write_bytes(bytes(before) + b"ustar" + bytes(300))
    assert [kind_of(str(tmp_path / name)).name for name in "ab"] == ["image", "netlist"]


@pytest.mark.parametrize("suffix", ["yaml", "tti"])
def test_strict_makes_pipes_over_the_links_of_a_cluster(suffix, root, tmp_path, capsys):
    """Of netlists, and of those in images."""
    source, path = root / "netlists/two_chips.yaml", tmp_path / f"two_chips.{suffix}"
    if suffix == "yaml":
        path.write_bytes(source.read_bytes())
    else:
        with path.open("wb") as file:
            write_image(file, Contents(be.load(source), source.read_bytes(), {}, "two", "9.9"))
    cluster = tmp_path / "cluster.yaml"

    def said(chips):
        end = max(chips)
        cluster.write_text(
            f"chips: {{{', '.join(f'{chip}: [{chip}, 0, 0, 0]' for chip in chips)}}}\n"
            f"ethernet_connections: [[{{chip: 0, chan: 0}}, {{chip: {end}, chan: 8}}]]\n"
        )
        return main(["check", str(path), "--strict", "--cluster", str(cluster)]), capsys.readouterr().out

    assert main(["check", str(path), "--strict"]) == 0
    assert "warning[V359]" in capsys.readouterr().out
    assert said([0, 1]) == (0, "1 file: no findings\n")
    status, out = said([0, 2])
    assert status == 2
    assert "graph second_chip is on chip 1, the cluster has chips 0, 2" in out


def test_check_strict_says_what_of_routing_is_not_judged(capsys):
    netlist = str(ROOT / "netlists" / "softmax.yaml")
    assert main(["check", netlist, "--strict", "--arch", "wormhole_b0"]) == 0
    assert "not judged" not in capsys.readouterr().out
    assert main(["check", netlist, "--strict", "--arch", "blackhole"]) == 0
    said = capsys.readouterr().out
    assert "warning[V359]: no pipes are made for blackhole: whether its edges can be pipes" in said
    assert "of each core (L1, extra and multicast streams, phases" in said
    assert "is not judged" in said


@pytest.fixture
def doubtful(tmp_path):
    """A netlist with a warning that `run` turns into an error, one that the chip refuses, and one that nobody does."""
    path = tmp_path / "doubtful.yaml"
    text = edited(bases.COPY, (("a", "[0, 0x10100000]", "[7, 0x10100000]"), ("cp", "[0, 0]", "[30, 0]")))
    text = text.replace("input_count: 1", "input_count: 2").replace("entries: 2", "entries: 1")
    entry = "type: Constant, constant_value: 1.0"
    config = f"{{stimulus-config: {{{entry}, overrides: {{zz: {{{entry}}}}}}}}}"
    path.write_text(f"{text}\ntest-config: {config}\n")
    return path


def test_the_last_line_says_who_refuses_what_is_only_a_warning(doubtful, capsys):
    assert main(["check", str(doubtful)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    rules = [item.rule for item in be.check(doubtful).diagnostics]
    assert last.startswith(f"{len(rules)} warnings; ")
    assert {"V208", "V151", "V216"} <= set(rules)
    assert f"{rules.count('V208')} refused by `run`" in last
    assert "refused by the chip's compiler or runtime" in last
    numbers = [int(word) for word in last.partition("of the warnings ")[2].split() if word.isdecimal()]
    assert sum(numbers) == len([rule for rule in rules if rule not in ("V216", "V293")])


def test_findings_that_nobody_else_refuses_are_not_said_to_be(root, tmp_path, capsys):
    path = tmp_path / "net.yaml"
    path.write_text((root / GOOD).read_text().replace("entries: 2,", "entries: 2, entries: 2,", 1))
    assert main(["check", str(path)]) == 0
    assert "refused by" not in capsys.readouterr().out


def test_concise_is_a_line_for_each_finding(doubtful, capsys):
    assert main(["check", str(doubtful), "--format", "concise"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    found = be.check(doubtful).diagnostics
    assert len(lines) == len(found)
    for line, item in zip(lines, found, strict=True):
        assert line.startswith(f"{doubtful}:{item.line}:{item.column}: warning[{item.rule}] {item.message}")
    assert "refused by" in last


def test_statistics_count_the_findings_of_each_rule(doubtful, faulty_netlist, capsys):
    files = [str(doubtful), str(faulty_netlist[0]), str(doubtful.parent)]
    assert main(["check", *files, "--statistics"]) == 2
    *lines, last = capsys.readouterr().out.splitlines()
    counts = Counter(item.rule for file in (doubtful, faulty_netlist[0]) for item in be.check(file).diagnostics)
    shown = {line.split()[1]: int(line.split()[0]) for line in lines}
    assert shown == counts
    assert list(shown.values()) == sorted(shown.values(), reverse=True)
    assert all(RULES[line.split()[1]].summary in line for line in lines)
    assert "refused by" in last
    assert main(["check", *files, "--statistics", "--format", "json"]) == 2
    assert "--statistics is a table for people: it does not go with --format json" in capsys.readouterr().err


def test_with_a_baseline_no_findings_are_no_new_ones(doubtful, tmp_path, capsys):
    baseline = ["--baseline", str(tmp_path / "known.json")]
    assert main(["check", str(doubtful), *baseline, "--update-baseline"]) == 0
    capsys.readouterr()
    assert main(["check", str(doubtful), *baseline]) == 0
    said = capsys.readouterr().out
    assert "1 file: no new findings\n" in said
    assert "no findings" not in said


OTHER_YAML = {
    "compose.yaml": "services: {web: {image: nginx}}\n",
    ".pre-commit-config.yaml": "repos: []\n",
    "list.yaml": "- a\n- b\n",
    "queues.yaml": "queues:\n  mail: {host: x}\n",
    "broken.yaml": "a: [1, 2\n",
}


def test_the_hooks_of_pre_commit_judge_files_by_their_content(root, faulty_netlist, tmp_path, capsys, monkeypatch):
    hooks = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text())
    others = tmp_path / "any"
    others.mkdir()
    monkeypatch.chdir(others)
    for name, text in OTHER_YAML.items():
        (others / name).write_text(text)
    (others / "net.yaml").write_text((root / GOOD).read_text())
    names = sorted(path.name for path in others.iterdir())
    for hook in hooks:
        assert "files" not in hook
        words = hook["entry"].split()
        assert words[0] == "buda-emu"
        assert main([*words[1:], *OTHER_YAML]) == 0, hook["id"]
        before = {name: (others / name).read_text() for name in OTHER_YAML}
        assert main([*words[1:], *names]) == 0, hook["id"]
        assert {name: (others / name).read_text() for name in OTHER_YAML} == before
    capsys.readouterr()
    assert main(["check", "--only-documents", *names, str(faulty_netlist[0])]) == 2
    assert "error[V013]" in capsys.readouterr().out
