"""`buda-emu reduce`: what it prints, writes and returns."""

import json
import os
import signal
import subprocess
import sys
import time

import jsonschema
import pytest

from buda_emu.app.cli.main import main
from buda_emu.app.cli.verbs.about.schema import VERB_SCHEMAS
from example_netlists import DIRECTORY


def test_a_table_a_file_and_json(tmp_path, capsys):
    small, report = tmp_path / "small.yaml", tmp_path / "report.json"
    command = "! grep -q 'type: exp'"
    assert (
        main(["reduce", str(DIRECTORY / "attention.yaml"), "--check", command, "-o", str(small), "--json", str(report)])
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["before", "after"]
    assert lines[1].split() == ["ops", "13", "1"]
    assert lines[-1].startswith(f"{small}: still exit code 1 after ")
    assert "type: exp" in small.read_text()
    found = json.loads(report.read_text())
    jsonschema.validate(found, VERB_SCHEMAS["reduce"]())
    assert found["sizes"]["ops"] == {"before": 13, "after": 1}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_folder_and_writes_the_smallest_netlist(number, tmp_path):
    folders = tmp_path / "folders"
    folders.mkdir()
    small = tmp_path / "small.yaml"
    check = "sleep 0.2; ! grep -q 'type: exp'"
    command = [sys.executable, "-m", "buda_emu", "reduce", str(DIRECTORY / "attention.yaml"), "--check", check]
    process = subprocess.Popen([*command, "-o", str(small), "-q"], env={**os.environ, "TMPDIR": str(folders)})
    limit = time.monotonic() + 60
    while not small.exists() and time.monotonic() < limit:  # the first smaller netlist has been found
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == 130
    assert list(folders.iterdir()) == []
    assert "type: exp" in small.read_text()


def test_the_default_output_is_beside_the_netlist(tmp_path, capsys):
    path = tmp_path / "net.yaml"
    path.write_text((DIRECTORY / "matmul.yaml").read_text())
    assert main(["reduce", str(path), "--check", "false", "-q"]) == 0
    assert (tmp_path / "net.reduced.yaml").exists()
    assert capsys.readouterr().out == ""


def test_a_command_that_succeeds_is_said(capsys):
    assert main(["reduce", str(DIRECTORY / "matmul.yaml"), "--check", "true"]) == 2
    assert "there is nothing to reduce" in capsys.readouterr().err


def test_no_settings_file_names_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "buda-emu.toml").write_text('[reduce]\ncheck-command = "rm -r /"\n')
    assert main(["reduce", str(DIRECTORY / "matmul.yaml"), "--check", "false"]) == 2
    assert "it is run in a shell" in capsys.readouterr().err
