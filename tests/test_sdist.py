"""The source distribution holds what its own tests need."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from shared_files import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
INCLUDED = {*PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"], "pyproject.toml"}


def test_whatever_tests_import_from_is_in_it():
    paths = PROJECT["tool"]["pytest"]["ini_options"]["pythonpath"]
    assert {path.partition("/")[0] for path in paths} <= INCLUDED


def test_whatever_tests_read_is_in_it():
    """Places below the project's root that tests name."""
    named = {
        match.partition("/")[0]
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for match in re.findall(r'\b(?:ROOT|root) / f?"([\w./-]+)"', path.read_text())
    }
    assert {"docs", "tools"} <= named
    assert {name for name in named if (ROOT / name).exists()} <= INCLUDED


@pytest.mark.slow
def test_its_own_tests_run(tmp_path: Path) -> None:
    """Built, unpacked elsewhere, without the corpus: what is there is imported, and a part of its tests passes."""
    pytest.importorskip("hatchling", reason="what builds the distribution is not installed")
    build = "import hatchling.build, sys; print(hatchling.build.build_sdist(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    name = done.stdout.split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        archive.extractall(tmp_path, filter="data")
    there = tmp_path / name.removesuffix(".tar.gz")
    environment = {**os.environ, "PYTHONPATH": str(there), "BUDA_EMU_SHARED": str(tmp_path / "nowhere")}
    where = [sys.executable, "-c", "import buda_emu; print(buda_emu.__file__)"]
    found = subprocess.run(where, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(there)
    tests = [
        "checker",
        "device",
        "formats",
        "program",
        "spec",
        "tensor",
        "timeline",
        "docs/test_pages.py",
        "test_sdist.py",
    ]
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"tests/{part}" for part in tests)]
    found = subprocess.run(run, cwd=there, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-5000:]
