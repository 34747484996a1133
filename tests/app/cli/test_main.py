"""Verbs, exit codes and what is shown when things go wrong (docs/run/run.md, "Exit codes")."""

import os
import signal
import subprocess
import sys
import time

import pytest

import buda_emu
from buda_emu.app.cli.main import VERBS, main
from buda_emu.app.cli.verbs.about import ops
from buda_emu.support.errors import HostError, InternalError, ProgramError, UnsupportedError


def run(*arguments):
    """Exit code of the command in this process; argparse leaves by SystemExit."""
    try:
        return main(list(arguments))
    except SystemExit as leaving:
        return leaving.code


@pytest.fixture
def failing(monkeypatch):
    """Makes the verb `ops` raise what the test gives."""

    def arrange(error):
        def verb(args):
            raise error

        monkeypatch.setattr(ops, "main", verb)

    return arrange


def test_version(capsys):
    assert run("--version") == 0
    assert capsys.readouterr().out == f"buda-emu {buda_emu.__version__}\n"


@pytest.mark.parametrize("verb", [[], *([verb] for verb in VERBS)], ids=str)
def test_help_begins_with_an_example(verb, capsys):
    assert run(*verb, "--help") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith(f"example: buda-emu {''.join(verb)}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["check"],
        ["run", "x.yaml", "--precision", "double"],
        ["run", "x.yaml", "--arch", "abacus"],
        ["run", "x.yaml", "--threads", "0"],
        ["run", "x.yaml", "--seed", "-1"],
        ["run", "x.yaml", "--param", "p_loop_count"],
        ["run", "x.yaml", "--param", "=1"],
        ["check", "x.yaml", "--format", "xml"],
        ["formats", "extra"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(arguments, capsys):
    assert run(*arguments) == 2
    assert "usage: buda-emu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HostError("no queue q"), 2),
        (UnsupportedError("op drainer"), 3),
        (ProgramError("read from an empty queue"), 4),
        (MemoryError(), 3),
        (FileNotFoundError(2, "No such file or directory", "there.yaml"), 2),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_failure_is_one_line_and_its_code(error, code, failing, capsys):
    failing(error)
    assert run("ops") == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("buda-emu: ")
    assert len(shown.err.splitlines()) == 1


def test_an_interrupt_in_place_of_which_another_error_came(failing, capsys):
    """As Python 3.11 raises one where a class is made."""
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = KeyboardInterrupt()
    failing(error)
    assert run("ops") == 130
    assert capsys.readouterr().err == "buda-emu: interrupted\n"


@pytest.mark.parametrize("error", [InternalError("two implementations"), ZeroDivisionError("division by zero")])
def test_only_our_own_fault_shows_a_traceback(error, failing, capsys):
    failing(error)
    assert run("ops") == 101
    shown = capsys.readouterr().err
    assert "Traceback (most recent call last)" in shown
    assert str(error) in shown
    assert "Please report it" in shown


def test_the_module_is_the_command(child_environment):
    command = [sys.executable, "-m", "buda_emu", "explain", "V041"]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("V041: ")


def test_a_closed_pipe_is_no_error(child_environment):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "buda_emu", "ops"]
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            command, env=child_environment, stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_ends_with_130(child_environment):
    script = (
        "import sys, time; from buda_emu.app.cli import main; from buda_emu.app.cli.verbs.about import ops; "
        "ops.main = lambda args: (print('ready', flush=True), time.sleep(60)); sys.exit(main.main(['ops']))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], env=child_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, shown = child.communicate(timeout=20)
    assert child.returncode == 130
    assert "Traceback" not in shown


def test_without_a_verb_help_is_printed(capsys):
    assert run() == 0
    bare = capsys.readouterr().out
    assert run("--help") == 0
    assert capsys.readouterr().out == bare


@pytest.mark.parametrize(
    ("word", "said"),
    [("chekc", "no verb 'chekc' (did you mean 'check'?)"), ("net.yaml", "to run it: buda-emu run net.yaml"),
     ("format", "(did you mean 'fmt'?)"), ("lint", "(did you mean 'check'?)"), ("profile", "(did you mean 'perf'?)"),
     ("dance", "no verb 'dance'; verbs: run, check")],
)  # fmt: skip
def test_an_unknown_verb(word, said, capsys):
    assert run(word) == 2
    assert said in capsys.readouterr().err
