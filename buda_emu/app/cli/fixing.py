"""Changes to the user's files: exact fixes of findings applied to netlists, shown as a diff or written in place."""

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from buda_emu.app.cli.findings import select_findings
from buda_emu.app.cli.output import complain, say
from buda_emu.app.documents.kinds import NETLIST, files_below, kind_of
from buda_emu.netlist.fixes import apply_fixes
from buda_emu.netlist.load import check_text
from buda_emu.netlist.yaml_reader import UnreadableError, decode, read_bytes
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.files import write_file
from buda_emu.support.line_changes import hunk_lines
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from buda_emu.support.checker import Diagnostic


_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text file with its name, its bytes, their text, and the text that is to replace it."""

    name: str
    data: bytes
    before: str
    after: str

    @property
    def is_unchanged(self) -> bool:
        """Return whether the new text is the old one."""
        return self.before == self.after


def unified_difference(change: TextChange) -> str:
    """Return a change in the form of `diff -u`; "" if nothing changes."""
    shown = "<stdin>" if change.name == "-" else change.name
    hunks = list(hunk_lines(change.before.splitlines(), change.after.splitlines()))
    if not hunks:
        return ""
    return "\n".join([f"--- {shown}", f"+++ {shown}", *hunks])


def replace_file(change: TextChange) -> None:
    """Write the new text in place of the file, with a byte order mark if the file had one. Raises OSError."""
    data = change.after.encode("utf-8")
    if change.data.startswith(_BOM):
        data = _BOM + data
    write_file(os.fspath(change.name), lambda stream: stream.write(data))


_STDIN: Final = "-"


def fix_files(args: argparse.Namespace, *, write: bool) -> int:
    """Apply the fixes of findings to the netlists among the files of `check`, or print the difference. Documents of
    other kinds are left alone.

    Returns 1 if something would change and nothing is written, else 0. Raises HostError for standard input, and
    OSError.
    """
    if _STDIN in args.file:
        raise HostError("check: --fix and --diff work on files, not on standard input")
    changed = 0
    removed = 0
    for change, count in _changes(args):
        changed += 1
        removed += count
        if write:
            replace_file(change)
        else:
            say(unified_difference(change))
    if changed:
        words = "fixed" if write else "would be fixed"
        complain(f"{plural(removed, 'finding')} {words} in {plural(changed, 'file')}")
    return Exit.DIFFERS if changed and not write else Exit.OK


def _changes(args: argparse.Namespace) -> Iterator[tuple[TextChange, int]]:
    """Yield the change of each netlist whose text the fixes alter, and the number of findings that the change
    removes."""
    for name in files_below(args.file, to_write=True):
        if kind_of(name) is not NETLIST:
            continue
        fix = _fix_text(name, args)
        if fix is not None and not fix[0].is_unchanged:
            yield fix


def _fix_text(name: str, args: argparse.Namespace) -> tuple[TextChange, int] | None:
    """Return a file's change and the number of findings that it removes; None if the file is not text, which the check
    reports."""
    try:
        data = read_bytes(name)
        text = decode(data)
    except UnreadableError:
        return None

    def check(text: str) -> "Sequence[Diagnostic]":
        """Return the findings of a text that the command's options select."""
        return select_findings(check_text(text, name, args.arch, strict=args.strict).diagnostics, args)

    result = apply_fixes(text, check, unsafe=args.unsafe_fixes)
    return TextChange(name, data, text, result.text), len(result.removed)
