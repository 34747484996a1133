"""A kind of document that another package declares (examples/transfers) is served as any other, and what goes wrong in
such a package is told from a bug of buda-emu."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from outside_package import environment_with

Environment = dict[str, str]


@pytest.fixture
def package(tmp_path: Path, root: Path) -> Path:
    """A copy of the example, which tests may spoil."""
    return shutil.copytree(root / "examples" / "transfers", tmp_path / "package")


@pytest.fixture
def environment(tmp_path: Path, package: Path, child_environment: Mapping[str, str]) -> Environment:
    """Of processes that find the copy."""
    return environment_with(package, tmp_path, child_environment)


def buda_emu(environment: Environment, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "buda_emu", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)


def spoil(package: Path, file: str, old: str, new: str) -> None:
    """Change a text of a file of the package."""
    path = package / "transfers" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_document_of_another_package_is_checked_and_described(environment: Environment, package: Path) -> None:
    good = str(package / "copies.txt")
    assert buda_emu(environment, "check", good).stdout.startswith("1 file: no findings")
    described = buda_emu(environment, "info", good).stdout
    assert "list of transfers" in described
    assert "7168" in described.replace(",", "")
    page = package / "page.html"
    assert buda_emu(environment, "info", good, "--timeline", str(page)).returncode == 0
    assert "to core2" in page.read_text(encoding="utf-8")
    refused = buda_emu(environment, "run", good)
    assert refused.returncode == 2
    assert "is a list of transfers, not a netlist" in refused.stderr


def test_its_rules_are_applied_and_explained(environment: Environment, package: Path) -> None:
    wrong = package / "wrong.txt"
    wrong.write_text("transfers\na a 8\n", encoding="utf-8")
    done = buda_emu(environment, "check", str(wrong))
    assert done.returncode == 2
    assert f"{wrong}:2:1: error[T002]: a sends to itself (leave it out)" in done.stdout
    assert buda_emu(environment, "explain", "T002").stdout.startswith("T002: a transfer from a unit to itself")
    wrong.write_text(f"transfers\na b {'9' * 5000}\na b\n", encoding="utf-8")
    assert buda_emu(environment, "check", str(wrong)).stdout.count("error[T001]") == 2


def test_an_exception_of_another_package_is_no_bug_of_buda_emu(environment: Environment, package: Path) -> None:
    spoil(package, "document.py", "words[2].isdecimal() and len(words[2]) <= DIGITS", "True")
    wrong = package / "wrong.txt"
    wrong.write_text("transfers\na b many\n", encoding="utf-8")
    done = buda_emu(environment, "check", str(wrong))
    assert done.returncode == 101
    assert "ValueError" in done.stderr
    assert "this is a bug of the package transfers, which adds to buda-emu" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("from buda_emu", "import no_such_package\nfrom buda_emu", "cannot be imported: No module named"),
        ("TRANSFERS = ", "OTHER = ", "cannot be imported: module 'transfers.kind' has no attribute"),
        ('name="transfers"', 'name="copies"', "is not a Kind named 'transfers', but Kind(name='copies'"),
    ],
)
def test_an_entry_point_that_declares_nothing_is_named_with_its_package(
    environment: Environment, package: Path, old: str, new: str, message: str
) -> None:
    spoil(package, "kind.py", old, new)
    done = buda_emu(environment, "check", str(package / "copies.txt"))
    assert done.returncode == 2
    assert "package transfers: entry point transfers of buda_emu.documents (transfers.kind:TRANSFERS)" in done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
