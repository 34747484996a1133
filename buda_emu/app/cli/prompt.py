"""Lines typed at a prompt with history, completion and colours, by prompt_toolkit."""

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


def prompt(words: str, console: Console, ctrl_c: CtrlC) -> Callable[[], str]:
    """What asks for a line, after `words`; Ctrl-C drops what was typed."""

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
    message: list[Any] = [("bold fg:ansicyan", words)]
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


def _keys() -> Input | None:
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
    folder = cache_folder()
    return os.path.join(folder, _HISTORY) if folder else ""  # noqa: PTH118 - as caches, which speaks of paths as text
