"""`why`: the chain back to the host is that of the graph, and that of the numbers."""

import numpy as np
import pytest

from buda_emu.app.debugger.inspection import chain_lines, trace_provenance
from buda_emu.app.debugger.machine import history as log
from debug_sessions import ATTENTION, TRAINING, TWO_CHIPS, session
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


def upstream(netlist, queue_name):
    """Ops and queues that an entry may depend on, by the names of the graph alone."""
    ops, found, ahead = netlist.ops, set(), [queue_name]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            source = netlist.queues.get(name)
            ahead += ops[name].inputs if name in ops else [source.input] if source.input in ops else []
    return found


@pytest.mark.parametrize("path", [ATTENTION, TRAINING, TWO_CHIPS])
def test_provenance_follows_the_graph(path):
    with session(path) as run:
        run.cont()
        for name, item in run.netlist.queues.items():
            if item.host_fed:
                continue
            entries = trace_provenance(run.engine, run.names, name, 0)
            told = {entry.queue for entry in entries} | {one for entry in entries for one in entry.through}
            assert told <= upstream(run.netlist, name)
            assert set(entries[0].through) >= {item.input}
            for entry in entries:
                for number in entry.reads:  # each source is read by an op that the entry went through
                    assert any(entries[number].queue in run.names.ops[one].inputs for one in entry.through) or (
                        entries[number].queue == entry.queue
                    )
            for entry in entries:
                if run.netlist.queues[entry.queue].host_fed:
                    assert (entry.op, entry.position) == ("", None)


def ring(tmp_path):
    """Slots are used again: entry 0 of q_mid is written by inputs 0, 2 and 4."""
    path = tmp_path / "ring.yaml"
    path.write_text(
        text(
            queue("q_in", entries=6) + queue("q_mid", "n", entries=2) + queue("q_out", "m", entries=6),
            graph("g", op("n", "exp", ["q_in"]), inputs=2) + graph("h", op("m", "nop", ["q_mid"]), inputs=2),
            program(
                "p",
                "staticvar: {$c_zero: 0, $a: 0, $b: 0}",
                "loop: 3",
                execute("g", fifo_settings("q_in", "$a", "$a")),
                execute("h", fifo_settings("q_mid", "$b", "$b")),
                "varinst: [$a, incwrap, 2, 12]",
                "varinst: [$b, incwrap, 2, 4]",
                "endloop",
            ),
        )
    )
    return str(path)


def test_slots_that_are_used_again(tmp_path):
    with session(ring(tmp_path)) as run:
        run.cont()
        for slot in range(6):
            entries = trace_provenance(run.engine, run.names, "q_out", slot)
            assert [(entry.queue, entry.slot) for entry in entries] == [
                ("q_out", slot),
                ("q_mid", slot % 2),
                ("q_in", slot),
            ]


def test_provenance_agrees_with_changed_numbers(tmp_path):
    """Change one entry of the host's: exactly those outputs change whose chain ends in it."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(6, 1, 32, 32)).astype(np.float32)

    def outputs(changed):
        folder = tmp_path / f"in{changed}"
        folder.mkdir()
        given = data.copy()
        if changed >= 0:
            given[changed] += 1
        np.save(folder / "q_in.npy", given)
        with session(ring(tmp_path), inputs=folder) as run:
            run.cont()
            chains = [
                {(e.queue, e.slot) for e in trace_provenance(run.engine, run.names, "q_out", slot)} for slot in range(6)
            ]
            return [run.tensor(f"q_out[{slot}]").tiles.tobytes() for slot in range(6)], chains

    plain, chains = outputs(-1)
    for entry in range(6):
        other, _ = outputs(entry)
        for slot in range(6):
            assert (plain[slot] != other[slot]) is (("q_in", entry) in chains[slot])


def test_in_the_middle_of_a_run_provenance_is_that_of_the_past(tmp_path):
    with session(ring(tmp_path)) as run:
        run.break_at("op m")
        run.cont()
        assert [entry.op for entry in trace_provenance(run.engine, run.names, "q_out", 0)] == [""]
        run.next()
        assert [entry.op for entry in trace_provenance(run.engine, run.names, "q_out", 0)] == ["m", "n", ""]


def test_forgotten_writers_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "MAX_LOGGED_SLOTS", 30)
    with session(ring(tmp_path)) as run:
        run.cont()
        assert run.engine.log.cut
        lines = "\n".join(chain_lines(trace_provenance(run.engine, run.names, "q_out", 0)))
        assert "longer ago than is remembered" in lines


def test_lines(tmp_path):
    with session(TRAINING) as run:
        run.cont()
        lines = list(chain_lines(trace_provenance(run.engine, run.names, "w1", 0)))
        assert lines[0].startswith("w1[0] was written by op new_w1 (through step_w1) in instruction ")
        assert "  lr[0] was given by the host" in lines
