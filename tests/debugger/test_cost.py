"""What a debugger without breakpoints costs (benchmarks/bench_debug.py prints it with an earlier checkout beside)."""

from pathlib import Path

import pytest

from bench_debug import BOUND, debugged
from debug_sessions import ATTENTION, TRAINING


@pytest.mark.slow
@pytest.mark.parametrize("path", [ATTENTION, TRAINING])
@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_run_without_breakpoints(path, precision):
    assert debugged(Path(path), precision, 7) < BOUND + 0.15  # other work on the machine is in both, but not evenly
