"""The extension of VS Code: what it names exists; where npm has its packages, it builds, is linted and packs."""

import base64
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


PICTURES = re.findall(r"!\[[^\]]+\]\((pictures/[^)]+)\)", (FOLDER / "README.md").read_text())


def test_pictures_of_the_readme_are_there_and_small():
    assert {(FOLDER / name).resolve() for name in PICTURES} == set((FOLDER / "pictures").resolve().iterdir())
    for name in PICTURES:
        data = (FOLDER / name).read_bytes()
        assert data.startswith(b"\x89PNG\r\n")
        assert len(data) < 80_000


def packed_readme(tmp_path, **environment):
    """The README that `readme.mjs` writes in a copy of the folder."""
    folder = shutil.copytree(FOLDER, tmp_path / "vscode", ignore=shutil.ignore_patterns("node_modules", "out"))
    subprocess.run(["node", "readme.mjs"], cwd=folder, check=True, env={**os.environ, **environment})
    return (folder / "out" / "README.md").read_text()


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_the_packed_readme_has_its_pictures_inside(tmp_path):
    text = packed_readme(tmp_path)
    first = base64.b64encode((FOLDER / PICTURES[0]).read_bytes()).decode()
    assert f"(data:image/png;base64,{first})" in text
    assert text.count("(data:image/png;base64,") == len(PICTURES)
    assert "](pictures/" not in text


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_the_packed_readme_names_addresses_where_there_is_one(tmp_path):
    text = packed_readme(tmp_path, BUDA_EMU_ADDRESS="https://example.org/vscode")
    assert re.findall(r"\]\((https:[^)]+)\)", text) == [f"https://example.org/vscode/{name}" for name in PICTURES]


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
    steps = {"opened", "problem", "fix", "grid", "breakpoint", "back", "details"}
    assert {path.stem for path in tmp_path.glob("*.png")} == steps
