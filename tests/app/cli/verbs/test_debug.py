"""`buda-emu debug` as a process: scripts, JSON, plain input, a terminal, Ctrl-C."""

import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time

import pytest
from jsonschema import Draft202012Validator

from buda_emu.app.cli.ctrl_c import CtrlC
from buda_emu.app.cli.main import main
from buda_emu.app.cli.verbs.about.schema import VERB_SCHEMAS
from shared_files import ROOT
from small_netlists import endless, execute, fifo_settings, graph, op, program, queue, text

NETLIST = str(ROOT / "netlists" / "training.yaml")
COMMAND = [sys.executable, "-m", "buda_emu", "debug"]


def run(*arguments, given="", environment):
    return subprocess.run(
        [*COMMAND, *arguments], input=given, capture_output=True, text=True, env=environment, timeout=120
    )


def test_a_script_in_a_batch(tmp_path, capsys):
    script = tmp_path / "s.txt"
    script.write_text("# the gelu\nbreak a\ncontinue\nprint op:h\nwhere\n")
    assert main(["debug", NETLIST, "-x", str(script), "-e", "next", "--batch", "--threads", "1"]) == 0
    out = capsys.readouterr().out
    assert "(buda) break a\nbreakpoint 1: op a (gelu, line 40)\n(buda) continue\n" in out
    assert "before op product" in out
    assert out.startswith(f"{NETLIST} on wormhole_b0, precision format, programs run_fwd, run_bwd, run_opt; `help`")


def test_on_a_terminal_of_80_columns(capsys, monkeypatch):
    """Values are whole, and the words of the help stand below each other."""
    monkeypatch.setenv("COLUMNS", "80")
    commands = [word for line in ("break product", "continue", "graph", "help") for word in ("-e", line)]
    assert main(["debug", NETLIST, "--batch", "-q", *commands, "--threads", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    graph = lines[lines.index("(buda) graph") + 1 : lines.index("(buda) help")]
    assert all("..." not in line[: graph[0].index("op or queue")] for line in graph)
    below = lines.index("  runs is run to its end.".rjust(len("  runs is run to its end.") + 21))
    assert lines[below - 1].startswith("  step [N]             Run to the next instruction")


def test_a_batch_ends_at_what_is_refused(capsys):
    assert main(["debug", NETLIST, "--batch", "-q", "-e", "prnt x", "-e", "next", "--threads", "1"]) == 2
    assert capsys.readouterr().out == "(buda) prnt x\nno command 'prnt' (did you mean 'print'?); `help` lists them\n"
    assert main(["debug", NETLIST, "--batch", "-q", "-e", "quit", "-e", "next", "--threads", "1"]) == 0
    assert "next" not in capsys.readouterr().out


def test_a_failed_program_is_the_exit_code(tmp_path, capsys):
    path = tmp_path / "n.yaml"
    path.write_text(
        text(
            queue("q_in", entries=4) + queue("q_out", "n", entries=2),
            graph("g", op("n", "nop", ["q_in"])),
            program("p", "staticvar: {$c_zero: 0}", "loop: 4", execute("g", fifo_settings("q_in")), "endloop"),
        )
    )
    assert main(["debug", str(path), "--batch", "-q", "-e", "c", "-e", "why-not", "--threads", "1"]) == 4
    out = capsys.readouterr().out
    assert out.count("likely cause: ") == 2
    assert "n (nop, graph g) waits for room in q_out" in out


def test_json_holds_its_schema(capsys):
    for lines in (["break h", "c", "print op:h"], ["n", "print 1/0", "bad"]):
        arguments = [word for line in lines for word in ("-e", line)]
        assert main(["debug", NETLIST, "--json", *arguments, "--batch", "--threads", "1"]) == 2
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    form = Draft202012Validator(VERB_SCHEMAS["debug"]())
    for item in found:
        assert [error.message for error in form.iter_errors(item)] == []
        assert set(item) == set(VERB_SCHEMAS["debug"]()["properties"])
    assert [item["kind"] for item in found] == ["breakpoint", "stop", "error", "stop", "value", "error"]
    assert found[1]["stop"]["breakpoints"] == [1]
    assert found[4]["data"]["value"] is None  # infinite: strict JSON has no such number
    assert "did you mean" not in found[5]["error"]


def test_wrong_usage(capsys, tmp_path):
    assert main(["debug"]) == 2
    assert main(["debug", NETLIST, "-x", str(tmp_path / "none.txt"), "--batch"]) == 2
    assert main(["debug", "--dap", "--port", "99999"]) == 2
    err = capsys.readouterr().err
    assert "which FILE" in err
    assert "none.txt: No such file" in err
    assert "ports are 0..65535" in err


def test_lines_from_a_pipe(child_environment):
    done = run(NETLIST, "-q", given="next\n\nwhere\n", environment=child_environment)
    assert done.returncode == 0, done.stderr
    assert "run_fwd instruction 1" in done.stdout  # the empty line did `next` again
    assert "(buda)" not in done.stdout


class Terminal:
    """A process on a pseudo-terminal."""

    def __init__(self, arguments, environment):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self.text = ""

    def until(self, words, seconds=60):
        end = time.monotonic() + seconds
        while words not in self.text:
            if time.monotonic() > end:
                raise AssertionError(f"{words!r} did not come: {self.text[-2000:]!r}")
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:  # the other side closed
                    assert words in self.text, f"it ended before {words!r} came: {self.text[-2000:]!r}"
        found, _, self.text = self.text.partition(words)
        return found

    def send(self, text):
        os.write(self.master, text.encode())

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def _take_terminal():
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def endless_netlist(tmp_path):
    """A minute or more, on any machine."""
    path = tmp_path / "endless.yaml"
    path.write_text(endless().replace("3000000", "30000"))
    return str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_terminal_with_completion_history_and_ctrl_c(tmp_path, endless_netlist, child_environment):
    pytest.importorskip("prompt_toolkit")
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    terminal = Terminal([endless_netlist, "--threads", "1"], environment)
    try:
        terminal.until("(buda)")
        terminal.send("whe\t\r")
        terminal.until("before the first program")
        terminal.send("continue\r")
        time.sleep(1.5)
        terminal.send("\x03")  # stops the program, not the debugger
        terminal.until("interrupted")
        terminal.send("info epochs\r")
        terminal.until("->")
        terminal.send("\x03")
        terminal.send("quit\r")
        assert terminal.process.wait(30) == 0
        assert "+continue" in (tmp_path / "cache" / "buda-emu" / "debug-history").read_text()
    finally:
        terminal.close()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("more", [["-e", "continue", "-e", "where"], ["-e", "back epoch", "-e", "next 1000000"]])
def test_ctrl_c_ends_a_batch(endless_netlist, child_environment, more):
    process = subprocess.Popen(
        [*COMMAND, endless_netlist, "--batch", "-q", "--threads", "1", *more],
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment,
    )
    while process.stdout.readline() != f"(buda) {more[-1] if 'next' in more[-1] else more[1]}\n":
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.startswith("interrupted\n")
    assert "(buda)" not in out  # no further command


@pytest.fixture(params=["prompt_toolkit", "plain"])
def terminal(request, tmp_path, endless_netlist, child_environment):
    """The debugger on a terminal, whose program does not end; with prompt_toolkit, and as if it were not installed."""
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PROMPT_TOOLKIT_NO_CPR": "1"}
    if request.param == "plain":
        hidden = tmp_path / "hidden" / "prompt_toolkit"
        hidden.mkdir(parents=True)
        (hidden / "__init__.py").write_text("raise ImportError")
        environment["PYTHONPATH"] = os.pathsep.join([str(hidden.parent), environment.get("PYTHONPATH", "")])
    else:
        pytest.importorskip("prompt_toolkit")
    found = Terminal([endless_netlist, "--threads", "1"], environment)
    try:
        found.until("(buda)")
        yield found
    finally:
        found.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_ctrl_c_at_any_moment_leads_to_the_prompt(terminal):
    """Before a line is taken, while its command begins, while it runs, after it."""
    number = 7000
    for command in ("continue", "next 1000000", "info epochs"):
        for wait in (0.0, 0.0003, 0.002, 0.008, 0.03):
            number += 1
            terminal.send(f"{command}\r")
            time.sleep(wait)
            terminal.send("\x03")
            terminal.send(f"print {number} + 1000\r")
            terminal.until(f"{number + 1000}")
    terminal.send("quit\r")
    assert terminal.process.wait(30) == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("seed", range(50))
def test_ctrl_c_at_random_moments_leads_to_the_prompt(terminal, seed):
    """Once or twice, forward and backward."""
    stream = random.Random(seed)
    commands = ("continue", "next 1000000", "step 40", "back", "back epoch 3", "reverse-continue", "info queues", "run")
    for number in range(7000, 7012):
        terminal.send(f"{stream.choice(commands)}\r")
        for _ in range(stream.choice([1, 1, 1, 2])):
            time.sleep(10 ** stream.uniform(-4, -0.6))
            terminal.send("\x03")
        terminal.send(f"print {number} + 1000\r")
        assert "Traceback" not in terminal.until(f"{number + 1000}")
    terminal.send("quit\r")
    assert terminal.process.wait(30) == 0


def test_without_prompt_toolkit_lines_are_read_as_they_come(monkeypatch, capsys):
    from buda_emu.app.cli import command_lines

    monkeypatch.delitem(sys.modules, "buda_emu.app.cli.prompt", raising=False)
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    given = iter(["next\n", "", ""])
    monkeypatch.setattr(
        command_lines.sys, "stdin", type("In", (), {"isatty": lambda _: True, "readline": lambda _: next(given)})()
    )
    monkeypatch.setattr(command_lines, "_wait_for_line", lambda: None)
    ctrl_c = CtrlC(lambda: None, lambda: None)
    assert list(command_lines.read_commands(None, ctrl_c, interactive=True, quiet=False)) == ["next"]
    assert "pip install 'buda-emu[debug]'" in capsys.readouterr().out
