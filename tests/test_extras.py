"""The extras of the package hold what the code and its tests import."""

import re
import sys
import tomllib

import pytest

import buda_emu as be
from shared_files import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
NAMES = {"ai_edge_litert": "ai-edge-litert", "cyclonedx_py": "cyclonedx-bom", "pytest_lsp": "pytest-lsp"}
HERE = {*sys.stdlib_module_names}
"""The library."""
BESIDE = {"jax", "flax", "tensorflow", "tf2onnx", "transformers"}
"""Too large for `dev`: their tests are run where somebody has them (docs/contributing.md)."""


def packages(extra):
    """Of an extra, and of those that it names."""
    found = set()
    for line in EXTRAS[extra]:
        inner = re.match(r"buda-emu\[(.*)\]$", line)
        if inner:
            found |= {name for other in inner[1].split(",") for name in packages(other)}
        else:
            found.add(re.match(r"[\w-]+", line)[0])
    return found


def test_whatever_tests_are_skipped_without_is_in_dev():
    texts = [path.read_text() for path in sorted((ROOT / "tests").rglob("*.py"))]
    wanted = {name.partition(".")[0] for text in texts for name in re.findall(r'importorskip\("([\w.]+)"', text)}
    assert {"onnx", "torch"} <= wanted
    assert {NAMES.get(name, name) for name in wanted - HERE - BESIDE} <= packages("dev")


def test_extras_that_messages_name_are_there():
    named = {
        name
        for path in sorted((ROOT / "buda_emu").rglob("*.py"))
        for name in re.findall(r"pip install '?\"?buda-emu\[(\w+)\]", path.read_text())
    }
    assert {"compare", "dask", "darwinn", "debug"} <= named <= EXTRAS.keys()


def test_compare_brings_what_runs_the_model():
    assert {"onnx", "onnxruntime"} <= packages("compare")


@pytest.mark.parametrize(("package", "file"), [("onnx", "m.onnx"), ("torch", "m.pt2")])
def test_a_model_whose_package_is_not_installed(package, file, monkeypatch):
    monkeypatch.setattr("buda_emu.compiler.importers.source.find_spec", lambda _: None)
    with pytest.raises(be.HostError, match=rf"{file} needs the package {package}: pip install 'buda-emu\[{package}\]'"):
        be.compile(file)
