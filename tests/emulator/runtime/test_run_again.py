"""A program that fails leaves the machine as it was: push what is missing, run again, and get what a machine gives
that never failed."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.distributed.machines import Machines
from buda_emu.emulator.inputs.prepared import RunChoice, prepare_run
from buda_emu.emulator.runtime.snapshots.state import pointers_of
from buda_emu.support.workers.job import Workers
from buda_emu.testing import generate
from shared_files import ROOT
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

NETLISTS = ("matmul", "softmax", "attention", "two_chips", "eltwise_tms", "recipes/mlp")
ONE = np.ones((1, 1, 32, 32), np.float32)
FIELDS = ("rd", "wr", "local", "local_base")


def pointers(emu):
    """The pointers of all queues and rams; flags and steps are those of the settings that came last."""
    fields = {name: pointers_of(channel) for name, channel in emu.channels.items()}
    return {name: [of[field] for field in FIELDS if field in of] for name, of in fields.items()}


def state(emu):
    """What a failed run must not change."""
    known = emu.machine.programs
    variables = {name: known.interpreter(name).variables.state() for name in known.known}
    return pointers(emu), emu.machine.memory.allocated, variables


def bits(emu):
    return {name: array.view(np.uint32) for name, array in emu.outputs("raw").items()}


def is_equal(one, other):
    return one.keys() == other.keys() and all(np.array_equal(array, other[name]) for name, array in one.items())


def accumulates(netlist):
    """Whether programs change what their next run reads: sums of gradients, and rams that ops read and write."""
    read = {name for op in netlist.ops.values() for name in op.inputs}
    return any(op.gradient_op for op in netlist.ops.values()) or any(
        queue.is_ram and not queue.host_fed and queue.name in read for queue in netlist.queues.values()
    )


def runs(emu, name, values):
    """Run a program and return whether it ran to its end; if not, nothing has changed."""
    before = state(emu)
    try:
        emu.run(name, values)
    except be.ProgramError:
        after = state(emu)
    else:
        return True
    assert after[:2] == before[:2], name
    assert {program_name: after[2][program_name] for program_name in before[2]} == before[2]
    return False


def fails_and_runs_again(netlist, short, *, entries, inputs_at_once=None, precision="ideal"):
    """Run all programs with `entries` of the queue `short`, then with all; returns whether it failed first, and
    compares with a machine that has everything."""
    ready = prepare_run(netlist, RunChoice())
    blocks = list(ready.feed(None, 1).blocks())
    with (
        be.Emulator(netlist, precision, inputs_at_once=inputs_at_once) as emu,
        be.Emulator(netlist, precision, inputs_at_once=inputs_at_once) as whole,
    ):
        missing = []
        for block in blocks:
            whole.push(block.queue, block.array, block.slot)
            left = block.array[entries:] if block.queue == short else block.array[:0]
            given = block.array[:entries] if block.queue == short else block.array
            if len(given):
                emu.push(block.queue, given, block.slot)
            if len(left):
                missing.append((block.queue, left, None if block.slot is None else block.slot + len(given)))
        failed = False
        for name, values in ready.programs:
            if not runs(emu, name, values):
                failed = True
                for queue_name, array, slot in missing:
                    emu.push(queue_name, array, slot)
                missing = []
                emu.run(name, values)
            whole.run(name, values)
        if not missing:
            assert pointers(emu) == pointers(whole)
            assert is_equal(bits(emu), bits(whole))
        return failed


@pytest.mark.parametrize("inputs_at_once", [None, 1])
@pytest.mark.parametrize("name", NETLISTS)
def test_push_what_is_missing_and_run_again(name, inputs_at_once):
    netlist = be.load(str(ROOT / f"netlists/{name}.yaml"))
    failures = 0
    for queue_of_netlist in netlist.queues.values():
        if queue_of_netlist.host_fed:
            for entries in (0, 1):
                failures += fails_and_runs_again(
                    netlist, queue_of_netlist.name, entries=entries, inputs_at_once=inputs_at_once
                )
    assert failures


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_generated_netlists(first, tmp_path):
    """Dual views, queues between epochs, prologues and epilogues, autoincs, and several chips."""
    failures = 0
    for seed in range(first, first + 10):
        path = tmp_path / f"{seed}.yaml"
        path.write_text(generate(seed).text)
        netlist = be.load(path)
        if accumulates(netlist):
            continue
        for queue_of_netlist in netlist.queues.values():
            if queue_of_netlist.host_fed:
                failures += fails_and_runs_again(netlist, queue_of_netlist.name, entries=0)
    assert failures


CHAIN = text(
    [
        *(queue("a"), queue("b"), queue("d"), queue("e2e", "first"), queue("held", "first", kind="ram")),
        queue("o", "second", entries=2),
    ],
    [graph("g", op("first", "nop", ["a"]), inputs=2), graph("h", op("second", "add", ["e2e", "b"]), inputs=2)],
    [
        program(
            "p",
            "staticvar: {$read: 0}",
            "var: {$c_zero: 0}",
            "allocate_queue: [d]",
            execute("g", fifo_settings("a", "$read", "$read"), ram_settings("held")),
            execute("h", fifo_settings("e2e", "$read", "$read"), fifo_settings("b", "$read", "$read")),
            "varinst: [$read, incwrap, 2, 8]",
            "deallocate_queue: [d]",
        )
    ],
)


def two_of(value):
    return np.full((2, 1, 32, 32), value, np.float32)


@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
def test_an_epoch_before_the_one_that_fails_is_taken_back_too(load, precision):
    with be.Emulator(load(CHAIN), precision, inputs_at_once=1) as emu:
        for number in (1, 2):  # later a slot holds an entry of an earlier run
            emu.push("a", two_of(number))
            emu.push("b", two_of(number)[:1])
            before = state(emu)
            with pytest.raises(be.ProgramError, match=r"graph h: .*queue b"):
                emu.run("p")
            assert state(emu)[:2] == before[:2]
            assert len(emu.peek("e2e")) == len(emu.peek("o")) == 0
            emu.push("b", two_of(number)[:1])
            emu.run("p")
            np.testing.assert_array_equal(emu.pop("o", 2), two_of(2 * number))


def test_reports_count_no_traffic_of_a_run_that_was_taken_back(load):
    with be.Emulator(load(KEEPER), "ideal") as emu:
        emu.push("a", two_of(1))
        emu.run("fill")
        emu.push("b", two_of(1))
        reports = []
        for _ in range(3):
            with pytest.raises(be.ProgramError, match="queue a") as raised:
                emu.run("p")
            reports.append(str(raised.value))
        assert "2 entries to a in all and 2 are used up" in reports[0]
        assert reports == 3 * reports[:1]
        assert emu.machine.journal.of("b").popped is None


@pytest.mark.parametrize("move", ["push", "pop"])
def test_what_the_host_did_meanwhile_stays_done(load, move):
    """Then the epochs that were completed stay, too, and only the inputs that did not run are taken back."""

    class Host(be.Listener):
        def epoch_end(self, graphs):
            if graphs == ("g",) and move == "push":
                emu.push("a", ONE)
            elif graphs == ("g",):
                emu.pop("o", 1)

    with be.Emulator(load(CHAIN), "ideal") as emu:
        emu.push("a", two_of(1))
        emu.push("b", two_of(1))
        emu.run("p")
        emu.push("a", two_of(2))
        emu.push("b", ONE)
        emu.pop("o", 1)
        emu.add_listener(Host())
        with pytest.raises(be.ProgramError, match="graph h"):
            emu.run("p")
        held = {name: channel.ring.occupancy for name, channel in emu.channels.items() if name != "held"}
        assert held["a"] == 2 + (move == "push")
        assert held["e2e"] == 2
        assert held["o"] == (move == "push")


KEEPER = text(
    [queue("a", entries=8), queue("b", entries=8), queue("q", "n", entries=2), queue("o", "m", entries=8)],
    [graph("g", op("n", "nop", ["a"]), inputs=2), graph("h", op("m", "add", ["q", "b"]), inputs=2)],
    [
        program("fill", "var: {$c_zero: 0}", execute("g", fifo_settings("a", more=", global_rdptr_autoinc: 1"))),
        program(
            "p",
            "var: {$c_zero: 0}",
            "staticvar: {$a: 2, $b: 0, $q: 0}",
            execute("h", fifo_settings("q", "$q", "$q"), fifo_settings("b", "$b", "$b")),
            "varinst: [$q, incwrap, 2, 4]",
            "varinst: [$b, incwrap, 2, 16]",
            execute("g", fifo_settings("a", "$a", "$a")),
            "varinst: [$a, incwrap, 2, 16]",
            execute("h", fifo_settings("q", "$q", "$q"), fifo_settings("b", "$b", "$b")),
        ),
    ],
)


@pytest.mark.parametrize("completed", [0, 1, 2])
def test_a_run_is_taken_back_as_long_as_what_queues_held_is_there(load, completed):
    """Queue q is full when p begins, which pops its entries and writes others over them: pointers that went back would
    give these to the next run in their place."""
    with be.Emulator(load(KEEPER), "ideal") as emu:
        emu.push("a", two_of(1))
        emu.run("fill")
        before = state(emu)
        for name in ("b", "a")[:completed]:
            emu.push(name, two_of(10))
        pushed = pointers(emu)
        with pytest.raises(be.ProgramError):
            emu.run("p")
        if completed < 2:
            assert pointers(emu) == pushed
            assert state(emu)[1:] == (before[1], before[2] | {"p": state(emu)[2]["p"]})
            np.testing.assert_array_equal(emu.peek("q"), two_of(1))
        else:
            held = {name: channel.ring.occupancy for name, channel in emu.channels.items()}
            assert held == {"a": 0, "b": 0, "q": 2, "o": 2}
            np.testing.assert_array_equal(emu.peek("o"), two_of(11))
            np.testing.assert_array_equal(emu.peek("q"), two_of(10))


def test_an_input_that_cannot_be_planned_moves_nothing(load):
    """A plan is made for the labels of the entries that are read, so the pointers have moved by then."""
    content = text(
        [queue("a"), queue("o", "n")],
        [graph("g", op("n", "nop", ["a"]))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a", more=", global_rdptr_autoinc: 1")))],
    )
    with be.Emulator(load(content.replace("out_df: Float32", "out_df: Float16_b")), "device") as emu:
        emu.push("a", ONE)
        before = pointers(emu)
        with pytest.raises(be.UnsupportedError, match="V079"):
            emu.run("p")
        assert pointers(emu) == before


def test_zeros_in_place_of_what_a_queue_held(load):
    """The settings of the first epoch fill queue a with zeros after its entries were pushed."""
    content = text(
        [queue("a"), queue("b"), queue("o", "n"), queue("u", "m")],
        [graph("g", op("n", "nop", ["a"]), inputs=1), graph("h", op("m", "nop", ["b"], loc=(0, 1)), inputs=1)],
        [
            program(
                "p",
                "var: {$c_zero: 0}",
                execute("g", fifo_settings("a", prologue="true").replace("zero: false", "zero: true")),
                execute("h", fifo_settings("b")),
            )
        ],
    )
    with be.Emulator(load(content), "ideal") as emu:
        emu.push("a", ONE)
        with pytest.raises(be.ProgramError, match="queue b"):
            emu.run("p")
        np.testing.assert_array_equal(emu.peek("o"), 0 * ONE)


def test_an_input_that_fails_half_way_moves_nothing(load):
    """Reads, pushes, local reads and pops of one input, each of which may be the one that fails."""
    content = text(
        [queue("a"), queue("b"), queue("o", "n", entries=1), queue("r", "m", kind="ram", entries=2), queue("q", "m")],
        [graph("g", op("n", "add", ["a", "b"]), op("m", "nop", ["a"], loc=(0, 1)), inputs=2)],
        [
            program(
                "p",
                "var: {$c_zero: 0}",
                execute(
                    "g",
                    fifo_settings("a", more=", global_rdptr_autoinc: 1"),
                    fifo_settings("b", more=", global_rdptr_autoinc: 1"),
                    ram_settings("r", more=", global_wrptr_autoinc: 1"),
                ),
            )
        ],
    )

    class Host(be.Listener):  # so that only the inputs are taken back, not the run
        def epoch_start(self, *_):
            emu.push("a", ONE)

    netlist = load(content)
    for first, second in ((1, 0), (0, 1), (1, 1), (2, 1), (1, 2), (2, 2)):
        with be.Emulator(netlist, "ideal", listeners=(Host(),)) as emu:
            for name, count in (("a", first), ("b", second)):
                if count:
                    emu.push(name, two_of(1)[:count])
            with pytest.raises(be.ProgramError):
                emu.run("p")
            after = pointers(emu)
            assert after["a"][:3] == [0, first + 1, 0]
            assert after["b"][:3] == [0, second, 0]
            assert after["o"][:2] == after["r"] == after["q"][:2] == [0, 0]


def test_a_part_of_several_machines_goes_back_as_one_does():
    netlist = be.load(str(ROOT / "netlists/two_chips.yaml"))
    ready = prepare_run(netlist, RunChoice())
    blocks = list(ready.feed(None, 1).blocks())
    (name, values) = ready.programs[0]
    with Machines(netlist, Workers(2), "ideal", threads=1) as machines, be.Emulator(netlist, "ideal") as whole:
        for block in blocks:
            whole.push(block.queue, block.array, block.slot)
            if block.queue != "x":
                machines.push(block.queue, block.array, block.slot)
        (inputs,) = [block.array for block in blocks if block.queue == "x"]
        machines.push("x", inputs[:1])
        with pytest.raises(be.ProgramError, match="queue x"):
            machines.run(name, values)
        machines.push("x", inputs[1:])
        machines.run(name, values)
        whole.run(name, values)
        expected = whole.outputs()
        for output in machines.outputs_in_parts():
            np.testing.assert_array_equal(np.concatenate(list(output.parts)), expected[output.queue])
