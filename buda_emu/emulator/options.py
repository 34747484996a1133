"""Options that the verbs and the functions of the Python API share: which programs run, on which chip, and how the work
is done. Each is declared here, with its type and its help, and named once more where it acts."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final, TypedDict, cast

from buda_emu.spec.archs import ARCHS
from buda_emu.spec.boards import BOARDS
from buda_emu.spec.precision import PRECISIONS, Precision
from buda_emu.spec.varinst import immediate, is_read_in_part
from buda_emu.support.errors import HostError, HostWarning, ProgramError
from buda_emu.support.options import (
    Option,
    SettingsName,
    integer_of,
    names_of,
    parse_natural,
    parse_positive,
    parse_seconds,
    parse_size,
    require_choice,
    seconds_of,
)
from buda_emu.support.warned import warn_caller

MORE_MEMORY_IN_PYTHON: Final = "Emulator(memory_limit=...)"
MORE_MEMORY: Final = f"--memory-limit, {MORE_MEMORY_IN_PYTHON}"
"""The ways to more memory, for messages."""


def parse_parameter(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE into name and value; a name without `$` gets one. Raises HostError for another form, and for a
    value that is no integer."""
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise HostError(f"{text!r} is not NAME=VALUE")
    if "$" not in name:
        name = f"${name}"
    try:
        require_parameter_value(value)
    except HostError as error:
        raise HostError(f"parameter {name}: {error}") from None
    return name, value


def require_parameter_value(text: str) -> None:
    """Raise HostError for the text of a program parameter that is no integer, or of which a machine would read only the
    beginning, such as "4x"."""
    value = _read_value(text)
    if is_read_in_part(text):
        raise HostError(f"{text!r} is not an integer: the machine would read {value}")


def _read_value(text: str) -> int:
    """Return the integer that a machine reads from the text of a parameter, which may be that of its beginning alone.
    Raises HostError."""
    try:
        return immediate(text)
    except ProgramError as error:
        raise HostError(str(error)) from None


def parse_settings_parameter(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE of a settings file like `parse_parameter`; the returned name is marked as one from settings.
    Raises HostError."""
    name, value = parse_parameter(text)
    return SettingsName(name), value


def gather_parameters(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return parameters by name. Of a name that occurs twice the last one counts, with its own name object and place in
    the order."""
    parameters: dict[str, str] = {}
    for name, value in pairs:
        parameters.pop(name, None)
        parameters[name] = value
    return parameters


def parameter_texts(parameters: object) -> dict[str, str]:
    """Return the parameters of programs as the texts that a machine reads, such as {"$p_loop_count": "4"}; {} for None.

    Raises HostError for a value that is no mapping from names, and for a parameter that is neither a text nor an
    integer. Warns with HostWarning of a text of which the machine reads only the beginning (NETLIST 3.1).
    """
    if parameters is None:
        return {}
    if not isinstance(parameters, Mapping):
        raise HostError(f"parameters are a mapping such as {{'$p_loop_count': 4}}, not {type(parameters).__name__}")
    texts: dict[str, str] = {}
    for name, value in cast("Mapping[object, object]", parameters).items():
        if not isinstance(name, str):
            raise HostError(f"names of parameters are strings, not {type(name).__name__}")
        texts[name] = _parameter_text(name, value)
    return texts


def _parameter_text(name: str, value: Any) -> str:
    """Return one parameter as text. A text stays as it is, but one of which the machine reads only the beginning, such
    as `1.9`, becomes that integer, with a HostWarning. Raises HostError for another value that equals no integer."""
    if isinstance(value, str):
        if not is_read_in_part(value):
            return value
        text = str(_read_value(value))
        reading = f"is not an integer; as the reference does, it is read as {text}"
        warn_caller(f"parameter {name}: {value!r} {reading}", HostWarning)
        return text
    number: int | None = None
    with suppress(TypeError, ValueError, OverflowError):
        number = int(value)
    if number is None or number != value:
        raise HostError(f"parameter {name} is {value!r}: expected an integer")
    return str(number)


def arch_word(word: Any) -> str | None:
    """Return the word if it is the name of an architecture, or None. Raises HostError for any other value."""
    if word is None:
        return None
    require_choice("arch", word.lower() if isinstance(word, str) else word, tuple(ARCHS))
    return word


def bytes_of(value: Any) -> int | None:
    """Convert a memory limit, such as "8G", "512MiB" or a number of bytes, to bytes; None (no limit given) stays None.
    Raises HostError."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return parse_size(value)
        except HostError as error:
            raise HostError(f"memory_limit {error}") from None
    try:
        count = operator.index(value)
    except TypeError:
        raise HostError(f"memory_limit must be a size such as '8G' or a number of bytes, not {value!r}") from None
    if count < 0:
        raise HostError(f"memory_limit must be 0 or more bytes, not {count}")
    return count


class Threads(TypedDict, total=False):
    """The threads of a process."""

    threads: Annotated[
        int | None,
        Option(
            "default: one for each processor that may be used; never changes results",
            "N",
            parse_positive,
            accept=integer_of("threads", 1, optional=True),
        ),
    ]


class SharedWork(TypedDict, total=False):
    """The processes or machines that share the work (docs/run/workers.md)."""

    workers: Annotated[
        int,
        Option(
            "worker processes (default: {default}); never changes results",
            "N",
            parse_positive,
            short="-n",
            default=1,
            words={"default": "1"},
            exclusive="workers",
            accept=integer_of("workers", 1, optional=True),
        ),
    ]
    dask: Annotated[
        str | None,
        Option(
            "distribute the work over the Dask cluster of this scheduler, such as tcp://host:8786; without TLS whoever "
            "answers there gets the documents and decides the results (docs/run/workers.md)",
            "SCHEDULER",
            exclusive="workers",
            command_line_only="a scheduler runs the work of this command on other machines",
        ),
    ]


class Memory(TypedDict, total=False):
    """The memory of a run in bytes (docs/run/memory.md)."""

    memory_limit: Annotated[
        int | str | None,
        Option(
            "most memory for {what}, such as 8G, 512MiB or a number of bytes; default: {default}",
            "SIZE",
            parse_size,
            words={"what": "tensors", "default": "three quarters of what is available"},
            is_lowered_only=True,
            accept=bytes_of,
        ),
    ]


class TimeLimit(TypedDict, total=False):
    """The time that a piece of work may take."""

    timeout: Annotated[
        float,
        Option(
            "seconds for each netlist (default {default})",
            "S",
            parse_seconds,
            default=600.0,
            words={"default": "600"},
            accept=seconds_of,
        ),
    ]


class Machine(Threads, Memory, total=False):
    """Options of one machine; no result depends on them."""


class Execution(Threads, SharedWork, Memory, total=False):
    """Options of the work on one run; no result depends on them."""


class Programs(TypedDict, total=False):
    """The programs to run and their parameters."""

    programs: Annotated[
        str | Sequence[str],
        Option(
            "program to {purpose}, repeatable; default: all in order",
            "NAME",
            flag="--program",
            default=(),
            is_repeatable=True,
            words={"purpose": "run"},
            accept=names_of,
        ),
    ]
    parameters: Annotated[
        Mapping[str, Any] | None,
        Option(
            "program parameter, repeatable; the $ may be left out",
            "NAME=VALUE",
            parse_parameter,
            flag="--param",
            is_repeatable=True,
            gather=gather_parameters,
            convert_setting=parse_settings_parameter,
            accept=parameter_texts,
        ),
    ]


class Arch(TypedDict, total=False):
    """The architecture that a document is read for."""

    arch: Annotated[
        str | None,
        Option(
            f"{', '.join(ARCHS)}; default: {{default}}",
            "ARCH",
            words={"default": "wormhole_b0 if the netlist lists it, else the first"},
            accept=arch_word,
        ),
    ]


class Arithmetic(TypedDict, total=False):
    """The arithmetic of a run."""

    precision: Annotated[
        Precision,
        Option(
            "{prefix}format: data is rounded to its format as the reference does; ideal: float32 throughout; device: "
            "the chip's own arithmetic (`buda-emu ops --precision device` says how certain its bits are); default: "
            "{default}",
            default="format",
            choices=PRECISIONS,
            words={"prefix": "", "default": "format"},
        ),
    ]


class Board(TypedDict, total=False):
    """The board whose chips a netlist is for."""

    # What is none is refused where it is looked up.
    board: Annotated[
        str | None,
        Option(
            f"the chips of a board, with the cores left after harvesting, clock and memory: {', '.join(BOARDS)}, or "
            "several in a row such as n150x4; default: a single chip, nothing harvested",
            "NAME",
        ),
    ]


class Seed(TypedDict, total=False):
    """The seed of data that is drawn."""

    seed: Annotated[
        int, Option("seed of random data (default 0)", "N", parse_natural, default=0, accept=integer_of("seed", 0))
    ]


class Cache(TypedDict, total=False):
    """Use of the user's caches."""

    cache: Annotated[
        bool, Option("do not read or write the user's caches (docs/run/cache.md)", flag="--no-cache", default=True)
    ]


class Pickles(TypedDict, total=False):
    """Use of pickled tensors of an image."""

    allow_pickle: Annotated[
        bool,
        Option(
            "load pickled tensors of an image: a pickle can run any code, so only use it if you trust its maker",
            default=False,
            command_line_only="a pickle can run any code",
        ),
    ]


class Loading(Cache, Pickles, total=False):
    """Options of reading a document."""


class Chip(Arch, Board, total=False):
    """The chip that a netlist is for."""


class Document(Arch, Loading, total=False):
    """Options of reading a netlist or an image."""


class SharedOptions(Programs, Chip, Arithmetic, Seed, Execution, TimeLimit, Loading, total=False):
    """All of these options."""


def memory_of(options: Mapping[str, Any]) -> int | None:
    """Return the memory limit among options in bytes, None without one. Raises HostError."""
    return bytes_of(options.get("memory_limit"))


def machine_of(options: Mapping[str, Any]) -> Machine:
    """Return those of the options that one machine takes, threads and memory limit (in bytes). Raises HostError for an
    impossible limit."""
    return Machine(threads=options.get("threads"), memory_limit=memory_of(options))


def with_memory(options: Mapping[str, Any], limit: int | None) -> Machine:
    """Return the machine options (threads and memory limit) with `limit` bytes as the memory limit, None for the
    default."""
    return Machine(threads=options.get("threads"), memory_limit=limit)


def share_of_machine(options: Mapping[str, Any], count: int) -> Machine:
    """Return the options for each of `count` machines that share the memory limit and the threads of `options`; what
    these do not give stays at its default. Raises HostError."""
    limit = memory_of(options)
    if limit is not None:
        limit //= count
    threads = options.get("threads")
    if threads is not None:
        threads = max(1, threads // count)
    return Machine(threads=threads, memory_limit=limit)
