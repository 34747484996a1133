"""A prompt with history, completion and colours, made with prompt_toolkit."""

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import Input

from buda_emu.app.cli.ctrl_c import CtrlC
from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.console.execute import complete
from buda_emu.support.caches import cache_folder

_HISTORY: Final = "debug-history"


def make_prompt(words: str, console: Console, ctrl_c: CtrlC) -> Callable[[], str]:
    """Return a function that shows `words` and reads a line. Ctrl-C drops the line being typed."""

    class Offers(Completer):
        """Completion of debugger commands (`complete`)."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
            """Yield the completions of the text before the cursor."""
            text = document.text_before_cursor
            begin, offers = complete(console, text)
            for offer in offers:
                yield Completion(offer, begin - len(text))

    history_file = _history_file()
    history = FileHistory(history_file) if history_file else InMemoryHistory()
    session: PromptSession[str] = PromptSession(
        completer=Offers(), history=history, complete_while_typing=False, input=_terminal_input()
    )
    message: list[Any] = [("bold fg:ansicyan", words)]
    is_open = False

    def drop() -> bool:
        """React to Ctrl-C while the prompt is open: have the prompt's own thread leave it. Return False if the line
        has been entered already, so that the signal goes to the command."""
        app = session.app
        if is_open and (app.future is None or app.future.done()):
            return False  # the line is accepted, and its command about to begin
        if app.loop is not None and app.future is not None:
            app.loop.call_soon_threadsafe(leave)
        return True

    def leave() -> None:
        """End the prompt with KeyboardInterrupt; if a line was entered just before, stop its command instead."""
        app = session.app
        if app.future is None or app.future.done():  # by keys that had come before
            ctrl_c.stop_command()
        else:
            app.exit(exception=KeyboardInterrupt, style="class:aborting")

    def mark_open() -> None:
        """Note that the prompt takes keys from now on."""
        nonlocal is_open
        is_open = True

    def ask() -> str:
        """Read a line at the prompt, with Ctrl-C handled by `drop`."""
        nonlocal is_open
        is_open = False
        with ctrl_c.reading_line(drop):
            return session.prompt(message, pre_run=mark_open, handle_sigint=False)

    return ask


def _terminal_input() -> Input | None:
    """Return the terminal as an input on which Ctrl-C raises a signal, also during the prompt. Read as a key, it would
    be lost if it came while a command begins. None on Windows, which uses the default input."""
    if sys.platform == "win32":
        return None
    import termios

    from prompt_toolkit.input.vt100 import Vt100Input

    class Keys(Vt100Input):
        """A terminal whose raw mode leaves Ctrl-C to the signal handler."""

        @contextmanager
        def raw_mode(self) -> Generator[None]:
            """Enter raw mode, but let Ctrl-C raise a signal; the keys that quit and suspend stay keys."""
            with super().raw_mode():
                mode = termios.tcgetattr(self.fileno())
                mode[3] |= termios.ISIG
                mode[6][termios.VQUIT] = mode[6][termios.VSUSP] = b"\0"  # keys, as before
                termios.tcsetattr(self.fileno(), termios.TCSANOW, mode)
                yield

    return Keys(sys.stdin)


def _history_file() -> str:
    """Return the path of the lines of earlier sessions; "" if no folder is private to this user."""
    folder = cache_folder()
    return os.path.join(folder, _HISTORY) if folder else ""  # noqa: PTH118 - as caches, which speaks of paths as text
