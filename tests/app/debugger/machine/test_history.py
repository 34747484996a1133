"""What going back costs: checkpoints are few, share what did not change, and stay within their limit."""

import tracemalloc

from buda_emu.app.debugger.machine import history
from buda_emu.app.debugger.machine.stop import START, Position
from debug_sessions import session, state
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


def looping(path, rounds):
    path.write_text(
        text(
            queue("q_in", entries=2, ublock=(2, 2)) + queue("acc", "sum", kind="ram", entries=1, ublock=(2, 2)),
            graph("g", op("sum", "add", ["q_in", "acc"], ublock=(2, 2))),
            program(
                "p",
                "staticvar: {$c_zero: 0}",
                f"loop: {rounds}",
                execute(
                    "g",
                    fifo_settings("q_in", prologue="true"),
                    "acc: {prologue: false, epilogue: false, zero: false, rd_ptr_global: 0, wr_ptr_global: 0}",
                ),
                "endloop",
            ),
        )
    )
    return str(path)


def test_ten_thousand_steps_keep_memory_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "_MIN_SECONDS", 0.0)
    monkeypatch.setattr(history, "_COST_FACTOR", 0)  # a checkpoint at every instruction
    with session(looping(tmp_path / "n.yaml", 6000), history_limit=1 << 20) as run:
        run.step(1000)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            run.step(9000)
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        kept = run.engine.history
        assert run.stop.position == Position(10_000)
        assert len(kept) <= history.MAX_CHECKPOINTS
        assert kept.bytes <= (1 << 20) + (1 << 15)
        assert grown < 8 << 20
        held = state(run)
        run.step(50)
        run.seek(Position(10_000))
        assert state(run) == held
        run.seek(START)
        assert run.stop.position == START


def test_what_did_not_change_is_shared(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "_MIN_SECONDS", 0.0)
    monkeypatch.setattr(history, "_COST_FACTOR", 0)
    with session(looping(tmp_path / "n.yaml", 4)) as run:
        entry = 4 * 1024 * 4
        run.step(3)  # staticvar, loop, execute: the ram has not been written since the first checkpoint
        assert len(run.engine.history) == 4
        assert run.engine.history.bytes == entry
        run.step(3)
        assert len(run.engine.history) == 7
        assert run.engine.history.bytes == 3 * entry


def test_old_checkpoints_are_thinned_and_the_first_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "_MIN_SECONDS", 0.0)
    monkeypatch.setattr(history, "_COST_FACTOR", 0)
    monkeypatch.setattr(history, "MAX_CHECKPOINTS", 8)
    with session(looping(tmp_path / "n.yaml", 40)) as run:
        run.step(60)
        kept = run.engine.history
        assert 2 <= len(kept) <= 8
        assert kept.before(START).position == START
        assert kept.before(Position(60)).position == Position(60)
