"""A browser for the tests of pages."""

import pytest

from report.browsing import CHROMIUM, OPTIONS


@pytest.fixture(scope="module")
def browser():
    """Chromium without a screen. Its event loop must not go on beside tests that run their own."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield chromium
        chromium.close()
