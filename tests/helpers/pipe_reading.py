"""The vendor's `pipegen.yaml`, read into a `PipeGraph`.

The file is a list of blocks that lines of `---` set apart: `graph_name: NAME`, `buffer_ID:` and `pipe_ID:`, the latter
two followed by one `  key: value` a line. Values are integers, words, lists and lists of lists.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from buda_emu.performance.routing.pipes.model import Buffer, Pipe, PipeGraph


class PipeGraphError(ValueError):
    """A text that is no such file."""


RENAMED = {
    Buffer: {"uniqid": "id", "id": "operand", "md_op_name": "op", "chip_id": "chip"},
    Pipe: {"input_list": "inputs", "output_list": "outputs", "output_padding_list": "output_padding"},
}
"""Keys of the file whose fields have other names."""
_PLACE = "core_coordinates"
_GROUPED = {"outputs", "mcast_core_rc"}  # lists of lists, where a flat list stands for one


def read(text: str, name: str = "pipegen.yaml") -> PipeGraph:
    """The pipe graph that `text` describes; PipeGraphError, with `name` and line, for what is no such file."""
    title, buffers, pipes = "", list[Buffer](), list[Pipe]()
    of_buffers, of_pipes = _Lines(Buffer), _Lines(Pipe)
    line = 1
    for block in text.split("\n---"):
        first, *rest = block.strip("\n").split("\n")
        try:
            if first.startswith("buffer_"):
                buffers.append(Buffer(**of_buffers.values(rest)))
            elif first.startswith("pipe_"):
                pipes.append(Pipe(**of_pipes.values(rest)))
            elif first.startswith("graph_name:"):
                title = first.partition(":")[2].strip()
            elif first.strip(" -"):
                raise ValueError(f"{first[:60]!r} begins no buffer, no pipe and no graph")
        except (ValueError, TypeError) as error:
            place = line + block.startswith("\n")
            raise PipeGraphError(f"{name}, block at line {place}: {error}") from error
        line += block.count("\n") + 1
    return PipeGraph(title, tuple(buffers), tuple(pipes))


class _Lines:
    """Lines of one kind of block as fields of its class. Most lines of a file are alike, so each is parsed once."""

    def __init__(self, kind: type[Buffer] | type[Pipe]) -> None:
        self._renamed = RENAMED[kind]
        self._types = {field.name: field.type for field in fields(kind)}
        self._known: dict[str, dict[str, Any]] = {}

    def values(self, lines: Iterable[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for line in lines:
            one = self._known.get(line)
            if one is None:
                one = self._known[line] = self._parsed(line)
            found |= one
        return found

    def _parsed(self, line: str) -> dict[str, Any]:
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon:
            raise ValueError(f"{line[:60]!r} is no 'key: value'")
        if key == _PLACE:
            row, column = _numbers(value)
            return {"row": row, "column": column}
        field = self._renamed.get(key, key)
        if field not in self._types:
            raise ValueError(f"unknown key {key!r}")
        return {field: _value(field, str(self._types[field]), value)}


def _value(field: str, kind: str, text: str) -> Any:
    if field in _GROUPED:
        return _groups(text)
    if text.startswith("["):
        numbers = _numbers(text)
        if field == "chip":
            (chip,) = numbers
            return chip
        return numbers
    if "str" in kind:
        return text
    number = int(text, 0)
    return bool(number) if "bool" in kind else number


def _groups(text: str) -> tuple[tuple[int, ...], ...]:
    if not text.startswith("[["):
        return (_numbers(text),)
    if not text.endswith("]]"):
        raise ValueError(f"{text[:60]!r} is not a list of lists")
    inner = text[2:-2].replace(" ", "")
    return tuple(_numbers(f"[{group}]") for group in inner.split("],["))


def _numbers(text: str) -> tuple[int, ...]:
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"{text[:60]!r} is not a list")
    inner = text[1:-1].strip()
    return tuple(int(number, 0) for number in inner.split(",")) if inner else ()
