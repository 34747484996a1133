"""The generated pages are up to date, and what pages point to exists."""

import os
import re
import subprocess
import sys

import pytest

from generate_docs import pages
from shared_files import ROOT

DOCS = ROOT / "docs"
ALL = [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
GENERATED, LACKING = pages()


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_a_generated_page_is_what_the_tables_say(name):
    """A page that names versions of packages has the operators of these."""
    text = (DOCS / name).read_text()
    versions = re.compile(r"^Of (\w+ [\d.]+): ", re.MULTILINE)
    if versions.findall(text) != versions.findall(GENERATED[name]):
        pytest.skip(f"written for {', '.join(versions.findall(text))}")
    assert text == GENERATED[name], "run tools/generate_docs.py"


WITHOUT = """
import sys
for name in sys.argv[1:]:
    sys.modules[name] = None  # as if it were not installed
import generate_docs
texts, lacking = generate_docs.pages()
print(sorted(lacking.items()), len(texts))
"""


@pytest.mark.parametrize(
    ("absent", "lacking"),
    [
        (["onnx"], {"compile/compile-operators.md": "onnx", "compile/compile-ops.md": "onnx"}),
        (["torch"], {"compile/compile-ops.md": "torch"}),
    ],
)
def test_pages_are_written_whose_packages_are_installed(absent, lacking, child_environment):
    path = os.pathsep.join((str(ROOT / "tools"), child_environment["PYTHONPATH"]))
    command = [sys.executable, "-c", WITHOUT, *absent, "jax", "tensorflow"]
    done = subprocess.run(
        command, env={**child_environment, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{sorted(lacking.items())} {len(GENERATED) + len(LACKING) - len(lacking)}"


def anchors(page):
    """The anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        found = page if not path else (page.parent / path).resolve()
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    folders = "buda_emu|netlists|examples|benchmarks|tools|tests|schemas|docs"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_files_that_commands_name_exist(page):
    """Also in blocks of code, from the project's folder or one in it. `FILE` and `NAME` stand for any name."""
    folders = "buda_emu|netlists|examples|benchmarks|tools|tests|schemas|editors"
    ending = "py|json|toml|yaml|mlir|txt"
    named = re.findall(rf"(?<![\w./-])(?:\.\./)?((?:{folders})/[\w/.-]*\.(?:{ending}))\b", page.read_text())
    assert [path for path in named if not re.search("FILE|NAME", path) and not (ROOT / path).exists()] == []


def test_python_files_that_are_named_exist():
    """Pages and docstrings name a file by the end of its path: `search/forms.py`. `NAME.py` stands for any name."""
    folders = ("buda_emu", "tests", "tools", "benchmarks", "examples")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    paths = [f"/{path.relative_to(ROOT).as_posix()}" for path in sources]
    missing = []
    for source in (*ALL, *(path for path in sources if path.is_relative_to(ROOT / "buda_emu"))):
        for name in re.findall(r"`([\w./]+\.py)`", source.read_text(encoding="utf-8")):
            if not name.endswith("NAME.py") and not any(path.endswith(f"/{name}") for path in paths):
                missing.append((str(source.relative_to(ROOT)), name))
    assert missing == []


def pages_linked_from(page):
    return {(page.parent / target).resolve() for target in re.findall(r"\]\(([^)\s:#]+\.md)", page.read_text())}


def test_every_page_is_reachable_from_the_readme():
    linked = pages_linked_from(ROOT / "README.md")
    for page in sorted(linked):
        linked |= pages_linked_from(page)
    assert set(DOCS.glob("**/*.md")) <= linked
