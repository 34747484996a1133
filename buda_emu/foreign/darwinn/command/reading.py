"""Verbs of `buda-emu darwinn` that read packages and run nothing: `inspect`, `check`, `verify`, `link`, `extract`, and
`example`, which makes two packages to try them on."""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from buda_emu.app.cli.output import say, say_json, say_lines, write_json, write_output
from buda_emu.app.cli.verbs import check
from buda_emu.app.documents.kinds import kind_by_name
from buda_emu.foreign import darwinn
from buda_emu.foreign.darwinn.document import Report
from buda_emu.foreign.darwinn.example import example_files
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.reading import RUNTIME
from buda_emu.foreign.darwinn.report import inspect_lines
from buda_emu.foreign.darwinn.summary import Summary, summarise
from buda_emu.support.checker import Severity
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import Exit, HostError
from buda_emu.support.output_places import make_folder
from buda_emu.support.strict_json import strict
from buda_emu.support.version import RESULT_VERSION

if TYPE_CHECKING:
    from buda_emu.foreign.darwinn.verifying import Verification


class _Inspected(NamedTuple):
    """A package that was inspected."""

    path: str
    report: Report
    summary: Summary
    package: Package


_FINDING: Final = Columns[Diagnostic](
    Column("rule", str, lambda finding: finding.rule),
    Column("severity", Severity, lambda finding: finding.severity),
    Column("where", str, lambda finding: finding.where),
    Column("message", str, lambda finding: finding.message),
)
INSPECTED: Final = Columns[_Inspected](
    Column("path", str, lambda inspected: inspected.path),
    Column("verdict", str, lambda inspected: inspected.report.verdict),
    Column("findings", [_FINDING], lambda inspected: inspected.report.diagnostics),
    Column("summary", Summary, lambda inspected: inspected.summary),
    Column("tree", dict[str, Any], lambda inspected: inspected.package.to_dict()),
)
"""The JSON of `darwinn inspect --json`."""


def inspect_verb(args: argparse.Namespace) -> int:
    """Print the package's summary and findings. Exit code 2 for a file that cannot be read."""
    package = darwinn.load(args.file)
    report = package.check()
    summary = summarise(package)
    if args.json:
        say_json(INSPECTED.as_json(_Inspected(args.file, report, summary, package)))
        return 0
    say_lines(inspect_lines(summary, report))
    return 0


KIND = kind_by_name("package")


def check_verb(args: argparse.Namespace) -> int:
    """Check every package against the rules and print the findings. Exit code 0 when all verdicts are ok and no
    finding was raised to an error, 2 otherwise."""
    if args.runtime is None:
        runtime = RUNTIME
    else:
        runtime = args.runtime
    return check.print_results(args, check.check_files(args, KIND), runtime=runtime)


def verify_verb(args: argparse.Namespace) -> int:
    """Compare a package with an uncompiled model and print how they agree. Exit code 0 when the package holds the
    model, 1 when it does not, or when there was nothing to compare."""
    verification = darwinn.verify(darwinn.load(args.file), args.source)
    if args.json:
        say_json({"path": args.file, "source": args.source, "matches": verification.matches, **asdict(verification)})
        if verification.matches:
            return Exit.OK
        return Exit.DIFFERS
    say(f"layers   {'agree' if verification.layers else 'do not agree'}")
    for line in verification.differences:
        say(f"         {line}")
    say(f"weights  {verification.weights - verification.weights_missing:,} of {verification.weights:,} bytes are there")
    say(f"biases   {verification.biases_found} of {verification.biases} found")
    if verification.is_vacuous:
        say("DOUBTFUL: the model has neither weights nor biases between these layers, so no bytes were compared")
    say(f"{args.file} {_verdict(verification)} {args.source}")
    if verification.matches:
        return Exit.OK
    return Exit.DIFFERS


def _verdict(verification: "Verification") -> str:
    """Return in words whether the package holds the model."""
    if verification.matches:
        return "holds"
    if verification.layers and verification.is_vacuous:
        return "holds no byte that would tell it from packages of models other than"
    return "does not hold"


class Linked(TypedDict):
    """The JSON document that `darwinn link --json` prints."""

    path: str
    executable: str
    files: list[str]


def link_verb(args: argparse.Namespace) -> int:
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
    make_folder(args.output)
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


class ExtractedFile(TypedDict):
    """A file that was written."""

    path: str
    bytes: int


class Extracted(TypedDict):
    """The JSON document that `darwinn extract --json` prints."""

    path: str
    files: list[ExtractedFile]


def extract_verb(args: argparse.Namespace) -> int:
    """Write package.dwn, tree.json, and the parameters, chunks and source model of each executable."""
    package = darwinn.load(args.file)
    tree = package.to_dict()  # first: it refuses what would be written many times over
    make_folder(args.output)
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


def example_verb(args: argparse.Namespace) -> int:
    """Write two packages and the models that they were compiled from."""
    make_folder(args.output)
    for name, data in example_files().items():
        write_output(args.output / name, lambda stream, data=data: stream.write(data))
        say(f"{len(data):>8,}  {args.output / name}")
    return 0
