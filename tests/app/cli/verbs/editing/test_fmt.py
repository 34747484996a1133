import io
import sys

import pytest

from buda_emu.app.cli.main import main

UGLY, NEAT = "devices:\n    arch:   grayskull\n", "devices:\n  arch: grayskull\n"


@pytest.fixture
def unformatted(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(UGLY)
    return path


def test_a_file_is_written_in_place_with_its_mode(unformatted, capsys):
    unformatted.chmod(0o640)
    assert main(["fmt", str(unformatted)]) == 0
    assert unformatted.read_text() == NEAT
    assert unformatted.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().err == "1 file formatted\n"
    before = unformatted.stat().st_mtime_ns
    assert main(["fmt", str(unformatted)]) == 0
    assert unformatted.stat().st_mtime_ns == before
    assert capsys.readouterr().err == "1 file left unchanged\n"


def test_check_and_diff_write_nothing(unformatted, capsys):
    assert main(["fmt", "--check", str(unformatted)]) == 1
    assert capsys.readouterr().out == f"{unformatted}: would be formatted\n"
    assert main(["fmt", "--diff", str(unformatted)]) == 1
    assert "-    arch:   grayskull\n+  arch: grayskull" in capsys.readouterr().out
    assert unformatted.read_text() == UGLY
    unformatted.write_text(NEAT)
    assert main(["fmt", "--check", str(unformatted)]) == 0
    assert capsys.readouterr().out == ""


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(UGLY.encode())))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr() == (NEAT, "")


def test_a_byte_order_mark_stays(unformatted):
    unformatted.write_bytes(b"\xef\xbb\xbf" + UGLY.encode())
    assert main(["fmt", str(unformatted)]) == 0
    assert unformatted.read_bytes() == b"\xef\xbb\xbf" + NEAT.encode()


def test_text_that_is_not_yaml_is_reported_and_left_alone(unformatted, tmp_path, capsys):
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    assert main(["fmt", str(broken), str(unformatted)]) == 2
    said = capsys.readouterr().err
    assert f"{broken}:1:5: error[V000]: invalid YAML" in said
    assert "1 file formatted, 1 file not read" in said
    assert unformatted.read_text() == NEAT
    assert broken.read_text() == "a: ["
