#!/usr/bin/env python3
"""Draw the picture of docs/run/read-the-report.md: the top of the report that the first command of that page makes.

    python tools/draw_report.py      # writes docs/pictures/report.png

It needs playwright and a Chromium, as the tests of pages do.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "run" / "read-the-report.md"
PICTURE: Final = ROOT / "docs" / "pictures" / "report.png"
SIZE: Final = (1100, 1160)
_BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


def make_report(folder: Path) -> Path:
    """Run the first command of the page in a folder; return its report."""
    (folder / "netlists").symlink_to(ROOT / "netlists")
    block = re.search(r"<!-- run -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    if block is None:
        raise SystemExit(f"{PAGE}: no command")
    verb = f'buda-emu() {{ {shlex.quote(sys.executable)} -m buda_emu "$@"; }}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(["bash", "-euc", f"{verb}\n{block[1]}"], cwd=folder, env=environment, check=True)
    return folder / "report" / "report.html"


def take_picture(report: Path) -> None:
    """Write the picture of the top of a report."""
    browser_path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.goto(report.as_uri())
        page.wait_for_function("!document.querySelector('details[open] > script.packed')")
        page.wait_for_timeout(200)
        page.screenshot(path=str(PICTURE))
        browser.close()


def main() -> None:
    """Make the report, and its picture."""
    with tempfile.TemporaryDirectory() as name:
        take_picture(make_report(Path(name)))


if __name__ == "__main__":
    main()
