"""The docs as a site (mkdocs.yml): the README is its first page, and its tables of pages the navigation."""

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

import readme

ROOT = Path(__file__).resolve().parent.parent
PLAYGROUND = "playground/index.html"
"""The page that tools/build_playground.py builds below docs/."""


def on_config(config: Any) -> Any:
    """Set the navigation in the order of the README, under its headings."""
    groups = readme.pages((ROOT / "README.md").read_text(encoding="utf-8"))
    playground = [{"Playground": PLAYGROUND}] if (ROOT / "docs" / PLAYGROUND).exists() else []
    config["nav"] = ["index.md", *playground, *({group: pages} for group, pages in groups.items())]
    return config


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Return a page without the marks of generators and tests, so that it begins with its title, and without links that
    leave the site."""
    return readme.page_for_site(markdown, page.file.src_uri)


def on_files(files: Files, config: Any) -> Files:
    """Add the README as the first page."""
    text = readme.for_site((ROOT / "README.md").read_text(encoding="utf-8"))
    files.append(File.generated(config, "index.md", content=text))
    return files
