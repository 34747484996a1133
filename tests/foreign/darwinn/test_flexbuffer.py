"""FlexBuffer maps: what is written is read, and cut or random bytes end in Cut, nothing else."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.foreign.darwinn import flexbuffer
from buda_emu.foreign.darwinn.flexbuffer import TruncatedError, write_map

KEYS = [str(n).encode() for n in range(1, 8)]
plain = (
    st.none()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.binary(max_size=30)
    | st.lists(st.integers(-9, 9), max_size=4)
)


def shown(value):
    if value.integer() is not None:
        return value.integer()
    if value.string() is not None:
        return bytes(value.string()[1])
    items = value.items()
    return None if items is None else [item.integer() for item in items]


@given(st.dictionaries(st.sampled_from([key.decode() for key in KEYS]), plain))
def test_what_is_written_is_read(values):
    found = flexbuffer.root(memoryview(write_map(values))).lookup(KEYS)
    assert {key.decode(): shown(value) for key, value in found.items()} == values


def test_the_place_of_a_string_is_known():
    data = write_map({"1": 0, "4": b"package"})
    at, view = flexbuffer.root(memoryview(data)).lookup([b"4"])[b"4"].string()
    assert data[at : at + 7] == bytes(view) == b"package"


def everything(data):
    values = flexbuffer.root(memoryview(data)).lookup(KEYS)
    return None if values is None else {key: shown(value) for key, value in values.items()}


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_cut(data):
    with suppress(TruncatedError):
        everything(data)


@given(st.data())
def test_a_changed_map_is_read_or_cut(data):
    raw = bytearray(write_map({"1": 0, "4": bytes(20), "5": -1, "6": [18], "7": []}))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(TruncatedError):
        everything(bytes(raw))


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_cut_map_is_no_map_or_cut(cut):
    raw = write_map({"1": 0, "4": bytes(20)})
    with suppress(TruncatedError):
        assert everything(raw[:-cut]) is None or raw[:-cut]


def test_what_the_library_writes_is_read():
    flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Int("1", 0)
        builder.String("4", "package")
        builder.TypedVectorFromElements("6", [18, 17])
        builder.VectorFromElements("7", [])
    found = everything(bytes(builder.Finish()))
    assert found == {b"1": 0, b"4": b"package", b"6": [18, 17], b"7": []}


def test_what_is_written_the_library_reads():
    flexbuffers = pytest.importorskip("flatbuffers.flexbuffers")
    root = flexbuffers.GetRoot(bytearray(write_map({"1": 5, "4": b"text", "6": [18], "7": []})))
    assert root.Value == {"1": 5, "4": "text", "6": [18], "7": []}
