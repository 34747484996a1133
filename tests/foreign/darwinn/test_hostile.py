"""Any bytes lead to a report or a documented error, in bounded time and memory."""

import random
import struct
import time
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.foreign.darwinn import build, check, descriptors, idl, link, load, wrap
from buda_emu.foreign.darwinn.flatbuffer import read
from buda_emu.foreign.darwinn.flatbuffer.write import write
from buda_emu.foreign.darwinn.summary import summarise
from buda_emu.support.errors import HostError, PackageError, UnsupportedError
from foreign.darwinn import example_trees as ex

BASE = 1 << 20  # bytes that reading a package may take besides
FACTOR = 60  # and for each byte of the file; an object of Python is much larger than the table that it stands for


def bases():
    """Small packages with everything that can be in one."""
    plain = ex.edges()
    rich = ex.edges()
    ex.grid(rich)["any_layer"]["shape_info"] = {
        "slice_layout": [{"shape": {"dimension": [{"start": 0, "end": 7}] * 3}, "stride": [64, 8, 1]}],
        "slice_offset": [0],
    }
    ex.grid(rich)["shape"] = {"dimension": [{"start": 0, "end": 7}] * 3}
    ex.hints(rich)[1:1] = [{"any_hint_type": "FenceHint", "any_hint": {}}]
    rich |= {"virtual_chip_id": -1, "multi_chip_package": [{"serialized_package": build(plain)}]}
    return [build(plain), wrap(build(plain), chips=(18,)), build(rich)]


BASES = bases()


def everything(data):
    """All that can be asked of bytes; only documented errors may come of it."""
    report = check(data)
    assert report.verdict in ("ok", "faulty", "rejected")
    assert all(item.offset is not None and 0 <= item.offset <= len(data) for item in report.diagnostics)
    try:
        package = load(data)
    except PackageError:
        return report.verdict
    for executable in package.executables:
        for transport in ("usb", "pcie"):
            with suppress(PackageError):
                descriptors(executable, transport)
        with suppress(PackageError):
            link(executable, {"parameter": 1 << 40, "inputs": {"image": [0]}})
    summarise(package)
    with suppress(PackageError):
        package.to_dict()
    return report.verdict


def mutated(r):
    """A package with a few bytes changed, most of them where tables lie."""
    data = bytearray(r.choice(BASES))
    for _ in range(r.choice((1, 1, 2, 4, 16))):
        at = r.randrange(len(data))
        if r.random() < 0.8:  # noise is never looked at: go on to what is
            for _ in range(20):
                if any(data[at - 2 : at + 2]) and data[at & ~3 : (at & ~3) + 4].count(0) >= 2:
                    break
                at = r.randrange(len(data))
        kind = r.random()
        if kind < 0.4:
            data[at] = r.choice((0, 1, 2, 4, 127, 128, 255, r.randrange(256)))
        elif kind < 0.8:
            at &= ~3
            value = r.choice(
                (0, 4, 8, 0xFFFF_FFFF, 0x7FFF_FFFF, 0x8000_0000, r.randrange(1 << 16), r.randrange(1 << 32))
            )
            struct.pack_into("<I", data, min(at, len(data) - 4), value)
        else:
            size = r.randrange(1, 64)
            source = r.randrange(len(data) - size)
            data[at : at + size] = data[source : source + size]
    return bytes(data[: r.randrange(len(data))] if r.random() < 0.02 else data)


def try_many(count, seed):
    r = random.Random(seed)
    verdicts = {"ok": 0, "faulty": 0, "rejected": 0}
    for _ in range(count):
        verdicts[everything(mutated(r))] += 1
    return verdicts


def test_mutated_packages():
    verdicts = try_many(600, 1)
    assert min(verdicts.values()) > 10, verdicts  # the mutations reach every part


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_hundred_thousand_mutated_packages(part):
    assert min(try_many(10_000, 100 + part).values()) > 100


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes(data):
    everything(data)


@settings(deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"DWN1", b"TFL3"]))
def test_any_bytes_behind_an_identifier(data, identifier):
    everything(b"\x10\0\0\0" + identifier + data)


def self_similar(word, size):
    """The same word everywhere: every place is a table, a vector and a string at once."""
    return struct.pack("<I", word) * (size // 4)


def many_layers():
    """Layers whose maps are long and shared, so that each would be judged anew at some cost."""
    side = 1000
    layout = idl.OutputLayout(
        (0,) * side, (0,) * side, (0,), tuple(range(0, 4 * side, 4)), tuple(range(side)), (4 * side,) * side
    )
    layers = tuple(
        idl.Layer(f"o{n}", 1 << 22, side, side, 4, idl.NumericsConstants(0, 1.0), 0, 1, idl.OutputLayer(layout))
        for n in range(20)
    )
    return of_executable(write(idl.Executable(batch_size=1, output_layers=layers), page=4096))


def of_executable(blob):
    """A package around one executable's bytes."""
    multi = write(idl.MultiExecutable(serialized_executables=(blob,)), page=4096)
    return write(idl.PackageTable(min_runtime_version=13, serialized_multi_executable=multi), b"DWN1", 4096)


def many_executables():
    """Many references to one executable."""
    count = 40_000
    blob = write(idl.Executable(batch_size=1, name="x"))
    head = struct.pack("<IHHHHiIi", 12, 6, 8, 4, 0, 8, 4, count)
    last = len(head) + 4 * count
    offsets = b"".join(struct.pack("<I", last - at) for at in range(len(head), last, 4))
    multi = head + offsets + struct.pack("<I", len(blob)) + blob + bytes(8)
    return write(idl.PackageTable(min_runtime_version=13, serialized_multi_executable=multi), b"DWN1", 4096)


def overlapping_strings():
    """Names that are all long, and all but the same bytes."""
    length, count = 1 << 16, 600
    pattern = struct.pack("<I", length) * (length // 2)
    fields = tuple(idl.FieldOffset(idl.Meta(name="x", batch=n)) for n in range(count))
    raw = bytearray(
        write(idl.Executable(batch_size=1, instruction_bitstreams=(idl.InstructionBitstream(pattern, fields),)))
    )
    (chunk,) = read(idl.Executable, memoryview(bytes(raw))).instruction_bitstreams
    first = raw.index(pattern[:64])
    for number, item in enumerate(chunk.field_offsets):
        at = item.meta.at
        inline = struct.unpack_from("<H", raw, at - struct.unpack_from("<i", raw, at)[0] + 8)[0]
        struct.pack_into("<I", raw, at + inline, first + 4 * number - at - inline)
    return of_executable(bytes(raw))


def chunk_in_chunk():
    """Many chunks that are the same megabyte."""
    blob = write(
        idl.Executable(
            batch_size=1,
            instruction_bitstreams=(idl.InstructionBitstream(bytes(1 << 20)),) + (idl.InstructionBitstream(),) * 20_000,
        )
    )
    raw = bytearray(blob)
    at = raw.index(struct.pack("<I", 20_001)) + 4
    target = at + struct.unpack_from("<I", raw, at)[0]
    for number in range(20_001):
        place = at + 4 * number
        if target > place:
            struct.pack_into("<I", raw, place, target - place)
    return of_executable(bytes(raw))


HOSTILE = {
    "words 16": lambda: self_similar(16, 1 << 16), "words 256": lambda: self_similar(256, 1 << 16),
    "words 4": lambda: self_similar(4, 1 << 16), "layers": many_layers, "executables": many_executables,
    "strings": overlapping_strings, "chunks": chunk_in_chunk,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_packages_take_bounded_time_and_memory(name):
    data = HOSTILE[name]()
    tracemalloc.start()
    start = time.process_time()
    try:
        everything(data)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < BASE + FACTOR * len(data)
    assert time.process_time() - start < 20


def test_an_ordinary_package_takes_a_small_multiple_of_itself():
    data = build(ex.tree(ex.SPOTS))
    check(data)  # imports
    tracemalloc.start()
    check(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * len(data) + BASE // 4


def test_strings_that_overlap_are_said_not_to_be_read():
    (finding,) = check(overlapping_strings()).findings
    assert finding.rule == "D018"
    assert "overlap" in finding.message


def test_what_overlaps_without_end_is_not_written_out():
    package = load(chunk_in_chunk())
    with pytest.raises(PackageError, match="overlap"):
        package.to_dict()
    with pytest.raises((PackageError, UnsupportedError, HostError)):
        link(package.main, {})
