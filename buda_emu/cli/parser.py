"""The parser of the command line: help begins with an example, and its options can be asked for."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NoReturn

from buda_emu.screen import screen_of

_MOST_IN_USAGE = 6  # options


class _Formatter(argparse.HelpFormatter):
    """argparse makes one for each argument, and imports much to learn the terminal's width; the screen knows it too."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=(screen_of(sys.stdout).columns or 80) - 2)

    def _format_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Iterable[Any], prefix: str | None
    ) -> str:
        """Of many options only those that are needed; the others stand below, each with what it is for."""
        listed = list(actions)
        free = [action for action in listed if action.option_strings and not action.required]
        if usage is not None or len(free) <= _MOST_IN_USAGE:
            return super()._format_usage(usage, listed, groups, prefix)  # type: ignore[arg-type]  # lists, as it asks for
        needed = [action for action in listed if action not in free]
        text = super()._format_usage(None, needed, [], prefix)
        return text.replace(self._prog, f"{self._prog} [options]", 1)


class ExampleParser(argparse.ArgumentParser):
    """An argument parser whose help begins with an example."""

    def __init__(self, *args: object, example: str = "", **kwargs: object) -> None:
        super().__init__(*args, formatter_class=_Formatter, **kwargs)  # type: ignore[arg-type]  # handed through as given
        self.example = example
        self.below: Mapping[str, ExampleParser] = {}
        self.elsewhere: Callable[[str], str] = lambda _: ""  # of an option that it does not take: who does

    def format_help(self) -> str:
        """The example, then what argparse says."""
        return f"example: {self.example}\n\n{super().format_help()}"

    def add_subparsers(self, **kwargs: Any) -> Any:
        """As argparse's; `below` has the parsers that are added to it."""
        made = super().add_subparsers(**kwargs)
        self.below = made.choices
        return made

    def leaves(self) -> "Iterator[ExampleParser]":
        """The parsers that take no further verb, this one where it takes none."""
        for parser in self.below.values():
            yield from parser.leaves()
        if not self.below:
            yield self

    def error(self, message: str) -> NoReturn:
        """As argparse's; an option that does not exist gets the one that was probably meant, or whose it is."""
        words = message.removeprefix("unrecognized arguments: ").split()
        if len(words) < len(message.split()) and words[0].startswith("--"):
            from buda_emu.checker.suggest import near

            known = [f"--{name}" for leaf in self.leaves() for name in leaf.options]
            option = words[0].partition("=")[0]
            hint = near(option, known) or self.elsewhere(option)
            message = f"{message} ({hint})" if hint else message
        super().error(message)

    @property
    def arguments(self) -> list[argparse.Action]:
        """Everything that it takes, in the order of declaration."""
        return list(self._actions)

    @property
    def options(self) -> dict[str, argparse.Action]:
        """Its long options by name, without `--`."""
        found: dict[str, argparse.Action] = {}
        for action in self._actions:
            name = max(action.option_strings, key=len, default="")
            if name.startswith("--"):
                found[name.removeprefix("--")] = action
        return found


def add_verb(verbs: Any, folder: str, name: str, line: str) -> ExampleParser:
    """The parser of a verb. Its module has EXAMPLE and add_arguments, and main, unless it is a folder of verbs."""
    module = import_module(f"{folder}.{name}")
    own: ExampleParser = verbs.add_parser(name, help=line, description=line, example=module.EXAMPLE)
    module.add_arguments(own)
    if hasattr(module, "main"):
        own.set_defaults(verb=module.main)
    return own


def add_verbs(parser: argparse.ArgumentParser, folder: str, lines: Mapping[str, str]) -> None:
    """Verbs below a verb, by name with what each is for."""
    verbs = parser.add_subparsers(metavar="VERB", title="verbs", required=True)
    for name, line in lines.items():
        add_verb(verbs, folder, name, line)
