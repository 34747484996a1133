"""What verbs show while they work: a line on a terminal, lines at intervals in a pipe, and the kernels they compile."""

import io
import os
import pty
import sys
from types import SimpleNamespace

import pytest

from buda_emu.app.cli import kernels
from buda_emu.app.cli.console import Console
from buda_emu.app.cli.main import main
from buda_emu.app.cli.output import Progress
from buda_emu.arithmetic.jit import kernel
from buda_emu.support import progress
from buda_emu.testing.verify.result import CaseResult
from report.results import nop
from shared_files import ROOT

SOFTMAX = str(ROOT / "netlists/softmax.yaml")


@pytest.fixture
def often(monkeypatch):
    """Lines are due all the time."""
    monkeypatch.setattr(progress, "INTERVAL", 0.002)


@pytest.fixture(scope="module")
def warm():
    """Kernels are compiled before."""
    assert main(["numerics", SOFTMAX, "-q"]) == 0


def compile_in_vain(name, seconds=1.5):
    """Let the watchers of this process see a kernel that is compiled."""
    kernel.announce(name, None)
    kernel.announce(name, seconds)


def test_numerics_on_a_terminal_shows_each_op_in_one_line(warm, monkeypatch, capsys):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", buffering=1) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert main(["numerics", SOFTMAX]) == 0
        shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert f"\r\x1b[Kloading {SOFTMAX}"[:40] in shown
    assert "\r\x1b[Kop " in shown
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown
    assert "\x1b[K" not in capsys.readouterr().out


def test_numerics_in_a_pipe_writes_lines_to_standard_error_alone(warm, often, capsys):
    assert main(["numerics", SOFTMAX]) == 0
    out, error = capsys.readouterr()
    lines = error.splitlines()
    assert lines
    assert all(line.startswith("buda-emu: ") and line.endswith("s so far") for line in lines)
    assert "so far" not in out
    assert main(["numerics", SOFTMAX, "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_nothing_is_written_before_the_first_interval(warm, capsys):
    assert main(["numerics", SOFTMAX]) == 0
    assert capsys.readouterr().err == ""


def test_a_sweep_says_how_many_points_are_done(often, capsys):
    words = ["perf", str(ROOT / "netlists/matmul.yaml"), "--sweep", "clock=800,900,1000,1100,1200,1300"]
    assert main(words) == 0
    out, error = capsys.readouterr()
    assert " of 6 points" in error
    assert "points" not in out
    assert main([*words, "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_kernels_are_shown_then_what_goes_on_and_in_the_end_counted(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(kernels, "cache_folder", lambda: None)
    shown = []
    with Progress() as line:
        monkeypatch.setattr(line, "show", lambda text: shown.append(str(text)))
        with kernels.shown_kernels(line) as show:
            show(progress.Activity("program run", "programs"))
            compile_in_vain("gather")
            compile_in_vain("pack")
    assert shown[:4] == [
        "program run",
        "compiling kernel gather for this machine",
        "compiled kernel gather in 1.5 s",
        "program run",
    ]
    assert stream.getvalue() == (
        "buda-emu: compiled 2 kernels for this machine in 3.0 s (gather, pack); they could not be kept\n"
    )


def test_work_that_fails_says_nothing_of_kernels(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    def fail() -> None:
        with Progress() as line, kernels.shown_kernels(line):
            compile_in_vain("gather")
            raise OSError("lost")

    with pytest.raises(OSError, match="lost"):
        fail()
    assert sys.stderr.getvalue() == ""


def console(monkeypatch, count, **options):
    """Return a console for so many netlists, and its lines as they would be due."""
    args = SimpleNamespace(**{"quiet": False, "verbose": False, "per_op": False, "durations": None, **options})
    shown = []
    monkeypatch.setattr(Progress, "show", lambda _, text: shown.append(text))
    return Console([None] * count, args, "heading"), shown


def failed(number):
    return CaseResult(netlist=f"nets/{number}.yaml", status="failed", message="differs")


@pytest.mark.parametrize("quiet", [False, True])
def test_a_test_says_which_kernel_a_worker_compiles(quiet, monkeypatch, capsys):
    shows, shown = console(monkeypatch, 3, quiet=quiet)
    shows.kernel("gather", None)
    shows.kernel("gather", 2.25)
    shows.result(0, failed(0))
    assert shown[:3] == [
        "0 of 3 netlists",
        "0 of 3 netlists, compiling kernel gather for this machine",
        "0 of 3 netlists",
    ]
    assert shown[3].startswith("1 of 3 netlists, 1 not passed")
    monkeypatch.setattr(kernels, "cache_folder", lambda: None)
    shows.end(SimpleNamespace(cases=[failed(0)], seconds=1.0, not_run=0), frozenset())
    said = "buda-emu: compiled 1 kernel for this machine in 2.2 s (gather); they could not be kept\n"
    assert capsys.readouterr().err == ("" if quiet else said)


def test_quietly_the_first_netlists_that_fail_stand_for_all(monkeypatch, capsys):
    cases = [failed(number) for number in range(30)]
    for quiet, lines in ((True, 20), (False, 30)):
        shows, _ = console(monkeypatch, 30, quiet=quiet)
        shows.end(SimpleNamespace(cases=cases, seconds=1.0, not_run=0), frozenset())
        out = capsys.readouterr().out
        assert out.count("FAILED nets/") == lines
        assert ("and 10 more\n" in out) is quiet


def test_a_quiet_test_of_many_netlists_gives_signs_of_life(often, tmp_path, monkeypatch, capsys):
    """As a command, with a worker process: it needs some tenths of a second to start."""
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: tmp_path / "caches")
    path = tmp_path / "good.yaml"
    path.write_text(nop().replace("type: Exact", "type: AllClose, atol: 0.1, rtol: 0.1"))
    assert main(["test", str(path), "-q", "-n", "1"]) == 0
    out, error = capsys.readouterr()
    assert "buda-emu: 0 of 1 netlists; 0 s so far\n" in error
    assert out.startswith("== 1 passed in ")
