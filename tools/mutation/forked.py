"""A process for each mutant: bounded in time, with caches of its own, in which tests run one by one."""

import marshal
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from mutation.sites import ROOT, Mutant

IMPORTER = Path(__file__).parent / "child"
SECONDS = 10  # of processor time at least, for the tests of one mutant
WAIT = 60  # seconds at least, where a test waits for what never comes


def in_child(run: Callable[[Path], int], usual: float, *, compiled: bool = True) -> str:
    """Fork and call `run` with a folder of caches; tests that take `usual` seconds may take three times as long.
    `compiled`: with the kernels that there are.

    "" if it returns 0; else the test that ran last.
    """
    with _caches(_kernels() if compiled else None) as folder:
        child = os.fork()
        if child == 0:
            code = 1
            with suppress(BaseException):
                os.setpgid(0, 0)
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.setitimer(signal.ITIMER_PROF, SECONDS + 3 * usual)  # its signal ends the process
                _wait_for(usual)
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                os.dup2(null, 2)
                os.environ["XDG_CACHE_HOME"] = folder
                code = run(Path(folder))
            os._exit(code)
        _, status = os.waitpid(child, 0)
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)  # what its tests started
        running = _running(Path(folder))
        last = running.read_text(encoding="utf-8") if running.exists() else ""
    return (last or "what is imported") if status != 0 else ""


def _running(folder: Path) -> Path:
    return folder / "running"


@contextmanager
def _caches(kernels: Path | None) -> Iterator[str]:
    """Provide folders of caches for one mutant, in which kernels are linked; nobody else reads what it stores there."""
    folder = tempfile.mkdtemp(prefix="buda-emu-mutant-", dir=kernels and kernels.parent.parent)
    if kernels:
        with suppress(OSError, shutil.Error):  # others may clean up meanwhile
            shutil.copytree(kernels, Path(folder, kernels.parent.name, kernels.name), copy_function=os.link)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _kernels() -> Path | None:
    """Return the folder of the kernels that this version compiled for the user; None if there is none."""
    module = "buda_emu.arithmetic.jit.machine_code.disk_cache"
    code = f"from {module} import cache_folder; print(cache_folder() or '', end='')"
    folder = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout
    return Path(folder) if folder else None


def use_mutant(mutant: Mutant, folder: Path) -> None:
    """Make this process import the mutant from now on, and the processes that it starts, whatever their environment."""
    changed = _write_mutant(mutant, folder)
    os.environ.update(_with_mutant(os.environ, changed))
    runpy.run_path(str(IMPORTER / "sitecustomize.py"))
    start = subprocess.Popen.__init__

    def start_with_mutant(process: Any, *args: Any, **options: Any) -> None:
        if options.get("env") is not None:
            options["env"] = _with_mutant(options["env"], changed)
        start(process, *args, **options)

    subprocess.Popen.__init__ = start_with_mutant  # type: ignore[method-assign]


@contextmanager
def environment_of(mutant: Mutant, environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Provide the environment of a process that imports the mutant. It finds existing kernels and tables, but stores
    none for others."""
    kernels = _kernels()
    with _caches(kernels) as folder:
        tables = kernels and kernels.parent / "tables"
        if kernels and tables and tables.exists():
            with suppress(OSError, shutil.Error):
                shutil.copytree(tables, Path(folder, kernels.parent.name, "tables"), copy_function=os.link)
        yield {**_with_mutant(environment, _write_mutant(mutant, Path(folder))), "XDG_CACHE_HOME": folder}


def _write_mutant(mutant: Mutant, folder: Path) -> str:
    """Write the code of the mutant into the folder, and return the value of `BUDA_EMU_MUTANT` for it."""
    code = folder / "mutant"
    code.write_bytes(marshal.dumps(compile(mutant.tree, str(mutant.path), "exec")))
    return f"{mutant.module}={code}"


def _with_mutant(environment: Mapping[str, str], changed: str) -> dict[str, str]:
    """Return an environment whose processes import the mutant."""
    paths = [str(IMPORTER), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "BUDA_EMU_MUTANT": changed, "PYTHONPATH": os.pathsep.join(paths)}


def _wait_for(usual: float) -> None:
    """End the process if tests that usually take so many seconds wait for ever. A busy machine is not a mutant, so the
    limit is generous."""
    signal.alarm(int(WAIT + 20 * usual))


def run_in_order(session: Any, seconds: Mapping[str, float], folder: Path) -> int:
    """Run the tests of a pytest session in the order of `seconds`, which has the time that each takes, until one fails;
    return the number that failed."""
    tests = {test.nodeid: test for test in session.items}
    chosen = [tests[name] for name in seconds]
    for test, following in zip_longest(chosen, chosen[1:]):
        _running(folder).write_text(test.nodeid, encoding="utf-8")
        _wait_for(seconds[test.nodeid])
        test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        if session.testsfailed:
            break
    return session.testsfailed
