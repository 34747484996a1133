"""The release tool: a dry run, and what it refuses to publish."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import release
from shared_files import ROOT


@pytest.fixture
def made(tmp_path: Path) -> release.Release:
    """A release without any results."""
    return release.Release(tmp_path / "dist", True, tmp_path)


def test_its_date_is_the_changelogs():
    assert f"\ndate-released: {release.release_date()}\n" in (ROOT / "CITATION.cff").read_text()


def test_a_changelog_of_another_version_stops_it(monkeypatch):
    monkeypatch.setattr(release, "__version__", "9.9.9")
    with pytest.raises(release.ReleaseError, match=r"CHANGELOG.md begins with .*, the package is 9.9.9"):
        release.release_date()


def test_it_deletes_its_own_results_and_nothing_else(tmp_path):
    mine = [tmp_path / name for name in ("buda_emu-0.9-py3-none-any.whl", "SHA256SUMS", "site/index.html")]
    other = tmp_path / "notes.txt"
    (tmp_path / "site").mkdir()
    for path in (*mine, other):
        path.write_text("")
    release.clear(tmp_path)
    assert list(tmp_path.iterdir()) == [other]


def test_a_step_that_is_left_out_is_named_and_not_published(made, monkeypatch, capsys):
    monkeypatch.setattr(release, "STEPS", {"playground": release.make_playground, "sums": lambda _: "done"})
    release.make(made)
    assert "left out: needs the network" in capsys.readouterr().out
    monkeypatch.setattr(release, "run", lambda _: "")
    with pytest.raises(release.ReleaseError, match="playground was left out: it needs the network"):
        release.require_publishable(made)


def test_reasons_against_publishing_are_all_told(made, monkeypatch):
    answers = {"status": " M changed.py\n", "tag": f"v{release.__version__}\n"}
    monkeypatch.setattr(release, "run", lambda command: answers[command[1]])
    with pytest.raises(release.ReleaseError) as refused:
        release.require_publishable(made)
    for reason in ("changes that are not committed", f"a tag v{release.__version__} already"):
        assert reason in str(refused.value)


def test_a_command_that_fails_shows_what_it_printed():
    with pytest.raises(release.ReleaseError, match=r"exit code 3\nreason"):
        release.run([sys.executable, "-c", "import sys; print('reason'); sys.exit(3)"])


def test_ci_makes_a_dry_run(root):
    assert "tools/release.py --offline --dist" in (root / ".ci" / "run").read_text()


@pytest.mark.slow
def test_a_dry_run_without_the_network(tmp_path, child_environment):
    for package in ("build", "hatchling", "pyroma", "twine", "mkdocs"):
        pytest.importorskip(package)
    command = [sys.executable, "tools/release.py", "--offline", "--dist", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=child_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [line.split()[0] for line in done.stdout.splitlines()]
    assert steps == list(release.STEPS)
    sums = (tmp_path / "SHA256SUMS").read_text()
    assert {line.split()[1] for line in sums.splitlines()} == {path.name for path in tmp_path.glob("buda_emu-*")}
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = archive.getnames()
    assert not any("node_modules" in name or "/docs/playground/" in name for name in names)
