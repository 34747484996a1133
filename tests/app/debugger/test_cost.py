"""What a debugger without breakpoints costs (benchmarks/bench_debug.py prints it with an earlier checkout beside)."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from bench_debug import BOUND, debug_ratio
from buda_emu.app.debugger.machine.stop import START
from debug_sessions import ATTENTION, TRAINING, session


@pytest.mark.slow
@pytest.mark.parametrize("path", [ATTENTION, TRAINING])
@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_run_without_breakpoints(path, precision):
    assert debug_ratio(Path(path), precision, 7) < BOUND


def test_nearly_nothing_is_called_between_two_steps():
    """Two functions for an instruction, nine for an epoch, forty for a move; and no enum is asked for a signal."""
    called = Counter()

    def count(frame, event, _):
        if event == "call":
            called[frame.f_code.co_filename] += 1

    def watch(on):
        sys.setprofile(count if on else None)

    with session(TRAINING) as run:
        run.cont()
        instructions, epochs = run.stop.position.instruction - 1, len(run.engine.log)
        for _ in range(10):  # until the methods of all dataclasses are written
            run.seek(START)
            run.cont()
        run.seek(START)
        try:
            run.engine.call(lambda: watch(True))
            watch(True)
            run.cont()
        finally:
            watch(False)
            run.engine.call(lambda: watch(False))
    of_debugger = sum(times for file, times in called.items() if "debugger" in Path(file).parts)
    assert instructions > 20 < of_debugger
    assert of_debugger <= 2 * instructions + 9 * epochs + 40
    assert not [file for file in called if Path(file).name == "enum.py"]
