"""FlatBuffers: what is written is read again, for every declared table; what does not verify is refused."""

import math
import struct
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.foreign.darwinn import idl, tflite
from buda_emu.foreign.darwinn.flatbuffer import Malformed, Table, kinds, read
from buda_emu.foreign.darwinn.flatbuffer.read import fields_of, from_plain, to_plain
from buda_emu.foreign.darwinn.flatbuffer.write import write

TABLES = (*idl.TABLES, *tflite.TABLES)


def values_of(kind, depth):
    """A strategy for the values of a kind of slot."""
    if isinstance(kind, kinds.Scalar):
        if kind.code == "f":
            return st.floats(width=32, allow_nan=False)
        if kind.code == "?":
            return st.booleans()
        bits = 8 * kind.size
        return (
            st.integers(0, (1 << bits) - 1)
            if kind.code.isupper()
            else st.integers(-1 << (bits - 1), (1 << (bits - 1)) - 1)
        )
    if isinstance(kind, kinds.Text):
        return st.none() | st.text(max_size=6)
    if isinstance(kind, kinds.Data):
        return st.none() | st.binary(max_size=20)
    if isinstance(kind, kinds.Blobs):
        return st.none() | st.lists(st.binary(max_size=20), max_size=3).map(tuple)
    if isinstance(kind, kinds.Numbers):
        return st.none() | st.lists(values_of(kind.scalar, depth), max_size=4).map(tuple)
    if isinstance(kind, kinds.Structs):
        pair = st.tuples(*[values_of(kinds.INT, depth)] * len(kind.names))
        return st.none() | st.lists(pair, max_size=3).map(tuple)
    if isinstance(kind, kinds.One):
        return st.none() if depth > 2 else st.none() | tables(kind.table, depth + 1)
    assert isinstance(kind, kinds.Many)
    return st.none() if depth > 2 else st.none() | st.lists(tables(kind.table, depth + 1), max_size=2).map(tuple)


@st.composite
def tables(draw, table, depth=0):
    """A table with any values, unions too."""
    values = {}
    before = 0
    slots = fields_of(table)
    for number, slot in enumerate(slots):
        after = slots[number + 1].kind if number + 1 < len(slots) else None
        if isinstance(after, kinds.Union):
            values[slot.name] = before = draw(st.sampled_from([0, *after.members]))
        elif isinstance(slot.kind, kinds.Union):
            member = slot.kind.members.get(before)
            values[slot.name] = draw(tables(member, depth + 1)) if member is not None and depth < 3 else None
        else:
            values[slot.name] = draw(values_of(slot.kind, depth))
    return table(**values)


def plain(table):
    return to_plain(table, data=True)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_what_is_written_is_read(table, data):
    given_table = data.draw(tables(table))
    again = read(table, memoryview(write(given_table)))
    assert plain(again) == plain(given_table)
    assert again.at >= 0


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_a_tree_is_a_table_again(table, data):
    given_table = data.draw(tables(table))
    assert from_plain(table, plain(given_table)) == given_table


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_defaults_are_what_is_absent(table):
    assert read(table, memoryview(write(table()))) == table()
    assert {item.name for item in fields(table)} - {slot.name for slot in fields_of(table)} == {"at"}


def test_slots_are_where_the_facts_put_them():
    entries = {slot.name: slot.entry for slot in fields_of(idl.Layer)}
    assert entries["name"] == 4
    assert (entries["any_layer_type"], entries["any_layer"], entries["shape"]) == (18, 20, 26)


def test_pages_begin_where_they_are_asked_to():
    blob = bytes(range(100))
    data = write(idl.Executable(parameters=blob, name="x"), page=4096)
    assert len(data) % 4096 == 0
    assert data.index(blob) % 4096 == 0


def test_an_enumeration_is_shown_by_name_and_an_unknown_value_as_a_number():
    assert to_plain(idl.Meta(desc=2))["desc"] == "BASE_ADDRESS_PARAMETER"
    assert to_plain(idl.Meta(desc=9))["desc"] == 9
    assert from_plain(idl.Meta, {"desc": "BASE_ADDRESS_SCRATCH"}).desc == 3


@pytest.mark.parametrize(
    ("table", "tree", "says"),
    [
        (idl.Meta, {"desc": "scratch"}, "'scratch' is not one of"),
        (idl.Meta, {"batch": 1 << 40}, "does not fit"),
        (idl.Meta, {"batch": "1"}, "'1' is not"),
        (idl.Meta, {"batch": 1.5}, "is not of type int"),
        (idl.Meta, {"nam": "x"}, "no field nam"),
        (idl.Meta, {"name": 5}, "is not a string"),
        (idl.Meta, [], "a mapping"),
        (idl.Executable, {"parameters": {"size": 3, "sha256": "0"}}, "bytes are wanted"),
        (idl.DmaHint, {"any_hint_type": 9, "any_hint": {}}, "union of type 9"),
        (idl.TensorShape, {"dimension": [{"start": 1}]}, "end"),
    ],
)  # fmt: skip
def test_a_tree_that_does_not_fit_is_refused_with_its_place(table, tree, says):
    with pytest.raises(ValueError, match=says) as error:
        from_plain(table, tree)
    assert table.__name__ in str(error.value)


def test_bytes_that_are_no_text_survive():
    name = b"a\xffb".decode("utf-8", "surrogateescape")
    data = write(idl.Meta(name=name))
    assert b"a\xffb" in data
    assert read(idl.Meta, memoryview(data)).name == name


def small():
    """A buffer whose parts a test can find: root, table, vtable, string."""
    return bytearray(write(idl.Meta(name="image", batch=3)))


def edited(at, form, value):
    data = small()
    struct.pack_into(form, data, at, value)
    return bytes(data)


TABLE = struct.unpack_from("<I", small())[0]
VTABLE = TABLE - struct.unpack_from("<i", small(), TABLE)[0]
NAME = TABLE + struct.unpack_from("<H", small(), VTABLE + 8)[0]
BATCH = VTABLE + 6


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\1\0\0", edited(0, "<I", 0), edited(0, "<I", 1 << 31), edited(0, "<I", 1 << 20),
        edited(0, "<I", TABLE + 2),
        edited(TABLE, "<i", 1 << 20), edited(TABLE, "<i", -(1 << 20)), edited(TABLE, "<i", 1), edited(VTABLE, "<H", 7),
        edited(VTABLE, "<H", 1 << 12), edited(BATCH, "<H", 1 << 12), edited(BATCH, "<H", 5), edited(NAME, "<I", 0),
        edited(NAME, "<I", 1 << 30), edited(NAME, "<I", 2), edited(VTABLE + 8, "<H", 6),
        bytes(small()).replace(b"image\0", b"image!"), bytes(small()).replace(b"\5\0\0\0image", b"\xff\0\0\0image"),
    ],
)  # fmt: skip
def test_what_the_verifier_refuses_is_refused(data):
    with pytest.raises(Malformed) as error:
        read(idl.Meta, memoryview(data))
    assert 0 <= error.value.offset <= len(data)


def test_the_place_of_what_is_wrong_is_named():
    data = write(idl.Executable(dma_hints=idl.DmaHints(hints=(idl.DmaHint(), idl.DmaHint(1, idl.DmaDescriptorHint())))))
    good = read(idl.Executable, memoryview(data))
    at = good.dma_hints.hints[1].any_hint.at
    broken = bytearray(data)
    struct.pack_into("<i", broken, at, 1 << 20)
    with pytest.raises(Malformed, match=r"dma_hints\.hints\[1\]\.any_hint: vtable"):
        read(idl.Executable, memoryview(bytes(broken)))


def test_a_slot_behind_the_vtables_end_is_absent():
    assert read(idl.Meta, memoryview(edited(VTABLE, "<H", 4))) == idl.Meta()


def test_tables_are_counted_as_the_verifier_counts_them():
    """Every visit counts, also of a table at a place that was seen before; what is read twice is kept once."""
    chunks = tuple(idl.InstructionBitstream(field_offsets=(idl.FieldOffset(),) * 90) for _ in range(100))
    data = bytearray(write(idl.Executable(instruction_bitstreams=chunks)))
    assert len(read(idl.Executable, memoryview(bytes(data))).chunks) == 100
    first = read(idl.Executable, memoryview(bytes(data))).chunks[0].at
    vector = data.index(struct.pack("<I", 100))
    for number in range(100):
        at = vector + 4 + 4 * number
        struct.pack_into("<I", data, at, (first - at) % (1 << 32))
    same = read(idl.Executable, memoryview(bytes(data))).chunks
    assert len({id(chunk) for chunk in same}) == 1


def test_more_than_a_million_tables_are_refused():
    chunk = idl.InstructionBitstream(field_offsets=(idl.FieldOffset(),) * 1000)
    hostile = bytearray(write(idl.Executable(instruction_bitstreams=(chunk,) + (idl.InstructionBitstream(),) * 1100)))
    at = hostile.index(struct.pack("<I", 1101)) + 4
    target = at + struct.unpack_from("<I", hostile, at)[0]
    for number in range(1101):
        place = at + 4 * number
        if target > place:
            struct.pack_into("<I", hostile, place, target - place)
    with pytest.raises(Malformed, match="more than 1,000,000 tables"):
        read(idl.Executable, memoryview(bytes(hostile)))


def test_nan_is_kept():
    data = write(idl.NumericsConstants(dequantization_factor=math.nan))
    assert math.isnan(read(idl.NumericsConstants, memoryview(data)).dequantization_factor)


def test_tables_made_by_hand_have_no_place():
    assert idl.Meta().at == -1
    assert idl.Meta(at=5) == idl.Meta(at=7)
    assert issubclass(idl.Meta, Table)
