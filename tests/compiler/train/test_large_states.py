"""Parameters, gradients and moments that no grid has room for as one block, in slices of their rows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compilation import Compilation
from buda_emu.compiler.target import L1_RESERVED
from buda_emu.compiler.train import compile_training

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
ROOM = 450 << 10
"""Bytes of L1."""


def of_small_chip(options):
    """On a chip of few cores with little room."""
    own = Compilation.of(options)
    return replace(
        own, device=replace(own.device, arch=replace(own.device.arch, l1_bytes=L1_RESERVED + ROOM, grid=(2, 2)))
    )


class Tied(torch.nn.Module):
    """Its large weight is read as it is and transposed; the small one fits."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.large = torch.nn.Parameter(torch.randn(1024, 1024) / 32)
        self.small = torch.nn.Linear(1024, 32)

    def forward(self, x):
        return self.small(torch.tanh(x @ self.large) @ self.large.T)


@pytest.mark.parametrize(
    ("arch", "effort", "microbatches", "optimizer", "optimizer_df"),
    [
        ("grayskull", "low", 1, "adam", ""),
        ("wormhole_b0", "low", 3, "sgd", ""),
        ("wormhole_b0", "default", 2, "sgd", "Float32"),
    ],
)
def test_steps_are_those_of_torch(monkeypatch, arch, effort, microbatches, optimizer, optimizer_df):
    monkeypatch.setattr(compile_training, "Compilation", SimpleNamespace(of=of_small_chip))
    module = Tied()
    x, y = torch.randn(2, 32 * microbatches, 1024), torch.randn(2, 32 * microbatches, 32)
    training = be.compile_training(
        module, (x[0, :32],), loss="mse", optimizer=optimizer, optimizer_df=optimizer_df, learning_rate=0.01,
        microbatches=microbatches, arch=arch, effort=effort,
    )  # fmt: skip
    tiles, queues = training.placement.tiles, training.placement.queues
    large = [state for state in tiles.states.values() if state.label.startswith(("large", "grad_acc_large"))]
    assert len(large) >= 2
    assert all(state.shape[0] > 1 for state in large)
    summed = next(state for state in large if state.zeros)
    assert queues[summed.queue].entries == 2
    assert not tiles.ops[tiles.stores[summed.queue].op].attrs.get("gradient")
    assert any(op.attrs.get("gradient") for op in tiles.ops.values())
    assert [item for item in training.check(strict=True) if item.severity == "error"] == []
    optimizers = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    follows(training, module, optimizers[optimizer](module.parameters(), lr=0.01), x, y)


def follows(training, module, optimizer, inputs, targets):
    """Each step as torch makes it."""
    for x, y in zip(inputs, targets, strict=True):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(module(x), y)
        loss.backward()
        assert training.train_step(x, y) == pytest.approx(loss.item(), rel=1e-4)
        for name, parameter in module.named_parameters():
            want = parameter.grad.numpy()
            np.testing.assert_allclose(training.gradients()[name], want, atol=2e-4 * np.abs(want).max())
        optimizer.step()
        training.close()  # the next step makes another machine
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(training.parameters()[name], parameter.detach().numpy(), atol=2e-3)


class Turned(torch.nn.Module):
    """The gradient of its weight is the transpose of what an op makes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.weight = torch.nn.Parameter(torch.randn(1024, 1024))

    def forward(self, x):
        return x * torch.tanh(self.weight.T)


def test_what_a_sum_reads_transposed_is_copied_before(monkeypatch):
    monkeypatch.setattr(compile_training, "Compilation", SimpleNamespace(of=of_small_chip))
    module, x, y = Turned(), torch.randn(2, 1024, 1024), torch.randn(2, 1024, 1024)
    training = be.compile_training(module, (x[0],), loss="mse", learning_rate=100.0, arch="grayskull", effort="low")
    tiles = training.placement.tiles
    (store,) = (item for item in tiles.stores.values() if item.accumulate)
    assert [use.source for use in tiles.ops[store.op].uses] == [store.op.removesuffix(".sum"), store.queue]
    assert any(("transpose",) in use.tms for use in tiles.ops[store.op.removesuffix(".sum")].uses)
    assert [item for item in training.check(strict=True) if item.severity == "error"] == []
    follows(training, module, torch.optim.SGD(module.parameters(), lr=100.0), x, y)
