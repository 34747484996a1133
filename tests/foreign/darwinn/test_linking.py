"""Addresses go into the bits of their fields and nowhere else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buda_emu.foreign.darwinn import link, load
from buda_emu.foreign.darwinn.idl import Executable, FieldOffset, InstructionBitstream, Meta
from buda_emu.support.errors import HostError, PackageError
from foreign.darwinn import example_trees as ex

addresses = st.integers(0, (1 << 64) - 1)


def one(size, *fields):
    offsets = tuple(FieldOffset(Meta(desc, batch, name, position), bit) for bit, desc, name, batch, position in fields)
    return Executable(batch_size=2, instruction_bitstreams=(InstructionBitstream(bytes(range(size)), offsets),))


@settings(deadline=None)
@given(addresses, st.integers(0, 8 * 40 - 32), st.integers(0, 1))
def test_32_bits_are_replaced(address, bit, position):
    before = int.from_bytes(bytes(range(40)), "little")
    (chunk,) = link(one(40, (bit, 2, "", 7, position)), {"parameter": address})
    after = int.from_bytes(chunk, "little")
    half = address >> 32 if position else address & 0xFFFF_FFFF
    assert after == before & ~(0xFFFF_FFFF << bit) | half << bit
    assert len(chunk) == 40


@given(addresses, addresses)
def test_each_batch_has_its_own_address(first, second):
    executable = one(40, (0, 1, "x", 0, 0), (32, 1, "x", 1, 0), (64, 1, "x", 1, 1), (96, 0, "x", 0, 0))
    (chunk,) = link(executable, {"inputs": {"x": [first, second]}})
    words = [int.from_bytes(chunk[i : i + 4], "little") for i in range(0, 16, 4)]
    assert words[:3] == [first & 0xFFFF_FFFF, second & 0xFFFF_FFFF, second >> 32]
    assert chunk[12:] == bytes(range(12, 40))  # the output has no address


def test_what_has_no_address_stays():
    package = load(ex.build(ex.edges()))
    before = bytes(package.main.chunks[0].bitstream)
    for given_addresses in ({}, {"scratch": 5}, {"inputs": {"other": [1]}, "outputs": {}}):
        assert link(package.main, given_addresses) == [before]
    assert bytes(package.main.chunks[0].bitstream) == before


@pytest.mark.parametrize(
    ("executable", "given_addresses", "error", "says"),
    [
        (one(40, (289, 2, "", 0, 0)), {}, PackageError, "D035"),
        (one(40, (-1, 2, "", 0, 0)), {}, PackageError, "D035"),
        (one(40, (0, 1, "x", 1, 0)), {"inputs": {"x": [0]}}, PackageError, "batch"),
        (one(40, (0, 3, "", 1, 0)), {"scratch": 0}, PackageError, "D039"),
        (one(40, (0, 2, "", 0, 5)), {"parameter": 0}, PackageError, "D042"),
        (one(40), {"parameter": 1 << 64}, HostError, "64 bits"),
        (one(40), {"parameter": -1}, HostError, "64 bits"),
        (one(40), {"parameters": 0}, HostError, "parameters"),
    ],
)
def test_what_cannot_be_linked_is_refused(executable, given_addresses, error, says):
    with pytest.raises(error, match=says):
        link(executable, given_addresses)
