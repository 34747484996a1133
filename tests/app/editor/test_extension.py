"""The extension of VS Code: what it names exists; where npm has its packages, it builds, is linted and packs."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from buda_emu.app.cli.main import VERBS
from shared_files import ROOT

FOLDER = ROOT / "editors/vscode"
VSCODE = Path(os.environ.get("BUDA_EMU_VSCODE", "/nowhere"))  # docs/contributing.md says how it is made
SOURCE = (FOLDER / "src/extension.ts").read_text()


def test_what_the_manifest_names_is_there():
    manifest = json.loads((FOLDER / "package.json").read_text())
    for command in manifest["contributes"]["commands"]:
        assert f'registerCommand("{command["command"]}"' in SOURCE
    for grammar in manifest["contributes"]["grammars"]:
        assert (FOLDER / grammar["path"]).is_file()
    (language,) = manifest["contributes"]["languages"]
    assert re.match(language["firstLine"], "devices:")
    json.loads((FOLDER / language["configuration"]).read_text())


def test_it_starts_verbs_that_exist():
    assert '[...program.args, "lsp"]' in SOURCE
    assert "lsp" in VERBS


def test_the_debugger_knows_every_argument_that_it_is_given():
    from buda_emu.app.debugger.dap.running import LAUNCH

    (debugger,) = json.loads((FOLDER / "package.json").read_text())["contributes"]["debuggers"]
    named = debugger["configurationAttributes"]["launch"]["properties"]
    assert set(named) == set(LAUNCH) - {"noDebug"}  # which the editor adds
    assert '[...program.args, "debug", "--dap"]' in SOURCE
    assert "debug" in VERBS


def test_the_lock_file_names_no_host():
    assert '"resolved"' not in (FOLDER / "package-lock.json").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not (FOLDER / "node_modules").is_dir() or not shutil.which("npm"), reason="`npm ci` was not run")
@pytest.mark.parametrize("script", ["build", "lint", "test", "package"])
def test_npm(script):
    done = subprocess.run(["npm", "run", script], cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _listens(port):
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.skipif(not (FOLDER / "node_modules").is_dir() or not shutil.which("npm"), reason="`npm ci` was not run")
@pytest.mark.skipif(not (VSCODE / "server").is_dir(), reason="BUDA_EMU_VSCODE names no folder with VS Code")
@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium")
def test_in_vs_code_itself(tmp_path, child_environment):
    """Findings, quick fix, grid, breakpoint, step back and debug console, in a browser; pictures in tmp_path."""
    data, user = tmp_path / "data", tmp_path / "user"
    (user / "netlists").mkdir(parents=True)
    shutil.copy(ROOT / "netlists/attention.yaml", user / "netlists")
    settings = data / "data/Machine/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"buda-emu.command": [sys.executable, "-m", "buda_emu"]}))
    server = [str(VSCODE / "node"), "out/server-main.js", "--accept-server-license-terms", f"--server-data-dir={data}"]
    packed = str(FOLDER / "buda-emu-netlists.vsix")
    subprocess.run(["npm", "run", "package"], cwd=FOLDER, check=True, capture_output=True, timeout=300)
    install = [*server, f"--install-extension={packed}", "--start-server=false"]
    subprocess.run(install, cwd=VSCODE / "server", check=True, capture_output=True, env=child_environment, timeout=120)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    begin = [*server, "--host=127.0.0.1", f"--port={port}", "--without-connection-token", "--telemetry-level=off"]
    with subprocess.Popen(begin, cwd=VSCODE / "server", env=child_environment, stdout=subprocess.DEVNULL) as running:
        try:
            end = time.monotonic() + 60
            while not _listens(port):
                assert time.monotonic() < end
                time.sleep(0.2)
            drive = ["node", str(FOLDER / "test/editor.mjs"), str(VSCODE), str(shutil.which("chromium"))]
            drive += [f"http://127.0.0.1:{port}/?folder={user}", str(tmp_path)]
            done = subprocess.run(drive, capture_output=True, text=True, check=False, timeout=900)
            assert done.returncode == 0, done.stdout + done.stderr
        finally:
            running.terminate()
    assert {path.stem for path in tmp_path.glob("*.png")} == {"opened", "problem", "fix", "grid", "breakpoint", "back"}
