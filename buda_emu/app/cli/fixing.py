"""Changes of the user's own files: exact hints of findings applied to netlists, shown as a diff or written in place."""

import argparse
import os
from collections.abc import Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from buda_emu.app.cli.findings import told
from buda_emu.app.cli.output import complain, say
from buda_emu.app.documents.kinds import NETLIST, files_below, kind_of
from buda_emu.netlist.fixes import apply_fixes
from buda_emu.netlist.load import check_text
from buda_emu.netlist.yaml_reader import UnreadableError, decode, read_bytes
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.files import write_file
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.support.checker import Diagnostic


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


_STDIN: Final = "-"


def fix_files(args: argparse.Namespace, *, write: bool) -> int:
    """Fix the netlists among the files of `check`, or print the difference; documents of other kinds are left alone.

    Returns 1 where something would change and nothing is written, else 0. Raises HostError for standard input, OSError.
    """
    if _STDIN in args.file:
        raise HostError("check: --fix and --diff work on files, not on standard input")
    changed = 0
    removed = 0
    for name in files_below(args.file):
        found = _fixed(name, args) if kind_of(name) is NETLIST else None
        if found is None or found[0].same:
            continue
        change, count = found
        changed += 1
        removed += count
        if write:
            replace_file(change)
        else:
            say(difference(change))
    if changed:
        words = "fixed" if write else "would be fixed"
        complain(f"{plural(removed, 'finding')} {words} in {plural(changed, 'file')}")
    return Exit.DIFFERS if changed and not write else Exit.OK


def _fixed(name: str, args: argparse.Namespace) -> tuple[Changed, int] | None:
    """A file with its fixes and how many findings they removed; None if it is not text, which the check says."""
    try:
        data = read_bytes(name)
        text = decode(data)
    except UnreadableError:
        return None

    def check(text: str) -> "Sequence[Diagnostic]":
        return told(check_text(text, name, args.arch, strict=args.strict).diagnostics, args)

    result = apply_fixes(text, check, unsafe=args.unsafe_fixes)
    return Changed(name, data, text, result.text), len(result.removed)
