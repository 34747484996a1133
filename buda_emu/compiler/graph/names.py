"""Names of the model as names of a netlist."""

import re
from typing import Final

_SAFE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")
_WORDS: Final = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "none", "host", "nan", "inf"}


def safe_name(text: str) -> str:
    """A name of the model as one of a netlist: letters, digits, points and underscores, and no word of YAML."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "_", text).strip("._") or "value"
    if not _SAFE.match(name) or name.lower() in _WORDS:
        name = f"v_{name}"
    return name


def kept_name(text: str) -> str:
    """A name that stands for itself to the host, as the model has it wherever its letters allow."""
    return text if _SAFE.match(text) else safe_name(text)
