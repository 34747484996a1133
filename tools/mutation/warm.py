"""A process that has imported a room and its tests, and forks for each mutant, which is put into what is there.

What was made of a function before it changed (a table, a kept result) stays as it was, so a mutant that no test notices
here is tried again from the start (`judging`).
"""

import gc
import multiprocessing
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

from mutation.forked import in_child, run_in_order, use_mutant
from mutation.sites import PACKAGE, Mutant
from mutation.touched import OPTIONS, settings_of_hypothesis

Place = tuple[str, str, int]
"""File, qualified name and first line of a function."""


class Warm:
    """The parent's side of the process, which collects the tests of `files`."""

    def __init__(self, files: Collection[str]) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._ours.close()
            _serve(theirs, sorted(files))
        theirs.close()

    def failing(self, tests: Mapping[str, float], mutant: Mutant) -> str:
        """Return the first of these tests, with the seconds that each takes, that fails; "" if none does, or if the
        mutant cannot be put in place."""
        if mutant.at_import or not tests:
            return ""
        try:
            self._ours.send((tests, mutant))
            return self._ours.recv()
        except (EOFError, BrokenPipeError):
            raise RuntimeError("the tests cannot be collected") from None

    def close(self) -> None:
        """End the process."""
        self._ours.close()
        os.waitpid(self._pid, 0)


def _serve(requests: Connection, files: Sequence[str]) -> NoReturn:
    """Collect the tests in this process, and answer requests until the parent closes the connection."""
    try:
        import pytest

        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        settings_of_hypothesis()
        pytest.main([*OPTIONS, *files], plugins=[_Server(requests)])
    finally:
        os._exit(0)


class _Server:
    """A plugin of pytest that answers requests once the tests are collected."""

    def __init__(self, requests: Connection) -> None:
        self._requests = requests

    def pytest_runtestloop(self, session: Any) -> bool:
        if session.testsfailed:  # while they were collected
            return True
        functions = _functions()
        gc.collect()
        gc.freeze()
        while True:
            try:
                tests, mutant = self._requests.recv()
            except EOFError:
                return True

            def run(folder: Path, tests: Mapping[str, float] = tests, mutant: Mutant = mutant) -> int:
                use_mutant(mutant, folder)
                return put(mutant, functions) and run_in_order(session, tests, folder)

            self._requests.send(in_child(run, sum(tests.values()), compiled=not mutant.compiles))


def _functions() -> dict[Place, list[FunctionType]]:
    """Return the package's functions by their place."""
    functions: dict[Place, list[FunctionType]] = {}
    for entry in gc.get_objects():
        # not isinstance: it makes some objects of other packages warn
        if type(entry) is FunctionType and entry.__code__.co_filename.startswith(str(PACKAGE)):
            functions.setdefault(_place(entry.__code__), []).append(entry)
    return functions


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def put(mutant: Mutant, functions: dict[Place, list[FunctionType]]) -> bool:
    """Give the functions of a module that the mutant changes their changed code; return False if another function has
    the same place."""
    path = str(mutant.path)
    before = _inside(compile(mutant.path.read_bytes(), path, "exec"))
    after = _inside(compile(mutant.tree, path, "exec"))
    alike = Counter(map(_place, before))
    changed = [new for old, new in zip(before, after, strict=True) if new != old]
    if any(alike[_place(code)] > 1 for code in changed):
        return False
    for code in changed:
        for function in functions.get(_place(code), ()):
            if function.__code__.co_freevars == code.co_freevars:
                function.__code__ = code
    return bool(changed)


def _inside(code: CodeType) -> list[CodeType]:
    """Return the codes of all functions inside a code, the outer ones first."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return [*inner, *chain.from_iterable(map(_inside, inner))]
