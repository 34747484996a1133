"""A placement becomes a netlist directly: the one that its text is read as."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.emit.netlist import netlist_of
from shared_files import SHARED, needs_corpus

pytest.importorskip("onnx")
MODELS = sorted((SHARED / "compile" / "onnx").glob("*.onnx"))


def assert_text_says_the_same(compiled):
    netlist = netlist_of(compiled.placement, compiled.netlist.path)
    assert netlist.undefined_is_nan == compiled.netlist.undefined_is_nan
    assert replace(netlist, diagnostics=(), sections={}) == replace(compiled.netlist, diagnostics=(), sections={})


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_the_text_is_read_as_the_netlist_that_was_searched_with(path):
    assert_text_says_the_same(be.compile(path, effort="low"))


@needs_corpus
@pytest.mark.parametrize("options", [{"chips": 2}, {"chips": 2, "effort": "low"}, {"df": "Bfp8_b"}], ids=str)
def test_copies_pipelines_and_block_formats_too(options):
    assert_text_says_the_same(be.compile(MODELS[0], **options))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_training_and_its_loops_too():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(40, 50), torch.nn.ReLU(), torch.nn.Linear(50, 10))
    compiled = be.compile_training(module, [torch.ones(4, 40)], loss="mse", optimizer="adam", target=torch.zeros(4, 10))
    assert_text_says_the_same(compiled)


@pytest.mark.parametrize("sizes", [(36, 40), (64, 96)])
def test_places_of_a_single_channel_go_to_the_host_in_few_tiles(sizes):
    """Not each in a row of a tile of its own: the host link is slow."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module, x = torch.nn.Conv2d(32, 1, 1).eval(), torch.randn(1, 32, *sizes)
    compiled = be.compile(module, (x,), board="n150", effort="low")
    (output,) = (queue for queue in compiled.placement.queues.values() if queue.role == "output")
    blocks = output.blocks
    assert blocks.t * prod(blocks.mblock) * prod(blocks.ublock) == -(-sizes[0] // 32) * -(-sizes[1] // 32)
    assert not compiled.check(strict=True)
    assert np.allclose(compiled(x.numpy(), precision="ideal")[0], module(x).detach().numpy(), atol=1e-6)
