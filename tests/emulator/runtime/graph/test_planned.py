"""Plans are made once for all machines of a netlist, and hold no data of any of them."""

import gc
import weakref

import numpy as np

import buda_emu as be
from buda_emu.emulator.runtime.graph import execute as planned
from buda_emu.emulator.runtime.graph.execute import PLAN_CACHES
from buda_emu.netlist.program.settings import ALL_SETTINGS
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

NETLIST = text(
    [queue("x", entries=4), queue("o", "n", entries=4)],
    [graph("g", op("n", "nop", ["x"]))],
    [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("x")))],
)


def outcome(net, precision="format", value=1.0):
    with be.Emulator(net, precision) as emulator:
        emulator.push("x", np.full((1, 1, 32, 32), value, np.float32))
        emulator.run("p")
        assert emulator.memory.widest_cut > 0
        return emulator.pop("o")


def test_a_second_machine_makes_no_plan(load, monkeypatch):
    net, plans = load(NETLIST), []
    build = planned.build_plan

    def noted(netlist, topology, labels, quantised, core=None):
        plans.append((quantised, core))
        return build(netlist, topology, labels, quantised, core)

    monkeypatch.setattr(planned, "build_plan", noted)
    for precision in ("format", "ideal", "device") * 2:
        for value in (1.0, 2.0):
            assert (outcome(net, precision, value) == value).all()
    assert plans == [(True, None), (False, None), (True, "wormhole_b0")]


def test_it_goes_with_the_netlist(load):
    net = load(NETLIST)
    outcome(net)
    kept = [weakref.ref(PLAN_CACHES.of(net))]
    number = id(net)
    assert number in PLAN_CACHES._entries
    assert number in ALL_SETTINGS._entries
    del net
    gc.collect()
    assert kept[0]() is None
    assert number not in ALL_SETTINGS._entries
