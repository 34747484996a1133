"""What is asked of every page in a real browser."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: apt install chromium)"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the driver's pipes
]
OPTIONS = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []

OVERFLOWS = (HERE / "overflows.js").read_text()

CONTRAST = (HERE / "contrast.js").read_text()


@contextmanager
def open_page(browser, file, width=1400, scheme="light"):
    """A page, offline; whatever it complains of or asks the network for fails."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if file.name not in request.url else None)
    page.goto(file.as_uri())
    wait_until_drawn(page)
    yield page
    wait_until_drawn(page)
    assert complaints == []
    context.close()


def wait_until_drawn(page):
    """Wait until what is open is unpacked and drawn."""
    page.wait_for_function("!document.querySelector('details[open] > script.packed')")
    page.evaluate("Promise.all([...document.querySelectorAll('details[open]')].map(part => part.ready))")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def opens_all(page):
    """Open everything that can be opened."""
    for _ in range(3):  # parts within parts
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        page.wait_for_timeout(30)
        wait_until_drawn(page)


def layout_problems(page, width):
    """What is too wide, cut or hard to read."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    return [f"{wide} wide"] * (wide > width) + page.evaluate(OVERFLOWS) + page.evaluate(CONTRAST)
