"""`buda-emu cache`: what it shows, compiles and deletes."""

from pathlib import Path

import pytest

from buda_emu.app.cli.main import main
from buda_emu.app.cli.verbs.about import cache
from buda_emu.netlist.cache import FOLDER

STALE = "kernels-0.0.1-0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder with kernels of another version, a kept netlist, and what is not ours."""
    monkeypatch.setattr(cache, "own_caches", lambda: tmp_path / "buda-emu")
    own = tmp_path / "buda-emu"
    for name in (STALE, FOLDER, "somebody", "kernels-no-hash"):
        (own / name).mkdir(mode=0o700, parents=True)
        (own / name / "file").write_bytes(b"x" * 2048)
    (own / "kernels-0.0.2-0123456789abcdef").symlink_to(own / "somebody")
    return own


def test_info_says_what_is_kept_and_what_is_stale(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    first, rows, hint = capsys.readouterr().out.strip().split("\n\n")
    assert first == str(folder)
    assert [row.split()[:5] for row in rows.splitlines()[1:]] == [
        ["kernels", "0.0.1", "1", "2.0", "KiB"],
        ["netlists", "-", "1", "2.0", "KiB"],
    ]
    assert "stale: of another version" in rows.splitlines()[1]
    assert rows.splitlines()[2].endswith("in use, 64.0 MiB at most")
    assert hint == "`buda-emu cache clear --stale` frees 2.0 KiB"


def test_clear_deletes_what_is_stale_or_all_of_ours(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = {"somebody", "kernels-no-hash", "kernels-0.0.2-0123456789abcdef"}
    assert main(["cache", "clear", "--stale"]) == 0
    assert {path.name for path in folder.iterdir()} == {FOLDER, *others}
    assert main(["cache", "clear"]) == 0
    assert {path.name for path in folder.iterdir()} == others
    assert (folder / "somebody" / "file").exists()
    assert capsys.readouterr().out == "1 file, 2.0 KiB deleted\n" * 2
    assert main(["cache", "info"]) == 0
    assert capsys.readouterr().out == f"{folder}\n\nnothing is kept\n"


def test_there_may_be_no_folder_and_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cache, "own_caches", lambda: tmp_path / "none")
    assert main(["cache", "info"]) == 0
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.endswith("nothing is kept\n0 files, 0 B deleted\n")

    def no_home() -> Path:
        raise RuntimeError("no home directory")

    monkeypatch.setattr(cache, "own_caches", no_home)
    assert main(["cache", "info"]) == 2
    assert capsys.readouterr().err == "buda-emu: nothing is kept between runs: no home directory\n"


def test_warm_goes_through_all_netlists(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, missing = str(root / "netlists" / "softmax.yaml"), str(tmp_path / "missing.yaml")
    assert main(["cache", "warm", missing, good]) == 2
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == f"{missing}: 0 kernels compiled, 0.0 s"
    assert lines[1].startswith(f"{good}: ")
    assert "there is no such file" in shown.err


def test_warm_takes_the_examples(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[str] = []
    monkeypatch.setattr("buda_emu.app.cli.verbs.about.cache._run_in_every_precision", ran.append)
    assert main(["cache", "warm"]) == 0
    assert {Path(file).name for file in ran} >= {"matmul.yaml", "attention.yaml", "training.yaml"}
    assert len(capsys.readouterr().out.splitlines()) == len(ran)
