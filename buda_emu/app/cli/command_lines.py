"""Read the commands that a user types to the debugger. Where prompt_toolkit is installed and both ends are a terminal,
the prompt has history, completion and colours; otherwise lines are read as they come."""

import select
import sys
from collections.abc import Callable, Iterator
from typing import Final

from buda_emu.app.cli.ctrl_c import CtrlC
from buda_emu.app.cli.output import say
from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.console.execute import line_to_repeat
from buda_emu.support.errors import HostError

PROMPT: Final = "(buda) "
_POLL_SECONDS: Final = 0.1  # at most, until a signal is handled that came just before the wait


def read_commands(console: Console, ctrl_c: CtrlC, *, interactive: bool, quiet: bool) -> Iterator[str]:
    """Yield commands until the input ends. An empty line repeats the last step, and Ctrl-C drops the line being
    typed."""
    if interactive:
        ask = _completing_reader(console, ctrl_c)
    else:
        ask = _plain_reader(ctrl_c, quiet=quiet)
    last = ""
    while True:
        try:
            line = ask()
        except KeyboardInterrupt:
            say()
            continue
        except EOFError:
            if interactive:
                say()
            return
        if not line.strip():
            if last:
                yield last
            continue
        yield line
        try:
            last = line_to_repeat(line)
        except HostError:
            last = ""


def _plain_reader(ctrl_c: CtrlC, *, quiet: bool) -> Callable[[], str]:
    """Return a function that reads the next line of standard input, and raises EOFError at its end. The prompt is shown
    only on a terminal, unless `quiet`. Elsewhere Ctrl-C has no unfinished line to drop, since a line that arrives is
    complete."""
    is_terminal = sys.stdin.isatty()
    waiting = False

    def drop() -> bool:
        """React to Ctrl-C while a line is being read. At a terminal where the user is still typing, raise
        KeyboardInterrupt. Return False if the line was entered there already, so that the signal stops the line's
        command, and True if the input is no terminal."""
        nonlocal waiting
        if waiting:  # the terminal has forgotten what was typed; what came after it can be read
            waiting = False
            raise KeyboardInterrupt
        return not is_terminal

    def ask() -> str:
        """Read a line of standard input, with a prompt on a terminal unless it is to be quiet. Raise EOFError at the
        end of the input."""
        nonlocal waiting
        if is_terminal and not quiet:
            say(PROMPT, end="")
        with ctrl_c.reading_line(drop):
            waiting = is_terminal
            if is_terminal:
                _wait_for_line()
            waiting = False
            line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    return ask


def _wait_for_line() -> None:
    """Block until standard input has a line. Polling lets a signal that arrived just before the wait be handled."""
    while sys.platform != "win32" and not select.select([sys.stdin], [], [], _POLL_SECONDS)[0]:
        pass  # a signal that came just before the waiting is handled now


def _completing_reader(console: Console, ctrl_c: CtrlC) -> Callable[[], str]:
    """Return a function that reads a line with prompt_toolkit, or the plain one, with a hint to the user, if
    prompt_toolkit is not installed."""
    try:
        from buda_emu.app.cli.prompt import make_prompt
    except ImportError as error:
        if (error.name or "").startswith("buda_emu"):
            raise
        say("completion and history: pip install 'buda-emu[debug]'")
        return _plain_reader(ctrl_c, quiet=False)
    return make_prompt(PROMPT, console, ctrl_c)
