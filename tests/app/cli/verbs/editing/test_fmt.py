import io
import sys

import pytest

from buda_emu.app.cli.main import main

UGLY, NEAT = "devices:\n    arch:   grayskull\n", "devices:\n  arch: grayskull\n"


@pytest.fixture
def ugly(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(UGLY)
    return path


def test_a_file_is_written_in_place_with_its_mode(ugly, capsys):
    ugly.chmod(0o640)
    assert main(["fmt", str(ugly)]) == 0
    assert ugly.read_text() == NEAT
    assert ugly.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().err == "1 file formatted\n"
    before = ugly.stat().st_mtime_ns
    assert main(["fmt", str(ugly)]) == 0
    assert ugly.stat().st_mtime_ns == before
    assert capsys.readouterr().err == "1 file left unchanged\n"


def test_check_and_diff_write_nothing(ugly, capsys):
    assert main(["fmt", "--check", str(ugly)]) == 1
    assert capsys.readouterr().out == f"{ugly}: would be formatted\n"
    assert main(["fmt", "--diff", str(ugly)]) == 1
    assert "-    arch:   grayskull\n+  arch: grayskull" in capsys.readouterr().out
    assert ugly.read_text() == UGLY
    ugly.write_text(NEAT)
    assert main(["fmt", "--check", str(ugly)]) == 0
    assert capsys.readouterr().out == ""


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UGLY.encode())))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr() == (NEAT, "")


def test_a_byte_order_mark_stays(ugly):
    ugly.write_bytes(b"\xef\xbb\xbf" + UGLY.encode())
    assert main(["fmt", str(ugly)]) == 0
    assert ugly.read_bytes() == b"\xef\xbb\xbf" + NEAT.encode()


def test_text_that_is_not_yaml_is_reported_and_left_alone(ugly, tmp_path, capsys):
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    assert main(["fmt", str(broken), str(ugly)]) == 2
    said = capsys.readouterr().err
    assert f"{broken}:1:5: error[V000]: invalid YAML" in said
    assert "1 file formatted, 1 file not read" in said
    assert ugly.read_text() == NEAT
    assert broken.read_text() == "a: ["
