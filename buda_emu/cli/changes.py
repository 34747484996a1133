"""Changes of the user's own files: shown as a diff, or written in place."""

import os
from difflib import unified_diff
from typing import Final

from buda_emu.files import write_file
from buda_emu.records import dataclass

_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Changed:
    """A text file: its name, its bytes, their text and the text that it shall have."""

    name: str
    data: bytes
    before: str
    after: str

    @property
    def same(self) -> bool:
        """Whether nothing changes."""
        return self.before == self.after


def difference(change: Changed) -> str:
    """In the form of `diff -u`; "" for none."""
    shown = "<stdin>" if change.name == "-" else change.name
    lines = unified_diff(change.before.splitlines(), change.after.splitlines(), shown, shown, lineterm="")
    return "\n".join(lines)


def replace_file(change: Changed) -> None:
    """Write the new text in the file's place, with the byte order mark if it had one. Raises OSError."""
    data = change.after.encode("utf-8")
    data = _BOM + data if change.data.startswith(_BOM) else data
    write_file(os.fspath(change.name), lambda stream: stream.write(data))
