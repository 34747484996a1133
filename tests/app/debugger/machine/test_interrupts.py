"""Somebody interrupts: what runs stops at its next step, forward, backward and beside; afterwards all is as before."""

import os
import signal
import time
from threading import Event, Thread

import pytest

from buda_emu.app.debugger.console.console import Console
from buda_emu.app.debugger.console.execute import execute
from buda_emu.app.debugger.machine.stop import StoppedShortError
from debug_sessions import session, state
from small_netlists import execute as run_graph
from small_netlists import fifo_settings, graph, op, program, queue, text

LOOPS = 40


@pytest.fixture
def run(tmp_path):
    """At its end, with no checkpoint but that of the start: going back runs everything again."""
    path = tmp_path / "many.yaml"
    path.write_text(
        text(
            queue("q_in", entries=2 * LOOPS) + queue("q_out", "second", entries=2 * LOOPS),
            graph("g", op("first", "exp", ["q_in"]), op("second", "nop", ["first"], loc=(0, 1)), inputs=2),
            program(
                "p",
                "staticvar: {$c_zero: 0, $rd: 0}",
                f"loop: {LOOPS}",
                run_graph("g", fifo_settings("q_in", "$rd", "$rd")),
                f"varinst: [$rd, incwrap, 2, {4 * LOOPS}]",
                "endloop",
            ),
        )
    )
    with session(str(path)) as found:
        found.engine.history.due = lambda: False
        yield found


def interrupt_at(run, instruction, engine=None, act=None):
    """Once, when this instruction is about to run."""
    engine = engine or run.engine
    real, left = engine.instruction, [True]

    def watched(*arguments):
        real(*arguments)
        if left and engine.count >= instruction:
            left.clear()
            (act or run.interrupt)()

    engine.instruction = watched


def test_a_seek_backward_and_forward(run):
    run.go("step", 60)
    target, held = run.stop.position, state(run)
    run.cont()
    interrupt_at(run, 30)
    stop = run.seek(target)
    assert (stop.reason, stop.position < target, stop.position.instruction >= 30) == ("interrupted", True, True)
    assert run.engine.count in (30, 31)
    interrupt_at(run, 45)
    assert run.resume().reason == "interrupted"
    assert run.resume().position == target
    assert state(run) == held


def test_steps_back_and_many_steps(run):
    run.cont()
    end = run.stop.position
    interrupt_at(run, 30)
    assert run.back("step", 5).reason == "interrupted"
    assert run.stop.position.instruction in (30, 31)  # the other four are left out
    interrupt_at(run, 70)
    assert run.step(1000).reason == "interrupted"
    console = Console(run)
    execute(console, "break second")
    interrupt_at(run, 90)
    assert execute(console, "continue 1000").lines[0] == "interrupted"
    execute(console, "delete")
    assert run.cont().position == end


def test_reverse_continue(run):
    run.cont()
    run.break_at("second", "$rd == 20")
    interrupt_at(run, 30)
    assert run.reverse_continue().reason == "interrupted"
    assert run.engine.count in (30, 31)
    stop = run.resume()
    assert (stop.reason, run.evaluate("$rd"), run.evaluate("input")) == ("breakpoint", 20, 2)


def test_changes_behind_are_undone_where_it_stands(run):
    run.go("step", 60)
    run.set_variable("$rd", 0)
    run.break_at("wrap q_out")
    interrupt_at(run, 30)
    assert run.reverse_continue().reason == "interrupted"
    assert run.changed == []
    assert run.changes == []


def test_a_look_at_an_earlier_moment(run):
    run.go("step", 60)
    before, held = run.stop, state(run)
    interrupt_at(run, 30)
    with pytest.raises(StoppedShortError, match="interrupted before it was found"):
        run.tensor("op:first")
    assert (run.stop, state(run)) == (before, held)
    assert run.tensor("op:first").shape == (1, 1, 1)
    assert (run.stop, state(run)) == (before, held)


def test_who_interrupts_the_way_home_too_stands_there(run):
    run.go("step", 60)
    before = run.stop
    interrupt_at(run, 30, act=lambda: (run.interrupt(), interrupt_at(run, 40)))
    with pytest.raises(StoppedShortError):
        run.tensor("op:first")
    assert (run.stop.reason, run.stop.position < before.position) == ("interrupted", True)


def test_a_look_at_precision_ideal(run):
    run.go("step", 60)
    held = state(run)
    assert run.evaluate("pcc(q_out[0], ideal)") > 0.99  # the other machine is there
    run.go("step", 30)
    interrupt_at(run, 70, engine=run._shadow)
    with pytest.raises(StoppedShortError):
        run.evaluate("pcc(q_out[0], ideal)")
    assert run.evaluate("pcc(q_out[0], ideal)") > 0.99
    run.back("step", 30)
    assert state(run) == held


def test_precision_ideal_may_stand_where_it_was_interrupted(run):
    run.go("step", 60)
    assert run.evaluate("pcc(q_out[0], ideal)") > 0.99  # the other machine is there
    run.go("step", 30)
    interrupt_at(run, 70, engine=run._shadow)
    with pytest.raises(StoppedShortError):
        run.evaluate("pcc(q_out[0], ideal)")
    assert run.seek(run._shadow.stop.position).position == run._shadow.stop.position
    assert run.evaluate("pcc(q_out[0], ideal)") > 0.99


def test_in_the_middle_of_several_inputs_it_stands_in_the_first(run):
    real = run.engine.inputs

    def watched(*arguments):
        real(*arguments)
        run.interrupt()

    run.engine.inputs = watched
    stop = run.cont()
    assert (stop.reason, stop.position.input, run.engine.op_now.name) == ("interrupted", 0, "first")
    assert {name: tiles.shape for name, tiles in run.engine.values.items()} == {"q_in": (1, 1, 1024)}


@pytest.mark.parametrize("condition", ["", "first"])
def test_a_condition_of_precision_ideal_is_asked_again(run, condition):
    """And counts its hit once."""
    found = run.break_at(condition, "pcc(op:second, ideal) < 2" if not condition else "pcc(q_in[0], ideal) < 2")
    assert run.cont().reason == "breakpoint"
    found.ignore = 20
    interrupt_at(run, 21, engine=run._shadow)
    stop = run.cont()
    assert (stop.reason, found.hits < 20) == ("interrupted", True)
    assert run.cont().reason == "breakpoint"
    assert (found.hits, found.ignore) == (22, 0)


def test_an_interrupt_that_comes_too_early_or_too_late(run):
    run.interrupt()
    stop = run.cont()
    assert (stop.reason, stop.position.instruction) == ("interrupted", 1)
    run.interrupt()
    run.clear_interrupt()
    assert run.cont().reason == "end"


def test_closing_ends_a_program_that_runs(run):
    runs, ended = Event(), Event()
    interrupt_at(run, 20, act=lambda: (runs.set(), ended.wait(0.2)))
    waiting = Thread(target=run.cont)
    waiting.start()
    assert runs.wait(10)
    run.engine.close()
    waiting.join(10)
    assert not waiting.is_alive()


def test_ctrl_c_in_python(run):
    """Nothing of the debugger's is between a KeyboardInterrupt and the caller who stands."""

    def ctrl_c():
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            if run.engine.interrupted.wanted:
                break
            time.sleep(0.01)

    interrupt_at(run, 30, act=ctrl_c)
    assert run.cont().reason == "interrupted"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert run.cont().reason == "end"
