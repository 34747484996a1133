"""Values that the backward pass computes again instead of reading them from memory."""

from dataclasses import replace
from math import prod

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compilation import Compilation, CompileOptions
from buda_emu.compiler.graph.builder import Builder
from buda_emu.compiler.graph.graph import FORWARD, Graph, Output
from buda_emu.compiler.graph.spec import CORE, check_graph
from buda_emu.compiler.place.memory import MemoryFullError, buffer_bytes
from buda_emu.compiler.train.activation_memory import AGAIN, Crossing, _estimate_work, between_programs, fit_activations
from buda_emu.spec.archs import DRAM_RESERVED

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


def chain(links=4, wide=1):
    """x -> exp -> exp ... -> y, each `wide` tiles; the backward pass reads all of them."""
    graph = Graph("chain")
    b = Builder(graph, decompose=False)
    x = b.input("x", (32, 32 * wide), "float32")
    state = b.state("p", np.zeros((32, 32 * wide), np.float32))
    values = [x]
    for _ in range(links):
        values.append(b.exp(values[-1]))
    total = state
    for value in reversed(values):
        total = b.multiply(total, value)
    graph.outputs = [
        Output("loss", values[-1].name, "float32"),
        Output("grad_acc_p", total.name, "float32", "bwd_0", "grad_acc_p", accumulate=True),
    ]
    return graph, [value.name for value in values[1:]]


def test_as_little_is_computed_again_as_tiles_allow():
    graph, links = chain()
    crossing = Crossing(graph)
    assert crossing.most() == 4
    assert crossing.within(4) == ()
    for tiles in range(4):
        again = crossing.within(tiles)
        assert len(again) >= 4 - tiles, tiles
        check_graph(crossing.apply(again), CORE, "recompute")
    assert crossing.within(0) == tuple(links)


def test_a_dear_product_is_stored_and_what_follows_from_it_computed_again():
    graph = Graph("product")
    b = Builder(graph, decompose=False)
    x, p = b.input("x", (32, 3200), "float32"), b.state("p", np.zeros((3200, 32), np.float32))
    product = b.matmul(x, p)
    steep = b.exp(product)
    gradient = b.matmul(b.transpose(x, perm=(1, 0)), b.multiply(product, steep))
    graph.outputs = [
        Output("loss", b.multiply(steep, 2.0).name, "float32"),
        Output("grad_acc_p", gradient.name, "float32", "bwd_0", "grad_acc_p", accumulate=True),
    ]
    assert Crossing(graph).within(1) == (steep.name,)


def test_work_is_tiles_through_the_math_unit_and_a_view_nearly_none():
    graph = Graph("work")
    b = Builder(graph, decompose=False)
    x = b.input("x", (2, 33, 96), "float32")
    nodes = [b.exp(x), b.reshape(x, shape=(66, 96)), b.matmul(x, b.constant(np.zeros((96, 40), np.float32)))]
    assert [_estimate_work(graph, node) for node in nodes] == [12.0, 0.01 * 9, 2 * 2 * 2 * 3.0]


def test_copies_stand_where_they_are_read_and_belong_to_the_backward_pass():
    graph, links = chain()
    made = Crossing(graph).apply(tuple(links))
    of = made.programs()
    assert {of[name] for name in links} == {FORWARD}
    assert {of[name + AGAIN] for name in links} == {"bwd_0"}
    assert made[links[0] + AGAIN].inputs == ("x",)
    assert not {name for node in made if of.get(node.name) == "bwd_0" for name in node.inputs} & set(links)
    assert list(made.nodes).index(links[0] + AGAIN) > list(made.nodes).index(links[-1])


def test_a_gradient_that_is_a_value_of_the_forward_pass_is_computed_again_too():
    graph, links = chain(2)
    graph.outputs.append(Output("grad_acc_q", links[0], "float32", "bwd_0", "grad_acc_q", accumulate=True))
    made = Crossing(graph).apply(Crossing(graph).within(0))
    assert made.outputs[-1].value == links[0] + AGAIN
    assert made.outputs[0].value == links[-1]


def test_states_that_the_forward_pass_overwrites_are_stored():
    graph, links = chain(1)
    b = Builder(graph, decompose=False)
    seen = b.state("seen", np.zeros((32, 32), np.float32))
    twice = b.exp(seen)
    graph.outputs[0] = Output("loss", b.add(graph[links[0]], twice).name, "float32")
    back = b.multiply(graph[graph.outputs[1].value], twice)
    graph.outputs[1] = replace(graph.outputs[1], value=back.name)
    kept = b.multiply(seen, 0.5)
    graph.outputs.insert(1, Output("seen", kept.name, "float32", FORWARD, "seen"))
    crossing = Crossing(graph)
    assert links[0] in crossing.within(1)
    made = crossing.apply(crossing.within(0))
    of = made.programs()
    assert {made[name].op for node in made if of.get(node.name) == "bwd_0" for name in node.inputs} >= {"state"}


class Net(torch.nn.Module):
    """Convolutions, a norm that is in training, and a way round."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (torch.nn.Conv2d(n, 4, 3, padding=1) for n in (1, 4))
        self.norm, self.last = torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 3)

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x)))
        return self.last((h + torch.nn.functional.gelu(self.second(h))).mean((2, 3)))


def trained(steps=2, **options):
    """A training with its losses, gradients and state after a few steps in precision ideal."""
    torch.manual_seed(0)
    module, x, y = Net(), torch.randn(6, 1, 6, 6), torch.randint(0, 3, (6,))
    training = be.compile_training(
        module, (x[:2],), loss="cross_entropy", optimizer="adam", microbatches=3, effort="low", **options
    )
    losses = [training.train_step(x, y) for _ in range(steps)]
    return training, losses, {**training.gradients(), **training.state()}


def test_steps_have_the_same_bits_and_less_is_stored():
    plain, losses, state = trained()
    assert plain.stored.again == ()
    assert plain.stored.bytes == sum(between_programs(plain.placement).values())
    limit = plain.stored.bytes / 3 / (1 << 20)
    spared, again, held = trained(activations_mib=limit)
    assert spared.check(strict=True) == ()
    assert spared.stored.bytes <= limit * (1 << 20)
    assert "convolution" in spared.stored.again
    assert losses == again
    for name, array in state.items():
        np.testing.assert_array_equal(array, held[name], err_msg=name)
    assert spared.perf().cycles > plain.perf().cycles
    assert f"computed again: {', '.join(spared.stored.again)}" in spared.report()


@pytest.mark.slow
def test_what_does_not_fit_the_chip_is_computed_again():
    """A chip whose memory is a little too small."""
    from buda_emu.compiler.train.choices import Choices
    from buda_emu.compiler.train.compile_training import training_graph

    torch.manual_seed(0)
    choices = Choices.from_options("cross_entropy", "sgd", None, 0.1, 64)

    def graph():
        return training_graph(Net(), (torch.randn(2, 1, 6, 6),), None, choices)

    compilation = Compilation.of(CompileOptions(effort="low"))
    (_, found, _), stored = fit_activations(compilation, graph(), 64, None)
    assert stored.again == ()
    arch = compilation.device.arch
    queues = [queue for queue in found.queues.values() if queue.loc == "dram"]
    taken = sum(buffer_bytes(found.target, queue) * prod(queue.blocks.grid) for queue in queues)
    small = replace(arch, dram_channel_bytes=DRAM_RESERVED + int(0.8 * taken / arch.dram_channels))
    compilation = replace(compilation, device=replace(compilation.device, arch=small))
    with pytest.raises(MemoryFullError):
        compilation.place(graph(), entries=64)
    _, spared = fit_activations(compilation, graph(), 64, None)
    assert spared.again
    assert spared.bytes < stored.bytes
    none = replace(compilation.device.arch, dram_channel_bytes=DRAM_RESERVED)
    with pytest.raises(be.UnsupportedError, match="is full"):
        fit_activations(replace(compilation, device=replace(compilation.device, arch=none)), graph(), 64, None)


class Remembering(torch.nn.Module):
    """The backward pass reads a buffer that the forward pass changes."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
        self.register_buffer("seen", torch.ones(8))

    def forward(self, x):
        before = self.seen.clone()
        self.seen.copy_(before * 0.5 + x.detach().mean(0))
        return self.layer(x * before) * before


@pytest.mark.parametrize(("mib", "complaint"), [(-1, "activations_mib=-1"), (1e-9, "at least .* have to be stored")])
def test_limits_that_make_no_sense_are_refused(mib, complaint):
    with pytest.raises(be.HostError, match=complaint):
        be.compile_training(Remembering(), (torch.randn(4, 8),), loss="mse", activations_mib=mib)
