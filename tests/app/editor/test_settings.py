"""What docs/netlists/editors.md says for editors, and what the packed extension starts: each command is spoken with."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from zipfile import ZipFile

import pytest

from dap_client import Process
from debug_sessions import TRAINING
from lsp_sessions import converse, lsp
from shared_files import ROOT

PAGE = (ROOT / "docs/netlists/editors.md").read_text()
EXTENSION = ROOT / "editors/vscode"
NAMES = {"netlists/m.yaml": True, "my_netlist.yaml": True, "a/netlist_x.yml": True, "config.yaml": False}


def block(heading, language):
    return re.search(rf"^## {heading}$.*?```{language}\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)[1]


def started(command):
    """The same command of this checkout."""
    assert command[0] == "buda-emu"
    return [sys.executable, "-m", "buda_emu", *command[1:]]


def spoken_with(command):
    """Findings of a broken netlist, and a fix of it."""
    wrong = (ROOT / "netlists/matmul.yaml").read_text().replace("type: queue", "type: qeue", 1)

    async def talk(client, uri):
        (found,) = [item for item in client.diagnostics[uri] if item.severity == lsp.DiagnosticSeverity.Error]
        assert "did you mean 'queue'" in found.message
        actions = await client.text_document_code_action_async(
            lsp.CodeActionParams(
                lsp.TextDocumentIdentifier(uri), found.range, lsp.CodeActionContext(client.diagnostics[uri])
            )
        )
        assert any("queue" in action.title for action in actions)

    converse(talk, wrong, command=started(command))


def test_the_settings_for_helix_start_the_server():
    settings = tomllib.loads(block("Helix", "toml"))
    (language,) = settings["language"]
    (name,) = language["language-servers"]
    server = settings["language-server"][name]
    spoken_with([server["command"], *server["args"]])
    globs = [item["glob"] for item in language["file-types"]]
    assert "*netlist*.yaml" in globs
    assert "netlists/*.yaml" in globs


def test_the_settings_for_neovim_start_the_server():
    spoken_with(json.loads("[" + re.search(r"cmd = \{ (.*?) \}", block("Neovim", "lua"))[1] + "]"))


@pytest.mark.skipif(shutil.which("nvim") is None, reason="there is no Neovim")
def test_neovim_takes_its_settings(tmp_path):
    """Headless: netlists are known by their names, and findings of the server come."""
    version = subprocess.run(["nvim", "--version"], capture_output=True, text=True, check=True).stdout
    if tuple(map(int, re.search(r"v(\d+)\.(\d+)", version).groups())) < (0, 11):
        pytest.skip("Neovim is older than 0.11")
    program = tmp_path / "bin" / "buda-emu"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m buda_emu "$@"\n')
    program.chmod(0o755)
    settings = block("Neovim", "lua").replace('"buda-emu", "lsp"', f'"{program}", "lsp"')
    (tmp_path / "init.lua").write_text(settings)
    text = (ROOT / "netlists/matmul.yaml").read_text().replace("type: queue", "type: qeue", 1)
    told = tmp_path / "told.txt"
    (tmp_path / "look.lua").write_text(
        "local wanted = vim.bo.filetype == 'buda'\n"
        "if wanted then vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 100) end\n"
        "local first = vim.diagnostic.get(0)[1]\n"
        f"vim.fn.writefile({{ vim.bo.filetype, first and first.message or '' }}, '{told}')\n"
        "vim.cmd('qa!')\n"
    )
    for name, known in NAMES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        command = ["nvim", "--clean", "--headless", "-u", str(tmp_path / "init.lua"), str(path)]
        subprocess.run(
            [*command, "-c", f"luafile {tmp_path / 'look.lua'}"], capture_output=True, timeout=120, check=True
        )
        kind, message = told.read_text().splitlines()
        assert (kind == "buda") == known, name
        assert ("did you mean 'queue'" in message) == known, name


@pytest.mark.slow
@pytest.mark.skipif(not (EXTENSION / "node_modules").is_dir() or not shutil.which("npm"), reason="`npm ci` was not run")
def test_the_servers_that_the_packed_extension_starts(child_environment, tmp_path):
    done = subprocess.run(
        ["npm", "run", "package"], cwd=EXTENSION, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with ZipFile(EXTENSION / "buda-emu-netlists.vsix") as archive:
        archive.extractall(tmp_path)
    packed = tmp_path / "extension"
    manifest = json.loads((packed / "package.json").read_text())
    code = (packed / manifest["main"]).read_text()
    own = {"@command": manifest["contributes"]["configuration"]["properties"]["buda-emu.command"]["default"]}
    commands = [
        [*own["@command"], *json.loads(f"[{words}]")] for words in re.findall(r"\.\.\.\w+\.args,\s*([^\]]+)\]", code)
    ]
    assert sorted(commands) == [["buda-emu", "debug", "--dap"], ["buda-emu", "lsp"]]
    spoken_with(["buda-emu", "lsp"])
    assert json.loads((packed / "netlist.schema.json").read_text())["$schema"]
    (debugger,) = manifest["contributes"]["debuggers"]
    (first,) = debugger["initialConfigurations"]
    with Process(child_environment) as client:
        client.ask("initialize", adapterID=debugger["type"])
        client.ask("launch", **{**first, "program": TRAINING})
        client.event("initialized")
        client.ask("configurationDone")
        assert client.event("stopped")["reason"] == "entry"
        client.ask("continue")
        client.event("terminated")
