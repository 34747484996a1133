"""Options of the command and of the Python API, each declared once (docs/architecture.md, "Options").

A group of options is a `TypedDict` whose items have an `Option` beside their type:

    class Sampling(TypedDict, total=False):
        samples: Annotated[int, Option("samples of each {what}", "N", parse_positive, default=8)]

A function takes the group as `**options: Unpack[Sampling]`, so that type checkers and editors know each keyword, and
hands it on as `**options`; `with_options` refuses other keywords and shows these to `help`. The command makes its
arguments and the keys of its settings file from the same group.
"""

import math
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar, cast, get_args, get_type_hints

from buda_emu.support.checker.suggest import hint_in_parentheses
from buda_emu.support.errors import HostError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_UNITS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE: Final = r"([0-9]{1,20}(?:\.[0-9]{1,20})?) *([kmgt]?)(?:i?b)?"


class Option(NamedTuple):
    """The declaration of an option. `help` describes it; a `{name}` in it is replaced by the word of that name in
    `words`, or by the word that a verb has instead. `metavar` stands for the value in the help, and `convert` makes the
    value of the text of the command line; it raises HostError for a text that is no value."""

    help: str
    metavar: str | None = None
    convert: Callable[[str], Any] = str
    flag: str = ""
    """The option on the command line, such as `--param`, where it is not made of the keyword (`flag_of`)."""
    short: str = ""
    """The option in one letter: `-n`."""
    default: Any = None
    choices: Sequence[str] = ()
    is_repeatable: bool = False
    """Whether it may be repeated on the command line; its values are then a list."""
    gather: Callable[[Any], Any] | None = None
    """Makes the value of the Python keyword from that of the command line, such as a dict from a list of pairs; None
    where they are the same."""
    accept: Callable[[Any], Any] | None = None
    """Converts the value of a caller in Python to the one form that the work takes, or raises HostError; None where any
    value is taken as it is."""
    words: Mapping[str, str] = MappingProxyType({})
    exclusive: str = ""
    """A word that options of one group share if only one of them may be given."""
    command_line_only: str = ""
    """The reason why it may stand on the command line alone, in no settings file; "" if a file may set it."""
    convert_setting: Callable[[str], Any] | None = None
    """Makes the value of a text in a settings file, where that differs from `convert`."""
    is_lowered_only: bool = False
    """Whether a settings file may set only values below the default, as of a limit."""

    @property
    def is_switch(self) -> bool:
        """True for an option without a value, whose keyword is True or False."""
        return isinstance(self.default, bool)

    def flag_of(self, keyword: str) -> str:
        """Return the option on the command line, `--per-op`, for the keyword `per_op`."""
        return self.flag or f"--{keyword.replace('_', '-')}"


@cache
def declared_options(group: type[Any]) -> Mapping[str, Option]:
    """Return the options of a group by their keywords, in the order of the group's declaration."""
    options: dict[str, Option] = {}
    for keyword, kind in get_type_hints(group, include_extras=True).items():
        options[keyword] = next(part for part in get_args(kind) if isinstance(part, Option))
    return options


def with_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function with `**options: Unpack[Group]` refuse keywords that are not in the group and convert the values
    of the others as their declarations say, and let `inspect.signature`, which `help` and notebooks ask, show the
    options of the group one by one."""
    own_signature = signature(function)
    *others, last = own_signature.parameters.values()
    (group,) = get_args(last.annotation)
    options = declared_options(group)
    types = get_type_hints(group)
    keywords = (*(parameter.name for parameter in others), *options)

    @wraps(function)
    def call_function(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the function. Raises TypeError for a keyword that it does not have, HostError for a value that its
        declaration refuses."""
        _require_keywords(function.__name__, kwargs, keywords)
        for name, value in kwargs.items():
            option = options.get(name)
            if option is None:
                continue
            if option.choices:
                require_choice(name, value, option.choices)
            if option.accept is not None:
                kwargs[name] = option.accept(value)
        return function(*args, **kwargs)

    parameters = [
        Parameter(keyword, Parameter.KEYWORD_ONLY, default=option.default, annotation=types[keyword])
        for keyword, option in options.items()
    ]
    cast(Any, call_function).__signature__ = own_signature.replace(parameters=[*others, *parameters])
    return call_function


def as_list(value: Any) -> list[Any]:
    """Return the values of an option: those in the list of a repeatable one, or the value alone."""
    if isinstance(value, list):
        return cast("list[Any]", value)
    return [value]


def with_hints(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let a function refuse a keyword that it does not have with the one that was probably meant."""
    keywords = tuple(signature(function).parameters)

    @wraps(function)
    def call_function(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the function. Raises TypeError for a keyword that it does not have."""
        _require_keywords(function.__qualname__.removesuffix(".__init__"), kwargs, keywords)
        return function(*args, **kwargs)

    return call_function


def _require_keywords(function: str, words: Iterable[str], keywords: Sequence[str]) -> None:
    """Raise TypeError for a word that is not among the keywords of a function."""
    for word in words:
        if word not in keywords:
            hint = hint_in_parentheses(word, keywords)
            raise TypeError(f"{function}() got an unexpected keyword argument {word!r}{hint}")


def names_of(names: object) -> tuple[str, ...]:
    """Return names that a caller gives as one text or as several; None has none. Raises HostError for any other
    value."""
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    if isinstance(names, (bytes, bytearray, memoryview, Mapping)) or not isinstance(names, Iterable):
        raise HostError(f"{names!r}: expected a name or a list of names")
    members = tuple(cast("Iterable[object]", names))
    for member in members:
        if not isinstance(member, str):
            raise HostError(f"{member!r} is no name: expected a name or a list of names")
    return cast("tuple[str, ...]", members)


def require_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise HostError for a value of the option `name` that is not among its choices."""
    if value not in choices:
        raise HostError(f"{name} {value!r} is not one of: {', '.join(choices)}")


def document_path(path: object, function: str) -> str | os.PathLike[str]:
    """Return the path that a caller of `function` gives. Raises HostError for the text of a document, and for what is
    no path."""
    if not isinstance(path, (str, os.PathLike)):
        raise HostError(f"{function} takes a path, not {type(path).__name__}")
    text = str(cast("object", path))
    if "\n" in text and not os.path.exists(text):  # noqa: PTH110 - importing pathlib takes longer than all of this
        raise HostError(
            f"{function} takes a path, and this is a text of several lines: buda_emu.netlist.load.check_text(text) "
            "reads a netlist from text"
        )
    return cast("str | os.PathLike[str]", path)


def small_letters(name: str, word: object) -> str | None:
    """Return the word that is the value of the option `name` in small letters, None for none. Raises HostError for
    another type."""
    if word is None:
        return None
    if not isinstance(word, str):
        raise HostError(f"{name} must be a word, not {word!r}")
    return word.lower()


def integer_of(name: str, least: int, *, optional: bool = False) -> Callable[[object], int | None]:
    """Return the function that converts the value of an integer option to an int; with `optional` None stays. It raises
    HostError, which names the option, for another type and for less than `least`."""

    def convert(value: object) -> int | None:
        """Convert a Python or numpy integer to int."""
        if value is None and optional:
            return None
        try:
            number = operator.index(cast("Any", value))
        except TypeError:
            raise HostError(f"{name} must be an integer, not {value!r}") from None
        if number < least:
            raise HostError(f"{name} must be at least {least}, not {number}")
        return number

    return convert


def number_of(name: str, value: object, least: float, greatest: float = math.inf) -> float:
    """Return the value of an argument that is a finite number from `least` to `greatest`. Raises HostError, which names
    the argument, for anything else, such as NaN."""
    number = math.nan
    if _is_number(value):
        number = float(cast("Any", value))
    if not least <= number <= greatest or math.isinf(number):
        upper_bound = f" and at most {greatest:g}".removesuffix(" and at most inf")
        raise HostError(f"{name} must be a number of at least {least:g}{upper_bound}, not {value!r}")
    return number


def _is_number(value: object) -> bool:
    """Return whether a value is a number of Python or numpy: not a text, and not an array."""
    return hasattr(value, "__float__") and not hasattr(value, "__len__")


def seconds_of(value: Any) -> float:
    """Return the seconds of a time limit. Raises HostError for what is no number above 0."""
    if not _is_number(value) or not value > 0:
        raise HostError(f"timeout must be a number of seconds above 0, not {value!r}")
    return value if isinstance(value, (int, float)) else float(value)


def parse_natural(text: str) -> int:
    """Parse an integer of 0 or more. Raises HostError."""
    if not text.isdecimal():
        raise HostError(f"{text!r} is not an integer of 0 or more")
    return int(text)


def parse_positive(text: str) -> int:
    """Parse an integer of 1 or more. Raises HostError."""
    number = parse_natural(text)
    if number < 1:
        raise HostError("must be at least 1")
    return number


def parse_seconds(text: str) -> float:
    """Parse a number of seconds above 0. Raises HostError."""
    return parse_below(text, float("inf"), "a number of seconds above 0")


def parse_below(text: str, below: float, description: str) -> float:
    """Parse a number above 0 and below another. Raises HostError that quotes `description` as the expected form."""
    value = _float_or_nan(text)
    if not 0 < value < below:
        raise HostError(f"{text!r} is not {description}")
    return value


def parse_between(text: str, least: float, greatest: float, description: str) -> float:
    """Parse a finite number from `least` to `greatest`. Raises HostError that quotes `description` as the form
    expected: a limit that is NaN would hold whatever is compared with it."""
    value = _float_or_nan(text)
    if not least <= value <= greatest or math.isinf(value):
        raise HostError(f"{text!r} is not {description}")
    return value


def _float_or_nan(text: str) -> float:
    """Return the number that a text states, NaN for a text that states none: it lies within no bounds."""
    try:
        return float(text)
    except ValueError:
        return math.nan


class SettingsName(str):
    """A parameter's name that a settings file gives, to all documents of a project: those without such a parameter do
    without it."""

    __slots__ = ()


def parse_size(text: str) -> int:
    """Return the bytes of a text such as `8G`, `512M`, `1.5GiB` or `4096`; units are powers of 1024. Raises
    HostError."""
    match = re.fullmatch(_SIZE, text.strip(), re.IGNORECASE)
    count = 0
    if match is not None:
        count = int(float(match[1]) * (1 << 10 * _UNITS[match[2].lower()]))
    if count < 1:
        raise HostError(f"{text!r} is not a size: write 8G, 512M or a number of bytes")
    return count
