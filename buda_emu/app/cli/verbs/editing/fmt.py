"""`buda-emu fmt`: format netlists in one layout."""

import argparse
import sys
from typing import Final

from buda_emu.app.cli.fixing import TextChange, replace_file, unified_difference
from buda_emu.app.cli.output import complain, require_open, say, say_data
from buda_emu.app.documents.kinds import NETLIST, documents_among, files_below
from buda_emu.netlist.formatter import format_text
from buda_emu.netlist.yaml_reader import UnreadableError, decode, read_bytes
from buda_emu.support.checker import Diagnostic
from buda_emu.support.checker.render import render_one
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import Exit
from buda_emu.support.screen import note_names

_STDIN: Final = "-"


def main(args: argparse.Namespace) -> int:
    """Format every file. Exit code 0; with --check and --diff 1 if something would change; 2 for text that is not
    YAML."""
    dry_run = args.check or args.diff
    changes: list[TextChange] = []
    refused = 0
    paths = args.file
    if args.only_documents:
        paths = documents_among(paths, NETLIST)
    for name in files_below(paths, NETLIST, to_write=True):
        note_names((name,))
        result = _format_file(name)
        if isinstance(result, TextChange):
            changes.append(result)
            _apply_change(result, args)
        else:
            complain(render_one(result))
            refused += 1
    changed = sum(not change.is_unchanged for change in changes)
    if args.file != [_STDIN]:
        _print_counts(changed, len(changes) - changed, refused, dry_run=dry_run)
    if refused:
        return Exit.REFUSED
    return Exit.DIFFERS if dry_run and changed else Exit.OK


def _print_counts(changed: int, unchanged: int, refused: int, *, dry_run: bool) -> None:
    """Print how many files were formatted, left unchanged and not read, to standard error."""
    counts = {
        "would be formatted" if dry_run else "formatted": changed,
        "left unchanged": unchanged,
        "not read": refused,
    }
    complain(", ".join(f"{plural(count, 'file')} {words}" for words, count in counts.items() if count))


def _apply_change(change: TextChange, args: argparse.Namespace) -> None:
    """Write a file in the new layout, or print it for standard input; with --check or --diff only print what would
    change."""
    if args.diff:
        text = unified_difference(change)
        if text:
            say(text)
    elif args.check:
        if not change.is_unchanged:
            say(f"{change.name}: would be formatted")
    elif change.name == _STDIN:
        say_data(change.after, end="")
    elif not change.is_unchanged:
        replace_file(change)


def _format_file(name: str) -> TextChange | Diagnostic:
    """Return the change of a file, or the finding that says why it cannot be read."""
    shown = "<stdin>" if name == _STDIN else name
    if name == _STDIN:
        require_open("fmt -", "stdin")
    try:
        if name == _STDIN:
            data = sys.stdin.buffer.read()
        else:
            data = read_bytes(name)
        text = decode(data)
        return TextChange(name, data, text, format_text(text))
    except UnreadableError as error:
        return error.diagnostic(shown)
