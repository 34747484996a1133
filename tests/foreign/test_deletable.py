"""Each package of another system's documents can be deleted, with its row among the kinds, and nothing misses it."""

import os
import re
import shutil
import subprocess
import sys

import pytest

ROWS = {"gemini": "SCHEDULE", "vpux": "VPUX", "darwinn": "PACKAGE"}
IMPORT_ALL = """
import importlib, pkgutil, buda_emu
needs = ("from_jax", "dask_plugin", "__main__")
for module in pkgutil.walk_packages(buda_emu.__path__, "buda_emu."):
    if not any(word in module.name for word in needs):
        importlib.import_module(module.name)
"""


def without(system, root, folder):
    """A copy of the project without one package and its row."""
    for name in ("buda_emu", "tests", "netlists", "examples", "schemas", "docs", "tools"):
        shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(root / name, folder / name)
    shutil.rmtree(folder / "buda_emu" / "foreign" / system)
    kinds = folder / "buda_emu" / "app" / "documents" / "kinds.py"
    text = re.sub(rf"^{ROWS[system]} = Kind\(.*?^\)\n", "", kinds.read_text(), flags=re.DOTALL | re.MULTILINE)
    text, count = re.subn(rf"(KINDS: .*)\b{ROWS[system]}(, )?", r"\1", text)
    assert count == 1
    kinds.write_text(text)
    return folder


@pytest.fixture
def run_in(child_environment):
    def run(folder, *arguments):
        environment = {**child_environment, "PYTHONPATH": str(folder)}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize(
    "system", ["gemini", *(pytest.param(name, marks=pytest.mark.slow) for name in ("vpux", "darwinn"))]
)
def test_without_one_of_them_all_else_works(system, root, tmp_path, run_in):
    folder = without(system, root, tmp_path)
    done = run_in(folder, "-W", "error::ImportWarning", "-c", IMPORT_ALL)
    assert done.returncode == 0, done.stderr
    documents = {"gemini": "examples/gemini/halo.json", "vpux": "examples/vpux/clamp.mlir"}
    others = [path for name, path in documents.items() if name != system]
    done = run_in(folder, "-m", "buda_emu", "check", "netlists/matmul.yaml", *others)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_in(folder, "-m", "buda_emu", "--help")
    assert done.returncode == 0
    assert system not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("system", ROWS)
def test_without_one_of_them_the_other_tests_pass(system, root, tmp_path, run_in):
    folder = without(system, root, tmp_path)
    tests = [f"tests/foreign/{name}" for name in ROWS if name != system]
    tests += ["tests/netlist", "tests/support", "tests/performance/timeline", "tests/test_tiny.py"]
    done = run_in(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(os.cpu_count() or 1), *tests)
    assert done.returncode == 0, done.stdout[-4000:]
