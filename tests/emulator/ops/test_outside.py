"""An op type that another package declares (examples/softsign) goes through check, run and perf as any other."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from outside_package import environment_with

PROGRAM = """
import sys
import numpy as np
import buda_emu as be

path = sys.argv[1]
checked = be.check(path)
assert checked.netlist is not None, checked.diagnostics
x = np.linspace(-3, 3, 2 * 32 * 64, dtype=np.float32).reshape(2, 1, 32, 64)
emulator = be.Emulator(checked.netlist, precision="ideal")
emulator.push("x", x)
emulator.run("once")
assert np.array_equal(emulator.pop("y", 2).reshape(x.shape), x / (1 + np.abs(x)))
print(be.perf(path).op_rows)
"""


@pytest.fixture
def environment(tmp_path: Path, root: Path, child_environment: Mapping[str, str]) -> dict[str, str]:
    """Of processes that find the package of the example as an installed one is found: by its entry points."""
    return environment_with(root / "examples" / "softsign", tmp_path, child_environment)


def python(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


def test_an_op_type_of_another_package_is_checked_run_and_timed(environment: dict[str, str], root: Path) -> None:
    done = python(environment, "-c", PROGRAM, str(root / "examples" / "softsign" / "softsign.yaml"))
    assert done.returncode == 0, done.stderr
    assert "estimated from wormhole_b0 reciprocal" in done.stdout


PLUGIN = """
from buda_emu.spec.ops import OP_TYPES


def pytest_configure(config):
    assert OP_TYPES.find("softsign")  # from now on one of all op types
"""


def test_the_tests_of_all_op_types_cover_one_of_another_package(
    environment: dict[str, str], root: Path, tmp_path: Path
) -> None:
    """A new op type needs its declaration and its behaviour, and no word in any test."""
    (tmp_path / "with_softsign.py").write_text(PLUGIN, encoding="utf-8")
    files = ["tests/spec", *(f"tests/emulator/ops/test_{name}.py" for name in ("kernel_equals_reference", "formats"))]
    words = "softsign or every_op or test_ops or test_tables or test_attributes"
    plugins = ["-p", "no:cacheprovider", "-p", "with_softsign"]
    done = python(environment, "-m", "pytest", "-v", *plugins, *(str(root / file) for file in files), "-k", words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    for id in ("[softsign-in place]", "[softsign-broadcast 0]", "[softsign-Bfp8_b-Float16-c]", "test_ops.py"):
        assert id in done.stdout, id


def test_without_the_package_the_word_is_unknown_whatever_was_kept(environment: dict[str, str], root: Path) -> None:
    netlist = str(root / "examples" / "softsign" / "softsign.yaml")
    assert python(environment, "-m", "buda_emu", "check", netlist).returncode == 0
    without = {**environment, "PYTHONPATH": str(root)}
    refused = python(without, "-m", "buda_emu", "check", netlist)
    assert refused.returncode != 0
    assert "V051" in refused.stdout + refused.stderr


def test_the_check_of_another_package_s_op_needs_no_numpy(environment: dict[str, str], root: Path) -> None:
    netlist = str(root / "examples" / "softsign" / "softsign.yaml")
    program = "import sys, buda_emu; assert buda_emu.check(sys.argv[1]).netlist; assert 'numpy' not in sys.modules"
    done = python(environment, "-c", program, netlist)
    assert done.returncode == 0, done.stderr
