"""Changing a run: variables, tensors, ops that are skipped; and the change is of this run alone."""

import numpy as np
import pytest

from buda_emu.app.debugger.machine.stop import START, Position
from buda_emu.support.errors import HostError
from debug_sessions import ATTENTION, TRAINING, session, state, walk
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_skipped_op_gives_zero_and_the_run_is_repeatable(precision):
    with session(TRAINING, precision=precision) as run:
        run.break_at("a")
        run.cont()
        assert run.skip() == "a"
        run.next()
        assert run.evaluate("absmax(op:a)") == 0
        assert run.changed == ["op a skipped in input 1"]
        run.cont()
        end = state(run)
        assert run.evaluate("absmax(e2e_a[0])") == 0
        position = run.stop.position
        run.back("step", 3)
        run.seek(position)
        assert state(run) == end
        run.seek(START)
        assert run.changed == []
        run.breakpoints.items.clear()
        run.cont()
        assert run.evaluate("absmax(e2e_a[0])") > 0


def test_ops_that_cannot_be_skipped():
    with session(TRAINING) as run:
        with pytest.raises(HostError, match="no op is about to run"):
            run.skip()
        run.break_at("grad_w2_sum")
        run.cont()
        with pytest.raises(HostError, match="adds to a sum"):
            run.skip()


@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_written_entry_of_the_host_is_undone_by_going_back(precision):
    with session(TRAINING, precision=precision) as run:
        run.step(3)
        before = run.tensor("x[0]").values().copy()
        there = state(run)
        run.write("x[0]", 2.0)
        assert (run.tensor("x[0]").values() == 2).all()
        run.next(4)
        assert run.changed == ["x[0] written"]
        changed = state(run)
        position = run.stop.position
        run.back("next", 2)
        run.seek(position)
        assert state(run) == changed  # replayed with the change
        run.seek(Position(2))
        np.testing.assert_array_equal(run.tensor("x[0]").values(), before)
        assert run.changed == []
        run.seek(START)
        run.step(3)
        assert state(run) == there


def test_checkpoints_after_a_change_are_forgotten():
    with session(TRAINING) as run:
        end = walk(run, "step")[-1]
        run.seek(START)
        run.write("w1", 0.0)
        assert run.cont().reason == "end"
        assert run.evaluate("absmax(y[0])") == 0
        run.seek(START)
        assert run.changed == ["w1[0] written"]
        run.cont()
        assert state(run) != end[1]


def test_one_tile_of_a_queue():
    with session(TRAINING) as run:
        before = run.tensor("x[1]").values().copy()
        run.write("x[1]", 5.0, (0, 1, 2))
        after = run.tensor("x[1]").values()
        assert (after[0, 32:64, 64:96] == 5).all()
        after = after.copy()
        after[0, 32:64, 64:96] = before[0, 32:64, 64:96]
        np.testing.assert_array_equal(after, before)
        for tile in ((0, 2, 0), (1, 0, 0), (0, 0, 4)):
            with pytest.raises(HostError, match="no tile"):
                run.write("x[1]", 5.0, tile)
        with pytest.raises(HostError, match="elements"):
            run.write("x[1]", np.ones((3, 3)))


@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_result_is_changed_right_after_its_op(precision):
    with session(TRAINING, precision=precision) as run:
        run.break_at("", "absmax(op:h) >= 0")
        run.cont()
        run.write("op:h", 1.0)
        run.write("op:h", 3.0, (0, 0, 1))
        assert run.evaluate("min(op:h) == 1 and max(op:h) == 3")
        run.next()
        with pytest.raises(HostError, match="right after it ran"):
            run.write("op:h", 2.0)
        run.finish()
        assert run.evaluate("mean(e2e_h[0])") == pytest.approx(1 + 2 / 8)
        run.back("next")
        assert run.evaluate("max(op:h)") == 3


def test_the_bytes_of_a_result_are_changed_up_to_both_ends():
    with session(TRAINING) as run:
        run.break_at("", "absmax(op:h) >= 0")
        run.cont()
        size = len(run.read_bytes("op:h"))
        one = np.float32(1).tobytes()
        run.write_bytes("op:h", 0, one)
        run.write_bytes("op:h", size - 4, one)
        whole = run.read_bytes("op:h")
        assert (whole[:4], whole[-4:], len(whole)) == (one, one, size)
        for offset in (-1, size - 3, size + 1):
            with pytest.raises(HostError, match=rf"has bytes 0\.\.{size - 1}"):
                run.write_bytes("op:h", offset, one)


def test_variables_are_set_as_a_varinst_sets_them():
    with session(TRAINING, parameters={"$p_loop_count": "2"}) as run:
        run.break_at("run_fwd:4")
        run.cont()
        known = run.engine.variables.snapshot()
        with pytest.raises(HostError, match=r"no variable \$nothing"):
            run.set_variable("nothing", 1)
        name = next(iter(known))
        run.set_variable(name, 1)
        assert run.engine.variables.snapshot()[name] == 1
        position = run.stop.position
        run.step(2)
        run.back("step", 2)
        assert run.stop.position == position
        assert run.engine.variables.snapshot()[name] == 1
        run.back("step")
        assert run.engine.variables.snapshot()[name] == known[name]
    with session(ATTENTION) as run, pytest.raises(HostError, match="no program runs"):
        run.set_variable("$x", 1)


def test_the_ideal_run_has_the_changes_too():
    with session(TRAINING) as run:
        run.break_at("", "pcc(op:product, ideal) < 2")
        run.cont()
        run.seek(START)
        run.write("x[0]", 0.5)
        run.cont()
        assert run.evaluate("maxdiff(op:h, ideal)") < 0.1 * run.evaluate("absmax(op:h)")
        assert run.evaluate("pcc(op:product, ideal)") > 0.99


def test_raw_words_are_seen_and_changed_as_the_host_gives_them(tmp_path):
    """Tiles of raw formats hold runs of the host's elements (LAYOUT 2)."""
    path = tmp_path / "raw.yaml"
    path.write_text(
        text(
            queue("words", df="RawUInt32", entries=1, ublock=(2, 2)) + queue("q") + queue("out", "n"),
            graph("g", op("n", "nop", ["q"])),
            program("p", "staticvar: {$c_zero: 0}", execute("g", fifo_settings("q"))),
        )
    )
    given = np.arange(64 * 64, dtype=np.uint32).reshape(1, 64, 64)
    with session(str(path)) as run:
        run.write("words[0]", given)
        np.testing.assert_array_equal(run.tensor("words[0]").values(), given)
        run.write("words[0]", 7, (0, 0, 1))
        changed = given.reshape(4, 1024).copy()
        changed[1] = 7
        np.testing.assert_array_equal(run.tensor("words[0]").values().reshape(4, 1024), changed)
        run.write_bytes("words[0]", 16, b"\1\2\3\4")
        assert run.tensor("words[0]").values()[0, 0, 0] == 0x04030201
        np.testing.assert_array_equal(run.tensor("words[0]").values().reshape(4, 1024)[1:], changed[1:])
