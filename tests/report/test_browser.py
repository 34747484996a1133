"""The report in a real browser: no error, no overflow, legible in light and dark, wide and narrow."""

import os
import shutil

import pytest

from buda_emu.report.folder import write_report
from report.results import finished_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the driver's pipes
]

OVERFLOWS = """() => {
  const found = [];
  for (const item of document.querySelectorAll('h1,h2,h3,p,summary,pre,figcaption,svg,td,th')) {
    const box = item.getBoundingClientRect();
    const scrolls = item.closest('.wide,.tall,pre');
    if (!scrolls && box.width && box.right > document.documentElement.clientWidth + 1)
      found.push(item.tagName + ': ' + item.textContent.slice(0, 60));
  }
  for (const text of document.querySelectorAll('svg text')) {
    const svg = text.ownerSVGElement.getBoundingClientRect(), box = text.getBoundingClientRect();
    if (box.width && (box.right > svg.right + 1 || box.left < svg.left - 1)) found.push('svg: ' + text.textContent);
  }
  for (const group of document.querySelectorAll('svg g.bg-op')) {
    const boxes = [...group.querySelectorAll('rect')].map(rect => rect.getBoundingClientRect());
    for (const text of group.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.width && box.right > boxes[0].right + 1) found.push('op: ' + text.textContent);
    }
  }
  return found;
}"""

CONTRAST = """() => {
  const parse = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = rgb => rgb.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const ground = item => {
    for (; item; item = item.parentElement) {
      const colour = getComputedStyle(item).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)') return parse(colour);
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const item of document.querySelectorAll('h1,h2,h3,p,summary,td,th,figcaption,pre,a,span')) {
    const [a, b] = [light(parse(getComputedStyle(item).color)), light(ground(item))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (item.textContent.trim() && ratio < 4.5) poor.push(item.tagName + ratio + item.textContent.slice(0, 40));
  }
  return poor;
}"""


@pytest.fixture(scope="module")
def browser():
    """Chromium without a screen."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory, root):
    """A report with netlists of every fate."""
    directory = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        write_report(finished_run(), directory)
    return directory / "report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_opens_offline_without_error_or_overflow(browser, page_file, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if "report.html" not in request.url else None)
    page.goto(page_file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWS) == []
    assert page.evaluate(CONTRAST) == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(18, 21, 26)") == (scheme == "dark")
    context.close()


def test_verdicts_lead_to_their_details(browser, page_file):
    page = browser.new_page()
    page.goto(page_file.as_uri())
    for link in page.query_selector_all("a[href^='#']"):
        assert page.query_selector(f"[id='{link.get_attribute('href')[1:]}']") is not None
    assert page.title() == "buda-emu test: 2 passed, 1 failed, 1 rejected, 1 stopped, 1 crashed"
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_of_modelled_cycles_too(browser, tmp_path, root, width, scheme):
    from buda_emu.cli.main import main

    assert main(["perf", str(root / "netlists/attention.yaml"), "-q", "--report", str(tmp_path)]) == 0
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "perf.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
    assert complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWS) == []
    assert page.evaluate(CONTRAST) == []
    context.close()
