"""Lines that a user types to the debugger: with history, completion and colours where prompt_toolkit is installed and
both ends are a terminal, plain ones else.
"""

import os
import select
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from buda_emu.cli.ctrl_c import CtrlC
from buda_emu.cli.output import say

if TYPE_CHECKING:
    from prompt_toolkit.input import Input

    from buda_emu.debugger.console.console import Console

PROMPT: Final = "(buda) "
_AWAKE: Final = 0.1  # seconds
_HISTORY: Final = "debug-history"


def command_lines(console: "Console", ctrl_c: CtrlC, *, interactive: bool, quiet: bool) -> Iterator[str]:
    """Until the end of the input. An empty line is the last step again. Ctrl-C drops what was typed."""
    from buda_emu.debugger.console.execute import repeated
    from buda_emu.errors import HostError

    ask = _prompt(console, ctrl_c) if interactive else _plain(ctrl_c, quiet=quiet)
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
            last = repeated(line)
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


def _prompt(console: "Console", ctrl_c: CtrlC) -> Callable[[], str]:
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory, InMemoryHistory
    except ImportError:
        say("completion and history: pip install 'buda-emu[debug]'")
        return _plain(ctrl_c, quiet=False)
    from buda_emu.debugger.console.completion import complete

    class Offers(Completer):
        """What the debugger's own completion offers."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
            """See `completion.complete`."""
            text = document.text_before_cursor
            begin, offers = complete(console, text)
            for offer in offers:
                yield Completion(offer, begin - len(text))

    kept = _history_file()
    history = FileHistory(kept) if kept else InMemoryHistory()
    session: PromptSession[str] = PromptSession(
        completer=Offers(), history=history, complete_while_typing=False, input=_keys()
    )
    message: list[Any] = [("bold fg:ansicyan", PROMPT)]
    shown = False

    def drop() -> bool:
        app = session.app
        if shown and (app.future is None or app.future.done()):
            return False  # the line is taken, and its command about to begin
        if app.loop is not None and app.future is not None:
            app.loop.call_soon_threadsafe(leave)
        return True

    def leave() -> None:
        app = session.app
        if app.future is None or app.future.done():  # by keys that had come before
            ctrl_c.stop_command()
        else:
            app.exit(exception=KeyboardInterrupt, style="class:aborting")

    def begun() -> None:
        nonlocal shown
        shown = True

    def ask() -> str:
        nonlocal shown
        shown = False
        with ctrl_c.asking(drop):
            return session.prompt(message, pre_run=begun, handle_sigint=False)

    return ask


def _keys() -> "Input | None":
    """The terminal, on which Ctrl-C is a signal at the prompt, too: as a key it would be lost where it comes while a
    command begins."""
    if sys.platform == "win32":
        return None
    import termios

    from prompt_toolkit.input.vt100 import Vt100Input

    class Keys(Vt100Input):
        """A terminal."""

        @contextmanager
        def raw_mode(self) -> Generator[None]:
            """See `Vt100Input`."""
            with super().raw_mode():
                mode = termios.tcgetattr(self.fileno())
                mode[3] |= termios.ISIG
                mode[6][termios.VQUIT] = mode[6][termios.VSUSP] = b"\0"  # keys, as before
                termios.tcsetattr(self.fileno(), termios.TCSANOW, mode)
                yield

    return Keys(sys.stdin)


def _history_file() -> str:
    """Where the lines of earlier sessions are kept; "" where nobody but this user may be sure of it."""
    from buda_emu.caches import own_caches, usable

    with suppress(RuntimeError, OSError):
        folder = own_caches()
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - as caches, which speaks of paths as text
        if usable(folder):
            return os.path.join(folder, _HISTORY)  # noqa: PTH118
    return ""
