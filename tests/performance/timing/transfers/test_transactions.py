"""Cycles of reads, writes and multicasts over a NoC: bounds, order, refusals, and DRAM of blackhole by placement."""

import random
from dataclasses import replace

import pytest

from buda_emu.performance.timing import Transactions, transfer_cycles, transfer_interval
from buda_emu.performance.timing.transfers.transactions import KINDS
from buda_emu.spec.devices import device
from buda_emu.support.errors import HostError, UnsupportedError

CHIPS = ("wormhole_b0", "blackhole")
CHANNELS = ((0, 11), (0, 3), (0, 8), (0, 6), (9, 11), (9, 3), (9, 8), (9, 6))
"""A DRAM core of each channel of blackhole."""


def workers(chip):
    return [(x, y) for y in device(chip).worker_rows for x in device(chip).worker_columns]


def drawn(chip, random_numbers):
    """Transactions between random workers."""
    kind = random_numbers.choice(KINDS)
    cores = tuple(random_numbers.sample(workers(chip), random_numbers.choice((1, 1, 2, 7))))
    receivers = tuple(random_numbers.sample(workers(chip), random_numbers.choice((1, 3, 9))))
    return Transactions(
        kind=kind,
        cores=cores,
        partners=(receivers,) * len(cores),
        size=random_numbers.randrange(1, 70000),
        count=random_numbers.randrange(1, 300),
        noc=random_numbers.choice((0, 1, None)),
        stateful=random_numbers.random() < 0.3,
        interleaved=random_numbers.random() < 0.3,
    )


@pytest.mark.parametrize("chip", CHIPS)
def test_more_never_takes_less_and_nothing_beats_the_wire(chip):
    random_numbers = random.Random(59)
    for _ in range(60):
        transactions = drawn(chip, random_numbers)
        cycles = transfer_cycles(transactions, chip)
        flits = transactions.count * transactions.size / device(chip).noc_bytes_per_clock
        assert cycles > flits, transactions
        for more in ({"size": transactions.size + 4000}, {"count": transactions.count + 10}):
            assert transfer_cycles(replace(transactions, **more), chip) >= cycles, (transactions, more)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_way_and_its_answer_go_around_whole_rings(chip):
    columns, rows = device(chip).noc_grid

    def cycles(core, partner):
        return transfer_cycles(Transactions(kind="write", cores=(core,), partners=((partner,),), size=64), chip)

    same = cycles((1, 2), (1, 2))
    assert cycles((1, 2), (1, 5)) - same == pytest.approx(9 * rows)
    assert cycles((1, 2), (3, 2)) - same == pytest.approx(9 * columns)
    assert cycles((1, 2), (3, 5)) == cycles((3, 5), (1, 2)) == pytest.approx(same + 9 * (rows + columns))


def test_a_linked_multicast_reserves_its_way_once():
    receivers = tuple((x, y) for x in (1, 2, 3) for y in (2, 3, 4))
    plain = Transactions(kind="multicast", cores=((1, 2),), partners=(receivers,), size=64, count=1)
    linked = replace(plain, kind="linked multicast")
    assert transfer_cycles(plain) == transfer_cycles(linked)
    assert transfer_cycles(replace(plain, count=64)) > 2 * transfer_cycles(replace(linked, count=64))


def rate(cores, size, count):
    """Bytes a cycle of one of eight cores that read from one channel of blackhole each."""
    partners = tuple((channel,) for channel in CHANNELS)
    reads = Transactions(kind="read", cores=tuple(cores), partners=partners, size=size, count=count, noc=0)
    return size * count / transfer_cycles(reads, "blackhole")


def test_dram_of_blackhole_depends_on_where_its_readers_stand():  # BLACKHOLE 2
    beside = [(x + 1, y) for x, y in CHANNELS]
    in_a_row = [(x, 2) for x in device("blackhole").worker_columns[:8]]
    assert rate(beside, 16384, 1024) == pytest.approx(46.3, rel=0.1)
    assert rate(in_a_row, 16384, 1024) == pytest.approx(31.8, rel=0.1)
    # 2 KiB at a time, a barrier after each 16 KiB
    assert rate(in_a_row, 2048, 8) == pytest.approx(17.4, rel=0.1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "copy"}, "kind 'copy' is not one of read, write"),
        ({"size": 0}, "both must be at least 1"),
        ({"count": 0}, "both must be at least 1"),
        ({"cores": ()}, "at least one partner"),
        ({"partners": ((),)}, "at least one partner"),
        ({"noc": 2}, "NoC 2; there are 0 and 1"),
    ],
)
def test_what_is_no_set_of_transactions_is_refused(change, words):
    with pytest.raises(HostError, match=words):
        replace(Transactions(kind="read", cores=((1, 2),), partners=(((1, 3),),), size=64), **change)


def test_places_outside_of_the_chip_are_refused():
    outside = Transactions(kind="read", cores=((1, 2),), partners=(((10, 3),),), size=64)
    assert transfer_cycles(outside, "blackhole") > 0
    with pytest.raises(HostError, match="10-3 is outside of the NoC of wormhole_b0, 10 x 12"):
        transfer_cycles(outside, "wormhole_b0")


def test_a_chip_that_was_not_measured_is_refused():
    reads = Transactions(kind="read", cores=((1, 2),), partners=(((1, 3),),), size=64)
    with pytest.raises(UnsupportedError, match="measured on blackhole, wormhole_b0, not on grayskull"):
        transfer_cycles(reads, "grayskull")


@pytest.mark.parametrize(("board", "arch"), [("n150", "wormhole_b0"), ("p150", "blackhole")])
def test_the_chip_of_a_board_has_its_name(board, arch):
    read = Transactions(kind="read", cores=((1, 2),), partners=(((1, 3),),), size=8192, count=64)
    assert transfer_cycles(read, board) == transfer_cycles(read, arch)
    assert transfer_interval(read, board) == transfer_interval(read, arch)
    with pytest.raises(HostError, match="no device table"):
        transfer_cycles(read, "n151")
