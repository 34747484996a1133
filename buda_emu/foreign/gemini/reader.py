"""JSON to the model: the values first, then the records of both dialects (facts GEMINI 1 to 3, rules G001 to G003)."""

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any, Final

from buda_emu.foreign.gemini.book import BOOK
from buda_emu.foreign.gemini.json_values import a_list, an_object, shown
from buda_emu.foreign.gemini.model import IR, Dialect, Form, Workload
from buda_emu.foreign.gemini.reader_values import Object, Values
from buda_emu.foreign.gemini.reader_workload import dram_in, dram_out, workload_reader
from buda_emu.foreign.gemini.stages import ASSEMBLER, SCHEDULE, TRACE, recognise_beginning, recognise_content
from buda_emu.support.checker import TextPlace
from buda_emu.support.checker.render import render
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import ScheduleError
from buda_emu.support.files import read_whole

TOP_KEYS: Final = ("-1", "buffersize", "xlen", "ylen", "top_batch_cut")
FORMS: Final[Mapping[Dialect, Form]] = {
    "A": Form(
        "A", addressed=True, tiled=True, in_bits=False, absolute=False, joint_operands=False, by_channel=False,
        activations_as_weights=False, global_ids=False, columns_of_dram=0, dram=-1, core_key="core_id",
    ),
    "B": Form(
        "B", addressed=False, tiled=False, in_bits=True, absolute=True, joint_operands=True, by_channel=True,
        activations_as_weights=True, global_ids=True, columns_of_dram=2, dram=0, core_key="id",
    ),
}  # fmt: skip
"""GEMINI 2 and 3."""
_GZIP = b"\x1f\x8b"
_MOST_BYTES = 1 << 29


def read(source: "str | os.PathLike[str] | Mapping[str, Any]") -> IR:
    """Read a schedule of either dialect (facts GEMINI 2, 3).

    `source`: path of a .json or .json.gz file, or the decoded JSON object, which is kept and must not be changed then.
    Raises ScheduleError with `.diagnostics` (rules G001 to G003) for what is not a schedule, OSError for a file that
    cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return _read(decode(path), path)
    return _read(source, "")


def decode(path: str) -> Any:
    """The JSON value of a file, which may be compressed. Raises ScheduleError (G001) if it is not JSON."""
    raw = read_whole(path)
    try:
        return json.loads(unpacked(raw).decode())
    except json.JSONDecodeError as error:
        place, problem = TextPlace(error.lineno, error.colno), f"no JSON: {error.msg}"
        stage = recognise_beginning(unpacked(raw))
        if stage is not None and stage in (ASSEMBLER, TRACE):
            place, problem = "", stage.instead_of(SCHEDULE)
    except (ValueError, EOFError, RecursionError, OSError) as error:
        place, problem = "", f"no JSON: {error}"
    found = [BOOK.diagnostic(path, "G001", place, problem)]
    raise ScheduleError(render(found), found)


def unpacked(raw: bytes) -> bytes:
    """The content of a file, which may be compressed (gzip). Raises ValueError for a damaged one."""
    if not raw.startswith(_GZIP):
        return raw
    unpacker = zlib.decompressobj(31)
    try:
        data = unpacker.decompress(raw, _MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"the file is damaged: {error}") from None
    if unpacker.unconsumed_tail:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    if not unpacker.eof:
        raise ValueError("the file is cut off")
    return data


def _read(document: Any, path: str) -> IR:
    values = Values(path)
    ir = _top(values, document)
    if values.found:
        found = sorted(values.found, key=lambda item: item.order)
        raise ScheduleError(render(found), found)
    assert ir is not None  # nothing was found
    return ir


def _top(values: Values, document: Any) -> IR | None:
    """G001 first: when the top is wrong, nothing below it is read."""
    top = an_object(document)
    if top is None:
        values.wrong("G001", "", f"a schedule is an object, not {shown(document)}")
        return None
    stage = recognise_content(top)
    if stage not in (None, SCHEDULE):
        values.wrong("G001", "", stage.instead_of(SCHEDULE))
        return None
    dialect: Dialect = "A" if "buffersize" in top else "B"
    cores = _core_keys(values, top)
    dram = an_object(top.get("-1")) or {}
    for name in ("in", "out"):
        if a_list(dram.get(name)) is None:
            values.wrong("G001", "-1", f"there is no '-1' with a list {name!r}: what goes through DRAM")
    sizes: dict[str, int] = {}
    for name in ("xlen", "ylen", *(("buffersize",) if dialect == "A" else ())):
        value = top.get(name)
        if type(value) is int and 0 < value < 1 << 62:
            sizes[name] = value
        else:
            values.wrong("G001", name, f"{name!r} is an integer of 1 or more, not {shown(value)}")
    if values.found:
        return None
    read = workload_reader(dialect)
    works: dict[int, tuple[Workload, ...]] = {}
    for core, key in cores.items():
        works[core] = tuple(
            read(values, item, place, core, at)
            for at, entry in enumerate(top[key])
            if (item := values.object(entry, place := f"{key}/{at}")) is not None
        )
    arrives = values.items(top["-1"], "in", "-1", lambda v, item, place: dram_in(v, item, place, dialect))
    leaves = values.items(top["-1"], "out", "-1", lambda v, item, place: dram_out(v, item, place, dialect))
    return IR(
        FORMS[dialect], works, arrives, leaves, sizes["xlen"], sizes["ylen"], sizes.get("buffersize"), values.path, top
    )


def _core_keys(values: Values, top: Object) -> dict[int, str]:
    """Core ids in ascending order, and their keys."""
    found: dict[int, str] = {}
    for key in map(str, top):
        if key in TOP_KEYS:
            continue
        if not (key.isascii() and key.isdecimal() and str(int(key[:9])) == key):
            hint = near(key, TOP_KEYS)
            values.wrong("G001", key[:60], f"the key {shown(key)} is neither a core nor known here", hint)
        elif not isinstance(top.get(key), list):
            values.wrong("G001", key, f"core {key} is a list of workloads, not {shown(top.get(key))}")
        else:
            found[int(key)] = key
    if not found and not values.found:
        values.wrong("G001", "", "there is no core: no decimal key with a list of workloads")
    return dict(sorted(found.items()))
