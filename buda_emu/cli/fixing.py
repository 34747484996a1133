"""`buda-emu check --fix`: applies the exact hints of findings to the files."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from buda_emu.checker.text import plural
from buda_emu.cli.changes import Changed, difference, replace_file
from buda_emu.cli.findings import told
from buda_emu.cli.output import complain, say
from buda_emu.documents.kinds import NETLIST, files_below, kind_of
from buda_emu.errors import Exit, HostError
from buda_emu.netlist.fixes import fixed
from buda_emu.netlist.load import check_text
from buda_emu.netlist.yaml_reader import UnreadableError, decode, read_bytes

if TYPE_CHECKING:
    from buda_emu.checker import Diagnostic

_STDIN: Final = "-"


def fix_files(args: argparse.Namespace, *, write: bool) -> int:
    """Fix the netlists among the files of `check`, or print the difference; documents of other kinds are left alone.

    Returns 1 where something would change and nothing is written, else 0. Raises HostError for standard input, OSError.
    """
    if _STDIN in args.file:
        raise HostError("check: --fix and --diff work on files, not on standard input")
    changed, removed = 0, 0
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

    result = fixed(text, check, unsafe=args.unsafe_fixes)
    return Changed(name, data, text, result.text), len(result.removed)
