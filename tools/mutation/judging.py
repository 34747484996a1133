"""Run the tests of a mutant, in a process of their own, till one notices."""

import marshal
import os
import runpy
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from mutation.sites import Mutant
from mutation.touched import OPTIONS, Touched, own_tests, settings_of_hypothesis

CHILD = Path(__file__).parent / "child"
EXPLAINED = Path(__file__).parent.parent / "mutants.tsv"
SECONDS = 10  # of processor time at least, for the tests of one mutant
WAIT = 60  # seconds at least, where a test waits for what never comes
MOST_SECONDS = 30  # of tests, as recorded, that one mutant gets: its likeliest ones


@cache
def explained() -> dict[tuple[str, str, str], str]:
    """Survivors that change no behaviour a test could see, and why."""
    lines = EXPLAINED.read_text(encoding="utf-8").splitlines() if EXPLAINED.exists() else []
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {(path, source, change): why for path, source, change, why in rows}


def noticed_by(mutant: Mutant, touched: Touched) -> str:
    """The first test that fails, or takes too long; "" if none does."""
    tests = list(_affordable(touched.tests(mutant), touched))
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


def failing(tests: Sequence[str], touched: Touched, mutant: Mutant | None = None) -> str:
    """The first of these tests that fails, or takes too long, in their order; "" if none does."""
    usual = sum(touched.seconds[test] for test in tests)
    with _caches() as folder:
        running = Path(folder, "running")
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(BaseException):
                os.setpgid(0, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_PROF, SECONDS + 3 * usual)  # its signal ends the process
                signal.alarm(int(WAIT + 20 * usual))  # a busy machine is no mutant
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
                code = _run(tests, mutant, Path(folder), running)
            os._exit(code)
        _, status = os.waitpid(child, 0)
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)  # what its tests started
        last = running.read_text(encoding="utf-8") if running.exists() else ""
    return (last or "what is imported") if status != 0 else ""


@contextmanager
def _caches() -> Iterator[str]:
    """Folders of caches for one mutant: what it keeps there nobody reads. The user's is linked, not copied."""
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "buda-emu"
    folder = tempfile.mkdtemp(prefix="buda-emu-mutant-", dir=user.parent if user.parent.is_dir() else None)
    with suppress(OSError, shutil.Error):  # others may clean up meanwhile
        shutil.copytree(user, f"{folder}/buda-emu", copy_function=os.link)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(tests: Sequence[str], mutant: Mutant | None, folder: Path, running: Path) -> int:
    import pytest

    settings_of_hypothesis()
    os.environ["XDG_CACHE_HOME"] = str(folder)
    if mutant is not None:
        code = folder / "mutant"
        code.write_bytes(marshal.dumps(compile(mutant.tree, str(mutant.path), "exec")))
        os.environ["BUDA_EMU_MUTANT"] = f"{mutant.module}={code}"
        os.environ["PYTHONPATH"] = os.pathsep.join([str(CHILD), *filter(None, [os.environ.get("PYTHONPATH")])])
        runpy.run_path(str(CHILD / "sitecustomize.py"))
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return int(pytest.main([*OPTIONS, "-x", *files], plugins=[_Chosen(tests, running)]) != pytest.ExitCode.OK)


class _Chosen:
    """A plugin of pytest: these tests in this order; the file `running` names the one that runs."""

    def __init__(self, tests: Sequence[str], running: Path) -> None:
        self._place = {test: place for place, test in enumerate(tests)}
        self._running = running

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        chosen = [item for item in items if item.nodeid in self._place]
        items[:] = sorted(chosen, key=lambda item: self._place[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running.write_text(nodeid, encoding="utf-8")


def import_what_all_need() -> None:
    """What every child would load again; the package itself is imported by the child, with the mutant in it."""
    import hypothesis.extra.numpy
    import numba
    import pytest

    assert not any(name.partition(".")[0] == "buda_emu" for name in sys.modules), (hypothesis, numba, pytest)
