"""The text between the values of a YAML text: punctuation, comments and line breaks, without blanks."""

import re
from collections.abc import Iterator
from typing import Final, Literal

from buda_emu.records import dataclass

_PIECE: Final = re.compile(
    r"(?P<blank>[ \t\ufeff]+)|(?P<comment>#[^\r\n\x85\u2028\u2029]*)|(?P<break>\r\n|[\r\n\x85\u2028\u2029])"
    r"|(?P<word>[&!][^\s,\[\]{}]*|---|\.\.\.|%[^\r\n]*)|(?P<mark>.)"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A comment, a line break, a word (anchor, tag, document marker, directive) or a mark such as `{`; `start` is an
    index into the text."""

    kind: Literal["comment", "break", "word", "mark"]
    text: str
    start: int


def pieces(text: str, start: int, end: int) -> Iterator[Piece]:
    """Those of text[start:end], which holds no value."""
    for match in _PIECE.finditer(text, start, end):
        match match.lastgroup:
            case "blank":
                continue
            case "break":
                yield Piece("break", "\n", match.start())
            case "comment":
                yield Piece("comment", match[0].rstrip(), match.start())
            case "word":
                yield Piece("word", match[0], match.start())
            case _:
                yield Piece("mark", match[0], match.start())
