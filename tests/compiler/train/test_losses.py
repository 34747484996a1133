"""Losses and layers whose gradients torch does not take apart by itself, losses of several targets, and models that
decide by values."""

import numpy as np
import pytest

import buda_emu as be

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
functional = torch.nn.functional


def follows(module, training, loss, x, target):
    """A step of SGD with a rate of 0.1 as torch makes it."""
    expected = loss(module(x), target)
    expected.backward()
    assert training.train_step(x, target) == pytest.approx(expected.item(), rel=1e-4)
    found, kept = training.gradients(), training.parameters()
    for name, parameter in module.named_parameters():
        want = parameter.grad.numpy()
        np.testing.assert_allclose(found[name], want, rtol=1e-3, atol=1e-4 * np.abs(want).max(), err_msg=name)
        after = (parameter - 0.1 * parameter.grad).detach().numpy()
        np.testing.assert_allclose(kept[name], after, rtol=1e-3, atol=1e-4, err_msg=name)


def divergence(output, target):
    """Of probabilities."""
    return functional.kl_div(torch.log_softmax(output, -1), target, reduction="batchmean")


@pytest.mark.parametrize(
    "loss", [divergence, lambda y, t: (y - t).max(), lambda y, t: torch.linalg.vector_norm(y - t, float("inf"))]
)
def test_losses_of_torch_that_test_for_nan(loss):
    """And probabilities of 0."""
    module, x = torch.nn.Linear(10, 8), torch.randn(5, 10)
    target = torch.softmax(torch.randn(5, 8), -1) * (torch.arange(8) > 2)
    training = be.compile_training(module, (x,), loss=loss, target=target, learning_rate=0.1, effort="low")
    assert training.check(strict=True) == ()
    follows(module, training, loss, x, target)


def test_a_module_that_tests_for_nan_is_trained_as_in_torch():
    class Filled(torch.nn.Linear):
        def forward(self, x):
            return super().forward(torch.where(torch.isnan(x), 0.0, x))

    module, x, target = Filled(4, 4), torch.randn(3, 4), torch.randn(3, 4)
    training = be.compile_training(module, (x,), loss="mse", learning_rate=0.1, effort="low")
    follows(module, training, functional.mse_loss, x, target)


@pytest.mark.parametrize("dim", [0, 1])
def test_weights_of_a_length_of_their_own(dim):
    inner = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(12, 9), dim=dim)
    module, x, target = torch.nn.Sequential(inner, torch.nn.Tanh()), torch.randn(5, 12), torch.randn(5, 9)
    training = be.compile_training(module, (x,), loss="mse", learning_rate=0.1, effort="low")
    follows(module, training, functional.mse_loss, x, target)


def test_means_of_parts_of_a_video():
    module = torch.nn.Sequential(torch.nn.Conv3d(1, 3, 2), torch.nn.AvgPool3d(2, 1, 1, count_include_pad=False))
    x, target = torch.randn(2, 1, 4, 5, 4), torch.randn(2, 3, 4, 5, 4)
    training = be.compile_training(module, (x,), loss="mse", learning_rate=0.1, effort="low")
    follows(module, training, functional.mse_loss, x, target)


class Heads(torch.nn.Module):
    """Two outputs."""

    def __init__(self):
        super().__init__()
        self.words, self.numbers = torch.nn.Linear(6, 5), torch.nn.Linear(6, 2)

    def forward(self, x):
        return self.words(x), self.numbers(x)


def of_both(outputs, targets):
    """Of words and numbers."""
    return functional.cross_entropy(outputs[0], targets[0]) + functional.mse_loss(outputs[1], targets[1])


def test_a_loss_of_several_targets():
    module, x, targets = Heads(), torch.randn(8, 6), (torch.randint(0, 5, (8,)), torch.randn(8, 2))
    words = {"loss": of_both, "learning_rate": 0.1, "microbatches": 2, "effort": "low"}
    training = be.compile_training(module, (x[:4],), target=tuple(item[:4] for item in targets), **words)
    follows(module, training, of_both, x, targets)
    with pytest.raises(be.HostError, match="1 target, the loss takes 2"):
        training.train_step(x, targets[:1])
    with pytest.raises(be.HostError, match="2 inputs, the module takes 1: x"):
        training.train_step((x, x), targets)


class Decoder(torch.nn.Module):
    """One layer, which looks whether its mask is causal."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.TransformerDecoderLayer(16, 2, 24, 0.0, batch_first=True)
        self.register_buffer("mask", torch.full((5, 5), -1e9).triu(1))

    def forward(self, x, y):
        return self.layer(x, y, tgt_mask=self.mask)


def test_a_training_decides_by_constants_and_is_refused_where_it_decides_by_inputs(capfd):
    module, x, target = Decoder(), (torch.randn(2, 5, 16), torch.randn(2, 4, 16)), torch.randn(2, 5, 16)
    training = be.compile_training(module, x, loss="mse", learning_rate=0.1, effort="low")
    assert capfd.readouterr().err == ""
    loss = functional.mse_loss(module(*x), target)
    loss.backward()
    assert training.train_step(x, target) == pytest.approx(loss.item(), rel=1e-4)
    want = module.layer.linear1.weight.grad.numpy()
    np.testing.assert_allclose(training.gradients()["layer.linear1.weight"], want, rtol=1e-3, atol=1e-5)

    class Gated(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) if x.sum() > 0 else x

    with pytest.raises(be.UnsupportedError, match=r"Python decides by values of inputs: use torch\.where"):
        be.compile_training(Gated(4, 4), (torch.ones(3, 4),), loss="mse")
