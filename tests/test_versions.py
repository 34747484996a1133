"""The version, its date and what it deprecates are the same wherever they stand."""

import ast
import json
import re
import tomllib

import buda_emu as be
from buda_emu.support.moved import REMOVED_IN
from shared_files import ROOT

CHANGES = (ROOT / "CHANGELOG.md").read_text()
STABILITY = (ROOT / "docs" / "reference" / "stability.md").read_text()
VERSION = r"\d+\.\d+\.\d+(?:rc\d+)?"


def newest_section():
    """Version and date of the first section of the changelog."""
    match = re.search(rf"^## ({VERSION}), (\d{{4}}-\d\d-\d\d)$", CHANGES, re.MULTILINE)
    assert match is not None
    return match[1], match[2]


def test_the_changelog_begins_with_this_version():
    assert newest_section()[0] == be.__version__
    titles = re.findall(r"^## (.*)$", CHANGES, re.MULTILINE)
    assert all(re.fullmatch(rf"{VERSION}, \d{{4}}-\d\d-\d\d", title) for title in titles)


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    version, date = newest_section()
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {date}\n" in citation


def test_the_package_takes_its_version_from_the_module():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "buda_emu/support/version.py"


def test_the_extension_has_the_version_without_its_candidate():
    """Editors' shops take three numbers and nothing else."""
    package = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text())
    assert package["version"] == be.__version__.partition("rc")[0]


def test_pages_show_this_version():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    shown = {version for page in pages for version in re.findall(rf"(?:buda-emu |rev: v)({VERSION})", page.read_text())}
    assert shown == {be.__version__}


def test_every_deprecation_says_when_it_ends():
    count = 0
    for path in sorted((ROOT / "buda_emu").rglob("*.py")):
        text = path.read_text()
        if "DeprecationWarning, stacklevel" not in text:
            continue
        for scope in ast.walk(ast.parse(text)):
            source = ast.get_source_segment(text, scope) if isinstance(scope, ast.FunctionDef) else None
            if source is not None and "DeprecationWarning, stacklevel" in source:
                count += 1
                assert "REMOVED_IN" in source, path
    assert count >= 3


def test_the_page_lists_deprecations_with_both_dates():
    rows = [row for row in STABILITY.partition("## What is deprecated")[2].splitlines() if row.startswith("| 1.")]
    assert len(rows) >= 3
    for row in rows:
        assert re.match(rf"\| {VERSION}, \d{{4}}-\d\d-\d\d \|", row)
        assert row.endswith(f"| {REMOVED_IN} |")
    assert REMOVED_IN in CHANGES
