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
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from mutation.sites import PACKAGE, ROOT, Mutant

RECORDS = ROOT / ".mutants"
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
"""Further tests of a room, beside those in the folder of its name."""


@dataclass
class Touched:
    """Tests that pass, by name, and the lines of a room's files that each of them runs."""

    seconds: dict[str, float] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    """Tests that start processes, in which nothing is recorded."""
    lines: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    """Digests of the test files and sources with which it was recorded."""

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that may notice a mutant, the likeliest first."""
        file = str(mutant.path.relative_to(ROOT))
        lines = self.lines.get(file, {})
        at_line: set[str] = set()
        if not mutant.at_import and self.digests.get(file) == digest(mutant.path):
            at_line.update(*(lines.get(line, ()) for line in mutant.lines))
        in_file = self._in_file.get(file, set()) - at_line
        file_of_tests = own_tests(mutant.path).relative_to(ROOT).as_posix()

        def order(test: str) -> tuple[bool, bool, float]:
            return test.partition("::")[0] != file_of_tests, test in self.others, self.seconds[test]

        # A fixture of a file runs in the file's first test, and the other tests use its result.
        files = {test.partition("::")[0] for test in at_line}
        beside = {test for test in self.seconds if test.partition("::")[0] in files} - at_line - in_file
        # Every test may use the results of code that runs once, at import.
        others = (self.seconds.keys() if mutant.at_import else self.others) - at_line - in_file - beside
        parts = (at_line, in_file, beside, others)
        return list(chain.from_iterable(sorted(part, key=order) for part in parts))

    @cached_property
    def _in_file(self) -> Mapping[str, set[str]]:
        """The tests that run a line of a file, by file."""
        return {file: set(chain.from_iterable(lines.values())) for file, lines in self.lines.items()}


def own_tests(path: Path) -> Path:
    """Return the file of tests with the name of a source."""
    inside = path.relative_to(PACKAGE)
    return ROOT / "tests" / inside.parent / f"test_{inside.name}"


def room_of(path: Path) -> str:
    """Return the room of a file or folder, named as it is below the package: a folder in a package of several, else
    the package itself."""
    first, *below = path.parts
    return f"{first}/{below[0]}" if first in OF_SEVERAL and below else first


def digest(path: Path) -> str:
    """Return a digest of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def likely(path: Path) -> set[str]:
    """Return the files of tests that name a source or a folder around it, in their own name or in an import."""
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
    """Return the files of tests of a room."""
    paths: list[Path] = []
    for name in ALSO.get(room, (room,)):
        place = ROOT / "tests" / name
        if place.is_file():
            paths.append(place)
        else:
            paths += place.rglob("test_*.py")
    return paths


def record(room: str, only: Collection[str] | None = None) -> Touched:
    """Return the record of a room's tests as they are now. Only tests that changed since the last record run, and of
    them only those of the files in `only`, if it is given."""
    stored = RECORDS / f"{room.replace('/', '-')}.json"
    sources_of = PACKAGE / room.removesuffix(COMPILED.removeprefix(UNCOMPILED))
    earlier = _read(stored) if stored.exists() else Touched()
    digests = {str(path.relative_to(ROOT)): digest(path) for path in _files_of_tests(room)}
    stale = {file for file, old in earlier.digests.items() if _is_stale(file, old, digests)}
    result = _without(earlier, stale)
    new = digests.keys() - result.digests.keys()
    if only is not None:
        new &= set(only)
    if not new:
        return result
    _merge(result, _run_recorder(room, sources_of, sorted(new)))
    result.digests |= {file: digests[file] for file in new}
    _update_sources(result, sources_of)
    _write(result, stored)
    return result


def _update_sources(record_of_tests: Touched, folder: Path) -> None:
    """Add the digests of a room's sources to a new record. A source that has changed since the record began has lines
    from two moments, so its digest is taken away."""
    sources = {str(path.relative_to(ROOT)): digest(path) for path in folder.rglob("*.py")}
    if not record_of_tests.lines.keys() & record_of_tests.digests.keys():
        record_of_tests.digests |= sources
    for file, source in sources.items():
        if record_of_tests.digests.get(file) != source:
            record_of_tests.digests.pop(file, None)


def _is_stale(file: str, old: str, digests: Mapping[str, str]) -> bool:
    """Return whether a test file has changed, or is gone, since it was recorded."""
    return file.startswith("tests/") and digests.get(file) != old


def _run_recorder(room: str, sources: Path, files: Sequence[str]) -> Touched:
    """Return what the tests of some files touch; they run in a process of their own."""
    RECORDS.mkdir(exist_ok=True)
    part = RECORDS / f"{room.replace('/', '-')}.part.json"
    command = [sys.executable, "-m", "mutation.touched", room, str(sources), str(part), *files]
    environment = dict(os.environ)
    with tempfile.TemporaryDirectory() as empty:
        if room in (COMPILED, JIT):  # with kernels in the cache, the code that compiles them would not run
            environment["XDG_CACHE_HOME"] = empty
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
    result = _read(part)
    part.unlink()
    return result


def _without(record_of_tests: Touched, files: Collection[str]) -> Touched:
    """Return a record without the tests of some files."""
    left_out = {test for test in record_of_tests.seconds if test.partition("::")[0] in files}
    return Touched(
        {test: seconds for test, seconds in record_of_tests.seconds.items() if test not in left_out},
        record_of_tests.others - left_out,
        {
            file: {line: [test for test in tests if test not in left_out] for line, tests in lines.items()}
            for file, lines in record_of_tests.lines.items()
        },
        {file: value for file, value in record_of_tests.digests.items() if file not in files},
    )


def _merge(target: Touched, addition: Touched) -> None:
    """Add the tests of another record."""
    target.seconds |= addition.seconds
    target.others |= addition.others
    for file, lines in addition.lines.items():
        for line, tests in lines.items():
            target.lines.setdefault(file, {}).setdefault(line, []).extend(tests)


def _read(path: Path) -> Touched:
    """Return a record from its file."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names = list(data["seconds"])
    lines = {
        file: {int(line): [names[test] for test in tests] for line, tests in lines.items()}
        for file, lines in data["lines"].items()
    }
    return Touched(data["seconds"], set(data["others"]), lines, data["digests"])


def _write(record_of_tests: Touched, path: Path) -> None:
    """Write a record to its file."""
    number = {test: index for index, test in enumerate(record_of_tests.seconds)}
    lines = {
        file: {line: [number[test] for test in tests if test in number] for line, tests in lines.items()}
        for file, lines in record_of_tests.lines.items()
    }
    data = {
        "seconds": record_of_tests.seconds,
        "others": sorted(record_of_tests.others),
        "lines": lines,
        "digests": record_of_tests.digests,
    }
    path.write_text(json.dumps(data), encoding="utf-8")


class _Recorder:
    """A plugin of pytest in which each test is a context of coverage.py."""

    def __init__(self, sources: str) -> None:
        import coverage

        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=[f"{sources}/*"])
        self.touched = Touched()
        self._failed: set[str] = set()
        self._running = ""
        self._spent: Counter[str] = Counter()
        sys.addaudithook(self._audit)
        signal.signal(signal.SIGPROF, _too_long)
        start = multiprocessing.process.BaseProcess.start

        def note_and_start(process: Any) -> None:
            self.touched.others.add(self._running)
            start(process)

        multiprocessing.process.BaseProcess.start = note_and_start  # type: ignore[method-assign]

    @staticmethod
    def pytest_collection_modifyitems(items: list[Any]) -> None:
        cases: dict[str, list[Any]] = {}
        for test in items:
            cases.setdefault(_groups(test.nodeid)[0], []).append(test)
        chosen: set[int] = set()
        for group in cases.values():
            step = -(-len(group) // MOST_CASES)
            chosen.update(map(id, group[::step]))
        items[:] = [test for test in items if id(test) in chosen]

    def pytest_runtest_setup(self, item: Any) -> None:
        import pytest

        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        if any(self._spent[name] > limit for name, limit in zip(_groups(item.nodeid), MOST_SECONDS, strict=True)):
            pytest.skip("it has been recorded for long enough")

    def _audit(self, event: str, _: Any) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            self.touched.others.add(self._running)

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
            self.touched.seconds[nodeid] = seconds
        self._running = ""

    def write(self, path: Path) -> None:
        data = self.coverage.get_data()
        for file in data.measured_files():
            self.touched.lines[str(Path(file).relative_to(ROOT))] = {
                line: [test for test in tests if test in self.touched.seconds]
                for line, tests in data.contexts_by_lineno(file).items()
            }
        self.touched.others &= self.touched.seconds.keys()
        _write(self.touched, path)


def _too_long(*_: object) -> None:
    """Raise TimeoutError: the test runs longer than any mutant gets."""
    raise TimeoutError("longer than any mutant gets")


def _groups(test: str) -> tuple[str, str]:
    """Return the test without its case, and its file."""
    return test.partition("[")[0], test.partition("::")[0]


def _processor_seconds() -> float:
    """Return the processor seconds of this process and of the children that have ended."""
    return sum(os.times()[:4])  # with those of processes that have ended


def main(room: str, sources: str, out: str, *tests: str) -> None:
    """Run some tests, and write the lines of a room that they touch."""
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
    """Let Hypothesis draw few examples, the same each time, and shrink none."""
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, phases=phases, max_examples=20, deadline=None
    )
    hypothesis.settings.load_profile("mutants")


if __name__ == "__main__":
    main(*sys.argv[1:])
