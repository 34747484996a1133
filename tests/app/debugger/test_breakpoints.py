"""Where a run stops, forward and backward, and what is said where nothing can be stopped at."""

import numpy as np
import pytest

from buda_emu.app.debugger.machine.stop import START
from buda_emu.support.errors import HostError
from debug_sessions import ATTENTION, TRAINING, TWO_CHIPS, session
from shared_files import ROOT
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


def hits(run):
    found = []
    while (stop := run.cont()).reason == "breakpoint":
        found.append((stop.position, stop.breakpoints))
    assert stop.reason == "end"
    return found


def reverse_hits(run):
    found = []
    while (stop := run.reverse_continue()).reason == "breakpoint":
        found.append((stop.position, stop.breakpoints))
    assert stop.position == START
    return found


@pytest.mark.parametrize("precision", ["format", "device"])
def test_backwards_meets_the_same_hits(precision):
    with session(TRAINING, precision=precision, parameters={"$p_loop_count": "2"}) as run:
        run.break_at("a")
        run.break_at("", "absmax(op:product) > 0")
        run.break_at("", "pcc(op:grad_h, ideal) < 2")
        run.break_at("run_bwd:6")
        run.break_at("graph optimizer")
        run.break_at("input 1 backward")
        run.break_at("pointer x")
        run.break_at("", "wr(y) == 2")
        run.watch("e2e_h")
        forward = hits(run)
        assert {number for _, numbers in forward for number in numbers} == set(range(1, 10))
        assert reverse_hits(run) == forward[::-1]


def test_going_back_counts_no_hits():
    with session(ATTENTION) as run:
        point = run.break_at("dots")
        run.cont()
        run.cont()
        assert point.hits == 2
        assert run.reverse_continue().reason == "breakpoint"
        assert point.hits == 2


def test_a_line_means_the_next_part_that_runs():
    lines = (ROOT / "netlists" / "training.yaml").read_text().splitlines()
    with session(TRAINING) as run:
        op_line = next(n for n, line in enumerate(lines, 1) if line.strip().startswith("grad_a:"))
        assert run.break_at(str(op_line)).name == "grad_a"
        assert run.break_at(str(op_line + 1)).name == "grad_a"  # a further line of the same op
        comment = next(n for n, line in enumerate(lines, 1) if "Reads and writes one ram" in line)
        moved = run.break_at(f"line {comment}")
        assert (moved.kind, moved.name) == ("op", "new_w1")
        assert f"line {comment + 1}, the next that runs" in moved.text
        loop = next(n for n, line in enumerate(lines, 1) if line.strip().startswith("- loop"))
        assert run.break_at(f"{TRAINING}:{loop}").kind == "instruction"
        queue_line = next(n for n, line in enumerate(lines, 1) if line.strip().startswith("w1:"))
        assert (run.break_at(str(queue_line)).kind, run.break_at("w1").kind) == ("watch", "watch")
        with pytest.raises(HostError, match="nothing to stop at on line 9999"):
            run.break_at("9999")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("op prodct", "did you mean 'product'"), ("prodct", "did you mean 'product'"), ("graph bakward", "'backward'"),
        ("run_fwd:99", "instructions 0..8"), ("input 0", "counted from 1"), ("input x", "is a number"),
        ("wrap nothing", "no queue 'nothing'"), ("op", "no line, op"), ("a b", "the first word is"),
        ("instruction run_fdw 2", "did you mean 'run_fwd'"), ("node x", "no op was made of"), ("input 1 g", "no graph"),
        ("run_fwd:" + 5000 * "9", "at most 9 digits"),
    ],
)  # fmt: skip
def test_unknown_places_are_refused_with_a_suggestion(where, said):
    with session(TRAINING) as run, pytest.raises(HostError) as error:
        run.break_at(where)
    assert said in str(error.value)


def test_names_in_conditions_are_resolved_when_they_are_set():
    with session(TRAINING) as run:
        with pytest.raises(HostError, match="did you mean 'product'"):
            run.break_at("", "nan(op:prodct)")
        with pytest.raises(HostError, match="break if CONDITION"):
            run.break_at("")


def test_conditions_ignore_counts_and_temporary_ones():
    with session(TRAINING, parameters={"$p_loop_count": "2"}) as run:
        once = run.break_at("op a", temporary=True)
        later = run.break_at("op h", ignore=1)
        never = run.break_at("op product", "$p_loop_count == 3")
        stops = hits(run)
        assert [numbers for _, numbers in stops] == [(once.number,), (later.number,)]
        assert once.number not in run.breakpoints.items
        assert (later.hits, never.hits) == (2, 0)
        run.set_condition(never.number, "$p_loop_count == 2")
        run.breakpoints.get(later.number).enabled = False
        run.seek(START)
        assert [numbers for _, numbers in hits(run)] == [(never.number,)] * 2
        run.set_condition(never.number, "")
        assert never.condition is None
        with pytest.raises(HostError, match="there are: "):
            run.breakpoints.get(77)


def test_a_condition_that_cannot_be_evaluated_stops_and_says_why():
    with session(TRAINING) as run:
        run.break_at("op h", "nan(op:product) > 0")
        stop = run.cont()
        assert stop.reason == "breakpoint"
        assert "has given nothing in this input" in stop.text


def test_wraps_and_pointer_values(tmp_path):
    path = tmp_path / "n.yaml"
    path.write_text(
        text(
            queue("q_in", entries=2) + queue("q_out", "n", entries=2) + queue("end", "m", entries=12),
            graph("g", op("n", "nop", ["q_in"]), inputs=2) + graph("h", op("m", "nop", ["q_out"]), inputs=2),
            program(
                "p",
                "staticvar: {$c_zero: 0, $rd: 0}",
                "loop: 6",
                execute("g", fifo_settings("q_in", prologue="true")),
                execute("h", fifo_settings("q_out", "$rd", "$rd")),
                "varinst: [$rd, incwrap, 2, 4]",
                "endloop",
            ),
        )
    )
    with session(str(path)) as run:
        run.break_at("wrap q_out")
        forward = hits(run)
        assert len(forward) >= 3
        assert reverse_hits(run) == forward[::-1]
        run.breakpoints.items.clear()
        at = run.break_at("pointer q_out 3")
        forward = hits(run)
        assert forward
        assert all(numbers == (at.number,) for _, numbers in forward)


def test_nan_in_any_result_stops(tmp_path):
    path = tmp_path / "n.yaml"
    path.write_text(
        text(
            queue("q_in", entries=4) + queue("big", entries=4) + queue("q_out", "last", entries=4),
            graph("g", op("root", "subtract", ["q_in", "big"]), op("last", "nop", ["root"], loc=(0, 1)), inputs=4),
            program("p", "staticvar: {$c_zero: 0}", execute("g", fifo_settings("q_in"), fifo_settings("big"))),
        )
    )
    data = np.ones((4, 1, 32, 32), np.float32)
    data[2, 0, 3, 4] = np.inf
    folder = tmp_path / "in"
    folder.mkdir()
    np.save(folder / "q_in.npy", data)
    np.save(folder / "big.npy", data)
    with session(str(path), inputs=folder) as run:
        run.break_at("nan")
        run.break_at("", "nan(q_out)")
        stop = run.cont()
        assert (run.engine.op_now.name, stop.position.input, stop.text) == ("root", 2, "op root gave 1 NaN")
        assert (run.cont().breakpoints, run.engine.op_now.name) == ((1,), "last")
        assert run.cont().breakpoints == (2,)
        assert run.stop.position.input == 2
        assert run.evaluate("nan(q_out[2])") == 1
        assert run.evaluate("nan(q_out[1])") == 0


def test_every_public_netlist_stops_at_its_first_op():
    for path in (ATTENTION, TRAINING, TWO_CHIPS):
        with session(path) as run:
            graph_name = next(iter(run.netlist.graphs))
            first = run.engine.topology(graph_name).ops[0]
            run.break_at(f"op {first.name}")
            assert run.cont().reason == "breakpoint"
            assert run.engine.op_now is first
