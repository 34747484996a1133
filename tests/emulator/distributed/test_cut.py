"""Who gets which part of a netlist."""

import pytest

import buda_emu as be
from buda_emu.emulator.distributed.part import balance, cut
from shared_files import ROOT
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

TWO_CHIPS = str(ROOT / "netlists/two_chips.yaml")


def test_units_are_shared_out_evenly_and_in_their_order():
    assert balance([1, 1, 1, 1], 2) == [0, 0, 1, 1]
    assert balance([5, 1, 1, 1], 2) == [0, 1, 1, 1]
    assert balance([1, 1], 5) == [0, 1]
    assert balance([3], 4) == [0]


def test_a_queue_is_kept_by_who_reads_and_who_writes_it():
    netlist = be.load(TWO_CHIPS)
    found = cut(netlist, 2)
    assert found.count == 2
    assert {found.owners[op.name] for op in netlist.ops.values()} == {0, 1}
    assert all(found.keepers[name] for name in netlist.queues)
    assert any(len(found.keepers[name]) == 1 for name in netlist.queues)


def five_epochs(tmp_path, first, more=""):
    """One op of this type, then a nop in each of four epochs."""
    path = tmp_path / "net.yaml"
    queues = [queue(f"a{number}") + queue(f"o{number}", f"n{number}") for number in range(5)]
    nodes = [op("n0", first, ["a0", "a0"], more=more), *(op(f"n{n}", "nop", [f"a{n}"]) for n in range(1, 5))]
    graphs = [graph(f"g{number}", node) for number, node in enumerate(nodes)]
    steps = [execute(f"g{number}", fifo_settings(f"a{number}")) for number in range(5)]
    path.write_text(text(queues, graphs, [program("p", "var: {$c_zero: 0}", *steps)]))
    return be.load(path)


@pytest.mark.parametrize(
    ("first", "more", "owners"),
    [
        ("add", "", [0, 0, 1, 1, 1]),  # a half, then a quarter each
        ("matmul", ", attributes: {m_k: 1, u_kt: 1}", [0, 1, 1, 1, 1]),  # one
    ],
)
def test_a_product_weighs_more_than_what_has_no_inner_dimension(first, more, owners, tmp_path):
    found = cut(five_epochs(tmp_path, first, more), 2)
    assert [found.owners[f"n{number}"] for number in range(5)] == owners
