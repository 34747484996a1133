"""`buda-emu darwinn link`: writes base addresses into instruction chunks."""

import argparse
from typing import Any, TypedDict

from buda_emu.app.cli.output import say, say_json, write_output
from buda_emu.foreign import darwinn
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError


class Linked(TypedDict):
    """The JSON document that `darwinn link --json` prints."""

    path: str
    executable: str
    files: list[str]


def main(args: argparse.Namespace) -> int:
    """Link the chunks of the chosen executable, or of the main one, and write each to a file."""
    package = darwinn.load(args.file)
    chosen = [candidate for candidate in package.executables if args.executable in (None, candidate.kind)]
    if not chosen:
        kinds = ", ".join(candidate.kind for candidate in package.executables)
        raise HostError(f"{args.file} has no executable {args.executable}: it has {kinds}")
    if args.executable is None:
        executable = package.main
    else:
        executable = chosen[0]
    chunks = darwinn.link(executable, _addresses(args.address))
    args.output.mkdir(parents=True, exist_ok=True)
    for number, chunk in enumerate(chunks):
        write_output(args.output / f"chunk_{number}.bin", lambda stream, chunk=chunk: stream.write(chunk))
    if args.json:
        files = [str(args.output / f"chunk_{number}.bin") for number in range(len(chunks))]
        linked: Linked = {"path": args.file, "executable": executable.kind, "files": files}
        say_json(linked)
    else:
        say(f"{plural(len(chunks), 'chunk')} of {executable.kind}: {args.output}")
    return 0


def _addresses(arguments: list[str]) -> dict[str, Any]:
    """Parse texts like `input:NAME=N` into the mapping of base addresses that `darwinn.link` takes.

    Raises HostError for a text of another form.
    """
    addresses: dict[str, Any] = {"inputs": {}, "outputs": {}}
    for text in arguments:
        target, equals, number = text.rpartition("=")
        kind, _, name = target.partition(":")
        try:
            address = int(number, 0)
        except ValueError:
            raise HostError(f"--address {text}: {number!r} is not a number") from None
        if equals and kind in ("input", "output") and name:
            addresses[f"{kind}s"].setdefault(name, []).append(address)
        elif equals and target in ("parameter", "scratch"):
            addresses[target] = address
        else:
            raise HostError(f"--address {text}: expected parameter=N, scratch=N, input:NAME=N or output:NAME=N")
    return addresses
