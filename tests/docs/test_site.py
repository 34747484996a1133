"""The docs as a site, and the README where a package index shows it."""

import re
import subprocess
import sys

import pytest

import readme
from shared_files import ROOT

TEXT = (ROOT / "README.md").read_text()
LINK = re.compile(r"\]\(([^)\s]+)\)")


def test_on_an_index_no_link_leads_nowhere():
    assert [target for target in LINK.findall(readme.for_index(TEXT)) if not target.startswith("http")] == []
    assert "docs/getting-started.md" in readme.for_index(TEXT)  # its words stay
    assert "<!--" not in readme.for_index(TEXT)


def test_with_an_address_of_the_repository_links_are_absolute():
    shown = readme.for_index(TEXT, "https://forge.example/buda-emu/")
    assert "(https://forge.example/buda-emu/blob/main/docs/run/run.md)" in shown
    assert all(target.startswith("https://") for target in LINK.findall(shown))


def test_the_first_picture_is_shown_where_it_can_be():
    assert "](docs/pictures/first-look.svg)" in TEXT.partition("```")[0]
    assert "](pictures/first-look.svg)" in readme.for_site(TEXT)
    assert "first-look" not in readme.for_index(TEXT)
    there = readme.for_index(TEXT, "https://forge.example/buda-emu")
    assert "](https://forge.example/buda-emu/raw/main/docs/pictures/first-look.svg)" in there


def test_no_page_has_lines_that_nobody_can_read():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    longest = {str(page): max(map(len, page.read_text().splitlines())) for page in pages}
    assert {page: length for page, length in longest.items() if length > 5000} == {}


def test_the_distribution_is_described_by_it():
    hatch = pytest.importorskip("hatchling.metadata.core", reason="hatchling builds distributions")
    manager = pytest.importorskip("hatchling.plugin.manager").PluginManager()
    metadata = hatch.ProjectMetadata(str(ROOT), manager)
    assert metadata.core.readme == readme.for_index(TEXT)
    assert metadata.core.readme_content_type == "text/markdown"


def test_on_the_site_files_beside_the_docs_are_words():
    text = "<!-- run -->\n[`examples/gpt.py`](../../examples/gpt.py), [perf.md](../timing/perf.md#loads)"
    assert readme.page_for_site(text, "run/run.md") == "`examples/gpt.py`, [perf.md](../timing/perf.md#loads)"
    assert readme.page_for_site("[`gpt.py`](../examples/gpt.py)", "recipes.md") == "`gpt.py`"


def test_the_navigation_has_every_page():
    groups = readme.pages(TEXT)
    pages = [page for group in groups.values() for page in group]
    assert groups["Begin"][0] == "getting-started.md"
    assert len(pages) == len(set(pages))
    assert set(pages) == {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("**/*.md")}
    assert {"getting-started.md", "contributing.md", "netlists/ci.md"} <= set(pages)


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="mkdocs builds the site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "site" / "index.html").read_text()
    assert "An emulator of tiled accelerators" in first
    assert 'href="getting-started/"' in first
