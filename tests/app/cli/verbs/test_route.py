"""`buda-emu route`: a line for each epoch, streams as YAML, refusals and their exit code."""

import yaml

from buda_emu.app.cli.main import main
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


def test_refusals_are_printed_and_end_in_exit_code_2(tmp_path, capsys):
    path = tmp_path / "net.yaml"
    path.write_text((DIRECTORY / "softmax.yaml").read_text().replace("dram: [[0,", "dram: [[65536,", 1))
    assert main(["route", str(path), "-o", str(tmp_path)]) == 2
    said = capsys.readouterr().out.splitlines()
    assert said[1].split()[-1] == "refused"
    assert said[2] == "epoch 0: V151: x: DRAM channel 65536, wormhole_b0 has channels 0 to 5"
    found = yaml.safe_load((tmp_path / "epoch_0.yaml").read_text())
    assert [(refusal["what"], refusal["message"]) for refusal in found["refusals"]] == [
        ("V151", "x: DRAM channel 65536, wormhole_b0 has channels 0 to 5")
    ]


def test_what_net2pipe_refuses_before_it_makes_pipes_is_refused(tmp_path, capsys):
    path = tmp_path / "net.yaml"
    text = (DIRECTORY / "softmax.yaml").read_text()
    path.write_text(text.replace("df: Float16_b", "df: Float16", 1))
    assert main(["route", str(path)]) == 2
    *_, last = capsys.readouterr().out.splitlines()
    assert last.split(": ")[1] == "V079"


def test_an_op_that_is_not_routed_is_refused(capsys):
    assert main(["route", str(DIRECTORY / "two_chips.yaml")]) == 3
    assert "ethernet_datacopy" in capsys.readouterr().err
