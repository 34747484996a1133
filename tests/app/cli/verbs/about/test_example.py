"""`buda-emu example`: the netlists that come along."""

from pathlib import Path

import pytest

from buda_emu.app.cli.main import main
from buda_emu.app.cli.verbs.about.example import example_paths
from shared_files import ROOT

NAMES = [path.relative_to(ROOT / "netlists").with_suffix("").as_posix() for path in (ROOT / "netlists").rglob("*.yaml")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_has_every_netlist_and_what_it_computes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example"]) == 0
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:]]
    assert sorted(name for name, _ in rows) == sorted(NAMES)
    assert dict(rows)["training"].startswith("One training step of two layers")
    assert all(words and not words.startswith("#") for _, words in rows)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_written_under_its_own_name(name: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", name]) == 0
    file = place / f"{name.rpartition('/')[2]}.yaml"
    assert file.read_bytes() == (ROOT / "netlists" / f"{name}.yaml").read_bytes()
    assert f"buda-emu run {file.name}" in capsys.readouterr().err


def test_a_name_may_be_written_as_the_file(place: Path) -> None:
    assert main(["example", "matmul.yaml", "-o", "other.yaml"]) == 0
    assert (place / "other.yaml").exists()


def test_standard_output_gets_the_netlist_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", "matmul", "-o", "-"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (example_paths()["matmul"].read_text(), "")
    assert list(place.iterdir()) == []


def test_a_file_that_is_there_stays_unless_forced(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "matmul.yaml").write_text("mine\n")
    assert main(["example", "matmul"]) == 2
    assert "matmul.yaml is there already" in capsys.readouterr().err
    assert (place / "matmul.yaml").read_text() == "mine\n"
    assert main(["example", "matmul", "--force"]) == 0
    assert (place / "matmul.yaml").read_text() != "mine\n"


def test_an_unknown_name_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", "atention"]) == 2
    assert "no example 'atention' (did you mean 'attention'?)" in capsys.readouterr().err


def test_an_output_without_a_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["example", "-o", "x.yaml"]) == 2
    assert "--output takes the NAME" in capsys.readouterr().err
