"""Pieces of a document in messages: short, on one line, printable."""

_SHOWN = 160  # characters of a name or value in a message


def quoted(text: str, limit: int = 40) -> str:
    """A text of the file in quotes, shortened for a message."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def shown(text: object) -> str:
    """A name or value of a document as one short line of printable characters."""
    line = str(text)
    line = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
    return line if line.isprintable() else ascii(line)[1:-1]
