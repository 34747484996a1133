"""`buda-emu fmt`: netlists in one layout."""

import argparse
import sys
from typing import Final

from buda_emu.app.cli.fixing import Changed, difference, replace_file
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
    """Format every file. Exit code 0, with --check and --diff 1 if something would change, 2 for text that "
    "is not YAML."""
    only_say = args.check or args.diff
    read: list[Changed] = []
    refused = 0
    for name in files_below(documents_among(args.file, NETLIST) if args.only_documents else args.file, NETLIST):
        note_names((name,))
        result = _formatted(name)
        if isinstance(result, Changed):
            read.append(result)
            _tell(result, args)
        else:
            complain(render_one(result))
            refused += 1
    changed = sum(not one.same for one in read)
    if args.file != [_STDIN]:
        parts = [(changed, "would be formatted" if only_say else "formatted"), (len(read) - changed, "left unchanged")]
        said = [f"{plural(count, 'file')} {words}" for count, words in (*parts, (refused, "not read")) if count]
        complain(", ".join(said))
    if refused:
        return Exit.REFUSED
    return Exit.DIFFERS if only_say and changed else Exit.OK


def _tell(change: Changed, args: argparse.Namespace) -> None:
    """Write a file again, or say what would change."""
    if args.diff:
        text = difference(change)
        if text:
            say(text)
    elif args.check:
        if not change.same:
            say(f"{change.name}: would be format_text")
    elif change.name == _STDIN:
        say_data(change.after, end="")
    elif not change.same:
        replace_file(change)


def _formatted(name: str) -> Changed | Diagnostic:
    """What becomes of a file, or why it cannot be read."""
    shown = "<stdin>" if name == _STDIN else name
    if name == _STDIN:
        require_open("fmt -", "stdin")
    try:
        data = sys.stdin.buffer.read() if name == _STDIN else read_bytes(name)
        text = decode(data)
        return Changed(name, data, text, format_text(text))
    except UnreadableError as error:
        return error.diagnostic(shown)
