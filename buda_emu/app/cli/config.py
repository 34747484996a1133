"""Settings of a project: `buda-emu.toml` or `[tool.buda-emu]` of pyproject.toml, how they become defaults of options,
and which options a settings file may not set."""

import argparse
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from buda_emu.app.cli.parser import ExampleParser, takes_path
from buda_emu.emulator.options import SharedOptions
from buda_emu.support.caches import HAS_OTHER_USERS
from buda_emu.support.checker.result import Choice
from buda_emu.support.errors import HostError
from buda_emu.support.options import as_list, declared_options
from buda_emu.support.screen import WHEN

_SHARED: Final = {option.flag_of(keyword)[2:]: option for keyword, option in declared_options(SharedOptions).items()}
COMMAND_LINE_ONLY: Final[Mapping[str, str]] = {
    **{name: option.command_line_only for name, option in _SHARED.items() if option.command_line_only},
    "check-command": "it is run in a shell",
    "command": "a command of the debugger can write files",
    "script": "a command of the debugger can write files",
    "port": "everybody who reaches the port can give commands",
}
"""Options that no settings file may set, with the reason."""
LOWERABLE: Final = frozenset(name for name, option in _SHARED.items() if option.is_lowered_only)
"""Options that a settings file may lower, but not raise."""
_FILE_OR_NUMBER: Final = "chips"
"""The option whose value is a file unless it is a number."""
_WRITE_BY_OTHERS: Final = 0o022  # write permission of the group and of everybody


def setting_trust(name: str, action: argparse.Action) -> str:
    """Classify how far a settings file may set an option: `never`, `lowers` (only to a lower value), `file` (only to a
    path within the project) or `free`."""
    if name in COMMAND_LINE_ONLY:
        return "never"
    if name in LOWERABLE:
        return "lowers"
    if takes_path(action) or name == _FILE_OR_NUMBER:
        return "file"
    return "free"


def explain_refusal(name: str) -> str:
    """Return why no settings file may set this option; "" for an option that it may set."""
    if name not in COMMAND_LINE_ONLY:
        return ""
    return f"no setting, because {COMMAND_LINE_ONLY[name]}: give --{name} on the command line"


def require_within(name: str, action: argparse.Action, text: str, folder: str) -> None:
    """Raise HostError if a setting of a file in `folder` gives the option `name` a path outside of that folder and of
    the current folder. Options that take no path pass."""
    if setting_trust(name, action) != "file" or (name == _FILE_OR_NUMBER and text.isdecimal()):
        return
    file = text
    if isinstance(action.metavar, str) and "=" in action.metavar:  # NAME=FILE
        file = text.partition("=")[2]
    if not (_is_within(file, folder) or _is_within(file, ".")):
        raise HostError(f"{file} lies outside of {folder or 'this folder'}: give --{name} on the command line")


def _is_within(path: str, folder: str) -> bool:
    """Return whether a path leads into a folder once symbolic links are resolved."""
    target = os.path.realpath(path)
    root = os.path.realpath(folder or ".")
    return target == root or target.startswith(root.rstrip(os.sep) + os.sep)


# --------------------------------------------------------------------------------------------------------- where
def find_top_folder(folder: str) -> str:
    """Return the topmost folder in which settings for `folder` are looked for: the root of its repository, else the
    user's home, else `folder` itself."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111 - importing pathlib takes longer than all of this
    candidate = folder
    while True:
        if os.path.lexists(os.path.join(candidate, ".git")):  # noqa: PTH118
            return candidate
        if candidate == home:
            return home
        parent = os.path.dirname(candidate)  # noqa: PTH120
        if parent == candidate:
            return folder
        candidate = parent


def explain_distrust(path: str, subject: str = "folder") -> str:
    """Return why settings in a folder, or in a file, are not trusted; "" if nobody but this user and root can have
    written them. Links are followed; `subject` is the word for `path` in the text."""
    if not HAS_OTHER_USERS:
        return ""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError as error:
        return error.strerror or str(error)
    if status.st_uid not in (os.geteuid(), 0):
        return f"the {subject} belongs to another user"
    write_by_others = status.st_mode & _WRITE_BY_OTHERS
    if write_by_others == stat.S_IWGRP and status.st_gid == os.getegid() == os.geteuid():  # a group of this user alone
        return ""
    return f"others can write to the {subject}" if write_by_others else ""


SETTINGS_FILE: Final = "buda-emu.toml"
_SHARED_FILE: Final = "pyproject.toml"
_TABLE: Final = "tool.buda-emu"
_MOST_BYTES: Final = 1 << 20  # of a settings file, which a stranger may have written
_MAY_MENTION: Final = re.compile(
    rb"""tool["']?[ \t]*\.[ \t]*["']?buda-emu|^[ \t]*(\[[ \t]*)?["']?tool["']?[ \t]*[]=]""", re.MULTILINE
)
"""Matches any pyproject.toml that can have the table, however TOML spells it: as a dotted name, or below a table
`tool`."""
NO_SETTINGS: Final = "none"
WITHOUT_SETTINGS: Final = frozenset({"cache", "completion", "example", "schema"})
"""Verbs whose output depends on no project."""
RULE_OPTIONS: Final = {
    "select": "tell findings of these rules only (ids or their beginnings), and what refuses a document",
    "ignore": "do not tell findings of these rules, unless they refuse a document",
    "error": "make findings of these rules errors",
}
"""The fields of `Choice`, which are options of `check` and keys of the settings, with their help."""
_NOT_SETTINGS: Final = frozenset({"help", "config", *RULE_OPTIONS})
_TYPES: Final = {"array": "a list", "boolean": "true or false", "object": "a table", "string": "a text"}


class Settings(NamedTuple):
    """The settings in use: the choice of findings, the path of the file ("" without one), and the files that were not
    used, each with the reason."""

    choice: Choice = Choice()
    path: str = ""
    passed_over: tuple[str, ...] = ()


def configure(parser: ExampleParser, verb: str, verbs: Mapping[str, str], words: Sequence[str]) -> Settings:
    """Give the options of a verb the defaults that the project's settings state, and return the settings in use.
    `verbs` maps every verb to its help line; `words` are those of the command line, whose `--config` chooses the file.
    Raises HostError for settings that are not valid."""
    path = _config_argument(words)
    passed_over = ()
    if not path:
        path, passed_over = _find_settings(os.getcwd())  # noqa: PTH109 - importing pathlib takes longer than all of this
    if path == NO_SETTINGS or not path:
        return Settings(passed_over=passed_over)
    table = read_settings(path)
    if not table:
        return Settings(path=path, passed_over=passed_over)
    _validate(path, table, settings_schema({verb: parser}, verbs))
    _set_defaults(path, [verb], parser, table.get(verb, {}))
    choice = Choice(*(tuple(table.get(name, ())) for name in RULE_OPTIONS))
    _check_rules(path, choice)
    for leaf in parser.leaves():
        if "color" in table and "color" not in table.get(verb, {}):
            leaf.set_defaults(color=table["color"])
    return Settings(choice, path, passed_over)


def _config_argument(words: Sequence[str]) -> str:
    """Return the value of `--config` among the words of a command line; "" without one."""
    for index, word in enumerate(words):
        if word == "--config" and index + 1 < len(words):
            return words[index + 1]
        if word.startswith("--config="):
            return word.partition("=")[2]
    return ""


def _find_settings(folder: str) -> tuple[str, tuple[str, ...]]:
    """Return the nearest file with settings in this folder or above it, "" if there is none; and a note on a file that
    was not used because others may have written it."""
    start_folder = folder
    last = find_top_folder(folder)
    while True:
        name = _settings_name(folder)
        if name:
            path = os.path.join(folder, name)  # noqa: PTH118
            reason = explain_distrust(folder) or explain_distrust(path, "file")
            if reason:
                return "", (f"{path}: {reason}",)
            return name if folder == start_folder else path, ()
        if folder == last or explain_distrust(folder):
            return "", ()
        folder = os.path.dirname(folder)  # noqa: PTH120


def _settings_name(folder: str) -> str:
    """Return the name of the file with settings that lies in this folder; "" if there is none."""
    for name in (SETTINGS_FILE, _SHARED_FILE):
        path = os.path.join(folder, name)  # noqa: PTH118
        if os.path.isfile(path) and (name == SETTINGS_FILE or _has_settings(path)):  # noqa: PTH113
            return name
    return ""


def _has_settings(path: str) -> bool:
    """Return whether a pyproject.toml has the table of settings. Parsing TOML takes longer than everything else here,
    so a file that cannot have the table is not parsed."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return _MAY_MENTION.search(file.read()) is not None and bool(read_settings(path))
    except (OSError, HostError):  # a file for others, which they will complain about
        return False


def read_settings(path: str) -> dict[str, Any]:
    """Return the settings of a file as plain data. Raises HostError for a file that is not TOML or too large, and
    OSError."""
    import tomllib

    with open(path, "rb") as file:  # noqa: PTH123
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise HostError(f"{path}: settings of more than {_MOST_BYTES:,} bytes are not read")
    try:
        content = tomllib.loads(data.decode())
    except RecursionError:
        raise HostError(f"{path}: not TOML: nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, bytes that are no text, integers of thousands of digits
        raise HostError(f"{path}: not TOML: {error}") from None
    if os.path.basename(path) == _SHARED_FILE:  # noqa: PTH119
        content = _table_of_shared_file(content)
    for place, number in _integers(content, ""):
        if not -(1 << 63) <= number < 1 << 63:
            raise HostError(f"{path}: {place}: not TOML: an integer of more than 64 bits")
    return content


def _table_of_shared_file(content: dict[str, Any]) -> dict[str, Any]:
    """Return the table `[tool.buda-emu]` of the content of a pyproject.toml; empty if there is none."""
    table = content
    for key in _TABLE.split("."):
        section: Any = table.get(key, {})
        if isinstance(section, dict):
            table = cast(dict[str, Any], section)
        else:
            table = {}
    return table


def _integers(value: Any, place: str) -> Iterator[tuple[str, int]]:
    """Yield each integer of a setting with its place, such as `check.strict`."""
    if isinstance(value, int):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in cast(dict[str, Any], value).items():
            yield from _integers(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for inner in cast(list[Any], value):
            yield from _integers(inner, place)


# ---------------------------------------------------------------------------------------------------------- form
def settings_schema(parsers: Mapping[str, ExampleParser], verbs: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON schema of the settings. The tables of the verbs in `parsers` are described in full; those of all
    other verbs are only required to be tables."""
    words = {"type": "array", "items": {"type": "string", "minLength": 1}}
    rules = {name: {**words, "description": text} for name, text in RULE_OPTIONS.items()}
    color = {"enum": list(WHEN), "description": "when colours are shown"}
    tables: dict[str, Any] = {}
    for verb, text in verbs.items():
        if verb in parsers and verb not in WITHOUT_SETTINGS:
            tables[verb] = _table_schema(parsers[verb], text)
        elif verb not in WITHOUT_SETTINGS:
            tables[verb] = {"type": "object", "description": text}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Settings of buda-emu: {SETTINGS_FILE}, or [{_TABLE}] of {_SHARED_FILE}",
        "type": "object",
        "properties": {**rules, "color": color, **tables},
        "additionalProperties": False,
    }


def _table_schema(parser: ExampleParser, text: str) -> dict[str, Any]:
    """Return the schema of a verb's table: its options, or a table for each verb below it."""
    fields = {name: _table_schema(leaf, leaf.description or "") for name, leaf in parser.below.items()}
    if not fields:
        settings = {name: action for name, action in parser.options.items() if name not in _NOT_SETTINGS}
        fields = {name: _option_schema(action) for name, action in settings.items() if name not in COMMAND_LINE_ONLY}
    return {"type": "object", "description": text, "properties": fields, "additionalProperties": False}


def _option_schema(action: argparse.Action) -> dict[str, Any]:
    """Return the schema of the values that an option accepts."""
    description: dict[str, Any] = {}
    if action.help:
        description["description"] = action.help
    if action.nargs == 0:
        return {"type": "boolean", **description}
    if action.choices is not None:
        value_schema: dict[str, Any] = {"enum": list(action.choices)}
    else:
        value_schema = {"type": ["string", "number"]}
    if isinstance(action.default, list):  # an option that may be repeated
        return {"type": "array", "items": value_schema, **description}
    return {**value_schema, **description}


def _validate(path: str, table: Mapping[str, Any], form: Mapping[str, Any]) -> None:
    """Check settings against their schema. Raises HostError with a line for each violation."""
    from jsonschema import Draft202012Validator

    errors: Iterable[Any] = Draft202012Validator(form).iter_errors(table)  # type: ignore[reportUnknownMemberType]
    violations: list[str] = []
    for error in sorted(errors, key=lambda error: list(map(str, error.absolute_path))):
        violations += _describe_violation(error)
    if violations:
        raise HostError("\n".join(f"{path}: {text}" for text in violations))


def _describe_violation(error: Any) -> Iterator[str]:
    """Yield a violation of the schema in the words of a user, with the place of the setting."""
    from buda_emu.support.checker.suggest import near

    place = ".".join(str(step) for step in error.absolute_path if isinstance(step, str))
    if error.validator == "additionalProperties":
        yield from _describe_unknown_keys(error, place)
    elif error.validator == "enum":
        words = [str(word) for word in error.validator_value]
        hint = near(str(error.instance), words)
        suffix = f" ({hint})" if hint else ""
        yield f"{place}: {error.instance!r} is not one of {', '.join(words)}{suffix}"
    elif error.validator == "type":
        kinds = error.validator_value
        if isinstance(kinds, str):
            kinds = [kinds]
        expected = " or ".join(_TYPES.get(kind, f"a {kind}") for kind in kinds)
        yield f"{place}: expected {expected}, not {error.instance!r}"
    else:
        yield f"{place}: {error.message}"


def _describe_unknown_keys(error: Any, place: str) -> Iterator[str]:
    """Yield a line for each key of a table that is no setting, with the reason or a similar key."""
    from buda_emu.support.checker.suggest import near

    properties = error.schema["properties"]
    prefix = f"{place}." if place else ""
    for key in error.instance:
        refusal = explain_refusal(key)
        if refusal:
            yield f"{place}.{key}: {refusal}"
        elif key not in properties:
            hint = near(key, properties) or f"known: {', '.join(properties) or 'none'}"
            yield f"{prefix}{key}: no such key ({hint})"


# ------------------------------------------------------------------------------------------------------ defaults
def _set_defaults(path: str, place: list[str], parser: ExampleParser, table: Mapping[str, Any]) -> None:
    """Make the settings of a table the defaults of a verb's options, and of the verbs below it. `place` has the names
    that lead to the table, for messages. Raises HostError with the place of a setting whose value does not fit."""
    if parser.below:
        for name, leaf in parser.below.items():
            _set_defaults(path, [*place, name], leaf, table.get(name, {}))
        return
    options = parser.options
    for key, value in table.items():
        action = options[key]
        try:
            for entry in as_list(value):
                require_within(key, action, str(entry), os.path.dirname(path))  # noqa: PTH120
            default = _convert_default(action, value)
            if key in LOWERABLE:
                default = min(_default_limit(action), default)
        except HostError as error:
            raise HostError(f"{path}: {'.'.join([*place, key])}: {error}") from None
        except (argparse.ArgumentTypeError, ValueError, TypeError) as error:
            raise HostError(f"{path}: {'.'.join([*place, key])}: {error}") from None
        if default is not argparse.SUPPRESS:
            parser.set_defaults(**{action.dest: default})
            action.required = False


def _convert_default(action: argparse.Action, value: Any) -> Any:
    """Convert the value of a setting to the default of an option; SUPPRESS, which keeps the option's own default, for a
    flag that is set to false."""
    if action.nargs == 0:
        return action.const if value else argparse.SUPPRESS
    option = getattr(action, "option", None)  # of a group, whose declaration may convert settings otherwise
    convert: Callable[[str], Any] = action.type if callable(action.type) else str
    if option is not None and option.convert_setting is not None:
        convert = option.convert_setting
    if isinstance(value, list):
        return [convert(str(entry)) for entry in value]  # type: ignore[misc]  # of a TOML list
    return convert(str(value))


def _default_limit(action: argparse.Action) -> float:
    """Return the memory limit in bytes that holds if none is set."""
    if action.default is not None:
        return action.default
    from buda_emu.emulator.memory.host import default_memory_limit

    return default_memory_limit()


def _check_rules(path: str, choice: Choice) -> None:
    """Raise HostError if a word among the chosen rules does not begin the id of any rule."""
    for name in RULE_OPTIONS:
        try:
            for word in getattr(choice, name):
                require_rules(word, to_ignore=name == "ignore")
        except HostError as error:
            raise HostError(f"{path}: {name}: {error}") from None


def require_rules(word: str, to_ignore: bool = False) -> None:
    """Raise HostError if no rule's id begins with this word, or if it names a rule that cannot be ignored."""
    from buda_emu.app.documents.kinds import rule_kind
    from buda_emu.support.checker.suggest import near

    rules = rule_kind(word).rules().rules
    if not any(rule.startswith(word) for rule in rules):
        hint = near(word, rules)
        suffix = f" ({hint})" if hint else ""
        raise HostError(f"no rule begins with {word!r}{suffix}; `buda-emu explain` lists them")
    if to_ignore and word in rules and refuses(word):
        raise HostError(f"{word} refuses a document and cannot be ignored")


def refuses(rule: str) -> bool:
    """Return whether a finding of this rule is an error even without --strict."""
    from buda_emu.app.documents.kinds import rule_kind

    definition = rule_kind(rule).rules().rules.get(rule)
    return definition is not None and definition.at() == "error"


def rule_list_type(to_ignore: bool) -> Callable[[str], tuple[str, ...]]:
    """Return an argparse type that parses ids of rules, or their beginnings, separated by commas. With `to_ignore` it
    refuses rules that cannot be ignored."""

    def rules(text: str) -> tuple[str, ...]:
        """Convert a comma-separated list of rules. Raise ArgumentTypeError if one does not exist."""
        words: Iterable[str] = filter(None, (word.strip() for word in text.split(",")))
        rule_ids = tuple(words)
        try:
            for word in rule_ids:
                require_rules(word, to_ignore)
        except HostError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return rule_ids

    return rules
