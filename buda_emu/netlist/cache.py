"""Cache of loaded netlists: each is stored as bytes in the user's cache folder and read back when the same file is
loaded again."""

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


def pickle_result(result: Result, root: nodes.Node) -> bytes:
    """Serialise a netlist and its findings; `root` is the YAML tree that they were read from.

    Free sections are used as trees and stored with their nodes. Of all other nodes only a number is stored, by which
    the node is found in the document when it is needed.
    """
    netlist, diagnostics = result
    numbers = {id(node): number for number, node in enumerate(_collections(root))}

    def reduce_to_number(node: nodes.Mapping | nodes.Sequence) -> tuple[Any, ...]:
        """Return the pickle form of a map or list node: its number in the document, or its content if it is not
        part of it.
        """
        number = numbers.get(id(node))
        if number is None:  # the reader made this node because the document has none
            return _reduce(node)
        if isinstance(node, nodes.Mapping):
            placeholder = _map
        else:
            placeholder = _list
        return placeholder, (number,)

    table: dict[type, Callable[[Any], tuple[Any, ...]]] = dict.fromkeys(_RECORDS, _reduce)
    numbered_table = {**table, nodes.Mapping: reduce_to_number, nodes.Sequence: reduce_to_number}
    sections = _dump(dict(netlist.sections), table)
    body = _dump((replace(netlist, sections={}), diagnostics), numbered_table)
    return len(sections).to_bytes(8, "little") + sections + body


def unpickle_result(payload: memoryview, document: bytes) -> Result:
    """Restore a netlist and its findings from the bytes of `pickle_result`; `document` holds the file's bytes.

    Raises any Exception for a payload that is damaged or not of this version.
    """
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


def _dump(content: object, table: Mapping[type, Callable[[Any], tuple[Any, ...]]]) -> bytes:
    """Pickle an object; `table` gives for each class the function that returns the pickle form of its instances."""
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, 5)
    pickler.dispatch_table = table  # type: ignore[assignment]  # a mapping will do
    pickler.dump(content)
    return stream.getvalue()


class _Tree:
    """Maps and lists of a document, numbered in the order of `_collections`. The document is parsed when the first
    node is asked for."""

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
    """Yield every map and list at and below a node in a fixed order, each once although an alias may repeat it."""
    seen: set[int] = set()
    waiting: list[nodes.Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Scalar) or id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, nodes.Sequence):
            waiting.extend(node.items)
        else:
            for pair in node.pairs:
                waiting.extend(pair)


class _LateMapping(nodes.Mapping):
    """A map node that takes its content from the document's tree when one of its slots is read for the first time."""

    __slots__ = ("place",)

    def __init__(self, tree: _Tree, number: int) -> None:
        self.place = (tree, number)

    def __getattr__(self, name: str) -> Any:
        return _read_late(self, name, nodes.Mapping.__slots__)


class _LateSequence(nodes.Sequence):
    """A list node that takes its content from the document's tree when one of its slots is read for the first time."""

    __slots__ = ("place",)

    def __init__(self, tree: _Tree, number: int) -> None:
        self.place = (tree, number)

    def __getattr__(self, name: str) -> Any:
        return _read_late(self, name, nodes.Sequence.__slots__)


def _read_late(node: _LateMapping | _LateSequence, name: str, slots: tuple[str, ...]) -> Any:
    """Fill all slots of a node from the tree and return the slot `name`; called when that slot has no value yet."""
    if name not in slots:
        raise AttributeError(name)
    tree, number = node.place
    original = tree[number]
    for slot in slots:
        setattr(node, slot, getattr(original, slot))
    return getattr(original, name)


def _reduce(record: Any) -> tuple[Any, ...]:
    """Return the pickle form of a record: the function that restores it, its class and the values of its slots."""
    kind: type[Any] = record.__class__
    return _record, (kind, tuple(getattr(record, name) for name, _ in _slots(kind)))


def _record(kind: type[Any], values: tuple[Any, ...]) -> Any:
    """Restore an object of one of the classes in `_RECORDS` from the values of its slots, which are set directly
    because it may be frozen.
    """
    record: Any = object.__new__(kind)
    for (_, put), value in zip(_slots(kind), values, strict=True):
        put(record, value)
    return record


@cache
def _slots(kind: type[Any]) -> tuple[tuple[str, _Put], ...]:
    """Return name and setter of each slot of a class in `_RECORDS`. Raises UnpicklingError for any other class."""
    if kind not in _RECORDS:
        raise pickle.UnpicklingError(f"{kind} is not part of a netlist")
    if is_dataclass(kind):
        names = [record_field.name for record_field in fields(kind)]
    else:
        names = list(kind.__slots__)
    return tuple((name, getattr(kind, name).__set__) for name in names)


def _map(number: int) -> Any:
    """Mark a map of the tree in a pickle. It is never called: unpickling replaces it by `_LateMapping`."""
    raise NotImplementedError(number)


def _list(number: int) -> Any:
    """Mark a list of the tree in a pickle. It is never called: unpickling replaces it by `_LateSequence`."""
    raise NotImplementedError(number)


MOST_BYTES: Final = 64 << 20  # of all files together; the least recently used are removed first
FOLDER: Final = "netlists"
_MAGIC: Final = b"buda-emu netlist 1\n"


class NetlistCache:
    """The cache entry of one document, read for one architecture and one strictness."""

    def __init__(self, data: bytes, path: str, arch: str | None, strict: bool) -> None:
        self._data = data
        self._file = ""
        directory = cache_folder(FOLDER)
        if directory:
            self._file = os.path.join(directory, _entry_file_name(data, path, arch, strict))  # noqa: PTH118 - no pathlib here

    def read(self) -> Result | None:
        """Return the stored netlist and findings, or None if there is no entry or it cannot be used."""
        if not self._file:
            return None
        payload = read_cache_file(self._file, _MAGIC, MOST_BYTES)
        if payload is None:
            return None
        try:
            return unpickle_result(payload, self._data)
        except Exception:  # noqa: BLE001 - a pickle that is not ours can raise anything
            return None

    def write(self, result: Result, root: nodes.Node) -> None:
        """Store a netlist and its findings; `root` is the YAML tree that they were read from."""
        if self._file:
            with suppress(RecursionError, pickle.PicklingError):
                write_cache_file(self._file, _MAGIC, pickle_result(result, root), MOST_BYTES)


def _entry_file_name(data: bytes, path: str, arch: str | None, strict: bool) -> str:
    """Return the file name of a cache entry: a digest of all that a result depends on, code and Python version
    included.
    """
    about = (__version__, sources("netlist", "spec"), sys.version, path, arch, strict)
    return digest(about, data)
