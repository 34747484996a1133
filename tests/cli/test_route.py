"""`buda-emu route`: a line for each epoch, streams as YAML, refusals and their exit code."""

import re

import yaml

from buda_emu.cli.main import main
from example_netlists import DIRECTORY


def test_each_epoch_in_a_line_and_its_streams_in_a_file(tmp_path, capsys):
    assert main(["route", str(DIRECTORY / "softmax.yaml"), "-o", str(tmp_path / "streams")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["epoch", "graphs", "cores", "streams", "extra", "streams", "L1", "bytes", "routed"]
    assert lines[1].split()[:4] == ["0", "fwd", "4", "30"]
    (path,) = (tmp_path / "streams").iterdir()
    found = yaml.safe_load(path.read_text())
    assert (path.name, found["graph"], found["arch"], found["refusals"]) == ("epoch_0.yaml", "fwd", "wormhole_b0", [])
    assert sum(len(core["streams"]) for core in found["cores"]) == 30


def test_what_is_refused_is_said_and_ends_in_2(tmp_path, capsys):
    text = (DIRECTORY / "attention.yaml").read_text()
    assert text.count("buf_size_mb: 8") == 1  # of `context`, whose heads are stacked: with all of t in its buffer
    netlist = tmp_path / "attention.yaml"
    netlist.write_text(text.replace("buf_size_mb: 8", "buf_size_mb: 2"))
    assert main(["route", str(netlist), "-o", str(tmp_path)]) == 2
    said = capsys.readouterr().out.splitlines()
    assert said[2].split()[-1] == "refused"
    rule = next(iter(re.findall(r"^epoch 1: (V\d+): projected: stacked pieces", said[3])))
    found = yaml.safe_load((tmp_path / "epoch_1.yaml").read_text())
    assert [refusal["what"] for refusal in found["refusals"]] == [rule]


def test_what_is_not_routed_is_said(capsys):
    assert main(["route", str(DIRECTORY / "two_chips.yaml")]) == 3
    assert "ethernet_datacopy" in capsys.readouterr().err
