"""The subject of the rules: a package, and properties that several rules use."""

from collections.abc import Iterator
from functools import cached_property

from buda_emu.foreign.darwinn.flatbuffer import Table
from buda_emu.foreign.darwinn.idl import Executable, Layer
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.rules.places import Problem, examine
from buda_emu.support.checker import ByteOffset, Finding
from buda_emu.support.checker.text import short_line


class Subject:
    """A package under the rules, with properties that several rules use."""

    def __init__(self, package: Package) -> None:
        self.package = package

    @cached_property
    def executables(self) -> tuple[tuple[str, Executable], ...]:
        """The executables, each with its name in messages."""
        numbered = enumerate(self.package.executables)
        return tuple((f"executables[{number}] {executable.kind}", executable) for number, executable in numbered)

    @cached_property
    def layers(self) -> tuple[tuple[str, str, Layer], ...]:
        """The distinct layers, each after the names of its executable and of itself in messages."""
        seen: set[int] = set()
        named_layers: list[tuple[str, str, Layer]] = []
        for name, executable in self.executables:
            for kind, layers in (("input_layers", executable.inputs), ("output_layers", executable.outputs)):
                for number, layer in enumerate(layers):
                    if id(layer) not in seen:  # tables that are referred to twice are read once
                        seen.add(id(layer))
                        named_layers.append((name, f"{kind}[{number}] {short_line(layer.name or '')}".rstrip(), layer))
        return tuple(named_layers)

    @cached_property
    def output_problems(self) -> tuple[tuple[str, str, Layer, tuple[Problem, ...]], ...]:
        """The outputs, after the names of executable and layer, with the problems of their elements' places."""
        return examine(self.layers)


def finding(table: Table, field: str, within: str, message: str, about: object = None, hint: str = "") -> Finding:
    """Make a finding about a field of a table. `within` names the part of the package; where another rule was
    broken by the same `about`, rules that name it in `unless` leave this finding out."""
    element = type(table).__name__
    if field:
        element = f"{element.removesuffix('Table')}.{field}"
    return Finding(place=ByteOffset(table.at, element), message=message, hint=hint, within=within, about=about)


def caching_and_main(subject: Subject) -> Iterator[tuple[str, Executable, Executable]]:
    """Yield the name of the caching executable, itself and the main one, where a package has both and all of it was
    read."""
    caching = subject.package.caching
    if caching is not None and not subject.package.unread:
        name = next(name for name, executable in subject.executables if executable is caching)
        yield name, caching, subject.package.main
