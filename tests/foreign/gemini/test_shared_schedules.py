"""Real schedules, reference traces and mutants of the shared folder: its own acceptance script says what holds."""

import subprocess
import sys

import pytest

from shared_files import SHARED

SCRIPT = SHARED / "gemini" / "check.py"
QUICK = "valid,counts,mutants,trace,predicted,ir_mode,faults,alloc"  # nonsense: test_mutated_schedules


@pytest.mark.skipif(not SCRIPT.is_file(), reason=f"no {SCRIPT} (set BUDA_EMU_SHARED)")
@pytest.mark.parametrize("criteria", [QUICK, pytest.param("fixtures,commands,fuzz,execute", marks=pytest.mark.slow)])
def test_all_criteria_hold(criteria, child_environment):
    command = [sys.executable, str(SCRIPT), "-k", criteria]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all criteria hold"
