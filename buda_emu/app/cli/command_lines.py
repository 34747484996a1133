"""Lines that a user types to the debugger: with history, completion and colours where prompt_toolkit is installed and
both ends are a terminal, plain ones else.
"""

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
_AWAKE: Final = 0.1  # seconds


def command_lines(console: Console, ctrl_c: CtrlC, *, interactive: bool, quiet: bool) -> Iterator[str]:
    """Until the end of the input. An empty line is the last step again. Ctrl-C drops what was typed."""
    ask = _with_completion(console, ctrl_c) if interactive else _plain(ctrl_c, quiet=quiet)
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


def _plain(ctrl_c: CtrlC, *, quiet: bool) -> Callable[[], str]:
    """From standard input as it comes; the prompt is shown where somebody sits there. Elsewhere Ctrl-C has nothing to
    drop: a line that was sent is done."""
    typed = sys.stdin.isatty()
    waiting = False

    def drop() -> bool:
        nonlocal waiting
        if waiting:  # the terminal has forgotten what was typed; what came after it can be read
            waiting = False
            raise KeyboardInterrupt
        return not typed

    def ask() -> str:
        nonlocal waiting
        if typed and not quiet:
            say(PROMPT, end="")
        with ctrl_c.asking(drop):
            waiting = typed
            if typed:
                _until_a_line_comes()
            waiting = False
            line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    return ask


def _until_a_line_comes() -> None:
    while sys.platform != "win32" and not select.select([sys.stdin], [], [], _AWAKE)[0]:
        pass  # a signal that came just before the waiting is handled now


def _with_completion(console: Console, ctrl_c: CtrlC) -> Callable[[], str]:
    try:
        from buda_emu.app.cli.prompt import prompt
    except ImportError as error:
        if (error.name or "").startswith("buda_emu"):
            raise
        say("completion and history: pip install 'buda-emu[debug]'")
        return _plain(ctrl_c, quiet=False)
    return prompt(PROMPT, console, ctrl_c)
