"""`buda-emu darwinn extract`: writes the parts of a package as files."""

import argparse
from typing import Any, TypedDict

from buda_emu.app.cli.output import say, say_json, write_json, write_output
from buda_emu.foreign import darwinn
from buda_emu.report.machine_readable.strict import strict
from buda_emu.support.version import RESULT_VERSION


class ExtractedFile(TypedDict):
    """A file that was written."""

    path: str
    bytes: int


class Extracted(TypedDict):
    """The JSON document that `darwinn extract --json` prints."""

    path: str
    files: list[ExtractedFile]


def main(args: argparse.Namespace) -> int:
    """Write package.dwn, tree.json, and the parameters, chunks and source model of each executable."""
    package = darwinn.load(args.file)
    tree = package.to_dict()  # first: it refuses what would be written many times over
    args.output.mkdir(parents=True, exist_ok=True)
    files: list[tuple[str, Any]] = [("package.dwn", package.raw)]
    for number, executable in enumerate(package.executables):
        stem = f"{number}_{executable.kind.lower()}"
        files += [(f"{stem}_parameters.bin", executable.parameters), (f"{stem}_model.bin", executable.serialized_model)]
        files += [(f"{stem}_chunk_{n}.bin", chunk.bitstream) for n, chunk in enumerate(executable.chunks)]
    for number, part in enumerate(package.parts):
        files.append((f"chip_{number}.dwn", part.raw))
    for name, data in files:
        if data:
            write_output(args.output / name, lambda stream, data=data: stream.write(data))
    write_json(args.output / "tree.json", {"schema_version": RESULT_VERSION, "tree": strict(tree)})
    written = [(str(args.output / name), len(data)) for name, data in files if data]
    if args.json:
        extracted: Extracted = {
            "path": args.file,
            "files": [{"path": name, "bytes": size} for name, size in written],
        }
        say_json(extracted)
        return 0
    for name, size in written:
        say(f"{size:>12,}  {name}")
    say(f"{'':>12}  {args.output / 'tree.json'}")
    return 0
