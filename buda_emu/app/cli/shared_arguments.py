"""Arguments that several verbs share. Those that the Python API has, too, are made of its options, group by group
(`add_group`), and read as the keywords of its functions (`read_options`). The others are declared here, and a verb
takes them by name, in the order of its help (`add_shared`)."""

import argparse
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, cast

from buda_emu.emulator.options import Arch, parse_parameter
from buda_emu.spec.archs import ARCHS
from buda_emu.support.errors import HostError
from buda_emu.support.options import (
    Option,
    declared_options,
    parse_below,
    parse_between,
    parse_natural,
    parse_positive,
    parse_seconds,
    parse_size,
)
from buda_emu.support.screen import WHEN

if TYPE_CHECKING:
    from pathlib import Path


FORMATS: Final = ("text", "json", "github", "sarif")
"""The forms in which findings and results are printed."""


class ArgumentTarget(Protocol):
    """A parser or a group of a parser: anything to which arguments can be added."""

    def add_argument(self, *names: str, **how: Any) -> object:
        """Add an argument as `argparse.ArgumentParser.add_argument` does."""
        ...

    def add_mutually_exclusive_group(self) -> "ArgumentTarget":
        """Add a group of arguments of which at most one may be given."""
        ...


class _Archs(Collection[str]):
    """The architectures that --arch takes: those of netlists, then those of other documents.

    The others are asked for only where an architecture is given that no netlist has: some are declared by packages from
    elsewhere, and to look for these takes about 30 of the 160 ms of a small check.
    """

    def __init__(self, others: Callable[[], Iterable[str]]) -> None:
        self._others = others

    def __iter__(self) -> Iterator[str]:
        yield from ARCHS
        yield from self._others()

    def __contains__(self, arch: object) -> bool:
        return any(arch == name for name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def add_arch(
    parser: ArgumentTarget,
    default: str = "",
    others: Callable[[], Iterable[str]] = tuple[str, ...],
    help_suffix: str = "",
) -> None:
    """Add --arch, which chooses one of the architectures of a document. `default` describes what holds without it;
    `others` gives the architectures of other documents than netlists, and `help_suffix` names them in the help."""
    archs = _Archs(others)

    def match_case(text: str) -> str:
        """Return the architecture of that name in its own spelling, whatever the case; another text unchanged, for
        argparse to refuse."""
        return next((arch for arch in archs if arch.lower() == text.lower()), text)

    words = {"default": default} if default else {}
    for keyword, option in declared_options(Arch).items():
        help_text = option.help.format_map({**option.words, **words}) + help_suffix
        parser.add_argument(
            option.flag_of(keyword), type=match_case, choices=archs, metavar=option.metavar, help=help_text
        )


def add_cluster(parser: ArgumentTarget, help_suffix: str = "") -> None:
    """Add --cluster, the description of a netlist's chips and the links between them. `help_suffix` says when it is
    read."""
    parser.add_argument(
        "--cluster",
        metavar="FILE",
        help=f"the cluster's description, which determines the ways over Ethernet{help_suffix}",
    )


_Group = TypeVar("_Group")
_UNSET: Final = object()


def add_group(
    parser: ArgumentTarget, group: type[Any], *, initial: object = _UNSET, short: bool = True, **words: str
) -> None:
    """Add the options of a group of the Python API (`declared_options`) in the order of its declaration. `words`
    replace words of their help. `initial` is the value of an option that is not given, if that is not the default of
    the keyword. Without `short` there are only long options, no letters."""
    exclusive: dict[str, ArgumentTarget] = {}
    for keyword, option in declared_options(group).items():
        target = parser
        if option.exclusive:
            if option.exclusive not in exclusive:
                exclusive[option.exclusive] = parser.add_mutually_exclusive_group()
            target = exclusive[option.exclusive]
        names = [option.flag_of(keyword)]
        if short and option.short:
            names.insert(0, option.short)
        how = _keywords_for(option, initial)
        if option.flag and option.is_switch:
            how["dest"] = keyword
        action = target.add_argument(*names, help=option.help.format_map({**option.words, **words}), **how)
        cast(Any, action).option = option


def _keywords_for(option: Option, initial: object) -> dict[str, Any]:
    """Return the keyword arguments of `add_argument` for an option whose value is `initial` when it is not given."""
    if option.is_switch:
        return {"action": f"store_{not option.default}".lower()}
    how: dict[str, Any] = {"default": option.default if initial is _UNSET else initial}
    if option.metavar:
        how["metavar"] = option.metavar
    if option.is_repeatable:
        how |= {"action": "append", "default": []}
    if option.choices:
        how["choices"] = option.choices
    if option.convert is not str:
        how["type"] = argument_type(option.convert)
    return how


def read_options(args: argparse.Namespace, group: type[_Group]) -> _Group:
    """Return the options of a group, by the keywords of the Python API, as the command line and the settings state
    them."""
    values: dict[str, Any] = {}
    for keyword, option in declared_options(group).items():
        name = keyword
        if not option.is_switch:
            name = option.flag_of(keyword).removeprefix("--").replace("-", "_")
        value = getattr(args, name)
        if option.gather is not None:
            value = option.gather(value)
        values[keyword] = value
    return cast(_Group, values)


def record_of(record: type[_Group], args: argparse.Namespace, **others: Any) -> _Group:
    """Make a dataclass `record` whose fields have the values of the arguments of the same names. `others` are the
    values of fields that have no such argument, or that follow from several."""
    values: dict[str, Any] = {}
    for field in fields(cast(Any, record)):
        if hasattr(args, field.name):
            values[field.name] = getattr(args, field.name)
    return record(**{**values, **others})


def add_frontend(parser: ArgumentTarget, *, required: bool) -> None:
    """Add --frontend, the file of the network that a schedule computes."""
    parser.add_argument(
        "--frontend",
        required=required,
        metavar="FILE",
        help="the front-end IR (.json or .json.gz) of the network that a schedule computes",
    )


def path(text: str) -> "Path":
    """Parse a path (argparse type). A run without a path does not import pathlib, which takes a thirtieth of its
    time."""
    from pathlib import Path

    return Path(text)


def netlist_output(text: str) -> "Path":
    """Parse the path that the text of a netlist goes to. Raises ArgumentTypeError for the name of a device image, which
    every verb would take for an archive."""
    if text.lower().endswith(".tti"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is the name of a device image, and this is the text of a netlist: name it .yaml; "
            "`buda-emu pack` makes an image of a netlist"
        )
    return path(text)


@cache
def argument_type(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Turn a conversion that raises HostError into an argparse type, which raises ArgumentTypeError with its
    message."""

    def convert_argument(text: str) -> Any:
        """Convert the text of an argument. Raises ArgumentTypeError."""
        try:
            return convert(text)
        except HostError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert_argument


memory_size = argument_type(parse_size)
parameter = argument_type(parse_parameter)
positive = argument_type(parse_positive)
natural = argument_type(parse_natural)
seconds = argument_type(parse_seconds)


finite = argument_type(partial(parse_between, least=-math.inf, greatest=math.inf, description="a finite number"))
nonnegative = argument_type(partial(parse_between, least=0.0, greatest=math.inf, description="a number from 0 on"))
percentage = argument_type(partial(parse_between, least=0.0, greatest=100.0, description="a percentage from 0 to 100"))
correlation = argument_type(partial(parse_between, least=-1.0, greatest=1.0, description="a PCC from -1 to 1"))


def shard(text: str) -> tuple[int, int]:
    """Parse K/N with K from 1 to N (argparse type)."""
    place, _, count = text.partition("/")
    if not (place.isdecimal() and count.isdecimal() and 1 <= int(place) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N such as 1/4")
    return int(place), int(count)


def number_below(text: str, below: float, description: str) -> float:
    """Parse a number above 0 and below `below`, for an argparse type. Raises ArgumentTypeError, with `description` as
    the expected form."""
    try:
        return parse_below(text, below, description)
    except HostError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_Arguments: TypeAlias = Callable[[ArgumentTarget], object]


def _argument(*names: str, **how: Any) -> _Arguments:
    """Return a function that adds this argument to a parser, for the table of shared arguments."""
    return lambda parser: parser.add_argument(*names, **how)


def _flag(*names: str, **how: Any) -> _Arguments:
    """Return a function that adds this option, which takes no value, to a parser."""
    return _argument(*names, action="store_true", **how)


def _combine(*arguments: _Arguments) -> _Arguments:
    """Return a function that adds several arguments to a parser."""
    return lambda parser: [add(parser) for add in arguments]


_SHARED: Final[Mapping[str, _Arguments]] = MappingProxyType(
    {
        "FILE": _argument("file", metavar="FILE", help="netlist, or device image (.tti)"),
        "netlist": _argument("file", metavar="FILE", help="netlist"),
        "--arch": add_arch,
        "--inputs": _argument(
            "--inputs",
            type=path,
            metavar="DIR",
            help="push DIR/<queue>.npy, [entries, t, rows, cols], or one .npz file by queue, of a compiled model by "
            "its inputs' own names; inputs that are not there are random",
        ),
        "--baseline": _combine(
            _argument(
                "--baseline",
                metavar="FILE",
                help="file of known results: exit code 1 only for what is new or worse (docs/netlists/baselines.md)",
            ),
            _flag("--update-baseline", help="write the results into that file, reasons stay; exit code 0"),
        ),
        "--only-documents": _flag(
            "--only-documents",
            help="leave out FILEs that are none by their content, as YAML files that are no netlist (for pre-commit)",
        ),
        "--top": _argument(
            "--top", type=natural, default=10, metavar="N", help="rows of each table, 0: all (default 10)"
        ),
        "--json": _flag("--json", help="print everything as JSON"),
        "--json FILE": _argument("--json", type=path, metavar="FILE", help="write everything as JSON"),
        "--quiet": _flag("-q", "--quiet", help="print nothing"),
        "--color": _argument(
            "--color", choices=WHEN, default="auto", help="auto: on a terminal; NO_COLOR, FORCE_COLOR"
        ),
        "--config": _argument(
            "--config", metavar="FILE", help="settings; default: buda-emu.toml or pyproject.toml above; none: without"
        ),
        "--verbose": _flag("-v", "--verbose", help="name the settings in use"),
    }
)


def add_shared(parser: ArgumentTarget, *names: str) -> None:
    """Add shared arguments by name, in this order. An argument that has a function of its own is added with that
    function's defaults."""
    for name in names:
        _SHARED[name](parser)
