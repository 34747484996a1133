"""The release tool: a dry run, and what it refuses to publish."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import release
import release_papers
from release_commands import digest
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


@pytest.fixture
def load(monkeypatch):
    """Sets the load of a machine with two processors."""
    monkeypatch.setattr(release.os, "cpu_count", lambda: 2)
    return lambda load: monkeypatch.setattr(release.os, "getloadavg", lambda: (load, 0.0, 0.0))


def test_the_time_to_the_first_result_is_told(load):
    load(0.5)
    assert release.describe_wait(12.3, 9.0) == "in 12 s"
    load(11.0)
    assert release.describe_wait(90.0, 24.0) == "in 90 s on a busy machine, 24 s of processor time"


@pytest.mark.parametrize(("busy", "seconds", "worked"), [(0.5, 61.0, 24.0), (11.0, 300.0, 61.0)])
def test_a_first_result_that_is_late_stops_the_release(busy, seconds, worked, load):
    load(busy)
    with pytest.raises(release.ReleaseError, match="more than 60 s"):
        release.describe_wait(seconds, worked)


def test_only_what_the_wheel_needs_is_listed(tmp_path):
    needs = {
        "wheel": ["Numba[fast]", "rich", 'pytest; extra == "dev"', 'old; python_version < "3"'],
        "numba": ["numpy", 'quick; extra == "fast"', 'sphinx; extra == "docs"'],
        **{name: [] for name in ("numpy", "quick", "rich", "pytest", "sphinx", "pip")},
    }
    for name, lines in needs.items():
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        rows = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1", *(f"Requires-Dist: {line}" for line in lines)]
        (folder / "METADATA").write_text("\n".join(rows) + "\n")
    assert release_papers.needed_packages("wheel", [str(tmp_path)]) == {
        "wheel": {"numba", "rich"},
        "numba": {"numpy", "quick"},
        **{name: set() for name in ("numpy", "quick", "rich")},
    }
    with pytest.raises(release.ReleaseError, match="absent is needed, and not installed"):
        release_papers.needed_packages("absent", [str(tmp_path)])


def test_provenance_names_files_by_digest_and_no_commit_that_they_do_not_come_from(tmp_path, monkeypatch):
    pytest.importorskip("build")
    wheel = tmp_path / "buda_emu.whl"
    wheel.write_bytes(b"wheel")
    sources = {}
    for name, commit in (("clean", "c0ffee"), ("changed", None)):
        monkeypatch.setattr(release_papers, "source_commit", lambda commit=commit: commit)
        statement = release_papers.provenance_of([wheel], "9.9.9", 0)
        assert statement["subject"] == [{"name": "buda_emu.whl", "digest": {"sha256": digest(wheel)}}]
        parts = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
        sources[name] = [part["digest"] for part in parts if part["name"] == "source"]
        assert {"build", "hatchling"} <= {part["name"] for part in parts}
    assert sources == {"clean": [{"gitCommit": "c0ffee"}], "changed": []}


@pytest.mark.parametrize(("changes", "commit"), [("", "c0ffee"), (" M changed.py\n", None)])
def test_a_source_with_changes_is_no_commit(changes, commit, tmp_path, monkeypatch):
    (tmp_path / ".git").touch()
    monkeypatch.setattr(release_papers, "ROOT", tmp_path)
    answers = {"status": changes, "rev-parse": "c0ffee\n"}
    monkeypatch.setattr(release_papers, "run", lambda command: answers[command[1]])
    assert release_papers.source_commit() == commit


def test_a_source_without_git_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(release_papers, "ROOT", tmp_path)
    assert release_papers.source_commit() is None


@pytest.mark.slow
def test_a_list_of_packages_that_breaks_the_schema_is_refused():
    pytest.importorskip("cyclonedx_py")
    sound = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": []}
    release_papers.require_valid(sound)
    with pytest.raises(release.ReleaseError, match="breaks CycloneDX's schema"):
        release_papers.require_valid({**sound, "components": [{"name": "numpy"}]})


def test_ci_makes_a_dry_run(root):
    assert "tools/release.py --offline --extension --dist" in (root / ".ci" / "run").read_text()


@pytest.mark.slow
def test_a_dry_run_without_the_network(tmp_path, child_environment):
    for package in ("build", "cyclonedx_py", "hatchling", "pyroma", "twine", "mkdocs"):
        pytest.importorskip(package)
    command = [sys.executable, "tools/release.py", "--offline", "--dist", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=child_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [line.split()[0] for line in done.stdout.splitlines()]
    assert steps == list(release.STEPS)
    sums = (tmp_path / "SHA256SUMS").read_text()
    assert {line.split()[1] for line in sums.splitlines()} == {path.name for path in tmp_path.glob("buda_emu-*")}
    assert_papers_are_of(tmp_path)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = archive.getnames()
    assert not any("node_modules" in name or "/docs/playground/" in name for name in names)


def assert_papers_are_of(dist):
    """Both papers have the digest of the wheel; the list of packages has what it depends on, and no machine's paths."""
    (wheel,) = dist.glob("*.whl")
    (materials,) = dist.glob("*.cdx.json")
    (provenance,) = dist.glob("*.provenance.json")
    document = json.loads(materials.read_text())
    main = document["metadata"]["component"]
    assert main["hashes"] == [{"alg": "SHA-256", "content": digest(wheel)}]
    assert main["purl"] == f"pkg:pypi/buda-emu@{release.__version__}"
    names = {part["name"].lower() for part in document["components"]}
    assert names >= {"jinja2", "jsonschema", "llvmlite", "numba", "numpy", "pyyaml", "rich"}
    assert not names & {"buda-emu", "pip", "pytest", "setuptools", "torch"}
    assert "file:" not in materials.read_text() + provenance.read_text()
    subjects = {part["name"]: part["digest"]["sha256"] for part in json.loads(provenance.read_text())["subject"]}
    assert subjects[wheel.name] == digest(wheel)
    assert materials.name in subjects
