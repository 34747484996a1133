"""The extension of VS Code: what it names exists; where npm has its packages, it builds, is linted and packs."""

import json
import re
import shutil
import subprocess

import pytest

from buda_emu.cli.main import VERBS
from shared_files import ROOT

FOLDER = ROOT / "editors/vscode"
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


def test_the_lock_file_names_no_host():
    assert '"resolved"' not in (FOLDER / "package-lock.json").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not (FOLDER / "node_modules").is_dir() or not shutil.which("npm"), reason="`npm ci` was not run")
@pytest.mark.parametrize("script", ["build", "lint", "test", "package"])
def test_npm(script):
    done = subprocess.run(["npm", "run", script], cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
