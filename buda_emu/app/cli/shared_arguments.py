"""Arguments that several verbs share, each declared once with its type and help text. A verb takes them by name, in the
order of its help (`add_shared`); those that differ between verbs have a function of their own."""

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from buda_emu.spec.archs import ARCHS
from buda_emu.spec.boards import BOARDS
from buda_emu.spec.precision import PRECISIONS, Precision
from buda_emu.support.errors import HostError
from buda_emu.support.screen import WHEN

if TYPE_CHECKING:
    from pathlib import Path

    from buda_emu.support.workers.job import Workers

FORMATS: Final = ("text", "json", "github", "sarif")
"""How findings and results are printed."""
_PRECISION_HELP: Final = (
    "format: data is rounded to its format as the reference does; ideal: float32 throughout; device: the chip's own "
    "arithmetic (`buda-emu ops --precision device` says how certain its bits are)"
)


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
    default: str = "wormhole_b0 if the netlist lists it, else the first",
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

    parser.add_argument(
        "--arch",
        type=match_case,
        choices=archs,
        metavar="ARCH",
        help=f"{', '.join(ARCHS)}; default: {default}{help_suffix}",
    )


def add_cluster(parser: ArgumentTarget, help_suffix: str = "") -> None:
    """Add --cluster, the description of a netlist's chips and the links between them. `help_suffix` says when it is
    read."""
    parser.add_argument(
        "--cluster",
        metavar="FILE",
        help=f"the cluster's description, which determines the ways over Ethernet{help_suffix}",
    )


def add_program(parser: ArgumentTarget, purpose: str = "run") -> None:
    """Add --program, which lists programs by name. `purpose` is the verb for the help: what is done with a program."""
    parser.add_argument(
        "--program",
        action="append",
        default=[],
        metavar="NAME",
        help=f"program to {purpose}, repeatable; default: all in order",
    )


def add_precision(parser: ArgumentTarget, default: Precision, prefix: str = "") -> None:
    """Add --precision. `prefix` stands before the meaning of each precision in the help."""
    help_text = f"{prefix}{_PRECISION_HELP}; default: {default}"
    parser.add_argument("--precision", choices=PRECISIONS, default=default, help=help_text)


def add_workers(parser: ArgumentTarget, default: int | None = 1, words: str = "1", *, short: bool = True) -> None:
    """Add --workers (`-n`, too, if `short`) and --dask, of which one may be given: the processes or machines that share
    the work (docs/run/workers.md)."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        *(("-n",) if short else ()),
        "--workers",
        type=positive,
        default=default,
        dest="workers",
        metavar="N",
        help=f"worker processes (default: {words}); never changes results",
    )
    group.add_argument(
        "--dask",
        metavar="SCHEDULER",
        help="distribute the work over the Dask cluster of this scheduler, such as tcp://host:8786",
    )


def read_workers(args: argparse.Namespace) -> "Workers":
    """Return the workers that the options of `add_workers` state."""
    from buda_emu.support.workers.job import Workers

    return Workers(args.workers or 1, args.dask)


def add_memory_limit(
    parser: ArgumentTarget,
    contents: str = "tensors",
    default: int | None = None,
    words: str = "three quarters of what is available",
) -> None:
    """Add --memory-limit in bytes. `contents` names what the memory holds, `default` is the limit in bytes, and `words`
    describes it in the help."""
    parser.add_argument(
        "--memory-limit",
        type=memory_size,
        default=default,
        metavar="SIZE",
        help=f"most memory for {contents}, such as 8G, 512MiB or a number of bytes; default: {words}",
    )


def add_frontend(parser: ArgumentTarget, *, required: bool) -> None:
    """Add --frontend, the network of a schedule."""
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


def memory_size(text: str) -> int:
    """Parse a number of bytes, with or without a unit (argparse type)."""
    from buda_emu.emulator.memory.host import parse_size

    try:
        return parse_size(text)
    except HostError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parameter(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE (argparse type); a name without `$` gets one."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return (name if "$" in name else f"${name}"), value


def positive(text: str) -> int:
    """Parse an integer of 1 or more (argparse type)."""
    number = natural(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def natural(text: str) -> int:
    """Parse an integer of 0 or more (argparse type)."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of 0 or more")
    return int(text)


def shard(text: str) -> tuple[int, int]:
    """Parse K/N with K from 1 to N (argparse type)."""
    place, _, count = text.partition("/")
    if not (place.isdecimal() and count.isdecimal() and 1 <= int(place) <= int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N such as 1/4")
    return int(place), int(count)


def seconds(text: str) -> float:
    """Parse a number of seconds above 0 (argparse type)."""
    return number_below(text, float("inf"), "a number of seconds above 0")


def number_below(text: str, below: float, description: str) -> float:
    """Parse a number above 0 and below another (for argparse types). Raises ArgumentTypeError that quotes `description`
    as the expected form."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < below:
        raise argparse.ArgumentTypeError(f"{text!r} is not {description}")
    return value


_Arguments: TypeAlias = Callable[[ArgumentTarget], object]


def _argument(*names: str, **how: Any) -> _Arguments:
    """Return a function that adds an argument to a parser."""
    return lambda parser: parser.add_argument(*names, **how)


def _flag(*names: str, **how: Any) -> _Arguments:
    """Return a function that adds an option without a value to a parser."""
    return _argument(*names, action="store_true", **how)


def _combine(*arguments: _Arguments) -> _Arguments:
    """Return a function that adds several arguments to a parser."""
    return lambda parser: [add(parser) for add in arguments]


_SHARED: Final[Mapping[str, _Arguments]] = MappingProxyType(
    {
        "FILE": _argument("file", metavar="FILE", help="netlist, or device image (.tti)"),
        "netlist": _argument("file", metavar="FILE", help="netlist"),
        "--arch": add_arch,
        # What is none is refused where it is looked up.
        "--board": _argument(
            "--board",
            metavar="NAME",
            help=f"the chips of a board, with the cores left after harvesting, clock and memory: {', '.join(BOARDS)}, "
            "or "
            "several in a row such as n150x4; default: a single chip, nothing harvested",
        ),
        "--program": add_program,
        "--param": _argument(
            "--param",
            action="append",
            default=[],
            type=parameter,
            metavar="NAME=VALUE",
            help="program parameter, repeatable; the $ may be left out",
        ),
        "--inputs": _argument(
            "--inputs",
            type=path,
            metavar="DIR",
            help="push DIR/<queue>.npy, [entries, t, rows, cols], or one .npz file by queue, of a compiled model by "
            "its inputs' own names; inputs that are not there are random",
        ),
        "--seed": _argument("--seed", type=natural, default=0, metavar="N", help="seed of random data (default 0)"),
        "--threads": _argument(
            "--threads",
            type=positive,
            metavar="N",
            help="default: one for each processor that may be used; never changes results",
        ),
        "--workers": add_workers,
        "--memory-limit": add_memory_limit,
        "--no-cache": _argument(
            "--no-cache",
            action="store_false",
            dest="cache",
            help="do not read or write the user's caches (docs/run/cache.md)",
        ),
        "--allow-pickle": _flag(
            "--allow-pickle",
            help="load pickled tensors of an image: a pickle can run any code, so only use it if you trust its maker",
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
