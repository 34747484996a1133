import numpy as np
import pytest

from buda_emu.arithmetic.formats import quantise
from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.emulator.memory.bit_store import BitStore, BitView
from buda_emu.emulator.memory.store import MemoryBudget
from buda_emu.support.errors import HostError, InternalError


def view(df="Bfp8_b", entries=4, t=1, tiles=2, limit=1 << 20):
    budget = MemoryBudget(limit)
    return BitView("q", BitStore("q", entries * t, tiles, budget, df), entries, t), budget


def values(seed, tiles=2):
    return np.random.default_rng(seed).normal(0, 3, (1, tiles, 1024)).astype(np.float32)


@pytest.mark.parametrize(
    ("df", "tile"), [("Float32", 4096), ("Float16_b", 2048), ("Bfp8_b", 1024 + 64), ("Bfp4", 1024 + 64), ("Int8", 1024)]
)
def test_a_queue_costs_what_its_format_takes(df, tile):
    q, budget = view(df)
    q.write([1], values(0), df)
    assert budget.used == 2 * 2 * tile  # two entries were asked for


def test_the_budget_is_kept():
    q, _ = view("Float16_b", limit=5000)
    q.write([0], values(0), "Float16_b")
    with pytest.raises(HostError, match="memory limit"):
        q.write([1], values(1), "Float16_b")


@pytest.mark.parametrize("df", ["Float16_b", "Bfp8_b", "Bfp2", "Lf8", "Int8", "UInt16"])
def test_the_host_reads_what_its_push_was_rounded_to(df):
    q, _ = view(df)
    pushed = np.abs(values(2)) * 20
    q.write([2], pushed, df)
    assert np.array_equal(q.entry(2), quantise(df, pushed.reshape(-1, 32, 32)).reshape(2, 1024))
    assert q.label(2) == df
    assert not q.label(1)


def test_memory_that_grows_keeps_its_bits():
    q, _ = view("Bfp8_b", entries=1000, limit=1 << 24)
    bits = Bits.encode("Bfp8_b", values(3))
    q.write_bits([0], bits, "Bfp8_b")
    first = q.bits(0, 1)
    assert q.holds_bits(0, first)
    q.reserve(1000)
    assert np.array_equal(q.bits(0, 1).datums, bits.datums)
    assert np.array_equal(q.bits(0, 1).exponents, bits.exponents)


def test_memory_goes_to_the_next_store():
    stores = [BitStore("left", 512, 8, MemoryBudget(1 << 30), "Bfp8_b") for _ in range(2)]
    where = stores[0].bits(512).datums.ctypes.data
    stores[0].free()
    assert stores[1].bits(512).datums.ctypes.data == where
    assert stores[0].bytes_used == 0


def test_slots_in_any_order():
    q, _ = view("Float16_b")
    for slot in range(4):
        q.write_bits([slot], Bits.encode("Float16_b", values(slot)), "Float16_b")
    found = q.read_bits([3, 0])
    assert np.array_equal(found[0].datums, q.bits(3, 1)[0].datums)
    assert np.array_equal(found[1].datums, q.bits(0, 1)[0].datums)
    assert np.shares_memory(q.read_bits([1, 2]).datums, q.bits(1, 1).datums)


def test_dual_views_and_zero():
    store = BitStore("base", 4, 1, MemoryBudget(1 << 20), "Bfp8_b")
    base, dual = BitView("base", store, 4, 1), BitView("dual", store, 2, 2)
    base.write([0, 1], np.concatenate([values(0, 1), values(1, 1)]), "Bfp8_b")
    assert np.array_equal(dual.entry(0)[1], base.entry(1)[0])
    store.zero_entries(dual)
    assert not base.entry(1).any()
    zeros = base.bits(0, 2)
    assert zeros.exponents is not None
    assert not zeros.exponents.any()
    plain = BitView("plain", BitStore("plain", 1, 1, MemoryBudget(1 << 20), "Int8"), 1, 1)
    plain.write([0], np.full((1, 1, 1024), 5, np.float32), "Int8")
    plain.store.zero_entries(plain)
    assert not plain.entry(0).any()


def test_there_are_no_values():
    q, _ = view()
    with pytest.raises(InternalError):
        q.block(0, 1)


def test_arrays_have_exponents_where_the_format_has_them():
    for df, parts in (("Bfp8_b", 2), ("Float16_b", 1), ("Int8", 1)):
        q, _ = view(df)
        assert len(q.store.arrays()) == len(q.store.fresh(3)) == parts


@pytest.mark.parametrize(("df", "largest"), [("Bfp4", 0xF), ("Bfp2_b", 0x3), ("Bfp8", 0xFF)])
def test_codes_that_a_format_has_not_got_are_told(df, largest):
    q, _ = view(df, tiles=1)
    datums, exponents = q.store.fresh(1)
    datums[...], exponents[...] = largest, 31
    assert q.store.may_hold((datums, exponents))
    assert q.store.may_hold((datums[:0], exponents[:0]))
    if largest < 0xFF:
        datums[0, 0, 7] = largest + 1
        assert not q.store.may_hold((datums, exponents))


def test_bits_of_what_is_lent_are_those_of_a_push():
    values = np.random.default_rng(0).standard_normal((3, 2, 1024)).astype(np.float32)
    pushed, lent = (BitView("q", BitStore("q", 3, 2, MemoryBudget(limit), "Bfp8_b"), 3, 1) for limit in (1 << 20, 0))
    pushed.write([0, 1, 2], values, "Bfp8_b")
    assert lent.store.lend(lambda first, last: values[first:last], 3, "Bfp8_b")
    for slots in ([1, 2], [2, 0], [1]):
        found, expected = lent.read_bits(slots), pushed.read_bits(slots)
        assert np.array_equal(found.datums, expected.datums)
        assert np.array_equal(found.exponents, expected.exponents)
    assert np.array_equal(lent.entry(1), pushed.entry(1))
    with pytest.raises(HostError, match="memory of q needs"):
        lent.bits(0, 1)
