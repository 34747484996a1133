"""The log of a campaign: what is continued is the same campaign, and a damaged line is refused with its place."""

import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.faults import Settings, Subject, campaign_identity
from buda_emu.app.cli.main import main
from buda_emu.support.errors import Exit
from buda_emu.testing.injection.campaign_log import CampaignLog
from damaged_json import damaged

NETLISTS = Path(__file__).parents[3] / "netlists"
COUNT = 12


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A netlist and the folder of a campaign on it, of `COUNT` faults that were judged."""
    folder = tmp_path_factory.mktemp("campaign")
    netlist = folder / "net.yaml"
    shutil.copy(NETLISTS / "softmax.yaml", netlist)
    assert command(netlist, folder / "c") == Exit.OK
    return netlist, folder / "c"


def command(netlist: Path, folder: Path, *more: str) -> int:
    return main(["faults", str(netlist), "--count", str(COUNT), "-q", "-o", str(folder), *more])


def copied(finished: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    netlist = Path(shutil.copy(finished[0], tmp_path / "net.yaml"))
    return netlist, Path(shutil.copytree(finished[1], tmp_path / "c"))


def test_a_finished_campaign_is_read_again(finished, tmp_path, capsys):
    """From a file of another name: contents count."""
    netlist, folder = copied(finished, tmp_path)
    before = json.loads((folder / "faults.json").read_text())["faults"]
    assert command(netlist.rename(tmp_path / "other.yaml"), folder) == Exit.OK
    assert json.loads((folder / "faults.json").read_text())["faults"] == before


def test_the_campaign_of_another_netlist_is_refused(finished, tmp_path, capsys):
    netlist, folder = copied(finished, tmp_path)
    netlist.write_text(netlist.read_text() + "# one more line\n")
    assert command(netlist, folder) == Exit.REFUSED
    assert "is of another campaign: it differs in netlist: give another folder" in capsys.readouterr().err


def test_the_campaign_of_other_inputs_is_refused(tmp_path, capsys):
    net = be.load(NETLISTS / "softmax.yaml")
    shapes = {name: queue.blocking.element_shape for name, queue in net.queues.items() if queue.input == "HOST"}
    inputs = tmp_path / "in.npz"
    np.savez(inputs, **{name: np.full((2, *shape), 0.5, np.float32) for name, shape in shapes.items()})
    subject = Subject(str(NETLISTS / "softmax.yaml"), inputs=str(inputs))
    before = campaign_identity(subject.with_contents(), Settings())
    np.savez(inputs, **{name: np.full((2, *shape), 0.25, np.float32) for name, shape in shapes.items()})
    now = campaign_identity(subject.with_contents(), Settings())
    assert [key for key in now if now[key] != before[key]] == ["inputs"]
    CampaignLog(tmp_path, before)
    with pytest.raises(be.HostError, match="another campaign: it differs in inputs"):
        CampaignLog(tmp_path, now)


@pytest.mark.parametrize("key", ["version", "sources of buda-emu", "version of numpy", "packages of op types"])
def test_the_campaign_of_another_package_is_refused(finished, tmp_path, capsys, key):
    netlist, folder = copied(finished, tmp_path)
    head, *lines = (folder / "faults.jsonl").read_text().splitlines()
    head = json.dumps({**json.loads(head), key: "other"})
    (folder / "faults.jsonl").write_text("\n".join((head, *lines, "")))
    assert command(netlist, folder) == Exit.REFUSED
    assert f"it differs in {key}" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--seed", "1"], ["--kind", "burst"], ["--pcc", "0.5"], ["--precision", "ideal"]])
def test_the_campaign_of_other_settings_is_refused(finished, tmp_path, capsys, more):
    assert command(*copied(finished, tmp_path), *more) == Exit.REFUSED
    assert "is of another campaign: it differs in" in capsys.readouterr().err


def test_a_netlist_that_changes_while_a_campaign_runs(finished, tmp_path):
    netlist, _ = copied(finished, tmp_path)
    subject = Subject(str(netlist)).with_contents()
    netlist.write_text(netlist.read_text() + "# one more line\n")
    with pytest.raises(be.HostError, match=r"net\.yaml: the file of the netlist changed since the campaign began"):
        be.faults(subject, 1)


LINES = {
    "5": "it is not an object",
    '{"number": 99}': "the key 'kind' is missing",
    '{"kind": "flip", "outcome": "corrupt", "pcc": NaN}': "NaN is not a number",
    "": "it is not strict JSON",
    "\x00": "it is not strict JSON",
}


@pytest.mark.parametrize("line", LINES)
def test_a_damaged_line_is_refused_with_its_place(finished, tmp_path, capsys, line):
    netlist, folder = copied(finished, tmp_path)
    with (folder / "faults.jsonl").open("a") as stream:
        stream.write(f"{line}\n")
    assert command(netlist, folder) == Exit.REFUSED
    said = capsys.readouterr().err
    assert f"faults.jsonl:{COUNT + 2}: not an effect of a fault: " in said
    assert LINES[line] in said
    assert "remove this line, and its fault is injected again" in said


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"maps": {"nowhere": "3f"}}, "faults.jsonl:4: fault 2: maps: the netlist has no queue 'nowhere'"),
        ({"pcc": 5.5}, "pcc 5.5 is not a number from -1 to 1, or null"),
        ({"top1": 1e308}, "top1 1e+308 is not a number from 0 to 1"),
    ],
)
def test_an_effect_that_no_fault_has_is_refused_with_its_place(finished, tmp_path, capsys, change, text):
    netlist, folder = copied(finished, tmp_path)
    log = folder / "faults.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    lines[3] = json.dumps({**json.loads(lines[3]), "outcome": "corrupt", **change}) + "\n"
    log.write_text("".join(lines))
    assert command(netlist, folder) == Exit.REFUSED
    assert text in capsys.readouterr().err


def test_an_effect_of_another_fault_is_refused_with_its_place(finished, tmp_path, capsys):
    netlist, folder = copied(finished, tmp_path)
    log = folder / "faults.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    lines[3] = json.dumps({**json.loads(lines[3]), "where": "nowhere"}) + "\n"
    log.write_text("".join(lines))
    assert command(netlist, folder) == Exit.REFUSED
    assert "faults.jsonl:4: fault 2: it is not the fault that this campaign has" in capsys.readouterr().err


def test_a_line_that_occurs_twice(finished, tmp_path, capsys):
    """The same is said once more, as by two campaigns at a time: nothing is wrong. Something else is."""
    netlist, folder = copied(finished, tmp_path)
    log = folder / "faults.jsonl"
    last = log.read_text().splitlines()[-1]
    log.write_text(f"{log.read_text()}{last}\n")
    assert command(netlist, folder) == Exit.OK
    log.write_text(f"{log.read_text()}{json.dumps({**json.loads(last), 'outcome': 'late'})}\n")
    assert command(netlist, folder) == Exit.REFUSED
    assert f"faults.jsonl:{COUNT + 2}: line {COUNT + 1} says something else of fault" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [*range(24), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(24, 400))])
def test_lines_that_are_damaged_at_random(finished, tmp_path, capsys, seed):
    """Either the log is refused, with file and line, or the damage says nothing: it is of a number that any effect may
    have, or the line was cut at its end."""
    draw = random.Random(seed)
    netlist, folder = copied(finished, tmp_path)
    log = folder / "faults.jsonl"
    lines = log.read_bytes().splitlines()
    place = draw.randrange(len(lines))
    lines[place] = damaged(lines[place], draw)
    log.write_bytes(b"\n".join(lines) + b"\n" * draw.randrange(2))
    code = command(netlist, folder)
    said = capsys.readouterr().err
    assert code in (Exit.OK, Exit.REFUSED), said
    if code == Exit.REFUSED:
        assert f"{log}" in said
        assert "give another folder" in said
    else:
        assert len(json.loads((folder / "faults.json").read_text())["faults"]) == COUNT


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="without named pipes")
def test_a_log_that_is_a_pipe_is_not_waited_for(finished, tmp_path, capsys):
    netlist, folder = copied(finished, tmp_path)
    (folder / "faults.jsonl").unlink()
    os.mkfifo(folder / "faults.jsonl")
    assert command(netlist, folder) == Exit.REFUSED
    assert "faults.jsonl: no regular file" in capsys.readouterr().err
