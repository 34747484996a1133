"""Pieces of messages: names and values of a document, short, on one line, printable; counts."""

_SHOWN = 160  # characters of a name or value in a message
_CONSONANT_Y = tuple(f"{letter}y" for letter in "bcdfghjklmnpqrstvwxz")


def quote(text: str, limit: int = 40) -> str:
    """A text of the file in quotes, shortened for a message."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def short_line(text: object) -> str:
    """A name or value of a document as one short line of printable characters."""
    line = str(text)
    line = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
    return line if line.isprintable() else ascii(line)[1:-1]


def one_line(text: str) -> str:
    """A whole message on one line: what cannot be printed, line feeds in names too, is escaped."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def plural(count: int, noun: str, nouns: str = "") -> str:
    """A count with what is counted: `1 epoch`, `2 epochs`, `12,000 entries`; `nouns` where a verb follows."""
    if count == 1:
        return f"1 {noun}"
    if nouns:
        return f"{count:,} {nouns}"
    if noun.endswith(("s", "x", "sh", "nch", "tch")):  # epochs, not epoches
        return f"{count:,} {noun}es"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith(_CONSONANT_Y) else f"{count:,} {noun}s"
