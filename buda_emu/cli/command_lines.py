"""Lines that a user types to the debugger: with history, completion and colours where prompt_toolkit is installed and
both ends are a terminal, plain ones else.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from buda_emu.cli.output import say

if TYPE_CHECKING:
    from buda_emu.debugger.console.console import Console

PROMPT: Final = "(buda) "
_HISTORY: Final = "debug-history"


def command_lines(console: "Console", *, interactive: bool, quiet: bool) -> Iterator[str]:
    """Until the end of the input. An empty line is the last step again. Ctrl-C drops what was typed."""
    from buda_emu.debugger.console.execute import repeated
    from buda_emu.errors import HostError

    ask = _prompt(console) if interactive else _plain(quiet=quiet)
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


def _plain(*, quiet: bool) -> Callable[[], str]:
    """From standard input as it comes; the prompt is shown where somebody sits there."""
    shown = not quiet and sys.stdin.isatty()

    def ask() -> str:
        if shown:
            say(PROMPT, end="")
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    return ask


def _prompt(console: "Console") -> Callable[[], str]:
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory, InMemoryHistory
    except ImportError:
        say("completion and history: pip install 'buda-emu[debug]'")
        return _plain(quiet=False)
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
    session: PromptSession[str] = PromptSession(completer=Offers(), history=history, complete_while_typing=False)
    message: list[Any] = [("bold fg:ansicyan", PROMPT)]

    def ask() -> str:
        return session.prompt(message)

    return ask


def _history_file() -> str:
    """Where the lines of earlier sessions are kept; "" where nobody but this user may be sure of it."""
    from buda_emu.caches import own_caches, usable

    with suppress(RuntimeError, OSError):
        folder = own_caches()
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - as caches, which speaks of paths as text
        if usable(folder):
            return os.path.join(folder, _HISTORY)  # noqa: PTH118
    return ""
