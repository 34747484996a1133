"""Whatever was done with a machine, the snapshot that it writes can be read, and gives the same machine."""

from random import Random

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.runtime.snapshots.state import pointers_of
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

CONTENT = text(
    [
        *(queue("a"), queue("b", entries=2), queue("k", kind="ram", entries=3), queue("d")),
        *(queue("o", "n"), queue("s", "g1", kind="ram", entries=2), queue("e", "m", entries=2)),
    ],
    [
        graph("g", op("n", "add", ["a", "k"]), op("m", "nop", ["b"], loc=(0, 1))),
        graph("h", op("g1", "matmul", ["k", "k"], more=", gradient_op: true, attributes: {m_k: 1, u_kt: 1}")),
    ],
    [
        program(
            "p",
            "param: [$zero]",
            "staticvar: {$read: 0}",
            "var: {$c_zero: 0}",
            execute(
                "g",
                fifo_settings("a", "$read", "$read"),
                fifo_settings("b", more=", global_rdptr_autoinc: 1"),
                ram_settings("k"),
            ),
            "varinst: [$read, incwrap, 1, 8]",
        ),
        program("q", "var: {$c_zero: 0}", "allocate_queue: [d]", execute("h", ram_settings("k"), ram_settings("s"))),
        program("r", "deallocate_queue: [d]"),
    ],
)


def entries(draw, count):
    return np.full((count, 1, 32, 32), draw.random(), np.float32)


def one_operation(emu, draw):
    """Do something with the machine that may be refused, as a user's mistakes are; zero sizes are as likely as others.
    Returns its name."""
    queues = list(emu.netlist.queues)
    name, count = draw.choice(queues), draw.randrange(4)
    operations = {
        "push": lambda: emu.push(name, entries(draw, count)),
        "push to a slot": lambda: emu.push(name, entries(draw, count), draw.randrange(3)),
        "pop": lambda: emu.pop(name, count),
        "peek": lambda: emu.peek(name, count),
        "put": lambda: emu.put(name, entries(draw, 1), draw.randrange(2)),
        "pushed elsewhere": lambda: emu.pushed_elsewhere(name, count, None),
        "run p": lambda: emu.run("p", {"$zero": draw.choice((0, 1))}),
        "run q": lambda: emu.run("q"),
        "run r": lambda: emu.run("r"),
        "outputs": emu.outputs,
    }
    operation = draw.choice(list(operations))
    try:
        operations[operation]()
    except be.BudaError:
        return f"{operation}, refused"
    return operation


def held(emu):
    channels = {name: pointers_of(channel) for name, channel in emu.channels.items()}
    return channels, {name: array.tobytes() for name, array in emu.outputs("raw").items()}


@pytest.mark.filterwarnings("ignore::buda_emu.support.errors.HostWarning")
@pytest.mark.parametrize("precision", ["ideal", "device"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_can_be_read(load, tmp_path, seed, precision):
    draw = Random(seed)
    seen = set()
    netlist = load(CONTENT)
    with be.Emulator(netlist, precision) as emu:
        for number in range(60):
            seen.add(one_operation(emu, draw))
            if number % 4:
                continue
            emu.save(tmp_path / "state")
            with be.Emulator.load(tmp_path / "state", netlist) as again:
                assert held(again) == held(emu)
                again.save(tmp_path / "again")
            emu.restore(tmp_path / "again")
    assert len(seen) > 12


def test_no_slot_beyond_a_ram_is_marked(load):
    with be.Emulator(load(CONTENT), "ideal") as emu:
        for count, slot in ((3, None), (1, 2), (1, -1)):
            with pytest.raises(be.HostError, match="push of slots"):
                emu.pushed_elsewhere("s", count, slot)


@pytest.mark.parametrize("name", ["a", "o"])
def test_a_pop_of_nothing_is_no_traffic(load, tmp_path, name):
    with be.Emulator(load(CONTENT), "ideal") as emu:
        assert emu.pop(name, 0).shape == (0, 1, 32, 32)
        emu.save(tmp_path / "state")
    be.Emulator.load(tmp_path / "state").close()
