"""The pool of worker processes: order, deadlines, deaths, Ctrl-C. The cases do what their names say."""

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from buda_emu.support.errors import InternalError, UnsupportedError
from buda_emu.support.workers import pool
from buda_emu.support.workers.job import Job, Workers
from buda_emu.support.workers.pool import describe_exit_code
from buda_emu.testing.verify.runs.collect import Case
from buda_emu.testing.verify.runs.run_all import run_all
from case_functions import until
from shared_files import ROOT

OBEY = Job("case_functions:obedient")
LONG = 60.0  # a timeout that nothing here reaches


def cases(*names, path=""):
    return [Case(name, str(path)) for name in names]


def statuses(results):
    return [(result.netlist, result.status) for result in results]


def run(*names, workers=2, timeout=LONG, **more):
    return run_all(cases(*names), Workers(workers), timeout=timeout, job=OBEY, **more)


def alive(process):
    """Whether it runs: one that nobody has waited for yet is dead as well."""
    try:
        os.kill(process, 0)
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_results_come_in_the_order_of_the_cases_and_are_told_as_they_come():
    told = []
    names = ["sleep 0.6", *(f"number {i}" for i in range(8))]
    results = run(*names, on_result=lambda number, result: told.append((number, result.netlist)))
    assert [result.netlist for result in results] == names
    assert sorted(told) == list(enumerate(names))
    assert all(result.status == "passed" for result in results)


def test_a_worker_is_kept_for_many_cases():
    results = run(*(f"number {i}" for i in range(5)), workers=1)
    assert len({result.message for result in results}) == 1
    assert results[0].message != f"process {os.getpid()}"


def test_no_cases():
    assert run() == []


def test_a_dying_worker_costs_its_case_only(capfd):
    results = run("number 1", "exit 7", "exit 0", "number 2", "kill", "raise a bug", "number 3")
    died = {result.netlist: result.message for result in results if result.status == "crashed"}
    assert died == {
        "exit 7": "its worker process died (exit code 7)",
        "exit 0": "its worker process died (exit code 0)",
        "kill": "its worker process died (signal SIGKILL)",
        "raise a bug": "its worker process died (exit code 1)",
    }
    assert [result.netlist for result in results if result.status == "passed"] == ["number 1", "number 2", "number 3"]
    assert "ValueError: a bug" in capfd.readouterr().err


def test_the_last_worker_dies():
    assert [result.status for result in run("exit 1", "number 1", workers=1)] == ["crashed", "passed"]


def test_a_hanging_case_costs_its_timeout_only(tmp_path):
    note = tmp_path / "process"
    todo = [*cases("number 1"), Case("hang", str(note)), *cases("number 2", "number 3")]
    results = run_all(todo, Workers(2), timeout=0.7, job=OBEY)
    assert [result.status for result in results] == ["passed", "timeout", "passed", "passed"]
    assert results[1].message == "took longer than 0.7 s"
    assert 0.7 <= results[1].seconds < 5
    assert not alive(int(note.read_text()))


def test_the_start_of_a_worker_does_not_count_as_time_of_its_case():
    assert run("number 1", timeout=0.15)[0].status == "passed"  # an import of numpy alone takes as long


def test_a_worker_killed_from_outside_is_reported_and_the_rest_completes(tmp_path):
    note = tmp_path / "process"

    def kill():
        assert until(lambda: note.exists() and note.read_text())
        os.kill(int(note.read_text()), signal.SIGKILL)

    killer = Thread(target=kill)
    killer.start()
    todo = [*cases("number 1", "number 2"), Case("hang", str(note)), *cases("number 3", "number 4")]
    results = run_all(todo, Workers(2), timeout=LONG, job=OBEY)
    killer.join()
    assert [result.status for result in results] == ["passed", "passed", "crashed", "passed", "passed"]
    assert results[2].message == "its worker process died (signal SIGKILL)"


def test_maxfail():
    results = run("number 1", "failed", "number 2", "number 3", workers=1, maxfail=1)
    assert statuses(results) == [("number 1", "passed"), ("failed", "failed")]


def test_maxfail_waits_for_nothing_that_runs(tmp_path):
    note = tmp_path / "process"
    start = time.monotonic()
    results = run_all(
        [Case("hang", str(note)), *cases("failed", "number 1")], Workers(2), timeout=LONG, maxfail=1, job=OBEY
    )
    assert statuses(results)[-1] == ("failed", "failed")
    assert ("number 1", "passed") not in statuses(results)
    assert time.monotonic() - start < LONG / 2
    assert not note.exists() or not alive(int(note.read_text()))


def test_maxfail_after_a_crash():
    assert statuses(run("exit 1", "number 1", workers=1, maxfail=1)) == [("exit 1", "crashed")]


def test_an_error_of_the_listener_ends_the_workers(tmp_path):
    note = tmp_path / "process"

    def listen(_number, _result):
        assert until(note.exists)
        raise ValueError("listener")

    with pytest.raises(ValueError, match="listener"):
        run_all([Case("hang", str(note)), *cases("number 1")], Workers(2), timeout=LONG, on_result=listen, job=OBEY)
    assert not alive(int(note.read_text()))


def starts_fail(monkeypatch, *numbers):
    """The workers of these numbers, from 0, die while they start."""
    started = []

    def process(job):
        started.append(job)
        return pool_process(Job("case_functions_that_die:none") if len(started) - 1 in numbers else job)

    pool_process = pool.Process
    monkeypatch.setattr(pool, "Process", process)


def test_a_replacement_that_dies_while_it_starts_costs_one_netlist(monkeypatch):
    starts_fail(monkeypatch, 1)
    results = run("exit 3", "number 1", "number 2", "number 3", workers=1)
    assert [result.status for result in results] == ["crashed", "crashed", "passed", "passed"]
    assert results[1].message == "the worker process for it could not start (exit code 1)"


def test_one_of_two_that_does_not_start_costs_nothing(monkeypatch):
    starts_fail(monkeypatch, 0)
    assert [result.status for result in run("number 1", "number 2", workers=2)] == ["passed", "passed"]


def test_no_process_can_be_started_any_more(monkeypatch):
    starts_fail(monkeypatch, *range(1, 9))
    results = run("exit 3", *(f"number {number}" for number in range(4)), workers=1)
    assert [result.status for result in results] == ["crashed"] * 5


def test_a_thousand_cases():
    assert {result.status for result in run(*(f"number {number}" for number in range(1000)), workers=2)} == {"passed"}


def test_a_worker_that_cannot_start_is_a_bug_of_ours(capfd):
    with pytest.raises(InternalError, match=r"could not start \(exit code 1\)"):
        run_all(cases("number 1"), Workers(1), timeout=LONG, job=Job("no_module_at_all:none"))
    assert "no_module_at_all" in capfd.readouterr().err


@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_the_machine_does_not_let_start_is_no_bug(monkeypatch, count):
    def refuse(*_arguments, **_options):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(pool.subprocess, "Popen", refuse)
    with pytest.raises(UnsupportedError, match=r"could not start \(Resource temporarily unavailable\): .* \(-n 1\)"):
        run_all(cases("number 1", "number 2"), Workers(count), timeout=LONG, job=OBEY)


def test_workers_that_are_killed_while_they_start_are_no_bug(monkeypatch):
    class Killed(pool.Process):
        """A process that the system kills at once, for want of memory."""

        def __init__(self, job):
            super().__init__(job)
            os.kill(self.number, signal.SIGKILL)

    monkeypatch.setattr(pool, "Process", Killed)
    with pytest.raises(UnsupportedError, match=r"could not start \(signal SIGKILL\)"):
        run_all(cases("number 1"), Workers(1), timeout=LONG, job=OBEY)


PROGRAM = """
import sys
import jobs_of_tests
from buda_emu.testing.verify.runs.collect import Case
from buda_emu.testing.verify.runs.run_all import run_all
from buda_emu.support.workers.job import Job, Workers

jobs_of_tests.allow()
cases = [Case("number 1", ""), *(Case("hang", path) for path in sys.argv[1:])]
obey = Job("case_functions:obedient")
try:
    run_all(cases, Workers(2), timeout=60, job=obey, on_result=lambda *result: print("one is done", flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.fixture
def program(tmp_path, child_environment):
    """A program of its own with two workers that hang after a while; and where they write their numbers."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    notes = [tmp_path / "first", tmp_path / "second"]
    environment = {**child_environment, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests/helpers")])}
    process = subprocess.Popen(
        [sys.executable, str(script), *map(str, notes)],
        env=environment,
        text=True,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    yield process, notes
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def written(notes):
    return all(note.exists() and note.read_text() for note in notes)


def test_ctrl_c_ends_all_workers_at_once(program):
    process, notes = program
    assert until(lambda: written(notes))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "one is done\ninterrupted\n", "")
    assert not any(alive(int(note.read_text())) for note in notes)


def test_workers_do_not_outlive_a_pool_that_is_killed(program):
    process, notes = program
    assert until(lambda: written(notes))
    process.kill()
    process.wait()
    assert until(lambda: not any(alive(int(note.read_text())) for note in notes))


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "exit code 3"), (-9, "signal SIGKILL"), (-11, "signal SIGSEGV"), (-250, "exit code -250")],
)
def test_how_it_ended(code, words):
    assert describe_exit_code(code) == words
