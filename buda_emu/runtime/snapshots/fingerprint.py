"""What a netlist says, as one short text: the same for two files that differ in comments and layout only."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import cast

from buda_emu.netlist.model import Netlist

_SECTIONS = ("arch_name", "queues", "graphs", "fused_ops", "programs", "temporal_graphs")


def fingerprint(netlist: Netlist) -> str:
    """sha256 of queues, graphs, fused ops and programs for one architecture, in hexadecimal."""
    digest = hashlib.sha256()
    for section in _SECTIONS:
        for part in _parts(getattr(netlist, section)):
            digest.update(part.encode("utf-8", "surrogateescape"))
            digest.update(b"\0")
    return digest.hexdigest()


def _parts(value: object) -> Iterator[str]:
    """A flat text form that is equal for equal values only: each container says its kind and its length."""
    if is_dataclass(value):
        compared = [item.name for item in fields(value) if item.compare]
        yield f"{type(value).__name__}{len(compared)}"
        for name in compared:
            yield from _parts(getattr(value, name))
    elif isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        yield f"map{len(items)}"
        for key, item in items.items():
            yield from _parts(key)
            yield from _parts(item)
    elif isinstance(value, tuple | list):
        members = cast("Sequence[object]", value)
        yield f"list{len(members)}"
        for item in members:
            yield from _parts(item)
    elif isinstance(value, frozenset):
        names = sorted(repr(item) for item in cast("frozenset[object]", value))
        yield f"set{len(names)}"
        yield from names
    else:
        yield repr(value)
