"""Every page of the site fits a phone and can be read by day and by night, in a real browser."""

import subprocess
import sys
from pathlib import Path

import pytest

from report.browsing import CHROMIUM, OPTIONS, in_browser
from shared_files import ROOT

pytestmark = [*in_browser, pytest.mark.slow]
POOR_CONTRAST = Path(__file__).with_name("poor_contrast.js").read_text()
PLAYGROUND = "playground/index.html"
"""A page of its own, with tests of its own; there only where it was built."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The files of the pages, in a folder of their own."""
    pytest.importorskip("mkdocs", reason="mkdocs builds the site")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)
    pages = [page for page in folder.rglob("index.html") if page != folder / PLAYGROUND]
    assert len(pages) > 50
    return folder, pages


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield chromium
        chromium.close()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_pages_fit_and_have_contrast(browser, site, width, scheme):
    folder, pages = site
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    problems = []
    for file in pages:
        page.goto(file.as_uri())
        wide = page.evaluate("document.documentElement.scrollWidth")
        name = str(file.relative_to(folder))
        problems += [f"{name} is {wide} wide"] * (wide > width)
        problems += [f"{name}: {problem}" for problem in page.evaluate(POOR_CONTRAST)]
    context.close()
    assert problems == []


def test_pictures_of_the_night_stand_on_no_white_ground(browser, site):
    """All pictures have colours of their own for dark grounds, and `first-look` a ground of its own."""
    context = browser.new_context(color_scheme="dark", offline=True)
    page = context.new_page()
    page.goto((site[0] / "index.html").as_uri())
    ground = page.evaluate("getComputedStyle(document.querySelector('.rst-content img')).backgroundColor")
    assert ground == "rgba(0, 0, 0, 0)"
    page.goto((ROOT / "docs" / "pictures" / "first-look.svg").as_uri())
    fill = page.evaluate("getComputedStyle(document.querySelector('svg svg > rect')).fill")
    assert fill == "rgb(18, 21, 26)"
    context.close()
