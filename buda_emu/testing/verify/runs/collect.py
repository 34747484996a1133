"""The netlists that a test is about, and the description of one test run."""

import glob
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from buda_emu.emulator.image.opened import image_beside
from buda_emu.emulator.options import Machine
from buda_emu.netlist.load import looks_like_netlist, may_be_cut_off
from buda_emu.spec.precision import Precision
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError
from buda_emu.support.options import declared_options
from buda_emu.support.records import dataclass
from buda_emu.testing.verify.result import CaseResult, Status

if TYPE_CHECKING:
    from buda_emu.emulator.inputs.reference import Files
    from buda_emu.testing.verify.comparison import Mode


_TOKEN: Final = re.compile(r"\s*(?:(\(|\))|([^\s()]+))")

Selects = Callable[[str], bool]


def collect(paths: Iterable[str], on_left_out: Callable[[str], object] = lambda _path: None) -> list[str]:
    """Return the netlist files that the paths stand for, in the order of the paths, a folder's by name, each once. A
    folder stands for the YAML files below it that have sections of a netlist, or for the image beside such a file that
    holds the same netlist, with its parameters; a file or a pattern for the files of this name. `on_left_out` gets each
    file of a folder that may be what is left of a netlist. Raises HostError for a path without files."""
    collected: dict[str, None] = {}
    for path in paths:
        files = list(_files_of_path(path, on_left_out))
        if not files:
            raise HostError(_no_files_message(path))
        collected |= dict.fromkeys(files)
    return list(collected)


def part(names: Sequence[str], place: int, count: int) -> list[str]:
    """Return every `count`-th name from number `place` on, counted from 1: a share of the names for one of `count`
    machines. All shares together have every name once; one may be empty."""
    return list(names[place - 1 :: count])


def _files_of_path(path: str, on_left_out: Callable[[str], object]) -> Iterator[str]:
    """Yield the files that a path stands for: itself, netlists below a folder, or matches of a pattern; none if there
    are none. `on_left_out` gets files as in `collect`."""
    if os.path.isdir(path):  # noqa: PTH112 - names are shown as they were given
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                file = os.path.join(folder, name)  # noqa: PTH118
                if looks_like_netlist(file):
                    yield image_beside(file) or file
                elif may_be_cut_off(file):
                    on_left_out(file)
    elif os.path.exists(path):  # noqa: PTH110
        yield path
    elif glob.has_magic(path):
        for match in sorted(glob.glob(path, recursive=True)):  # noqa: PTH207
            yield from _files_of_path(match, on_left_out)


def _no_files_message(path: str) -> str:
    """Return the text of the error for a path without files; for a file that is not there, with a similar name of its
    folder."""
    if os.path.isdir(path):  # noqa: PTH112
        return f"{path}: no netlist in this folder"
    if glob.has_magic(path):
        return f"{path}: no file matches this pattern"
    parent = Path(path).parent
    names: list[str] = []
    if parent.is_dir():
        names = sorted(neighbour.name for neighbour in parent.iterdir())
    hint = near(Path(path).name, names)
    suffix = ""
    if hint:
        suffix = f" ({hint})"
    return f"{path}: there is no such file{suffix}"


def selection(expression: str) -> Selects:
    """Return a function that tells whether an expression selects a path; the expression has words, `and`, `or`, `not`
    and parentheses. A word selects the paths that it is part of, whatever the case. Raises HostError for a malformed
    expression."""
    return _Parser(expression).parse()


class _Parser:
    """A parser of the expressions of `selection`, in which `not` binds before `and`, `and` before `or`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [match[1] or match[2] for match in _TOKEN.finditer(text)]
        self._next = 0

    def parse(self) -> Selects:
        """Return the function for the whole expression. Raises HostError for a malformed one, also for words after its
        end."""
        result = self._parse_or()
        if self._next < len(self._tokens):
            raise self._expression_error(f"{self._tokens[self._next]!r} is not expected")
        return result

    def _parse_or(self) -> Selects:
        """Read parts joined by `or` and return the function for them."""
        parts = [self._parse_and()]
        while self._skip_token("or"):
            parts.append(self._parse_and())
        if len(parts) == 1:
            return parts[0]
        return lambda path: any(part(path) for part in parts)

    def _parse_and(self) -> Selects:
        """Read parts joined by `and` and return the function for them."""
        parts = [self._parse_not()]
        while self._skip_token("and"):
            parts.append(self._parse_not())
        if len(parts) == 1:
            return parts[0]
        return lambda path: all(part(path) for part in parts)

    def _parse_not(self) -> Selects:
        """Read a word or parentheses after any number of `not`, and return the function for it."""
        negated = False
        while self._skip_token("not"):
            negated = not negated
        inner = self._parse_word()
        if not negated:
            return inner
        return lambda path: not inner(path)

    def _parse_word(self) -> Selects:
        """Read a word, or an expression in parentheses, and return the function for it. Raises HostError where neither
        stands."""
        if self._skip_token("("):
            inner = self._parse_or()
            if not self._skip_token(")"):
                raise self._expression_error("a ( is not closed")
            return inner
        if self._next == len(self._tokens):
            raise self._expression_error("a word is missing at the end")
        word = self._tokens[self._next]
        if word in ("and", "or", ")"):
            raise self._expression_error(f"a word is missing before {word!r}")
        self._next += 1
        folded = word.lower()
        return lambda path: folded in path.lower()

    def _skip_token(self, token: str) -> bool:
        """Go past the next token if it is `token`, and return whether it was; else stay."""
        if self._next < len(self._tokens) and self._tokens[self._next] == token:
            self._next += 1
            return True
        return False

    def _expression_error(self, text: str) -> HostError:
        """Make the error that says what is wrong with the expression; the caller raises it."""
        return HostError(f"-k {self._text!r}: {text}")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that decide a verdict, beside the netlist."""

    precision: Precision = "device"  # of the run under test
    expected: Precision = "ideal"  # of the run that it is compared with
    compare: "Mode" = "vendor"
    seed: int = 0
    arch: str | None = None
    programs: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    machine: Machine = field(default_factory=lambda: Machine(threads=1))  # of one case; never changes results
    cache: bool = True  # take netlists from the user's caches; never changes results
    per_op: bool = False
    detail: bool = False  # also the data of pictures
    perf: bool = False  # also compare `performance-check` with modelled cycles
    threshold: float = 0.99  # PCC below which an op counts as the first to go wrong
    allow_pickle: bool = False  # load pickled tensors of images
    coverage: bool = False  # record the features that the netlist exercises

    def as_json(self) -> dict[str, Any]:
        """Return the settings as plain data, with those of the machine beside the others."""
        content: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if name == "machine":
                content |= {keyword: value.get(keyword) for keyword in declared_options(Machine)}
            else:
                content[name] = value
        return content

    def arguments(self, names: Container[str] | None = None) -> list[str]:
        """Return the command-line arguments that give these settings; defaults are left out. Of the parameters, those
        in `names` are given, all if that is None."""
        arguments: list[str] = []
        for option in ("precision", "expected", "compare", "seed", "arch", "threshold"):
            value = getattr(self, option)
            if value != getattr(_DEFAULTS, option):
                arguments += [f"--{option}", str(value)]
        for name in self.programs:
            arguments += ["--program", name]
        if self.perf:
            arguments.append("--perf")
        if self.allow_pickle:
            arguments.append("--allow-pickle")
        for name, value in dict(self.parameters).items():
            if names is not None and name not in names:
                continue
            arguments += ["--param", f"{name.removeprefix('$')}={value}"]
        return arguments


_DEFAULTS = Settings()


@dataclass(frozen=True, slots=True)
class Case:
    """One netlist to test, with how to test it. `name` is as the caller wrote it; `text` is the content, None where it
    is read from `path`; `reference` are tensors from outside; `defaults` are name and content of a defaults file
    (NETLIST 5)."""

    name: str
    path: str
    text: bytes | None = None
    reference: "Files | None" = None
    defaults: tuple[str, bytes] | None = None
    settings: Settings = field(default_factory=Settings)
    shares_reference: bool = False  # with other netlists, whose tensors lie in the same folder

    def command(self, parameters: Container[str] | None = None) -> str:
        """Return the shell command that tests this netlist again with these settings. `parameters` are those that its
        programs take; None, where they are not known, gives all."""
        words = ["buda-emu", "test", self.name, *self.settings.arguments(parameters)]
        if self.reference is not None:
            words += ["--reference", self.reference.where]
        if self.defaults is not None:
            words += ["--defaults", self.defaults[0]]
        return shlex.join(words)


def mark_shared_references(cases: Sequence[Case]) -> list[Case]:
    """Return copies of the cases in order, with `shares_reference` True for each case whose reference folder (or
    archive) is also that of another case, and False for all others. Files of a shared folder need not belong to each
    netlist."""
    folders = Counter(case.reference.where for case in cases if case.reference is not None)
    return [
        replace(case, shares_reference=case.reference is not None and folders[case.reference.where] > 1)
        for case in cases
    ]


def unfinished_result(case: Case, status: Status, text: str, seconds: float) -> CaseResult:
    """Return a result for a case whose process gave none (timeout, crash), or that has only begun: `status`, the reason
    `text`, the seconds that it took, and the settings of the case."""
    settings = case.settings
    return CaseResult(
        netlist=case.name,
        status=status,
        message=text,
        arch=settings.arch or "",
        precision=settings.precision,
        compare=settings.compare,
        expected=case.reference.where if case.reference is not None else settings.expected,
        seed=settings.seed,
        seconds=seconds,
        command=case.command(),
    )
