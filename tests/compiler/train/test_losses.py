"""Losses and layers whose gradients torch does not take apart by itself, losses of several targets, and models that
decide by values."""

import json

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.image.model_io import KEY, ModelIo
from buda_emu.emulator.image.rules import Place

torch = pytest.importorskip("torch")

from buda_emu.compiler.train.choices import Choices  # noqa: E402
from buda_emu.compiler.train.compile_training import joint_graph  # noqa: E402

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
    with pytest.raises(
        be.HostError, match=r"input x: shape \[4, 6\], a step takes \[8, 6\], 2 microbatches of \[4, 6\]"
    ):
        training.train_step(x[:4], targets)
    with pytest.raises(be.HostError, match=r"shape \[4\], a step takes \[8\], 2 microbatches of \[4\]"):
        training.train_step(x, (targets[0][:4], targets[1]))
    assert "steps/s" in repr(training.perf())
    assert "cycles for 1 step" in repr(training.perf())


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


def test_labels_that_do_not_exist_are_refused_and_change_nothing():
    """Of any element type, among good ones, and by an image, too; the label that the loss ignores is taken."""
    module = torch.nn.Linear(6, 5)
    x, y = torch.randn(8, 6), torch.arange(8) % 5
    training = be.compile_training(module, (x,), loss="cross_entropy", effort="low")
    before = training.parameters()
    one_bad = torch.where(torch.arange(8) == 3, 5, y)
    for wrong, index in ((y + 9, 9), (y - 7, -7), (one_bad, 5), (one_bad.double(), 5), (one_bad.int(), 5)):
        says = f"input target: index {index}: the model takes indices from 0 to 4, and -100 for none"
        for take in (lambda target=wrong: training.train_step(x, target), lambda target=wrong: training.io.queues(
            {"input": x.numpy(), "target": target.numpy()}
        )):  # fmt: skip
            with pytest.raises(be.HostError, match=f"^{says}$"):
                take()
    assert training.step == 0
    after = training.parameters()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    read = ModelIo.from_json(json.loads(json.dumps(training.io.as_json())), Place("a.tti", "device.json", (KEY,)))
    assert read == training.io
    ignored = torch.where(torch.arange(8) == 3, -100, y)
    expected = functional.cross_entropy(module(x), ignored)
    assert training.train_step(x, ignored) == pytest.approx(expected.item(), rel=1e-4)


@pytest.mark.parametrize(
    ("loss", "target", "expected"),
    [
        (lambda output, t: functional.cross_entropy(output, t, ignore_index=7), torch.arange(8) % 5, (5, 7, 8)),
        (lambda output, t: functional.cross_entropy(output, t, ignore_index=2), torch.arange(8) % 5, (5, None, 8)),
        (lambda output, t: functional.nll_loss(output, t, torch.arange(5.0)), torch.arange(8) % 5, (5, -100, 8)),
        (
            lambda output, t: functional.cross_entropy(output, t, torch.ones(5), label_smoothing=0.1),
            torch.arange(8) % 5,
            (5, -100, 8),
        ),
        (lambda output, t: functional.cross_entropy(output[1:], t[1:]), torch.arange(8) % 5, (5, -100, 7)),
        (lambda output, t: functional.cross_entropy(output, t.long()), torch.arange(8.0) % 5, (5, -100, 8)),
        (
            lambda output, t: (output * functional.one_hot(t.flatten(), 5)).sum(),
            torch.arange(8)[:, None] % 5,
            (5, None, 8),
        ),
    ],
    ids=["ignored", "ignored within", "weights", "smoothing", "a part", "floats", "one-hot"],
)
def test_the_host_knows_the_labels_of_each_loss(loss, target, expected):
    """How many there are, which is ignored, and how many elements of the target are labels."""
    choices = Choices.from_options(loss, "sgd", None, 0.1, 1, "", target)
    graph = joint_graph(torch.nn.Linear(6, 5), (torch.randn(8, 6),), target, choices)
    (found,) = graph[graph.inputs[1]].attrs["ranges"]
    assert (found.rows, found.zero, len(found.elements) or 8) == expected


def test_a_target_that_is_no_label_is_not_checked():
    choices = Choices.from_options("mse", "sgd", None, 0.1, 1)
    graph = joint_graph(torch.nn.Linear(6, 5), (torch.randn(8, 6),), None, choices)
    assert all("ranges" not in graph[name].attrs for name in graph.inputs)


def test_what_a_module_or_its_loss_cannot_take_is_said_in_the_words_of_torch():
    module = torch.nn.Linear(6, 5)
    with pytest.raises(be.HostError, match=r"Linear cannot run with these inputs, in torch itself either: .*shapes"):
        be.compile_training(module, (torch.randn(8, 7),), loss="mse")
    with pytest.raises(be.HostError, match=r"Linear with its loss cannot run with these inputs, .*: .*shapes"):
        be.compile_training(module, (torch.randn(8, 6),), loss=lambda a, b: (a @ b).sum(), target=torch.ones(3, 3))
