"""`pip install buda-emu` without extras brings what run, check, test and perf need."""

import re
import subprocess
import sys
import tomllib

import pytest

from shared_files import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BASE = {re.match(r"[\w-]+", line)[0] for line in PROJECT["dependencies"]}
MODULES = {"pyyaml": "yaml"}
"""Packages whose module has another name."""
SCRIPT = """
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

class OnlyBase:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is None and name not in sys.stdlib_module_names and name not in {allowed!r}:
            return None
        return PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [BuiltinImporter, FrozenImporter, OnlyBase]
from buda_emu.app.cli.main import main
sys.exit(main({words!r}))
"""


def run_verb(words, environment, cwd):
    allowed = sorted({MODULES.get(name, name) for name in BASE} | {"buda_emu"})
    script = SCRIPT.format(allowed=allowed, words=words)
    return subprocess.run([sys.executable, "-c", script], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("words", [["check"], ["run"], ["test", "-n", "1"], ["perf"]], ids=lambda words: words[0])
def test_a_verb_of_the_base_needs_no_other_package(words, child_environment, tmp_path):
    done = run_verb([*words, str(ROOT / "netlists" / "matmul.yaml")], child_environment, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["completion", "bash"], "completion"),
        (["lsp"], "editor"),
        pytest.param(["compile", "m.onnx"], "onnx", marks=pytest.mark.slow),
    ],
)
def test_what_needs_an_extra_names_it(words, extra, child_environment, tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"")
    done = run_verb(words, child_environment, tmp_path)
    assert done.returncode == 2
    assert f"pip install 'buda-emu[{extra}]'" in done.stderr


def test_the_base_has_no_package_that_only_an_extra_needs():
    assert {"networkx", "shtab", "onnx", "torch", "pygls"}.isdisjoint(BASE)
