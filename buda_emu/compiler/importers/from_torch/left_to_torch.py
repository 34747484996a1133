"""Says which functions torch.compile runs without its backend, which torch itself does without a word."""

import logging
import sys
from typing import Final

from torch._dynamo import callback
from torch._dynamo.exc import Unsupported

_LOGGER: Final = logging.getLogger("buda_emu.torch")
_HINT: Final = "Hint: "
_told: set[str] = set()


def watch() -> None:
    """Log a warning, once for each reason, whenever torch ends the trace of a function without a graph: torch then
    runs this function itself. A backend is not called and cannot notice it."""
    if _tell_what_is_left not in callback.callback_handler.end_callbacks:
        callback.on_compile_end(_tell_what_is_left)


def _tell_what_is_left(*_: object) -> None:
    """Log the reason if the trace that ends here failed. torch calls this while it handles the failure."""
    error = sys.exc_info()[1]
    if not isinstance(error, Unsupported):
        return
    lines = [line.strip() for line in str(error).splitlines()]
    reason = next(filter(None, lines), type(error).__name__)
    if reason in _told:
        return
    _told.add(reason)
    hint = next((f" ({line.removeprefix(_HINT)})" for line in lines if line.startswith(_HINT)), "")
    _LOGGER.warning(
        "torch.compile: a function goes to no backend; torch runs it itself, or fullgraph=True refuses it: %s%s",
        reason,
        hint,
    )
