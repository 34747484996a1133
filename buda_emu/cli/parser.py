"""The parser of the command line: help begins with an example, and its options can be asked for."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from buda_emu.screen import screen_of


class _Formatter(argparse.HelpFormatter):
    """argparse makes one for each argument, and imports much to learn the terminal's width; the screen knows it too."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=(screen_of(sys.stdout).columns or 80) - 2)


class ExampleParser(argparse.ArgumentParser):
    """An argument parser whose help begins with an example."""

    def __init__(self, *args: object, example: str = "", **kwargs: object) -> None:
        super().__init__(*args, formatter_class=_Formatter, **kwargs)  # type: ignore[arg-type]  # handed through as given
        self.example = example
        self.below: Mapping[str, ExampleParser] = {}

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
