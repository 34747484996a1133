"""A placement becomes a netlist directly: the one that its text is read as."""

from dataclasses import replace

import pytest

import buda_emu as be
from buda_emu.compiler.emit.netlist import netlist_of
from shared_files import SHARED

pytest.importorskip("onnx")
MODELS = sorted((SHARED / "compile" / "onnx").glob("*.onnx"))


def assert_text_says_the_same(compiled):
    netlist = netlist_of(compiled.placement, compiled.netlist.path)
    assert replace(netlist, diagnostics=()) == replace(compiled.netlist, diagnostics=())


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_the_text_is_read_as_the_netlist_that_was_searched_with(path):
    assert_text_says_the_same(be.compile(path, effort="low"))


@pytest.mark.parametrize("options", [{"chips": 2}, {"chips": 2, "effort": "low"}, {"df": "Bfp8_b"}], ids=str)
def test_copies_pipelines_and_block_formats_too(options):
    assert_text_says_the_same(be.compile(MODELS[0], **options))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_training_and_its_loops_too():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(40, 50), torch.nn.ReLU(), torch.nn.Linear(50, 10))
    compiled = be.compile_training(module, [torch.ones(4, 40)], loss="mse", optimizer="adam", target=torch.zeros(4, 10))
    assert_text_says_the_same(compiled)
