"""Fixtures and options of all tests."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from shared_files import CORPUS, NO_CORPUS, ROOT, SHARED, corpus_files, needs_corpus

__all__ = ["CORPUS", "ROOT", "SHARED", "corpus_files", "needs_corpus"]

settings.register_profile("any machine", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("any machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell: Ctrl-C is tested here, too
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="slow: give --slow to run it")
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """What tests print depends on no terminal and on no wish of whoever runs them."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus of real netlists and reference outputs; its absence skips the test."""
    if not CORPUS.is_dir():
        pytest.skip(NO_CORPUS)
    return CORPUS


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's root directory."""
    return ROOT


@pytest.fixture(scope="session")
def child_environment() -> dict[str, str]:
    """Environment for child processes: this project importable, and nothing that could change their output."""
    ours = ("PYTEST", "COLUMNS", "NO_COLOR", "FORCE_COLOR")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    environment["PYTHONPATH"] = str(ROOT)
    return environment
