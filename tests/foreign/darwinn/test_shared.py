"""The acceptance script of the shared data: real packages, the driver's verdicts, an independent interpreter."""

import subprocess
import sys

import pytest

from shared_files import ROOT, SHARED

SCRIPT = SHARED / "darwinn" / "check.py"


@pytest.mark.slow
@pytest.mark.skipif(not SCRIPT.is_file(), reason=f"no {SCRIPT} (set BUDA_EMU_SHARED)")
def test_every_criterion_holds(child_environment):
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, cwd=ROOT, env=child_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "every criterion holds"
