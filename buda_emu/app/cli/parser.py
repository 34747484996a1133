"""The parser of the command line. Its help begins with an example, and its options can be listed by name."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from typing import Any, Final, NamedTuple, NoReturn

from buda_emu.support.screen import screen_of

_MOST_IN_USAGE = 6  # options: more do not fit a line of 80 characters


VALUE_METAVARS: Final = frozenset({
    "ARCH", "BY", "COMMAND", "DIM:KIND[:BITS]", "EXPR", "FORMAT", "K/N", "KIND", "N", "N,C,..", "N,N", "NAME", "NxCx..",
    "OP", "ORDER", "P", "PASS", "PCC", "PCT", "PERCENT", "PLACE", "ROWS", "RULE", "RxC", "S", "SCHEDULER", "SECONDS",
    "SIZE", "V", "VALUE", "W", "WORD", "X", "XxY", "a,b,c", "usb|pcie",
})  # fmt: skip
"""Metavars of values that are no paths: alone, after `NAME=`, or as a list that ends in `,...`."""


def takes_path(action: argparse.Action) -> bool:
    """Return whether an argument is a file or folder, alone or after `NAME=`. A metavar that `VALUE_METAVARS` does not
    list stands for one, so that a new option that opens a file is not taken for another."""
    if action.nargs == 0 or action.choices is not None:
        return False
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return metavar.rpartition("=")[2].removesuffix(",...") not in VALUE_METAVARS


class _Formatter(argparse.HelpFormatter):
    """A formatter that takes the terminal's width from `screen_of`. argparse makes a formatter for each argument, and
    its own way to learn the width imports much."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=(screen_of(sys.stdout).columns or 80) - 2)

    def _format_action(self, action: argparse.Action) -> str:
        """Format the list of verbs under the titles of their groups, where the parser has groups; all else as argparse
        does."""
        groups: Mapping[str, Iterable[str]] = getattr(action, "groups", {})
        if not groups:
            return super()._format_action(action)
        texts = {sub.dest: self._format_action(sub) for sub in self._iter_indented_subactions(action)}
        if not texts.keys() >= set(chain.from_iterable(groups.values())):  # of few verbs alone
            return super()._format_action(action)
        blocks = [f"  {title}:\n{''.join(texts[name] for name in names)}" for title, names in groups.items()]
        return "\n".join(blocks)

    def _format_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Iterable[Any], prefix: str | None
    ) -> str:
        """Leave optional arguments out of the usage line of a verb that has many; the help lists them below."""
        listed = list(actions)
        free = [action for action in listed if action.option_strings and not action.required]
        if usage is not None or len(free) <= _MOST_IN_USAGE:
            return super()._format_usage(usage, listed, groups, prefix)  # type: ignore[arg-type]  # lists, as it asks for
        needed = [action for action in listed if action not in free]
        text = super()._format_usage(None, needed, [], prefix)
        return text.replace(self._prog, f"{self._prog} [options]", 1)


class ExampleParser(argparse.ArgumentParser):
    """An argument parser whose help begins with an example. `below` maps the verbs below it to their parsers;
    `describe_owners` says which other verbs take an option that this parser does not know."""

    def __init__(self, *args: object, example: str = "", **kwargs: object) -> None:
        super().__init__(*args, formatter_class=_Formatter, **kwargs)  # type: ignore[arg-type]  # handed through as given
        self.example = example
        self.below: Mapping[str, ExampleParser] = {}
        self.describe_owners: Callable[[str], str] = lambda _: ""

    def format_help(self) -> str:
        """Return the example, followed by the help of argparse."""
        return f"example: {self.example}\n\n{super().format_help()}"

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help, or a version, as `say` does. Raises OSError where argparse would go on as if it had been read."""
        if file is None or file is sys.stderr:  # errors, which have nowhere else to go
            super()._print_message(message, file)
            return
        from buda_emu.app.cli.output import say

        say(message, file, end="")

    def add_subparsers(self, **kwargs: Any) -> Any:
        """Add verbs below this parser as argparse does, and remember their parsers in `below`."""
        action = super().add_subparsers(**kwargs)
        self.below = action.choices
        return action

    def leaves(self) -> "Iterator[ExampleParser]":
        """Yield the parsers that take no further verb; this one if it takes none."""
        for parser in self.below.values():
            yield from parser.leaves()
        if not self.below:
            yield self

    def error(self, message: str) -> NoReturn:
        """Report an error and end the process, as argparse does. For an unknown option the message says which option
        was probably meant, or which verb takes it."""
        words = message.removeprefix("unrecognized arguments: ").split()
        if len(words) < len(message.split()) and words[0].startswith("--"):
            from buda_emu.support.checker.suggest import near

            known_options: list[str] = []
            for leaf in self.leaves():
                known_options += [f"--{name}" for name in leaf.options]
            option = words[0].partition("=")[0]
            hint = near(option, known_options) or self.describe_owners(option)
            if hint:
                message = f"{message} ({hint})"
        elif len(words) < len(message.split()) and not words[0].startswith("-"):
            message = f"{message}{self._describe_single_file()}"
        # argparse lets the parser of the whole command report an option that no verb takes: name the verb in use.
        parser = self
        while len(parser.below) == 1:
            (parser,) = parser.below.values()
        super(ExampleParser, parser).error(message)

    def _describe_single_file(self) -> str:
        """Return the clause that says that the verb in use takes a single file, "" if it takes none or several."""
        for leaf in self.leaves():
            files = [action for action in leaf.arguments if not action.option_strings and action.dest == "file"]
            if leaf.options and files and files[0].nargs in (None, "?"):
                return f": {leaf.prog.rpartition(' ')[2]} takes one {files[0].metavar} at a time"
        return ""

    @property
    def arguments(self) -> list[argparse.Action]:
        """All arguments in the order of declaration."""
        return list(self._actions)

    @property
    def options(self) -> dict[str, argparse.Action]:
        """The long options by name, without `--`."""
        actions: dict[str, argparse.Action] = {}
        for action in self._actions:
            name = max(action.option_strings, key=len, default="")
            if name.startswith("--"):
                actions[name.removeprefix("--")] = action
        return actions


class Verb(NamedTuple):
    """A verb of the command: its help line, an example, the function that declares its arguments, and, written
    `module:name`, the function that does its work."""

    line: str
    example: str
    add_arguments: "Callable[[ExampleParser], None]"
    work: str


def add_verb(verbs: Any, name: str, verb: Verb) -> ExampleParser:
    """Add the parser of a verb below a parser, and return it. The module of the verb's work is imported when the verb
    is called. A flag can choose other work (`alternative_work`)."""
    verb_parser: ExampleParser = verbs.add_parser(name, help=verb.line, description=verb.line, example=verb.example)
    verb.add_arguments(verb_parser)

    def run_verb(args: argparse.Namespace) -> int:
        """Import the module that does the verb's work, which keeps start-up short, and run it; the result is the exit
        code."""
        module, _, function = (args.work or verb.work).partition(":")
        return getattr(import_module(module), function)(args)

    verb_parser.set_defaults(verb=run_verb, work=None, default_of=verb_parser.get_default)
    return verb_parser


def alternative_work(place: str) -> dict[str, Any]:
    """Return the arguments of `add_argument` for a flag with which the verb calls another function of a module of
    `cli.verbs`: `place` names it as `module:name`. Nothing is imported before."""
    return {"action": "store_const", "dest": "work", "const": f"buda_emu.app.cli.verbs.{place}"}


def add_verbs(parser: argparse.ArgumentParser, verbs: Mapping[str, Verb]) -> None:
    """Add verbs, by name, below a verb, of which the command line must then give one."""
    below = parser.add_subparsers(metavar="VERB", title="verbs", required=True)
    for name, verb in verbs.items():
        add_verb(below, name, verb)
