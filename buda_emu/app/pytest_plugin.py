"""A plugin of pytest: `pytest netlists/` tests netlists as `buda-emu test` does (docs/netlists/ci.md).

It looks for YAML files in the files and folders of the command line, and in the folders of the ini option
`buda_emu_netlists`. A folder on the command line that holds Python files, other than `conftest.py`, is a folder of
tests, whose YAML files are their data: it is left out. Nothing heavy is imported before the first netlist is tested.
"""

import argparse
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pytest

from buda_emu.netlist.load import YAML_SUFFIXES, looks_like_netlist
from buda_emu.support.errors import HostError
from buda_emu.support.screen import harmless, on_one_line, plain

if TYPE_CHECKING:
    from buda_emu.app.cli.parser import ExampleParser
    from buda_emu.testing.verify.result import CaseResult

_OPTION = "buda_emu"
_INI = "buda_emu_netlists"
_ANY_NETLIST = "netlist.yaml"  # stands for a netlist where options are examined; it is not read
EFFECTIVE: Final = frozenset({
    "precision", "expected", "reference", "compare", "defaults", "seed", "arch", "program", "param", "memory_limit",
    "cache", "allow_pickle", "per_op", "perf", "threshold", "config",
})  # fmt: skip
"""Arguments of `buda-emu test` that have an effect on a test of pytest; all others are refused."""
_VERB_INSTEAD = "only `buda-emu test` has it"
_OWN = "pytest has its own"
_INSTEAD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("k", "lf", "maxfail", "durations", "junitxml", "verbose", "quiet", "color"), _OWN),
    "path": "pytest takes paths on its own command line",
    "workers": "pytest-xdist has -n",
}
"""The means of pytest in place of an argument that is refused, by the argument."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command line option `--buda-emu` and the ini option `buda_emu_netlists`."""
    group = parser.getgroup("buda-emu", "netlists")
    group.addoption(
        "--buda-emu", dest=_OPTION, default="", metavar="OPTIONS", help="options of `buda-emu test`, in one word"
    )
    parser.addini(_INI, "folders whose netlists are tested, from the root directory", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Raise UsageError, before any test, for folders that do not exist and for options without an effect on a test."""
    _require_folders(config)
    options = str(config.getoption(_OPTION))
    if not options:
        return
    try:
        _require_effect(options)
    except (ValueError, OSError, HostError) as error:
        raise pytest.UsageError(f"--buda-emu={options}: {error}") from None
    except SystemExit:  # argparse has printed what is wrong
        raise pytest.UsageError(f"--buda-emu={options}: not what `buda-emu test` takes, as said above") from None


def _require_folders(config: pytest.Config) -> None:
    """Raise UsageError if a folder of the ini option does not exist or is a file."""
    folders: list[str] = config.getini(_INI)
    for folder in folders:
        path = config.rootpath / folder
        if path.is_dir():
            continue
        reason = "is a file, not a folder" if path.exists() else "does not exist"
        raise pytest.UsageError(f"{_INI}: {_shown_name(str(path))} {reason}")


def _require_effect(options: str) -> None:
    """Raise HostError for options of the verb `test` that have no effect on a test of pytest, and for a reference or a
    file of defaults that cannot be read; ValueError for an open quote, SystemExit for an unknown option."""
    words = _command_line(options, _ANY_NETLIST)
    parser = _configured_parser(words)
    args = parser.parse_args(words)
    defaults = parser.parse_args(_command_line("", _ANY_NETLIST))
    refusals: list[str] = []
    for name, value in vars(args).items():
        if name not in EFFECTIVE and value != getattr(defaults, name):
            refusals.append(f"{_spelling(parser.below['test'], name)} ({_INSTEAD.get(name, _VERB_INSTEAD)})")
    if refusals:
        raise HostError(f"without effect in pytest: {', '.join(refusals)}")
    if args.reference is not None or args.defaults is not None:
        _make_cases(args, _ANY_NETLIST)


def _make_cases(args: argparse.Namespace, name: str) -> Any:
    """Return the cases of `buda-emu test` for a netlist. Raises HostError for files of the options that cannot be
    read."""
    from buda_emu.app.cli.verbs.test import make_cases

    return make_cases(args, [name])


def _spelling(parser: "ExampleParser", name: str) -> str:
    """Return an argument as it is written on the command line, with its other spellings: `-x/--maxfail`."""
    spellings: list[str] = []
    for action in parser.arguments:
        if action.dest == name:
            spellings += action.option_strings or [str(action.metavar)]
    return "/".join(spellings)


def _parse_options(options: str, name: str) -> argparse.Namespace:
    """Parse options of the verb `test`, for the netlist `name`, with the settings of the project as defaults. Raises
    ValueError for an open quote, SystemExit for an unknown option, and OSError and HostError for settings that cannot
    be read."""
    words = _command_line(options, name)
    return _configured_parser(words).parse_args(words)


def _command_line(options: str, name: str) -> list[str]:
    """Return the words of a command that tests the netlist `name`. Raises ValueError for an open quote."""
    return ["test", *shlex.split(options), "--", name]


def _configured_parser(words: list[str]) -> "ExampleParser":
    """Return the parser of the verb `test` with the settings of the project as defaults. Raises OSError and HostError
    for settings that cannot be read."""
    from buda_emu.app.cli.config import configure
    from buda_emu.app.cli.main import VERBS, build_parser

    parser = build_parser("test")
    configure(parser.below["test"], "test", VERBS, words)
    return parser


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "NetlistFile | None":
    """Return a collector for a netlist, None for any other file and for netlists outside of the chosen folders."""
    if file_path.suffix.lower() not in YAML_SUFFIXES:
        return None
    files, folders = _chosen_paths(parent.config)
    is_below = any(folder in file_path.parents for folder in folders)
    if file_path in files or (is_below and looks_like_netlist(str(file_path))):
        name = os.path.relpath(file_path, parent.config.rootpath).replace(os.sep, "/")
        names: dict[str, str] = {}
        if _shown_name(name) != name:
            names = {"name": _shown_name(file_path.name), "nodeid": _shown_name(name)}
        return NetlistFile.from_parent(parent, path=file_path, **names)  # type: ignore[reportUnknownMemberType]
    return None


_CHOSEN_PATHS: pytest.StashKey[tuple[frozenset[Path], tuple[Path, ...]]] = pytest.StashKey()


def _chosen_paths(config: pytest.Config) -> tuple[frozenset[Path], tuple[Path, ...]]:
    """Return the files of the command line, which are tested whatever they contain, and the folders whose netlists are
    tested."""
    if _CHOSEN_PATHS not in config.stash:
        words: Iterable[str] = ()
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            words = config.args
        paths = [config.invocation_params.dir / word.partition("::")[0] for word in words]
        ini: list[str] = config.getini(_INI)
        folders = [path for path in paths if path.is_dir() and not _has_python(path)]
        folders += [config.rootpath / folder for folder in ini]
        files = frozenset(Path(os.path.normpath(path)) for path in paths if path.is_file())
        config.stash[_CHOSEN_PATHS] = files, tuple(Path(os.path.normpath(folder)) for folder in folders)
    return config.stash[_CHOSEN_PATHS]


def _shown_name(name: str) -> str:
    """Return the name of a file in a form that can be printed on one line and sent to another process."""
    return _encodable(on_one_line(name))


def _encodable(text: str) -> str:
    """Escape characters that UTF-8 cannot encode, such as half of a surrogate pair."""
    return text.encode("utf-8", "backslashreplace").decode()


def _has_python(folder: Path) -> bool:
    """Return whether there is a Python file in a folder or below it, other than `conftest.py` with settings and
    fixtures."""
    return any(name.endswith(".py") and name != "conftest.py" for _, _, names in os.walk(folder) for name in names)


class NetlistFile(pytest.File):
    """A collector of a netlist file, which is a single test."""

    def collect(self) -> "Iterable[NetlistItem]":
        """Yield the test of the netlist."""
        yield NetlistItem.from_parent(self, name="netlist")  # type: ignore[reportUnknownMemberType]


class NetlistFailureError(Exception):
    """A netlist does not pass; `result` says why."""

    def __init__(self, result: "CaseResult") -> None:
        super().__init__(f"{_shown_name(result.netlist)}: {result.status}")
        self.result = result


class NetlistItem(pytest.Item):
    """The test of one netlist, which runs in this process. `funcargs` is empty: a netlist takes no fixtures, but
    pytest-lsp asks every item for it."""

    funcargs: Final[Mapping[str, Any]] = MappingProxyType({})

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """The location that pytest reports, with a name of the file that can be sent to another process."""
        file, line, name = super().location
        return _shown_name(file), line, name

    def runtest(self) -> None:
        """Test the netlist with the settings of the project and the options of `--buda-emu`. Raises NetlistFailureError
        if it does not pass, and pytest's Skipped if it is skipped."""
        from buda_emu.testing.verify.runs.run_case import run_case

        result = run_case(self._case())
        self.user_properties.append(("status", result.status))
        if result.status == "skipped":
            pytest.skip(_encodable(harmless(plain(result.message))))
        if result.status != "passed":
            raise NetlistFailureError(result)

    def _case(self) -> Any:
        """Return the netlist as a case of `buda-emu test`, with this process's share of threads and memory: with
        pytest-xdist, other processes test beside this one."""
        from buda_emu.emulator.options import share_of_machine

        name = os.path.relpath(self.path)
        (case,) = _make_cases(_parse_options(str(self.config.getoption(_OPTION)), name), name)
        processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        return replace(
            case, settings=replace(case.settings, machine=share_of_machine(case.settings.machine, processes))
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the outputs that differ, with the figures and ops that the options ask for, or the error, and the
        command that shows more. The first line is the reason, since pytest's short summary has that line alone."""
        error = excinfo.value
        if isinstance(error, (HostError, OSError)):  # of the settings or options: no netlist has been run
            return _encodable(harmless(plain(str(error))))
        if not isinstance(error, NetlistFailureError):
            return super().repr_failure(excinfo, style)
        from buda_emu.report.terminal.testing import (
            case_lines,
            first_bad_lines,
            outputs_table,
            per_op_table,
            performance_table,
            reason,
        )

        result = error.result
        lines = [reason(result), "", *case_lines(result)]
        if result.outputs:
            lines += ["", outputs_table(result)]
        if result.performance:
            lines += ["", performance_table(result)]
        if result.ops:
            lines += ["", per_op_table(result.ops), *first_bad_lines(result)]
        return _encodable(harmless(plain("\n".join([*lines, "", result.command]))))

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the place of the test and its name in reports, which is the path of the netlist."""
        return self.path, None, _shown_name(os.path.relpath(self.path))
