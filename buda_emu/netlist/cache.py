"""Loaded netlists, kept in the user's caches as bytes for the next time."""

import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from typing import Any, Final

from buda_emu.netlist import model, nodes
from buda_emu.netlist.model import Netlist
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import Blocking
from buda_emu.support.caches import cache_folder, read_cache_file, sources, unpickle, write_cache_file
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.fix import Edit, Fix
from buda_emu.support.identity import digest
from buda_emu.support.version import __version__

_RECORDS: Final[tuple[type[Any], ...]] = (
    model.Queue, model.Op, model.Graph, model.SubOp, model.FusedOp, model.QueueSettings, model.Declare, model.Param,
    model.VarInst, model.Loop, model.EndLoop, model.Execute, model.Allocate, model.Deallocate, model.Program, model.Tm,
    model.Pad, model.Buffer, model.TemporalGraph, Netlist, nodes.Mark, nodes.Scalar, nodes.Mapping, nodes.Sequence,
    Diagnostic, Fix, Edit, Attributes, Blocking,
)  # fmt: skip
_Put = Callable[[Any, Any], None]

Result = tuple[Netlist, tuple[Diagnostic, ...]]


def pickled(result: Result, root: nodes.Node) -> bytes:
    """A result as bytes; `root` is the tree that it was read from.

    Sections, which are used as trees, with their nodes; of all others only the numbers.
    """
    netlist, diagnostics = result
    numbers = {id(node): number for number, node in enumerate(_collections(root))}

    def late(node: nodes.Mapping | nodes.Sequence) -> tuple[Any, ...]:
        number = numbers.get(id(node))
        if number is None:  # made by the reader, where the document has nothing
            return _reduce(node)
        return (_map if isinstance(node, nodes.Mapping) else _list), (number,)

    table: dict[type, Callable[[Any], tuple[Any, ...]]] = dict.fromkeys(_RECORDS, _reduce)
    sections = _dumped(dict(netlist.sections), table)
    rest = _dumped((replace(netlist, sections={}), diagnostics), {**table, nodes.Mapping: late, nodes.Sequence: late})
    return len(sections).to_bytes(8, "little") + sections + rest


def unpickled(payload: memoryview, document: bytes) -> Result:
    """The result again; `document` is what it was read from. Raises any Exception."""
    size = int.from_bytes(payload[:8], "little")
    tree = _Tree(document)
    names: dict[tuple[str, str], Any] = {
        **{(kind.__module__, kind.__qualname__): kind for kind in _RECORDS},
        (__name__, "_record"): _record,
        (__name__, "_map"): partial(_LateMapping, tree),
        (__name__, "_list"): partial(_LateSequence, tree),
    }
    sections = unpickle(names, payload[8 : 8 + size], "a netlist")
    netlist, diagnostics = unpickle(names, payload[8 + size :], "a netlist")
    if not isinstance(netlist, Netlist) or not isinstance(sections, dict):
        raise pickle.UnpicklingError("no netlist")
    return replace(netlist, sections=sections), diagnostics


def _dumped(content: object, table: Mapping[type, Callable[[Any], tuple[Any, ...]]]) -> bytes:
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, 5)
    pickler.dispatch_table = table  # type: ignore[assignment]  # a mapping will do
    pickler.dump(content)
    return stream.getvalue()


class _Tree:
    """The collections of a document, numbered in the order of the text; read when the first is asked for."""

    __slots__ = ("_collections", "_document")

    def __init__(self, document: bytes) -> None:
        self._document = document
        self._collections: list[nodes.Mapping | nodes.Sequence] | None = None

    def __getitem__(self, number: int) -> nodes.Mapping | nodes.Sequence:
        if self._collections is None:
            from buda_emu.netlist.yaml_reader import decode, read_tree

            self._collections = list(_collections(read_tree(decode(self._document))))
        return self._collections[number]


def _collections(root: nodes.Node) -> Iterator[nodes.Mapping | nodes.Sequence]:
    """Every map and list below a node, each once though an alias may show it again."""
    seen: set[int] = set()
    waiting: list[nodes.Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Scalar) or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        below = node.items if isinstance(node, nodes.Sequence) else [part for pair in node.pairs for part in pair]
        waiting.extend(below)


class _LateMapping(nodes.Mapping):
    """A map that is read from the tree when one of its slots is asked for."""

    __slots__ = ("place",)

    def __init__(self, tree: _Tree, number: int) -> None:
        self.place = (tree, number)

    def __getattr__(self, name: str) -> Any:
        return _read_late(self, name, nodes.Mapping.__slots__)


class _LateSequence(nodes.Sequence):
    """The same for a list."""

    __slots__ = ("place",)

    def __init__(self, tree: _Tree, number: int) -> None:
        self.place = (tree, number)

    def __getattr__(self, name: str) -> Any:
        return _read_late(self, name, nodes.Sequence.__slots__)


def _read_late(node: _LateMapping | _LateSequence, name: str, slots: tuple[str, ...]) -> Any:
    """Fill the slots of a node; called for a name that has no value yet."""
    if name not in slots:
        raise AttributeError(name)
    tree, number = node.place
    found = tree[number]
    for slot in slots:
        setattr(node, slot, getattr(found, slot))
    return getattr(found, name)


def _reduce(item: Any) -> tuple[Any, ...]:
    """The class and the values of its slots in their order."""
    kind: type[Any] = item.__class__
    return _record, (kind, tuple(getattr(item, name) for name, _ in _slots(kind)))


def _record(kind: type[Any], values: tuple[Any, ...]) -> Any:
    """An object of `_RECORDS`, frozen or not."""
    item: Any = object.__new__(kind)
    for (_, put), value in zip(_slots(kind), values, strict=True):
        put(item, value)
    return item


@cache
def _slots(kind: type[Any]) -> tuple[tuple[str, _Put], ...]:
    if kind not in _RECORDS:
        raise pickle.UnpicklingError(f"{kind} is not part of a netlist")
    known = [item.name for item in fields(kind)] if is_dataclass(kind) else list(kind.__slots__)
    return tuple((name, getattr(kind, name).__set__) for name in known)


def _map(number: int) -> Any:
    """Stands in a pickle for a map of the tree."""
    raise NotImplementedError(number)


def _list(number: int) -> Any:
    """Stands in a pickle for a list of the tree."""
    raise NotImplementedError(number)


MOST_BYTES: Final = 64 << 20  # of all files; those that were not used for longest go first
FOLDER: Final = "netlists"
_MAGIC: Final = b"buda-emu netlist 1\n"


class NetlistCache:
    """The place of one document's result."""

    def __init__(self, data: bytes, path: str, arch: str | None, strict: bool) -> None:
        self._data = data
        self._file = ""
        directory = cache_folder(FOLDER)
        if directory:
            self._file = os.path.join(directory, _name(data, path, arch, strict))  # noqa: PTH118 - no pathlib here

    def read(self) -> Result | None:
        """What was kept, None where that is nothing or not to be used."""
        payload = read_cache_file(self._file, _MAGIC, MOST_BYTES) if self._file else None
        if payload is None:
            return None
        try:
            return unpickled(payload, self._data)
        except Exception:  # noqa: BLE001 - a pickle that is not ours can raise anything
            return None

    def write(self, result: Result, root: nodes.Node) -> None:
        """Keep a result; `root` is the tree that it was read from."""
        if self._file:
            with suppress(RecursionError, pickle.PicklingError):
                write_cache_file(self._file, _MAGIC, pickled(result, root), MOST_BYTES)


def _name(data: bytes, path: str, arch: str | None, strict: bool) -> str:
    about = (__version__, sources("netlist", "spec"), sys.version, path, arch, strict)
    return digest(about, data)
