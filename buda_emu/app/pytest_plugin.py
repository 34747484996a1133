"""A plugin of pytest: `pytest netlists/` tests netlists as `buda-emu test` does (docs/netlists/ci.md).

It looks at YAML files where it was asked to: files and folders on the command line, and those of the ini option
`buda_emu_netlists`. A folder on the command line that holds Python files is one of tests, and its YAML is their data.
Nothing heavy is imported before the first netlist is tested.
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

from buda_emu.netlist.load import looks_like_netlist
from buda_emu.support.errors import HostError
from buda_emu.support.screen import harmless, on_one_line, plain

if TYPE_CHECKING:
    from buda_emu.testing.verify.result import CaseResult

_SUFFIXES = (".yaml", ".yml")
_OPTION = "buda_emu"
_INI = "buda_emu_netlists"


def pytest_addoption(parser: pytest.Parser) -> None:
    """What may be asked for."""
    group = parser.getgroup("buda-emu", "netlists")
    group.addoption(
        "--buda-emu", dest=_OPTION, default="", metavar="OPTIONS", help="options of `buda-emu test`, in one word"
    )
    parser.addini(_INI, "folders whose netlists are tested, from the root directory", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Refuse options that `buda-emu test` does not take, once and before any test."""
    options = str(config.getoption(_OPTION))
    if not options:
        return
    try:
        _arguments(options, "")
    except (ValueError, OSError, HostError) as error:
        raise pytest.UsageError(f"--buda-emu={options}: {error}") from None
    except SystemExit:  # it has said what is wrong
        raise pytest.UsageError(f"--buda-emu={options}: these are no options of `buda-emu test`") from None


def _arguments(options: str, name: str) -> argparse.Namespace:
    """Of the verb `test`, for a netlist, with the settings of the project. Raises ValueError for an open quote,
    SystemExit as argparse does, and OSError and HostError for settings that cannot be read."""
    from buda_emu.app.cli.config import configure
    from buda_emu.app.cli.main import VERBS, build_parser

    words = ["test", *shlex.split(options), "--", name]
    parser = build_parser("test")
    configure(parser.below["test"], "test", VERBS, words)
    return parser.parse_args(words)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "NetlistFile | None":
    """A netlist that was asked for, None for any other file."""
    if file_path.suffix not in _SUFFIXES:
        return None
    named, folders = _asked(parent.config)
    below = any(folder in file_path.parents for folder in folders)
    if file_path in named or (below and looks_like_netlist(str(file_path))):
        name = os.path.relpath(file_path, parent.config.rootpath).replace(os.sep, "/")
        others = {} if _word(name) == name else {"name": _word(file_path.name), "nodeid": _word(name)}
        return NetlistFile.from_parent(parent, path=file_path, **others)  # type: ignore[reportUnknownMemberType]
    return None


_ASKED: pytest.StashKey[tuple[frozenset[Path], tuple[Path, ...]]] = pytest.StashKey()


def _asked(config: pytest.Config) -> tuple[frozenset[Path], tuple[Path, ...]]:
    """Files that are netlists whatever they hold, and folders in which to look for them."""
    if _ASKED not in config.stash:
        given: Iterable[str] = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else ()
        paths = [config.invocation_params.dir / word.partition("::")[0] for word in given]
        ini: list[str] = config.getini(_INI)
        folders = [path for path in paths if path.is_dir() and not _has_python(path)]
        folders += [config.rootpath / folder for folder in ini]
        named = frozenset(Path(os.path.normpath(path)) for path in paths if path.is_file())
        config.stash[_ASKED] = named, tuple(Path(os.path.normpath(folder)) for folder in folders)
    return config.stash[_ASKED]


def _word(name: str) -> str:
    """A name of a file as it can be shown, and sent to another process, which takes no half of a surrogate pair."""
    return _encodable(on_one_line(name))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _has_python(folder: Path) -> bool:
    return any(name.endswith(".py") for _, _, names in os.walk(folder) for name in names)


class NetlistFile(pytest.File):
    """A netlist: one test."""

    def collect(self) -> "Iterable[NetlistItem]":
        """That test."""
        yield NetlistItem.from_parent(self, name="netlist")  # type: ignore[reportUnknownMemberType]


class NetlistFailureError(Exception):
    """A netlist does not pass; `result` says why."""

    def __init__(self, result: "CaseResult") -> None:
        super().__init__(f"{_word(result.netlist)}: {result.status}")
        self.result = result


class NetlistItem(pytest.Item):
    """The test of one netlist, in this process. It has no arguments, which pytest-lsp asks of every item."""

    funcargs: Final[Mapping[str, Any]] = MappingProxyType({})

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """As pytest's; reports of it travel to other processes."""
        file, line, name = super().location
        return _word(file), line, name

    def runtest(self) -> None:
        """Test it with the settings of the project and the options that were given."""
        from buda_emu.testing.verify.runs.run_case import run_case

        result = run_case(self._case())
        self.user_properties.append(("status", result.status))
        if result.status == "skipped":
            pytest.skip(_encodable(harmless(plain(result.message))))
        if result.status != "passed":
            raise NetlistFailureError(result)

    def _case(self) -> Any:
        from buda_emu.app.cli.verbs.test import make_cases

        name = os.path.relpath(self.path)
        (case,) = make_cases(_arguments(str(self.config.getoption(_OPTION)), name), [name])
        share = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))  # of the machine: others work beside this one
        limit = case.settings.memory_limit
        return replace(
            case,
            settings=replace(
                case.settings,
                threads=max(1, case.settings.threads // share),
                memory_limit=None if limit is None else limit // share,
            ),
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What did not hold, and how to see more."""
        error = excinfo.value
        if not isinstance(error, NetlistFailureError):
            return super().repr_failure(excinfo, style)
        from buda_emu.report.terminal.testing import case_lines, outputs_table

        result = error.result
        lines = [*case_lines(result), *(["", outputs_table(result)] if result.outputs else [])]
        return _encodable(harmless(plain("\n".join([*lines, "", result.command]))))

    def reportinfo(self) -> tuple[Path, None, str]:
        """Named by its file."""
        return self.path, None, _word(os.path.relpath(self.path))
