"""The parser of the command line: help begins with an example, and its options can be asked for."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from buda_emu.support.screen import screen_of

_MOST_IN_USAGE = 6  # options


class _Formatter(argparse.HelpFormatter):
    """argparse makes one for each argument, and imports much to learn the terminal's width; the screen knows it too."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=(screen_of(sys.stdout).columns or 80) - 2)

    def _format_action(self, action: argparse.Action) -> str:
        """Verbs by their groups, where the parser has any; all else as argparse does it."""
        groups: Mapping[str, Iterable[str]] = getattr(action, "groups", {})
        texts = {sub.dest: self._format_action(sub) for sub in self._iter_indented_subactions(action)} if groups else {}
        if not texts.keys() >= {name for names in groups.values() for name in names} or not groups:
            return super()._format_action(action)
        blocks = [f"  {title}:\n{''.join(texts[name] for name in names)}" for title, names in groups.items()]
        return "\n".join(blocks)

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
            from buda_emu.support.checker.suggest import near

            known = [f"--{name}" for leaf in self.leaves() for name in leaf.options]
            option = words[0].partition("=")[0]
            hint = near(option, known) or self.elsewhere(option)
            message = f"{message} ({hint})" if hint else message
        speaker = self  # what no verb takes comes to the parser of the whole command
        while len(speaker.below) == 1:
            (speaker,) = speaker.below.values()
        super(ExampleParser, speaker).error(message)

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


class Verb(NamedTuple):
    """What is said of a verb, an example, and what declares its arguments."""

    line: str
    example: str
    add_arguments: "Callable[[ExampleParser], None]"


def add_verb(verbs: Any, name: str, verb: Verb, work: str) -> ExampleParser:
    """The parser of a verb; `main` of the module `work` is what it does, imported when it is called, or that of a
    module that an argument names (`other_work`)."""
    own: ExampleParser = verbs.add_parser(name, help=verb.line, description=verb.line, example=verb.example)
    verb.add_arguments(own)

    def do(args: argparse.Namespace) -> int:
        return import_module(args.work or work).main(args)

    own.set_defaults(verb=do, work=None, default_of=own.get_default)
    return own


def other_work(module: str) -> dict[str, Any]:
    """For `add_argument`: a flag with which the verb does what a module of its own does, without importing the rest."""
    return {"action": "store_const", "dest": "work", "const": f"buda_emu.app.cli.verbs.{module}"}


def add_verbs(parser: argparse.ArgumentParser, folder: str, verbs: Mapping[str, Verb]) -> None:
    """Verbs below a verb, whose work is in the modules of their names in `folder`."""
    below = parser.add_subparsers(metavar="VERB", title="verbs", required=True)
    for name, verb in verbs.items():
        add_verb(below, name, verb, f"{folder}.{name}")
