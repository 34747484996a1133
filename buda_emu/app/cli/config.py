"""Settings of a project, `buda-emu.toml` or `[tool.buda-emu]` of pyproject.toml, and which settings such a file may
not decide.
"""

import argparse
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from buda_emu.app.cli.parser import ExampleParser
from buda_emu.support.caches import HAS_OTHER_USERS
from buda_emu.support.checker.result import Choice
from buda_emu.support.errors import HostError
from buda_emu.support.screen import WHEN

NEVER: Final[Mapping[str, str]] = {
    "allow-pickle": "a pickle can run any code",
    "check-command": "it is run in a shell",
    "command": "a command of the debugger can write files",
    "script": "a command of the debugger can write files",
    "port": "everybody who reaches the port can give commands",
    "dask": "a scheduler runs the work of this command on other machines",
}
"""Options that no settings file has, and why."""
LOWERS: Final = "memory-limit"
"""The option that a settings file may lower, and not raise."""
FILE_WORDS: Final = frozenset({"FILE", "FILE.npy", "DIR", "OLD", "OTHER", "RAW", "MODEL"})
"""Metavars of options that name a file or folder, alone or after `NAME=`."""
_FILE_OR_NUMBER: Final = "chips"
"""The option that names a file where it is not a number."""
_OTHERS: Final = 0o022  # write permission of the group and of everybody


def kind(name: str, action: argparse.Action) -> str:
    """How far a setting of this option is trusted: `never`, `lowers`, `file` (one within the project), `free`."""
    if name in NEVER:
        return "never"
    if name == LOWERS:
        return "lowers"
    word = action.metavar.rpartition("=")[2] if isinstance(action.metavar, str) and action.nargs != 0 else ""
    return "file" if word in FILE_WORDS or name == _FILE_OR_NUMBER else "free"


def refusal(name: str) -> str:
    """What is said of a setting that no file has; "" of any other."""
    return f"no setting, because {NEVER[name]}: give --{name} on the command line" if name in NEVER else ""


def require_within(name: str, action: argparse.Action, text: str, folder: str) -> None:
    """Raises HostError where a setting in a file of `folder` names a file outside of it, and of the current folder."""
    if kind(name, action) != "file" or (name == _FILE_OR_NUMBER and text.isdecimal()):
        return
    file = text.partition("=")[2] if isinstance(action.metavar, str) and "=" in action.metavar else text
    if not (_within(file, folder) or _within(file, ".")):
        raise HostError(f"{file} lies outside of {folder or 'this folder'}: give --{name} on the command line")


def _within(path: str, folder: str) -> bool:
    """Whether a path, its links followed, leads into a folder."""
    inside = os.path.realpath(path)
    outside = os.path.realpath(folder or ".")
    return inside == outside or inside.startswith(outside.rstrip(os.sep) + os.sep)


# --------------------------------------------------------------------------------------------------------- where
def highest(folder: str) -> str:
    """The last folder that may have settings for this one: the root of the repository that it is in, else the user's
    home, else the folder itself."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - importing pathlib takes longer than all of this
    above = folder
    while True:
        if os.path.lexists(os.path.join(above, ".git")):  # noqa: PTH118
            return above
        if above == home:
            return home
        parent = os.path.dirname(above)  # noqa: PTH120
        if parent == above:
            return folder
        above = parent


def why_not(path: str, what: str = "folder") -> str:
    """Why settings in a folder, or a file of them, links followed, are not trusted; "" where only this user and root
    can have written them."""
    if not HAS_OTHER_USERS:
        return ""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError as error:
        return error.strerror or str(error)
    if found.st_uid not in (os.geteuid(), 0):
        return f"the {what} belongs to another user"
    others = found.st_mode & _OTHERS
    if others == stat.S_IWGRP and found.st_gid == os.getegid() == os.geteuid():  # a group of this user alone
        return ""
    return f"others can write to the {what}" if others else ""


OWN_FILE: Final = "buda-emu.toml"
_SHARED_FILE: Final = "pyproject.toml"
_TABLE: Final = "tool.buda-emu"
_MOST_BYTES: Final = 1 << 20
_MAY_MENTION: Final = re.compile(
    rb"""tool["']?[ \t]*\.[ \t]*["']?buda-emu|^[ \t]*(\[[ \t]*)?["']?tool["']?[ \t]*[]=]""", re.MULTILINE
)
"""What a file with the table has in any spelling: its dotted name, or a table `tool` by itself."""
NONE: Final = "none"
WITHOUT_SETTINGS: Final = frozenset({"cache", "completion", "example", "schema"})
"""Verbs whose output depends on no project."""
RULES: Final = {
    "select": "tell findings of these rules only (ids or their beginnings), and what refuses a document",
    "ignore": "do not tell findings of these rules, unless they refuse a document",
    "error": "make findings of these rules errors",
}
"""What `Choice` has, as options of `check` and as keys of the settings."""
_NOT_KEPT: Final = frozenset({"help", "config", *RULES})
_TYPES: Final = {"array": "a list", "boolean": "true or false", "object": "a table", "string": "a text"}


class Settings(NamedTuple):
    """Settings in use: which findings are told, the file ("" without one), and files that were passed over, each with
    the reason."""

    choice: Choice = Choice()
    path: str = ""
    passed_over: tuple[str, ...] = ()


def configure(parser: ExampleParser, verb: str, verbs: Mapping[str, str], given: Sequence[str]) -> Settings:
    """Give the options of a verb the defaults of the project's settings.

    `verbs`: all there are, with what they are for; `given`: the words of the command line. Raises HostError.
    """
    path = _named(given)
    passed_over = ()
    if not path:
        path, passed_over = _found(os.getcwd())  # noqa: PTH109 - importing pathlib takes longer than all of this
    if path == NONE or not path:
        return Settings(passed_over=passed_over)
    table = read(path)
    if not table:
        return Settings(path=path, passed_over=passed_over)
    _validate(path, table, schema({verb: parser}, verbs))
    _set_defaults(path, [verb], parser, table.get(verb, {}))
    choice = Choice(*(tuple(table.get(name, ())) for name in RULES))
    _check_rules(path, choice)
    for leaf in parser.leaves():
        if "color" in table and "color" not in table.get(verb, {}):
            leaf.set_defaults(color=table["color"])
    return Settings(choice, path, passed_over)


def _named(given: Sequence[str]) -> str:
    """The value of `--config` among the words of a command line, "" without."""
    for index, word in enumerate(given):
        if word == "--config" and index + 1 < len(given):
            return given[index + 1]
        if word.startswith("--config="):
            return word.partition("=")[2]
    return ""


def _found(folder: str) -> tuple[str, tuple[str, ...]]:
    """The nearest file with settings, in this folder or above it, "" where there is none; and what was passed over
    because others may have written it (`trust`)."""
    here = folder
    last = highest(folder)
    while True:
        for name in (OWN_FILE, _SHARED_FILE):
            path = os.path.join(folder, name)  # noqa: PTH118
            if os.path.isfile(path) and (name == OWN_FILE or _mentions(path)):  # noqa: PTH113
                reason = why_not(folder) or why_not(path, "file")
                return ("", (f"{path}: {reason}",)) if reason else (name if folder == here else path, ())
        if folder == last or why_not(folder):
            return "", ()
        folder = os.path.dirname(folder)  # noqa: PTH120


def _mentions(path: str) -> bool:
    """Whether a pyproject.toml has the table. Reading TOML takes longer than all other settings: only where it may."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return _MAY_MENTION.search(file.read()) is not None and bool(read(path))
    except (OSError, HostError):  # a file for others, which they will complain about
        return False


def read(path: str) -> dict[str, Any]:
    """The settings of a file. Raises HostError for a file that is not TOML or too large, OSError."""
    import tomllib

    with open(path, "rb") as file:  # noqa: PTH123
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise HostError(f"{path}: settings of more than {_MOST_BYTES:,} bytes are not read")
    try:
        content = tomllib.loads(data.decode())
    except RecursionError:
        raise HostError(f"{path}: not TOML: nested too deeply") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HostError(f"{path}: not TOML: {error}") from None
    if os.path.basename(path) != _SHARED_FILE:  # noqa: PTH119
        return content
    for key in _TABLE.split("."):
        found: Any = content.get(key, {})
        content = cast(dict[str, Any], found) if isinstance(found, dict) else {}
    return content


# ---------------------------------------------------------------------------------------------------------- form
def schema(parsers: Mapping[str, ExampleParser], verbs: Mapping[str, str]) -> dict[str, Any]:
    """The JSON schema of the settings: what tables of these verbs may hold in full, of all other verbs that they are
    tables."""
    words = {"type": "array", "items": {"type": "string", "minLength": 1}}
    rules = {name: {**words, "description": text} for name, text in RULES.items()}
    color = {"enum": list(WHEN), "description": "when colours are shown"}
    tables = {
        verb: _form(parsers[verb], text) if verb in parsers else {"type": "object", "description": text}
        for verb, text in verbs.items()
        if verb not in WITHOUT_SETTINGS
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Settings of buda-emu: {OWN_FILE}, or [{_TABLE}] of {_SHARED_FILE}",
        "type": "object",
        "properties": {**rules, "color": color, **tables},
        "additionalProperties": False,
    }


def _form(parser: ExampleParser, text: str) -> dict[str, Any]:
    fields = {name: _form(leaf, leaf.description or "") for name, leaf in parser.below.items()}
    if not fields:
        kept = {name: action for name, action in parser.options.items() if name not in _NOT_KEPT}
        fields = {name: _value(action) for name, action in kept.items() if name not in NEVER}
    return {"type": "object", "description": text, "properties": fields, "additionalProperties": False}


def _value(action: argparse.Action) -> dict[str, Any]:
    described = {"description": action.help} if action.help else {}
    if action.nargs == 0:
        return {"type": "boolean", **described}
    if action.choices is not None:
        one: dict[str, Any] = {"enum": list(action.choices)}
    else:
        one = {"type": ["string", "number"]}
    if isinstance(action.default, list):  # may be given several times
        return {"type": "array", "items": one, **described}
    return {**one, **described}


def _validate(path: str, table: Mapping[str, Any], form: Mapping[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    errors: Iterable[Any] = Draft202012Validator(form).iter_errors(table)  # type: ignore[reportUnknownMemberType]
    found = sorted(errors, key=lambda error: list(map(str, error.absolute_path)))
    said = [text for error in found for text in _words(error)]
    if said:
        raise HostError("\n".join(f"{path}: {text}" for text in said))


def _words(error: Any) -> Iterator[str]:
    """A violation of the schema as a user would say it."""
    from buda_emu.support.checker.suggest import near

    place = ".".join(str(step) for step in error.absolute_path if isinstance(step, str))
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        for key in error.instance:
            if refused := refusal(key):
                yield f"{place}.{key}: {refused}"
            elif key not in known:
                hint = near(key, known) or f"known: {', '.join(known) or 'none'}"
                yield f"{f'{place}.' if place else ''}{key}: no such key ({hint})"
    elif error.validator == "enum":
        words = [str(word) for word in error.validator_value]
        hint = near(str(error.instance), words)
        yield f"{place}: {error.instance!r} is not one of {', '.join(words)}{f' ({hint})' if hint else ''}"
    elif error.validator == "type":
        kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        expected = " or ".join(_TYPES.get(kind, f"a {kind}") for kind in kinds)
        yield f"{place}: expected {expected}, not {error.instance!r}"
    else:
        yield f"{place}: {error.message}"


# ------------------------------------------------------------------------------------------------------ defaults
def _set_defaults(path: str, place: list[str], parser: ExampleParser, table: Mapping[str, Any]) -> None:
    if parser.below:
        for name, leaf in parser.below.items():
            _set_defaults(path, [*place, name], leaf, table.get(name, {}))
        return
    options = parser.options
    for key, value in table.items():
        action = options[key]
        try:
            for one in cast(list[Any], value) if isinstance(value, list) else [value]:
                require_within(key, action, str(one), os.path.dirname(path))  # noqa: PTH120
            default = _default(action, value)
            if key == LOWERS:
                default = min(_without(action), default)
        except HostError as error:
            raise HostError(f"{path}: {'.'.join([*place, key])}: {error}") from None
        except (argparse.ArgumentTypeError, ValueError, TypeError) as error:
            raise HostError(f"{path}: {'.'.join([*place, key])}: {error}") from None
        if default is not argparse.SUPPRESS:
            parser.set_defaults(**{action.dest: default})
            action.required = False


def _default(action: argparse.Action, value: Any) -> Any:
    """What the option's default becomes; SUPPRESS where it stays what it is."""
    if action.nargs == 0:
        return action.const if value else argparse.SUPPRESS
    convert: Callable[[str], Any] = action.type if callable(action.type) else str
    if isinstance(value, list):
        return [convert(str(item)) for item in value]  # type: ignore[misc]  # of a TOML list
    return convert(str(value))


def _without(action: argparse.Action) -> float:
    """What a limit is where nobody gives one."""
    if action.default is not None:
        return action.default
    from buda_emu.emulator.memory.host import default_memory_limit

    return default_memory_limit()


def _check_rules(path: str, choice: Choice) -> None:
    """Every word begins the id of a rule. Raises HostError."""
    for name in RULES:
        try:
            for word in getattr(choice, name):
                require_rules(word, to_ignore=name == "ignore")
        except HostError as error:
            raise HostError(f"{path}: {name}: {error}") from None


def require_rules(word: str, to_ignore: bool = False) -> None:
    """Raises HostError where no rule's id begins so, or it is one that cannot be ignored."""
    from buda_emu.app.documents.kinds import rule_kind
    from buda_emu.support.checker.suggest import near

    known = rule_kind(word).rules().rules
    if not any(rule.startswith(word) for rule in known):
        hint = near(word, known)
        raise HostError(f"no rule begins with {word!r}{f' ({hint})' if hint else ''}; `buda-emu explain` lists them")
    if to_ignore and word in known and refuses(word):
        raise HostError(f"{word} refuses a document and cannot be ignored")


def refuses(rule: str) -> bool:
    """Whether findings of a rule are errors even where nobody is strict."""
    from buda_emu.app.documents.kinds import rule_kind

    known = rule_kind(rule).rules().rules.get(rule)
    return known is not None and known.at() == "error"


def rules_of(to_ignore: bool) -> Callable[[str], tuple[str, ...]]:
    """argparse type: ids of rules, or their beginnings, with commas."""

    def rules(text: str) -> tuple[str, ...]:
        words: Iterable[str] = filter(None, (word.strip() for word in text.split(",")))
        found = tuple(words)
        try:
            for word in found:
                require_rules(word, to_ignore)
        except HostError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return found

    return rules
