"""A fault made in the debugger does what the campaign says."""

import shlex
import subprocess
import sys

import numpy as np
import pytest

from buda_emu.app.cli.main import main
from buda_emu.support.errors import HostError
from buda_emu.testing.injection.corrupt import spoils
from example_netlists import DIRECTORY
from faults_bench import bench

ATTENTION = str(DIRECTORY / "attention.yaml")


@pytest.mark.parametrize("number", [10, 4, 3])
def test_the_script_makes_the_same_outputs(tmp_path, number):
    """An entry of the host, one that an op filled, a result of an op."""
    command = [sys.executable, "-m", "buda_emu"]
    places = ["--place", "dram,l1"]
    subprocess.run([*command, "faults", ATTENTION, *places, "--replay", str(number), "-o", str(tmp_path)], check=True)
    script = str(tmp_path / f"fault-{number}.txt")
    asked = [f"mean(out[{slot}])" for slot in range(4)]
    told = subprocess.run(
        [
            *command,
            "debug",
            ATTENTION,
            "-x",
            script,
            "--batch",
            "-q",
            "-e",
            "continue",
            *(word for name in asked for word in ("-e", f"print {name}")),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    values = [float(told[told.index(f"(buda) print {name}") + 1]) for name in asked]
    found = bench("attention", places=("dram", "l1"))
    fault = found.fault(number)
    changed, _ = found.trace.propagate(spoils(fault, found.trace, 0))
    nodes = [found.trace.outputs()["out", slot] for slot in range(4)]
    expected = [float(np.mean(changed.get(node, found.trace.nodes[node].value), dtype=np.float64)) for node in nodes]
    clean = [float(np.mean(found.trace.nodes[node].value, dtype=np.float64)) for node in nodes]
    assert values == pytest.approx(expected, rel=6e-6)
    assert values != pytest.approx(clean, rel=6e-6)


def test_the_command_names_the_parameters_that_are_taken(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    netlist = "the net.yaml"
    (tmp_path / netlist).write_bytes((DIRECTORY / "attention.yaml").read_bytes())
    (tmp_path / "buda-emu.toml").write_text('[faults]\nparam = ["elsewhere=2", "p_loop_count=4"]\n')
    words = ["--place", "dram,l1", "--replay", "10", "-o", "out"]
    parameters = ["--param", "p_loop_count=3", "--param", "p_loop_count=2"]
    assert main(["faults", netlist, *words, *parameters, "--program", "run_fwd"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "in the debugger: " in line)
    _, *command = shlex.split(line.partition("in the debugger: ")[2])
    options = ["--precision", "format", "--param", "p_loop_count=2", "--program", "run_fwd", "-x", "out/fault-10.txt"]
    assert command == ["debug", netlist, *options]
    assert main([*command, "--batch", "-q", "-e", "continue"]) == 0


def test_what_the_debugger_cannot_make_is_said():
    found = bench("attention", places=("operand",))
    with pytest.raises(HostError, match="one value for all that read it"):
        found.in_debugger(0)
