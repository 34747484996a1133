"""Run the tests of a mutant, in a process of their own, till one notices."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mutation.forked import import_changed, in_child, run_in_order
from mutation.sites import Mutant
from mutation.touched import OPTIONS, Touched, own_tests, settings_of_hypothesis
from mutation.warm import Warm

EXPLAINED = Path(__file__).parent.parent / "mutants.tsv"
MOST_SECONDS = 30  # of tests, as recorded, that one mutant gets: its likeliest ones


@cache
def explained() -> dict[tuple[str, str, str], str]:
    """Survivors that change no behaviour a test could see, and why."""
    lines = EXPLAINED.read_text(encoding="utf-8").splitlines() if EXPLAINED.exists() else []
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {(path, source, change): why for path, source, change, why in rows}


def noticed_by(mutant: Mutant, touched: Touched, warm: Warm, *, quickly: bool) -> str:
    """The first test that fails, or takes too long; "" if none does: neither where all is imported already, nor where
    nothing is. `quickly`: only one of both."""
    tests = list(_affordable(touched.tests(mutant), touched))
    failed = warm.failing(_usual(tests, touched), mutant)
    if failed or (quickly and not mutant.at_import):
        return failed
    own = own_tests(mutant.path).name
    first = [test for test in tests if test.partition("::")[0].endswith("/" + own)]
    rest = [test for test in tests if test not in set(first)]
    return next((failed for part in (first, rest) if part and (failed := failing(part, touched, mutant))), "")


def _affordable(tests: Sequence[str], touched: Touched) -> Iterator[str]:
    left = MOST_SECONDS
    for test in tests:
        left -= touched.seconds[test]
        if left >= 0:
            yield test


def _usual(tests: Sequence[str], touched: Touched) -> dict[str, float]:
    return {test: touched.seconds[test] for test in tests}


def failing(tests: Sequence[str], touched: Touched, mutant: Mutant | None = None) -> str:
    """The first of these tests that fails, or takes too long, in their order; "" if none does. All that they need is
    imported anew."""
    if not tests:
        return ""
    usual = _usual(tests, touched)

    def run(folder: Path) -> int:
        import pytest

        settings_of_hypothesis()
        if mutant is not None:
            import_changed(mutant, folder)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        return int(pytest.main([*OPTIONS, *files], plugins=[_Chosen(usual, folder)]) != pytest.ExitCode.OK)

    return in_child(run, sum(usual.values()), compiled=mutant is None or not mutant.compiles)


class _Chosen:
    """A plugin of pytest: these tests in this order, with the seconds that each takes."""

    def __init__(self, tests: Mapping[str, float], folder: Path) -> None:
        self._tests = tests
        self._folder = folder

    def pytest_runtestloop(self, session: Any) -> bool:
        if not session.testsfailed:  # while they were collected
            run_in_order(session, self._tests, self._folder)
        return True


def import_what_all_need(*, compiling: bool) -> None:
    """What every child would load again; the package itself is imported by the child, with the mutant in it."""
    import hypothesis.extra.numpy
    import pytest

    if compiling:
        import numba

        assert numba
    assert not any(name.partition(".")[0] == "buda_emu" for name in sys.modules), (hypothesis, pytest)
