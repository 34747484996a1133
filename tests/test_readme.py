"""The README's first screen is true. Its two commands are run by .ci/run as they stand; here is what they end in."""

import shlex
import subprocess
import sys
import tomllib

import pytest

from buda_emu.app.cli.main import main
from documents import marked_blocks, says
from shared_files import ROOT

README = ROOT / "README.md"
COMMANDS = {block.mark: block.text for block in marked_blocks(README)}


def test_there_is_one_command_to_run_and_one_to_test():
    assert set(COMMANDS) == {"command: run", "output", "command: test"}
    for command in (COMMANDS["command: run"], COMMANDS["command: test"]):
        assert len(command.splitlines()) == 1
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_ci_runs_both(root):
    script = (root / ".ci" / "run").read_text()
    assert "run_readme_command run\n" in script
    assert script.rstrip().endswith("run_readme_command test")


def test_the_first_command_prints_attention(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    arguments = shlex.split(COMMANDS["command: run"].rpartition(".venv/bin/buda-emu ")[2])
    assert arguments == ["run", "netlists/attention.yaml"]
    assert main(arguments) == 0
    assert says(COMMANDS["output"], capsys.readouterr().out)


def test_the_library_loop_runs(root, tmp_path, child_environment):
    """The Python block, on a netlist with the queues that it names."""
    text = README.read_text()
    code = text.partition("```python\n")[2].partition("```")[0]
    assert len([line for line in code.splitlines() if line.startswith("    ")]) == 3
    netlist = (root / "netlists/two_chips.yaml").read_text()
    names = {"  x:": "  q_in:", "[x,": "[q_in,", "  out:": "  q_out:", "          x:": "          q_in:"}
    for old, new in names.items():
        netlist = netlist.replace(old, new)
    (tmp_path / "net.yaml").write_text(netlist)
    before = "import numpy as np; array = np.ones((4, 1, 64, 128), np.float32)\n"
    # constants are pushed by whoever uses the netlist; here by a subclass, so that the loop stays as it is printed
    before += (
        "import buda_emu as be\n"
        "class Filled(be.Emulator):\n"
        "    def __init__(self, net):\n"
        "        super().__init__(net)\n"
        "        for q in net.queues.values():\n"
        "            if q.is_ram: self.push(q.name, np.ones((1, *q.blocking.element_shape), np.float32))\n"
        "be.Emulator = Filled\n"
    )
    code = code.replace('{"$p_loop_count": 4}', '{"$p_loop_count": 2}')  # four entries in two microbatches
    command = [sys.executable, "-c", before + code]
    done = subprocess.run(command, cwd=tmp_path, env=child_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[[[[")


@pytest.mark.parametrize("command", ["buda-emu check", "buda-emu run", "buda-emu explain"])
def test_the_commands_it_names_exist(command, capsys):
    assert command in README.read_text()
    with pytest.raises(SystemExit) as leaving:
        main([command.split()[1], "--help"])
    assert leaving.value.code == 0
    capsys.readouterr()


def test_the_version_of_python_is_the_projects():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "Python 3.11 or newer" in README.read_text()
