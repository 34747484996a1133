"""The adapter driven by a client that others wrote: @vscode/debugadapter-testsupport, from npm."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from debug_sessions import TRAINING
from shared_files import ROOT

DRIVER = Path(__file__).with_name("dap_session.cjs")
PACKAGE = "@vscode/debugadapter-testsupport@1.68.0"
LINES = (ROOT / "netlists" / "training.yaml").read_text().splitlines()


def line_of(words):
    return str(next(number for number, line in enumerate(LINES, 1) if line.strip().startswith(words)))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")
def test_a_session_of_vscodes_own_client(tmp_path, child_environment):
    installed = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), PACKAGE],
        capture_output=True,
        text=True,
    )
    if installed.returncode:
        pytest.skip(f"{PACKAGE} is not to be had: {installed.stderr[-200:]}")
    driver = tmp_path / DRIVER.name
    shutil.copy(DRIVER, driver)
    adapter = tmp_path / "adapter.py"
    adapter.write_text("from buda_emu.app.cli.main import main\n\nraise SystemExit(main(['debug', '--dap']))\n")
    lines = line_of("a: {type: gelu"), line_of("new_w1: {type")
    done = subprocess.run(
        ["node", str(driver), sys.executable, str(adapter), TRAINING, *lines],
        capture_output=True,
        text=True,
        env=child_environment,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == 11
