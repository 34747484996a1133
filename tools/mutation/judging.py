"""Run the tests of a mutant, in a process of their own, till one notices."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mutation.forked import in_child, run_in_order, use_mutant
from mutation.sites import Mutant
from mutation.touched import OPTIONS, Touched, own_tests, settings_of_hypothesis
from mutation.warm import Warm

EXPLAINED = Path(__file__).parent.parent / "mutants.tsv"
MOST_SECONDS = 30  # of tests, as recorded, that one mutant gets: its likeliest ones


@cache
def explanations() -> dict[tuple[str, str, str], str]:
    """Return the survivors that change no behaviour a test could see, with the reason."""
    lines = EXPLAINED.read_text(encoding="utf-8").splitlines() if EXPLAINED.exists() else []
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {(path, source, change): why for path, source, change, why in rows}


def first_noticing_test(mutant: Mutant, touched: Touched, warm: Warm, *, quickly: bool) -> str:
    """Return the first test that fails or takes too long; "" if none does, neither with everything imported before the
    mutant nor with nothing imported. `quickly`: try only one of both."""
    tests = list(_affordable(touched.tests(mutant), touched))
    failed = warm.failing(_usual(tests, touched), mutant)
    if failed or (quickly and not mutant.at_import):
        return failed
    file_name = own_tests(mutant.path).name
    tests_of_file = [test for test in tests if test.partition("::")[0].endswith("/" + file_name)]
    others = [test for test in tests if test not in set(tests_of_file)]
    return next((failed for part in (tests_of_file, others) if part and (failed := failing(part, touched, mutant))), "")


def _affordable(tests: Sequence[str], touched: Touched) -> Iterator[str]:
    """Yield the first tests that together take no longer than a mutant gets."""
    left = MOST_SECONDS
    for test in tests:
        left -= touched.seconds[test]
        if left >= 0:
            yield test


def _usual(tests: Sequence[str], touched: Touched) -> dict[str, float]:
    """Return the recorded seconds of tests."""
    return {test: touched.seconds[test] for test in tests}


def failing(tests: Sequence[str], touched: Touched, mutant: Mutant | None = None) -> str:
    """Return the first of these tests, in their order, that fails or takes too long; "" if none does. The tests run in
    a process that imports everything anew."""
    if not tests:
        return ""
    usual = _usual(tests, touched)

    def run(folder: Path) -> int:
        import pytest

        settings_of_hypothesis()
        if mutant is not None:
            use_mutant(mutant, folder)
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        return int(pytest.main([*OPTIONS, *files], plugins=[_Chosen(usual, folder)]) != pytest.ExitCode.OK)

    return in_child(run, sum(usual.values()), compiled=mutant is None or not mutant.compiles)


class _Chosen:
    """A plugin of pytest that runs some tests in their order, with the seconds that each takes."""

    def __init__(self, tests: Mapping[str, float], folder: Path) -> None:
        self._tests = tests
        self._folder = folder

    def pytest_runtestloop(self, session: Any) -> bool:
        if not session.testsfailed:  # while they were collected
            run_in_order(session, self._tests, self._folder)
        return True


def preload_packages(*, compiling: bool) -> None:
    """Import the packages that every child would load again. The package itself is imported by the child, with the
    mutant in it."""
    import hypothesis.extra.numpy
    import pytest

    if compiling:
        import numba

        assert numba
    assert not any(name.partition(".")[0] == "buda_emu" for name in sys.modules), (hypothesis, pytest)
