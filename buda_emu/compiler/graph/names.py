"""Names of the model as names of a netlist."""

import re
from typing import Final

_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
MOST_LETTERS: Final = 200
"""Of a name in a netlist: keys of YAML end at 1024 characters, and what is made of an op has its name and more."""
_WORDS: Final = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "none", "host", "nan", "inf"}


def safe_name(text: str) -> str:
    """A name of the model as one of a netlist: letters, digits, points and underscores, no word of YAML, and of a very
    long one the beginning and the end."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "_", text).strip("._") or "value"
    if not _SAFE.match(name) or name.lower() in _WORDS:
        name = f"v_{name}"
    if len(name) > MOST_LETTERS:
        name = f"{name[: MOST_LETTERS // 2].strip('._')}__{name[-MOST_LETTERS // 2 + 2 :].strip('._')}"
    return name


def kept_name(text: str) -> str:
    """A name that stands for itself to the host, as the model has it wherever its letters allow."""
    return text if _SAFE.match(text) and len(text) <= MOST_LETTERS else safe_name(text)


def shown_name(text: str, most: int = MOST_LETTERS) -> str:
    """A name of the model in a message or comment, or words that hold some: on one line, without control characters,
    not much longer than `most` letters."""
    plain = "".join(letter if letter.isprintable() else f"\\u{{{ord(letter):x}}}" for letter in text)
    return plain if len(plain) <= most else f"{plain[: most // 2]}...{plain[-most // 4 :]}"
