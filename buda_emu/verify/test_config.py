"""What a test-config says about a run (NETLIST 5): arguments of programs, and which stimulus is whose."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from buda_emu.errors import NetlistError
from buda_emu.netlist import nodes
from buda_emu.netlist.scalars import parse_float, parse_int
from buda_emu.spec.stimulus import VENDOR_STIMULUS, Stimulus


@dataclass(frozen=True, slots=True)
class TestConfig:
    """The parts of a `test-config` section that decide inputs. `stimuli` holds "default" and the override patterns."""

    __test__ = False  # not a class of tests

    args: Mapping[str, str]
    stimuli: Mapping[str, Stimulus]

    def lookup(self, names: tuple[str, ...]) -> Stimulus | None:
        """The stimulus that names this queue: exact key, else the first pattern that matches in full (NETLIST 5)."""
        for name in names:
            if name != "default" and name in self.stimuli:
                return self.stimuli[name]
        for pattern, stimulus in self.stimuli.items():
            try:
                if pattern != "default" and any(re.fullmatch(pattern, name) for name in names):
                    return stimulus
            except re.error as error:
                raise NetlistError(f"test-config: override {pattern!r} is not a regular expression: {error}") from None
        return None

    @property
    def default(self) -> Stimulus:
        """The stimulus of every other queue."""
        return self.stimuli.get("default") or VENDOR_STIMULUS


def read_test_config(path: str, sections: Mapping[str, nodes.Node]) -> TestConfig:
    """Read `test-config`. Raises NetlistError with file and line for a field that is unknown or malformed."""
    section = sections.get("test-config")
    args: dict[str, str] = {}
    stimuli: dict[str, Stimulus] = {}
    if isinstance(section, nodes.Mapping):
        for name, _, value in _entries(section.find("test-args")):
            if isinstance(value, nodes.Scalar):
                args[name] = value.text
        config = section.find("stimulus-config")
        if isinstance(config, nodes.Mapping):
            own = [pair for pair in _entries(config) if pair[0] != "overrides"]
            if own:
                stimuli["default"] = _stimulus(path, own)
            for pattern, _, value in _entries(config.find("overrides")):
                stimuli[pattern] = _stimulus(path, list(_entries(value)))
    return TestConfig(args, stimuli)


Entry = tuple[str, nodes.Scalar, nodes.Node]


def _entries(node: nodes.Node | None) -> Iterator[Entry]:
    if isinstance(node, nodes.Mapping):
        yield from node.items()


def _stimulus(path: str, entries: list[Entry]) -> Stimulus:
    values: dict[str, Any] = {}
    for key, key_node, value in entries:
        if key == "overrides":
            continue  # ignored inside (NETLIST 5.1)
        reader = _READERS.get(key)
        if reader is None:
            raise NetlistError(f"{path}:{key_node.line}: unknown stimulus field {key!r}")
        read = reader(value)
        if read is None:
            raise NetlistError(f"{path}:{key_node.line}: stimulus field {key} has no legal value")
        values[key] = read
    return Stimulus(**values)


def _word(node: nodes.Node) -> str | None:
    return node.text.lower() if isinstance(node, nodes.Scalar) else None


def _text(node: nodes.Node) -> str | None:
    return node.text if isinstance(node, nodes.Scalar) else None


def _number(node: nodes.Node) -> float | None:
    return parse_float(node.text) if isinstance(node, nodes.Scalar) else None


def _integer(node: nodes.Node) -> int | None:
    return parse_int(node.text) if isinstance(node, nodes.Scalar) else None


def _range(node: nodes.Node) -> tuple[int, int] | None:
    """`[a, b]`, 1-based and inclusive, inside a tile."""
    if not isinstance(node, nodes.Sequence) or len(node.items) != 2:
        return None
    first, last = (_integer(item) for item in node.items)
    return (first, last) if first is not None and last is not None and 1 <= first <= last <= 32 else None


_BY_TYPE: Final[Mapping[Any, Callable[[nodes.Node], Any]]] = {
    float: _number,
    int: _integer,
    str: _text,
    tuple[int, int]: _range,
}
_READERS: Final = {field.name: _BY_TYPE[field.type] for field in fields(Stimulus)} | {"type": _word}
