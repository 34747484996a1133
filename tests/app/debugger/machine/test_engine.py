"""Going forward and back: the same state at the same position, whichever way it was reached."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.debugger.machine.stop import START, STORED, Position
from buda_emu.app.debugger.tensors import newest_slot
from buda_emu.support.errors import HostError
from debug_sessions import ATTENTION, TRAINING, TWO_CHIPS, session, state, walk
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text


def many_inputs(inputs=6, loops=3):
    """Inputs that may run together: chunks must not be seen."""
    whole = inputs * loops
    return text(
        queue("q_in", entries=whole) + queue("q_out", "second", entries=whole),
        graph("g", op("first", "exp", ["q_in"]), op("second", "nop", ["first"], loc=(0, 1)), inputs=inputs),
        program(
            "p",
            "staticvar: {$c_zero: 0, $rd: 0}",
            f"loop: {loops}",
            execute("g", fifo_settings("q_in", "$rd", "$rd")),
            f"varinst: [$rd, incwrap, {inputs}, {2 * whole}]",
            "endloop",
        ),
    )


@pytest.fixture
def looped(tmp_path):
    path = tmp_path / "many.yaml"
    path.write_text(many_inputs())
    return str(path)


@pytest.mark.parametrize("precision", ["format", "ideal", "device"])
def test_back_to_every_op_is_bit_equal(precision):
    with session(TRAINING, precision=precision, parameters={"$p_loop_count": "2"}) as run:
        there = walk(run, "next")
        assert sum(position.in_epoch for position, _ in there) == 24  # 2 x 3, 2 x 7 and 4 ops
        for position, held in reversed(there):
            run.seek(position)
            assert run.stop.position == position
            assert state(run) == held
        for position, held in there:
            run.seek(position)
            assert state(run) == held


@pytest.mark.parametrize("kind", ["next", "step", "input", "epoch"])
def test_back_is_the_reverse_of_forward(kind):
    with session(TWO_CHIPS) as run:
        there = walk(run, kind)
        for position, held in reversed(there[:-1]):
            run.back(kind)
            assert run.stop.position == position
            assert state(run) == held


def test_inputs_that_run_together_are_stepped_one_by_one(looped):
    with session(looped) as run:
        positions = [position for position, _ in walk(run, "input")]
        assert [position[1:] for position in positions[1:-1]] == [(n, 0) for n in range(6)] * 3
        assert len(run.engine.log) == 18
        end = state(run)
        run.run()
        assert len(run.engine.log) == 3  # nobody looked: six at once
        assert state(run) == end


def test_back_from_a_result_is_to_its_op():
    with session(TRAINING) as run:
        run.break_at("", "absmax(op:product) > 0")
        after = run.cont().position
        assert after.step % 2 == 1
        assert run.back("next").position == after._replace(step=after.step - 1)


def test_the_newest_entry_of_the_host_is_the_last():
    with session(ATTENTION) as run:
        ring = run.engine.channels["x"].ring
        assert ring.occupancy == ring.entries == 4
        assert newest_slot(run.engine, "x") == 3


def test_rams_on_the_same_memory_share_entries(tmp_path):
    """Of another t, whose entries are smaller; not those of the host."""
    whole = queue("whole", "n", kind="ram", entries=2, t=2)
    place = whole[whole.index("loc:") :]
    parts = [
        queue(name, source, kind="ram")[: -len(place)] + place for name, source in (("part", "m"), ("host", "HOST"))
    ]
    path = tmp_path / "net.yaml"
    step = execute("g", fifo_settings("x"), fifo_settings("y"), *(ram_settings(name) for name in ("whole", "part")))
    path.write_text(
        text(
            [queue("x", t=2), queue("y"), whole, *parts],
            [graph("g", op("n", "nop", ["x"], t=2), op("m", "nop", ["y"], loc=(0, 1)))],
            [program("p", "var: {$c_zero: 0}", step)],
        )
    )
    with session(str(path)) as run:
        assert sorted(run.engine.sharing("whole", 1)) == [("part", 2), ("part", 3), ("whole", 1)]
        assert sorted(run.engine.sharing("part", 1)) == [("part", 1), ("whole", 0)]


def test_back_over_an_epoch_boundary_into_its_middle(looped):
    with session(looped) as run:
        run.epoch(2)
        run.input(2)
        middle, held = run.stop.position, state(run)
        assert middle.input == 2
        run.epoch()
        run.seek(middle)
        assert (run.stop.position, state(run)) == (middle, held)
        run.back("epoch")
        assert run.stop.position == Position(middle.instruction, 0, 0)
        run.back("epoch")
        assert run.stop.position < Position(middle.instruction)


def test_ends_as_a_run_ends():
    net = be.load(ATTENTION)
    with session(net) as run, be.Emulator(net, threads=1) as plain:
        for block in run.feed.blocks():
            plain.push(block.queue, block.array, block.slot)
        run.next(3)
        run.back("next", 2)
        assert run.cont().reason == "end"
        plain.run("run_fwd", dict(run.programs[0][1]))
        expected, observed = plain.outputs(), run.engine.call(run.engine.emulator.outputs)
        assert expected.keys() == observed.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(observed[name], array)


def test_finish_and_until_leave_loops(looped):
    with session(looped) as run:
        run.step(3)  # in the loop, at its execute
        assert run.engine.index == 2
        run.next(2)
        assert run.finish().position == Position(4)
        run.until(4)
        assert (run.engine.index, run.engine.loops) == (4, 1)
        assert run.until().reason == "end"  # the loop ran to its end: nothing is after it
        run.run()
        run.seek(Position(3))
        assert run.finish().reason == "end"


def test_back_to_the_start_of_a_program_and_then_of_all(tmp_path):
    """Of the second program before its first instruction, from wherever in it; from there to the start."""
    path = tmp_path / "two.yaml"
    path.write_text(many_inputs(loops=1).replace("entries: 6", "entries: 18"))
    with session(str(path), programs=["p", "p"]) as run:
        run.step(6)
        begun = run.stop.position
        assert (run.engine.program, run.engine.index) == ("p", 0)
        run.step(2)
        run.back("finish")
        assert run.stop.position == begun
        run.back("finish")
        assert run.stop.position == START


def test_a_program_that_fails_can_be_gone_back_from(tmp_path):
    path = tmp_path / "fails.yaml"
    lines = many_inputs().replace("loop: 3", "loop: 4")  # the output queue is full in the fourth round
    path.write_text(lines.replace("HOST, type: queue, entries: 18", "HOST, type: queue, entries: 24"))
    with session(str(path)) as run:
        stop = run.cont()
        assert stop.reason == "error"
        assert stop.error.stopped.queue.name == "q_out"
        with pytest.raises(HostError, match="all programs have run"):
            run.step()
        held = state(run)
        run.back("step")
        assert run.engine.index == 2
        assert run.stop.reason == "step"
        run.cont()
        assert (run.stop.position, state(run)) == (stop.position, held)


def test_an_interrupt_stops_at_the_next_step(looped):
    with session(looped) as run:
        run.step(2)
        real = run.engine.epoch
        run.engine.epoch = lambda graphs, inputs: (real(graphs, inputs), run.interrupt())
        stop = run.cont()
        assert stop.reason == "interrupted"
        assert stop.position.in_epoch


def test_start_is_before_everything():
    with session(ATTENTION) as run:
        assert run.stop.position == START
        assert run.back("step").position == START
        assert run.reverse_continue().position == START


def test_positions_print():
    assert str(Position(7)) == "7"
    assert str(Position(7, 0, 5)) == "7.1.2+"
    assert str(Position(7, 1, STORED)) == "7.2.stored"


def test_closing_while_held_and_twice_sessions():
    run = be.debug(ATTENTION, threads=1)
    run.next()
    run.close()
    with session(ATTENTION) as one, session(ATTENTION) as other:
        one.next(3)
        other.next(3)
        assert state(one) == state(other)
