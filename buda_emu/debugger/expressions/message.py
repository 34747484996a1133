"""Text with `{expressions}` in it, which a log point prints instead of stopping."""

import re
from collections.abc import Callable
from typing import Final

from buda_emu.debugger.expressions.functions import WORDS
from buda_emu.debugger.expressions.parse import tensor
from buda_emu.debugger.expressions.tree import Node, Tensor
from buda_emu.errors import HostError

Piece = str | Node | Tensor
Pieces = tuple[Piece, ...]
_BRACES: Final = re.compile(r"\{([^{}]*)\}")


def pieces_of(text: str, expression: Callable[[str], Node]) -> Pieces:
    """Words, and between braces expressions, or tensors by their names alone. Raises HostError."""
    if not text.strip():
        raise HostError("the text to print is missing")
    found = [_between(part, expression) if number % 2 else part for number, part in enumerate(_BRACES.split(text))]
    return tuple(piece for piece in found if piece != "")


def _between(text: str, expression: Callable[[str], Node]) -> Piece:
    try:
        which = tensor(text)
    except HostError:
        return expression(text)
    return expression(text) if which.name in WORDS and not which.kind else which


def told(pieces: Pieces, value: Callable[[Node], float], words: Callable[[Tensor], str]) -> str:
    """The text, in which what cannot be told says why."""
    return "".join(piece if isinstance(piece, str) else _one(piece, value, words) for piece in pieces)


def _one(piece: Node | Tensor, value: Callable[[Node], float], words: Callable[[Tensor], str]) -> str:
    try:
        return words(piece) if isinstance(piece, Tensor) else f"{value(piece):g}"
    except HostError as error:
        return f"<{error}>"
