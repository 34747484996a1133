"""Convolutions whose input the host lays out: the same values, fewer taps, and an image that says how."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import buda_emu as be
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import Graph, Output
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.parted import evaluate
from buda_emu.compiler.passes import host_windows as room
from buda_emu.compiler.pipeline import DEFAULT, core_graph
from buda_emu.compiler.target import Target
from buda_emu.emulator.image.host_plan import Windows
from buda_emu.emulator.image.model_io import KEY, ModelInput, ModelIo
from buda_emu.emulator.image.rules import Place
from buda_emu.support.errors import HostError

torch = pytest.importorskip("torch")
AT = Place("image.tti", "device.json", (KEY,))
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def conv_graph(shape, kernel, strides, pads, cout=32):
    graph = Graph()
    b = Builder(graph)
    rng = np.random.default_rng(0)
    x = b.input("x", shape, "float32")
    w = b.constant(rng.standard_normal((cout, shape[1], *kernel)).astype(np.float32))
    y = b.conv(x, w, strides=strides, pads=pads, dilations=(1,) * len(kernel))
    bias = b.constant(rng.standard_normal((cout, *(1,) * len(kernel))).astype(np.float32))
    y = b.relu(b.add(y, bias))
    graph.outputs.append(Output("y", y.name, "float32"))
    return graph


def value(graph, x):
    return evaluate(graph, {"x": x})[graph.outputs[0].value]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_division_is_the_same_convolution(data):
    """Whatever windows are taken: cheap or not."""
    rank = data.draw(st.integers(1, 2))
    kernel = tuple(data.draw(st.integers(1, 5)) for _ in range(rank))
    strides = tuple(data.draw(st.integers(1, 3)) for _ in range(rank))
    pads = tuple((data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in range(rank))
    space = tuple(k + data.draw(st.integers(0, 6)) for k in kernel)
    graph = conv_graph((2, 3, *space), kernel, strides, pads)
    _, chain, conv, perm = room.only_conv(graph, graph.users(), set(), graph.inputs[0])
    assert (conv.op, chain) == ("conv", [])
    cut = data.draw(st.sampled_from(list(room.cuts(graph, conv))))
    nodes = room.with_windows(graph, dict(graph.nodes), graph[graph.inputs[0]], conv, perm, cut)
    found = Graph(graph.name, nodes, graph.inputs, graph.outputs)
    x = np.random.default_rng(1).standard_normal((2, 3, *space)).astype(np.float32)
    np.testing.assert_allclose(value(found, x), value(graph, x), atol=1e-5)


def test_windows_that_others_undercut_are_not_offered():
    """By the rates of the chip: a host link as quick as nothing else makes all taps cheap."""
    graph = conv_graph((1, 3, 64, 64), (7, 7), (2, 2), ((3, 3), (3, 3)), cout=64)
    (conv,) = (node for node in graph if node.op == "conv")
    for arch, df in (("wormhole_b0", "Float16_b"), ("grayskull", "Bfp8_b")):
        found = room.offer_cuts(graph, conv, Target.from_names(arch, df, "LoFi"))
        assert 1 < len(found) <= room.OFFERS
        assert all(cut is not None for cut in found)  # 49 taps of three channels are never the quickest
        assert len(room.host_windows(graph, Target.from_names(arch, df, "LoFi"))) == len(found)


def test_a_first_convolution_of_one_tap_is_left_to_the_device():
    graph = conv_graph((1, 64, 32, 32), (1, 1), (1, 1), ((0, 0), (0, 0)))
    first, *_ = room.host_windows(graph, Target.from_names("wormhole_b0", "Bfp8_b", "LoFi"))
    assert first.nodes == graph.nodes


def stem(kernel, stride, pad, last=False):
    torch.manual_seed(0)

    class Stem(torch.nn.Module):
        """A first layer; `last`: of an image whose channels come last."""

        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 8, kernel, stride, pad)

        def forward(self, x):
            return torch.relu(self.conv(x.permute(0, 3, 1, 2) if last else x))

    return Stem().eval()


@pytest.mark.parametrize(("kernel", "stride", "pad", "last"), [(7, 2, 3, False), (3, 1, 1, True), (8, 8, 0, False)])
def test_a_first_convolution_is_torch_s_with_few_taps(kernel, stride, pad, last):
    module, shape = stem(kernel, stride, pad, last), (1, 64, 64, 3) if last else (1, 3, 64, 64)
    x = torch.randn(shape)
    compiled = be.compile(module, (x,), df="Float32", fidelity="HiFi4", microbatch=1)
    assert compiled.check() == ()
    with torch.no_grad():
        wanted = module(x).numpy()
    (found,) = compiled(x)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    io = ModelIo.from_json(json.loads(json.dumps(compiled.io.as_json())), AT)
    assert io == compiled.io
    assert (io.inputs[0].shape, io.inputs[0].windows is None) == (shape, False)
    (queue,) = io.queues({"x": x.numpy()}).values()
    np.testing.assert_array_equal(queue, next(iter(compiled.io.queues({"x": x.numpy()}).values())))


def test_an_input_with_another_reader_stays_as_it_is():
    class Both(torch.nn.Module):
        """The input is read twice."""

        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 3, 3, 1, 1)

        def forward(self, x):
            return self.conv(x) + x

    compiled = be.compile(Both().eval(), (torch.randn(1, 3, 32, 32),), effort="low")
    assert compiled.io.inputs[0].windows is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ([[0, 1, 2], [1], [1], [0]], "windows: .* is not a list of 5"),
        ([[0, 1, 2], [1], [1], [0], ["4"]], "windows/4/0: '4' is not an integer"),
        ([[0, 1, 1], [1], [1], [0], [4]], "windows/0: .* is not an order of 3 dimensions"),
        ([[0, 1, 2], [1], [0], [0], [4]], "windows/2: .* is not strides of 1 and more"),
        ([[0, 1, 2], [1], [1], [0], [4, 4]], "windows/4: .* is not counts of 1 dimensions of space"),
    ],
)
def test_windows_that_are_none(fields, said):
    """An image may hold anything."""
    entry = ModelInput(
        "q", "x", (1, 2, 4), "float32", (1, 4, 2), (1, 32, 32), windows=Windows((0, 1, 2), (1,), (1,), (0,), (4,))
    )
    held = ModelIo(("x",), (entry,), ()).as_json()
    held = json.loads(json.dumps(held))
    assert ModelIo.from_json(held, AT).inputs[0] == entry
    held["inputs"][0]["windows"] = fields
    with pytest.raises(HostError, match=said):
        ModelIo.from_json(held, AT)


def test_a_sum_over_places_of_windows_moves_no_channels_by_a_matrix():
    """Windows of 4 x 4 places put 16 times the channels side by side: the sum over one dimension of space leaves the
    other one where it need not be times all of them."""
    graph = conv_graph((1, 3, 32, 32), (3, 3), (1, 1), ((1, 1), (1, 1)))
    b = Builder(graph)
    mean = b.reduce_mean(graph[graph.outputs[0].value], axes=[3])
    graph.outputs[0] = Output("y", mean.name, "float32")
    _, _, conv, perm = room.only_conv(graph, graph.users(), set(), graph.inputs[0])
    cut = next(cut for cut in room.cuts(graph, conv) if cut.phases == (4, 4) and cut.taps == (1, 1))
    nodes = room.with_windows(graph, dict(graph.nodes), graph[graph.inputs[0]], conv, perm, cut)
    found = lower(core_graph(Graph(graph.name, nodes, graph.inputs, graph.outputs)), DEFAULT)
    matrices = [item.shape for item in found.constants.values() if item.kind == "picker" and item.name.endswith("ones")]
    assert not [shape for shape in matrices if shape[2] > 4], matrices
