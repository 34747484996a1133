"""Pieces of messages: names and values of a document, short, on one line, printable; counts."""

from collections.abc import Collection
from itertools import islice

_SHOWN = 160  # characters of a name or value in a message
_CONSONANT_Y = tuple(f"{letter}y" for letter in "bcdfghjklmnpqrstvwxz")


def quote(text: str, limit: int = 40) -> str:
    """Return a text of the file in quotes, shortened to `limit` characters for a message."""
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return repr(text)


def short_line(text: object) -> str:
    """Return a name or value of a document as one short line of printable characters."""
    line = str(text)
    if len(line) > _SHOWN:
        line = f"{line[:_SHOWN]}..."
    return line if line.isprintable() else ascii(line)[1:-1]


def one_line(text: str) -> str:
    """Return a message on one line: characters that cannot be printed, line feeds in names too, are escaped."""
    if text.isprintable():
        return text
    escaped: list[str] = []
    for character in text:
        if character.isprintable():
            escaped.append(character)
        else:
            escaped.append(character.encode("unicode_escape").decode())
    return "".join(escaped)


def list_first(names: Collection[str], limit: int) -> str:
    """Return the first names of a list for a message, `limit` at most, and how many others there are: `a, b and 3
    more`."""
    listed = ", ".join(islice(names, limit))
    if len(names) > limit:
        return f"{listed} and {len(names) - limit} more"
    return listed


def plural(count: int, noun: str, nouns: str = "") -> str:
    """Return a count with its noun: `1 epoch`, `2 epochs`, `12,000 entries`; `nouns` where a verb follows."""
    if count == 1:
        return f"1 {noun}"
    if nouns:
        return f"{count:,} {nouns}"
    if noun.endswith(("s", "x", "sh", "nch", "tch")):  # epochs, not epoches
        return f"{count:,} {noun}es"
    if noun.endswith(_CONSONANT_Y):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}s"
