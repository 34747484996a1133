"""Which tests run which lines of a room: recorded once with coverage.py and kept in `.mutants/`.

As `python -m mutation.touched ROOM SOURCES OUT TESTS...` it runs those tests and writes what they touch.
"""

import hashlib
import json
import multiprocessing.process
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mutation.sites import PACKAGE, ROOT, Mutant

KEPT = ROOT / ".mutants"
OPTIONS = (
    "-p", "no:terminal", "--assert=plain", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider",
)  # fmt: skip
MOST_CASES = 24  # of one test, evenly chosen: thousands of vectors would be recorded for an hour
MOST_SECONDS = (
    20.0,
    40.0,
)  # of processor time, for the cases of one test, for the tests of one file
OF_SEVERAL = ("app", "emulator", "foreign", "arithmetic", "performance", "support", "testing")
"""Packages whose folders are rooms of their own."""
UNCOMPILED = "arithmetic/kernels"  # numba shows neither a changed line nor one that runs
COMPILED = "arithmetic/kernels-compiled"  # their intrinsics, which are Python: its mutants compile all anew
JIT = "arithmetic/jit"  # what compiles, keeps and loads them: likewise
LONGEST = 20.0  # of processor time, for one test: a longer one is not recorded
ALSO = {
    "app/api": ("app/api", "app/cli/verbs/test_run.py"),
    "app/cli": ("app/cli", "foreign/vpux/test_comparison.py"),
    "foreign/gemini": ("foreign/gemini", "app/cli/verbs/test_gemini.py"),
    UNCOMPILED: (
        "arithmetic/kernels",
        "arithmetic/jit",
        "emulator/ops",
        "arithmetic/formats",
        "arithmetic/tensix",
        "performance/timeline",
        "foreign/darwinn/test_twin.py",
    ),
    JIT: (
        "arithmetic/jit",
        "emulator/runtime/graph/test_worker_pool.py",
        "arithmetic/tensix/elementwise/test_eltwise_by_singles.py",
    ),
    COMPILED: (
        "arithmetic/kernels",
        "arithmetic/jit",
        "arithmetic/tensix/elementwise/test_eltwise_by_singles.py",
    ),
    "report": (
        "report",
        "foreign/darwinn/test_replay.py",
        "app/cli/verbs/test_perf_against.py",
        "app/cli/verbs/test_perf_sweep.py",
        "app/cli/test_tables.py",
    ),
    "spec": ("spec", "arithmetic/formats", "docs/test_pages.py"),
    "support/workers": ("support/workers", "emulator/distributed/test_machines.py"),
}  # fmt: skip
"""Tests that hold a room beside those of its own name."""


@dataclass
class Touched:
    """Tests that pass, by their names, and which of them run which line of which file of a room."""

    seconds: dict[str, float] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    """Tests that start processes, in which nothing is recorded."""
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    """Of the test files and sources that it was recorded with."""

    def tests(self, mutant: Mutant) -> list[str]:
        """Tests that may notice a mutant, the likeliest first."""
        file = str(mutant.path.relative_to(ROOT))
        lines = self.lines.get(file, {})
        at_line: set[str] = set()
        if not mutant.at_import and self.digests.get(file) == digest(mutant.path):
            at_line = {test for line in mutant.lines for test in lines.get(line, ())}
        in_file = self._in_file.get(file, set()) - at_line
        own = own_tests(mutant.path).relative_to(ROOT).as_posix()

        def order(test: str) -> tuple[bool, bool, float]:
            return test.partition("::")[0] != own, test in self.others, self.seconds[test]

        # What a fixture makes for a whole file is made in its first test, and the others look at it.
        files = {test.partition("::")[0] for test in at_line}
        beside = {test for test in self.seconds if test.partition("::")[0] in files} - at_line - in_file
        # What runs at import, once, everybody may use.
        rest = (self.seconds.keys() if mutant.at_import else self.others) - at_line - in_file - beside
        return [test for part in (at_line, in_file, beside, rest) for test in sorted(part, key=order)]

    @cached_property
    def _in_file(self) -> Mapping[str, set[str]]:
        """Tests that run a line of a file, by file."""
        return {file: {test for tests in lines.values() for test in tests} for file, lines in self.lines.items()}


def own_tests(path: Path) -> Path:
    """The file of tests of the same name as a source."""
    inside = path.relative_to(PACKAGE)
    return ROOT / "tests" / inside.parent / f"test_{inside.name}"


def room_of(path: Path) -> str:
    """Return the room of a file or folder, named as it is below the package: a folder in a package of several, else
    the package itself."""
    first, *below = path.parts
    return f"{first}/{below[0]}" if first in OF_SEVERAL and below else first


def digest(path: Path) -> str:
    """Of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def likely(path: Path) -> set[str]:
    """Files of tests that name a source, or a folder that it is in: as their own name, or where they import."""
    room = room_of(path.relative_to(PACKAGE))
    inside = path.relative_to(PACKAGE / room).with_suffix("").parts
    above = re.escape(".".join([*room.split("/"), *inside[:-1]]))
    name = inside[-1]
    named = re.compile(rf"\b{above}\.{name}\b|\b{above} import .*\b{name}\b")
    return {
        str(file.relative_to(ROOT))
        for file in _files_of_tests(room)
        if file.stem.removeprefix("test_") in inside or named.search(file.read_text(encoding="utf-8"))
    }


def _files_of_tests(room: str) -> list[Path]:
    places = [ROOT / "tests" / name for name in ALSO.get(room, (room,))]
    return [path for place in places for path in ([place] if place.is_file() else place.rglob("test_*.py"))]


def touched(room: str, only: Collection[str] | None = None) -> Touched:
    """Of a room's tests, as they are now: only what changed since the last time runs. `only`: these files of them."""
    file = room.replace("/", "-")
    kept = KEPT / f"{file}.json"
    sources_of = PACKAGE / room.removesuffix(COMPILED.removeprefix(UNCOMPILED))
    known = _read(kept) if kept.exists() else Touched()
    now = {str(path.relative_to(ROOT)): digest(path) for path in _files_of_tests(room)}
    gone = {file for file, old in known.digests.items() if file.startswith("tests/") and now.get(file) != old}
    known = _without(known, gone)
    new = sorted(name for name in now.keys() - known.digests.keys() if only is None or name in only)
    if new:
        KEPT.mkdir(exist_ok=True)
        part = KEPT / f"{file}.part.json"
        command = [sys.executable, "-m", "mutation.touched", room, str(sources_of), str(part), *new]
        with tempfile.TemporaryDirectory() as empty:  # what is compiled already runs no line of what compiles
            environment = os.environ | ({"XDG_CACHE_HOME": empty} if room in (COMPILED, JIT) else {})
            subprocess.run(command, cwd=ROOT, env=environment, check=True)
        _merge(known, _read(part))
        part.unlink()
        known.digests |= {file: now[file] for file in new}
        sources = {str(path.relative_to(ROOT)): digest(path) for path in sources_of.rglob("*.py")}
        if not known.lines.keys() & known.digests.keys():
            known.digests |= sources
        for file in [file for file in known.digests.keys() & sources.keys() if known.digests[file] != sources[file]]:
            del known.digests[file]  # lines are those of two moments
        _write(known, kept)
    return known


def _without(known: Touched, files: Iterable[str]) -> Touched:
    away = {test for test in known.seconds if test.partition("::")[0] in set(files)}
    return Touched(
        {test: seconds for test, seconds in known.seconds.items() if test not in away},
        known.others - away,
        {
            file: {line: [test for test in tests if test not in away] for line, tests in lines.items()}
            for file, lines in known.lines.items()
        },
        {file: value for file, value in known.digests.items() if file not in set(files)},
    )


def _merge(known: Touched, more: Touched) -> None:
    known.seconds |= more.seconds
    known.others |= more.others
    for file, lines in more.lines.items():
        for line, tests in lines.items():
            known.lines.setdefault(file, {}).setdefault(line, []).extend(tests)


def _read(path: Path) -> Touched:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names = list(data["seconds"])
    lines = {
        file: {int(line): [names[test] for test in tests] for line, tests in lines.items()}
        for file, lines in data["lines"].items()
    }
    return Touched(data["seconds"], set(data["others"]), lines, data["digests"])


def _write(known: Touched, path: Path) -> None:
    number = {test: index for index, test in enumerate(known.seconds)}
    lines = {
        file: {line: [number[test] for test in tests if test in number] for line, tests in lines.items()}
        for file, lines in known.lines.items()
    }
    data = {"seconds": known.seconds, "others": sorted(known.others), "lines": lines, "digests": known.digests}
    path.write_text(json.dumps(data), encoding="utf-8")


class _Recorder:
    """A plugin of pytest: each test is a context of coverage.py."""

    def __init__(self, sources: str) -> None:
        import coverage

        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=[f"{sources}/*"])
        self.found = Touched()
        self._failed: set[str] = set()
        self._running = ""
        self._spent: Counter[str] = Counter()
        sys.addaudithook(self._audit)
        signal.signal(signal.SIGPROF, _too_long)
        start = multiprocessing.process.BaseProcess.start

        def noted(process: Any) -> None:
            self.found.others.add(self._running)
            start(process)

        multiprocessing.process.BaseProcess.start = noted  # type: ignore[method-assign]

    @staticmethod
    def pytest_collection_modifyitems(items: list[Any]) -> None:
        cases: dict[str, list[Any]] = {}
        for item in items:
            cases.setdefault(_groups(item.nodeid)[0], []).append(item)
        kept = {id(case) for every in cases.values() for case in every[:: -(-len(every) // MOST_CASES)]}
        items[:] = [item for item in items if id(item) in kept]

    def pytest_runtest_setup(self, item: Any) -> None:
        import pytest

        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        if any(self._spent[name] > most for name, most in zip(_groups(item.nodeid), MOST_SECONDS, strict=True)):
            pytest.skip("it has been recorded for long enough")

    def _audit(self, event: str, _: Any) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            self.found.others.add(self._running)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running = nodeid
        self.coverage.switch_context(nodeid)
        self._begun = _processor_seconds()

    def pytest_runtest_teardown(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.coverage.switch_context("")
        seconds = round(_processor_seconds() - self._begun, 3)
        self._spent.update(dict.fromkeys(_groups(nodeid), seconds))  # type: ignore[arg-type]
        if nodeid not in self._failed:
            self.found.seconds[nodeid] = seconds
        self._running = ""

    def write(self, path: Path) -> None:
        data = self.coverage.get_data()
        for file in data.measured_files():
            self.found.lines[str(Path(file).relative_to(ROOT))] = {
                line: [test for test in tests if test in self.found.seconds]
                for line, tests in data.contexts_by_lineno(file).items()
            }
        self.found.others &= self.found.seconds.keys()
        _write(self.found, path)


def _too_long(*_: object) -> None:
    raise TimeoutError("longer than any mutant gets")


def _groups(test: str) -> tuple[str, str]:
    """A test without its case, and its file."""
    return test.partition("[")[0], test.partition("::")[0]


def _processor_seconds() -> float:
    return sum(os.times()[:4])  # with those of processes that have ended


def main(room: str, sources: str, out: str, *tests: str) -> None:
    """Run these tests and write what they touch of a room."""
    import pytest

    recorder = _Recorder(sources)
    settings_of_hypothesis()
    recorder.coverage.start()
    only = ["-m", "tiny"] if room == UNCOMPILED else []
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    pytest.main([*OPTIONS, *only, *tests], plugins=[recorder])
    recorder.coverage.stop()
    recorder.write(Path(out))


def settings_of_hypothesis() -> None:
    """Few examples, the same each time; a smaller one is of no use here."""
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, phases=phases, max_examples=20, deadline=None
    )
    hypothesis.settings.load_profile("mutants")


if __name__ == "__main__":
    main(*sys.argv[1:])
