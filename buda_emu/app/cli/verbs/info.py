"""`buda-emu info`: identify any file: its kind, its figures, and whether its rules accept it."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from buda_emu.app.cli.config import refuses
from buda_emu.app.cli.findings import current_choice
from buda_emu.app.cli.output import say, say_json, say_lines, write_picture
from buda_emu.app.documents.kinds import NETLIST, files_below, kind_by_name, kind_of, stage_of
from buda_emu.netlist.load import holds_sections
from buda_emu.support.checker.diagnostic import SEVERITIES, Severity
from buda_emu.support.checker.render import counts
from buda_emu.support.checker.result import Options
from buda_emu.support.checker.text import plural, short_line
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import DocumentError, Exit, HostError
from buda_emu.support.files import is_model


def main(args: argparse.Namespace) -> int:
    """Print what each file is. Exit code 0 if every file is accepted by the rules of its kind, 2 otherwise."""
    names = files_below(args.file)
    if args.timeline is not None and len(names) != 1:
        raise HostError(f"--timeline is of one document, not of {plural(len(names), 'document')}")
    files = [_describe_file(name) for name in names]
    if args.json:
        say_json({"files": [FILES.as_json(file) for file in files]})
    else:
        _print_files(files)
    if args.timeline is not None:
        write_picture(args.timeline, kind_of(names[0]).load(names[0]).timeline())
    if not all(file.accepted for file in files):
        return Exit.REFUSED
    return Exit.OK


@dataclass(frozen=True, slots=True)
class _File:
    """A file: its kind, the number of its findings by severity, and its figures."""

    path: str
    kind: str
    findings: Mapping[str, int]
    summary: Mapping[str, int | str]
    stage: str | None = None
    """The description of a file of another stage of the kind's tool chain, None for a document of the kind."""

    @property
    def accepted(self) -> bool:
        """True where the rules of its kind accept it."""
        return not self.findings["error"]


def _count_findings(severity: Severity, file: _File) -> int:
    """Return the number of findings of a severity."""
    return file.findings[severity]


FILES: Final = Columns[_File](
    *(Column[_File](f"{severity}s", int, partial(_count_findings, severity)) for severity in SEVERITIES),
    Column("path", str, lambda file: file.path),
    Column("kind", str, lambda file: file.kind),
    Column("stage", str | None, lambda file: file.stage),
    Column("accepted", bool, lambda file: file.accepted),
    Column("summary", dict[str, int | str], lambda file: file.summary),
)
"""The JSON of `info --json` for one file."""


def _print_files(files: Sequence[_File]) -> None:
    """Print the files as text, with an empty line between them."""
    for number, file in enumerate(files):
        if number:
            say()
        say_lines(_file_lines(file))


def _describe_file(name: str) -> _File:
    """Check a file as a document of the kind that its content shows. Return its kind, its findings by severity, and its
    figures (none if it is refused as a whole)."""
    kind = kind_of(name)
    result = kind.check(name, Options())
    diagnostics = current_choice().filter_findings(result.diagnostics, refuses)
    summary: Mapping[str, int | str] = {}
    with suppress(DocumentError):
        summary = kind.load(name).summary()
    stage = stage_of(kind, name)
    return _File(
        path=name,
        kind=kind.name,
        findings=counts(diagnostics),
        summary=summary,
        stage=stage.words if stage is not None else None,
    )


def _file_lines(file: _File) -> Iterator[str]:
    """Yield the lines of text about one file."""
    if is_model(file.path):
        yield f"{file.path}: a model, not a document: `buda-emu compile {file.path}` makes a netlist of it"
        return
    kind = kind_by_name(file.kind)
    finding_counts = [plural(file.findings[word], word) for word in SEVERITIES if file.findings[word]]
    verdict = "accepted" if file.accepted else "refused"
    hint = ""
    if finding_counts:
        hint = f"; `buda-emu check {file.path}` shows them"
    words = kind.words
    stage = stage_of(kind, file.path)
    if stage is not None:
        yield f"{file.path}: {stage.words}, which has no rules of its own: {stage.advice}"
        return
    if kind is NETLIST and not file.accepted and not holds_sections(file.path):
        words = f"of no kind that is known here; read as a {kind.words}"
    yield f"{file.path}: {words}, {', '.join([verdict, *finding_counts])}{hint}"
    width = max(map(len, file.summary), default=0)
    for name, value in file.summary.items():
        text = f"{value:,}" if isinstance(value, int) else short_line(value)
        yield f"  {name:{width}}  {text}".rstrip()
