"""The source distribution holds what its own tests need."""

import re
import tomllib

from shared_files import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
INCLUDED = {*PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"], "pyproject.toml"}


def test_whatever_tests_import_from_is_in_it():
    paths = PROJECT["tool"]["pytest"]["ini_options"]["pythonpath"]
    assert set(paths) <= INCLUDED


def test_whatever_tests_read_is_in_it():
    """Places below the project's root that tests name."""
    named = {
        match.partition("/")[0]
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for match in re.findall(r'\b(?:ROOT|root) / f?"([\w./-]+)"', path.read_text())
    }
    assert {"docs", "tools"} <= named
    assert {name for name in named if (ROOT / name).exists()} <= INCLUDED
