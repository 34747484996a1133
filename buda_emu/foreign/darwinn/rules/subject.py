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
    """One package under the rules."""

    def __init__(self, package: Package) -> None:
        self.package = package

    @cached_property
    def executables(self) -> tuple[tuple[str, Executable], ...]:
        """Each with its name in messages."""
        return tuple((f"executables[{n}] {item.kind}", item) for n, item in enumerate(self.package.executables))

    @cached_property
    def layers(self) -> tuple[tuple[str, str, Layer], ...]:
        """Every distinct layer: its executable's name, its own, and itself."""
        seen: set[int] = set()
        found: list[tuple[str, str, Layer]] = []
        for name, item in self.executables:
            for kind, layers in (("input_layers", item.inputs), ("output_layers", item.outputs)):
                for number, layer in enumerate(layers):
                    if id(layer) not in seen:  # tables that are referred to twice are read once
                        seen.add(id(layer))
                        found.append((name, f"{kind}[{number}] {short_line(layer.name or '')}".rstrip(), layer))
        return tuple(found)

    @cached_property
    def placed(self) -> tuple[tuple[str, str, Layer, tuple[Problem, ...]], ...]:
        """Outputs with what is wrong with the places of their elements."""
        return examine(self.layers)


def finding(table: Table, field: str, within: str, message: str, about: object = None, hint: str = "") -> Finding:
    """About a field of a table. `within`: the part of the package, in words."""
    element = f"{type(table).__name__.removesuffix('Table')}.{field}" if field else type(table).__name__
    return Finding(place=ByteOffset(table.at, element), message=message, hint=hint, within=within, about=about)


def both(subject: Subject) -> Iterator[tuple[str, Executable, Executable]]:
    """Caching and main executable of a package that has both, and the name of the first."""
    caching = subject.package.caching
    if caching is not None and not subject.package.unread:
        name = next(name for name, item in subject.executables if item is caching)
        yield name, caching, subject.package.main
