"""Trainings against torch's own steps."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import buda_emu as be

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def net():
    """Two layers of odd sizes."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(40, 33), torch.nn.Tanh(), torch.nn.Linear(33, 7))


def batches(count, rows=8):
    """Inputs and targets."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((count, rows, 40), (count, rows, 7))
    return [torch.randn(shape, generator=generator) for shape in shapes]


def follows(training, module, optimizer, steps, loss=torch.nn.functional.mse_loss):
    """Each step as torch makes it: losses within 0.1 %, gradients and parameters close."""
    for x, y in steps:
        optimizer.zero_grad()
        expected = loss(module(x), y)
        expected.backward()
        assert training.train_step(x, y) == pytest.approx(expected.item(), rel=1e-3)
        found = training.gradients()
        for name, parameter in module.named_parameters():
            want = parameter.grad.numpy()
            np.testing.assert_allclose(found[name], want, rtol=2e-3, atol=2e-4 * np.abs(want).max())
        optimizer.step()
    found = training.parameters()
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(found[name], parameter.detach().numpy(), rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("name", "options", "own"),
    [
        ("sgd", {"momentum": 0.9, "weight_decay": 0.01}, {"momentum": 0.9, "weight_decay": 0.01}),
        ("adam", {"beta1": 0.8, "weight_decay": 0.1}, {"betas": (0.8, 0.999), "weight_decay": 0.1}),
        ("adamw", {}, {}),
    ],
)
def test_steps_are_those_of_torch(name, options, own):
    module = net()
    x, y = batches(4)
    training = be.compile_training(
        module, (x[0],), loss="mse", optimizer=name, learning_rate=0.05, optimizer_options=options
    )
    assert training.check(strict=True) == ()
    follows(training, module, OPTIMIZERS[name](module.parameters(), lr=0.05, **own), zip(x, y, strict=True))


def test_float32_copies_take_steps_that_the_format_cannot_hold():
    """Of 1e-4 a step, which 8 bits of mantissa lose beside weights of 0.1."""
    x, y = batches(12)
    module = net()
    first = {name: item.detach().numpy().copy() for name, item in module.named_parameters()}
    both = {
        df: be.compile_training(
            module, (x[0],), loss="mse", optimizer="adam", learning_rate=1e-4, optimizer_df=df, effort="low"
        )
        for df in ("", "Float32")
    }
    assert both["Float32"].check(strict=True) == ()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4)
    for a, b in zip(x, y, strict=True):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(module(a), b).backward()
        optimizer.step()
        for training in both.values():
            training.train_step(a, b, precision="device")
    alike = {}
    for df, training in both.items():
        found = training.parameters()
        alike[df] = min(
            np.corrcoef((found[name] - first[name]).ravel(), (item.detach().numpy() - first[name]).ravel())[0, 1]
            for name, item in module.named_parameters()
        )
    assert alike["Float32"] > 0.85 > 0.7 > alike[""]
    wide = both["Float32"]
    weight = wide.parameters()["0.weight"]
    assert (weight != wide.state()["0.weight"]).any()  # which the model reads
    wide.load_into(module)
    np.testing.assert_array_equal(module[0].weight.detach().numpy(), weight)
    wide.set_parameters({"0.weight": first["0.weight"]})
    np.testing.assert_array_equal(wide.parameters()["0.weight"], first["0.weight"])
    np.testing.assert_allclose(wide.state()["0.weight"], first["0.weight"], rtol=2**-7)


@pytest.mark.parametrize("options", [{"df": "Float16"}, {"arch": "grayskull"}, {"optimizer_df": "Bfp8_b"}])
def test_float32_copies_stand_beside_some_formats_only(options):
    with pytest.raises(be.HostError, match="optimizer_df"):
        be.compile_training(net(), (batches(1)[0][0],), loss="mse", **{"optimizer_df": "Float32", **options})


@pytest.mark.parametrize(("options", "expected"), [
    ({}, "Float32"), ({"acc_df": "Float16_b"}, "Float16_b"), ({"df": "Float16"}, "Float16"),
    ({"arch": "grayskull"}, "Float16_b"),
])  # fmt: skip
def test_a_training_sums_in_float32_where_the_chip_can(options, expected):
    training = be.compile_training(net(), (batches(1)[0][0],), loss="mse", **options, effort="low")
    assert {op.acc_df for op in training.netlist.ops.values()} == {expected}


def test_gradients_on_the_chip_do_not_drift_with_its_exponential():
    """Of a bias after cross_entropy: shares that do not add up to 1 would leave a part in it that is the same for all
    classes."""
    torch.manual_seed(0)
    module, x, y = torch.nn.Linear(40, 7), torch.randn(32, 40), torch.randint(0, 7, (32,))
    training = be.compile_training(module, (x,), loss="cross_entropy", df="Float32", chip_softmax=True, effort="low")
    training.train_step(x, y, precision="device")
    torch.nn.functional.cross_entropy(module(x), y).backward()
    found, expected = training.gradients()["bias"], module.bias.grad.numpy()
    assert abs(found.sum()) < 0.01 * np.abs(expected).sum()
    assert np.linalg.norm(found - expected) < 0.01 * np.linalg.norm(expected)


def test_microbatches_are_one_step_and_a_schedule_gives_the_rate():
    module = net()
    x, y = batches(3, 24)
    training = be.compile_training(
        module, (x[0][:8],), loss="mse", microbatches=3, learning_rate=lambda step: 0.1 / (step + 1)
    )
    assert training.check(strict=True) == ()
    assert (training.placement.microbatch, training.placement.rounds) == (3, 1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(3):
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        follows(training, module, optimizer, [(x[step], y[step])])
    assert training.perf().cycles > 0


def test_the_search_takes_microbatches_through_an_epoch_together_and_changes_no_bit():
    x, y = batches(3, 24)
    first, found = (
        be.compile_training(net(), (x[0][:8],), loss="mse", optimizer="adam", microbatches=3, effort=effort)
        for effort in ("low", "default")
    )
    assert found.check(strict=True) == ()
    assert (first.placement.microbatch, first.placement.rounds) == (1, 3)
    assert (found.placement.microbatch, found.placement.rounds) == (3, 1)
    assert {found.placement.count(program) for program in ("fwd_0", "bwd_0")} == {3}
    assert found.placement.count("opt_0") == 1
    assert found.perf().inputs_per_second > 1.3 * first.perf().inputs_per_second
    assert "a step of 3 inputs takes" in found.report()
    for a, b in zip(x, y, strict=True):
        assert first.train_step(a, b) == found.train_step(a, b)
    for name, array in first.state().items():
        np.testing.assert_array_equal(array, found.state()[name])


def test_a_forward_pass_that_writes_a_state_takes_one_microbatch_after_the_other():
    torch.manual_seed(0)
    module, x, y = Remembering(), torch.randn(4, 8), torch.randn(4, 8)
    first, found = (
        be.compile_training(module, (x[:2],), loss="mse", microbatches=2, effort=effort)
        for effort in ("low", "default")
    )
    assert (found.placement.microbatch, found.placement.rounds) == (1, 2)
    assert found.perf().cycles <= first.perf().cycles
    assert first.train_step(x, y) == found.train_step(x, y)


def test_a_snapshot_is_resumed_with_the_same_bits(tmp_path):
    x, y = batches(4)

    def made():
        return be.compile_training(net(), (x[0],), loss="mse", optimizer="adam", learning_rate=0.05)

    first, second = made(), made()
    for number in range(2):
        first.train_step(x[number], y[number], precision="device")
    first.snapshot(tmp_path / "half")
    losses = [first.train_step(x[number], y[number], precision="device") for number in (2, 3)]
    second.resume(tmp_path / "half")
    assert second.step == 2
    assert losses == [second.train_step(x[number], y[number], precision="device") for number in (2, 3)]
    for name, array in first.state().items():
        np.testing.assert_array_equal(array, second.state()[name])


def test_a_damaged_snapshot_is_refused(tmp_path):
    x, y = batches(1)
    training = be.compile_training(net(), (x[0],), loss="mse", effort="low")
    with pytest.raises(be.HostError, match="no step has been made"):
        training.snapshot(tmp_path / "none")
    with zipfile.ZipFile(tmp_path / "odd", "w") as archive:
        archive.writestr("training.json", json.dumps({"schema_version": 1}))
    for name in ("odd", "missing"):
        with pytest.raises(be.HostError, match="is not a snapshot of a training"):
            training.resume(tmp_path / name)
    training.train_step(x[0], y[0])


def test_parameters_go_to_the_module_and_back():
    x, y = batches(1)
    module = net()
    training = be.compile_training(module, (x[0],), loss="mse", learning_rate=0.1, effort="low")
    training.train_step(x[0], y[0])
    changed = training.parameters()
    training.close()
    training.load_into(module)
    np.testing.assert_array_equal(changed["0.weight"], module[0].weight.detach().numpy())
    training.set_parameters({"0.bias": np.zeros(33)})
    assert not training.parameters()["0.bias"].any()
    with pytest.raises(be.HostError, match=r"0\.bias"):
        training.set_parameters({"0.bias": np.zeros(34)})
    with pytest.raises(be.HostError, match="no parameter"):
        training.load_into(torch.nn.Linear(40, 7))
    with pytest.raises(be.HostError, match="train_step"):
        training(x[0], y[0])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"loss": "l7"}, "loss 'l7' is not one of: mse, cross_entropy"),
        ({"loss": "mse", "optimizer": "lamb"}, "optimizer 'lamb' is not one of: sgd"),
        ({"loss": "mse", "optimizer_options": {"beta": 1}}, "sgd has no option beta"),
        ({"loss": "mse", "microbatches": 0}, "microbatches=0"),
        ({"loss": "mse", "microbatches": 2.5}, "microbatches=2.5, which is not an integer"),
        ({"loss": "mse", "learning_rate": "1"}, "learning_rate '1'"),
        ({"loss": lambda output, target: (output - target).sum()}, "give target="),
    ],
)
def test_wrong_words_are_refused(options, complaint):
    with pytest.raises(be.HostError, match=complaint):
        be.compile_training(net(), (batches(1)[0][0],), **options)


class Residual(torch.nn.Module):
    """Two convolutions with norms, around which the input goes."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.groups = torch.nn.BatchNorm2d(channels), torch.nn.GroupNorm(2, channels)

    def forward(self, x):
        return torch.relu(x + self.groups(self.second(torch.relu(self.norm(self.first(x))))))


class Words(torch.nn.Module):
    """Attention over embedded words, then scores for the next one."""

    def __init__(self):
        super().__init__()
        self.table, self.norm = torch.nn.Embedding(19, 16), torch.nn.LayerNorm(16)
        self.qkv, self.head = torch.nn.Linear(16, 48), torch.nn.Linear(16, 19)

    def forward(self, words):
        q, k, v = self.qkv(self.norm(self.table(words))).split(16, 2)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(torch.nn.functional.silu(mixed)).transpose(1, 2)


def pooled():
    """Convolutions with stride and bias, and pooling."""
    parts = [
        torch.nn.Conv2d(1, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 6, 3, stride=2),
        torch.nn.Tanh(),
        torch.nn.AvgPool2d(2, 1, 1),
        torch.nn.Flatten(),
        torch.nn.Linear(24, 7),
    ]
    return torch.nn.Sequential(*parts)


def residual():
    """Norms that are in training, and a mean over all pixels."""
    parts = [torch.nn.Conv2d(1, 4, 3, padding=1), Residual(4), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
    return torch.nn.Sequential(*parts, torch.nn.Linear(4, 7))


@pytest.mark.parametrize(("make", "shape"), [(pooled, (3, 1, 8, 8)), (residual, (3, 1, 6, 6)), (Words, (2, 9))])
def test_backward_passes_of_layers_are_those_of_torch(make, shape):
    torch.manual_seed(3)
    module = make()
    x = torch.randint(0, 19, (2, *shape)) if make is Words else torch.randn(2, *shape)
    y = torch.randint(0, 19, (2, *shape)) if make is Words else torch.randint(0, 7, (2, shape[0]))
    training = be.compile_training(module, (x[0],), loss="cross_entropy", learning_rate=0.1, effort="low")
    assert training.check(strict=True) == ()
    loss = torch.nn.functional.cross_entropy
    follows(training, module, torch.optim.SGD(module.parameters(), lr=0.1), zip(x, y, strict=True), loss)
    kept = training.state()
    for name, buffer in module.named_buffers():
        np.testing.assert_allclose(kept[name], buffer.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
    own = make()
    training.load_into(own)
    for name, buffer in own.named_buffers():
        np.testing.assert_array_equal(kept[name], buffer.numpy(), err_msg=name)


def test_kernels_of_whole_tiles_are_kept_as_products_read_them():
    """Windows and kernel meet tap by tap, in the pass back as well, so no op moves a kernel's elements."""
    torch.manual_seed(5)
    layers = torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.Conv2d(32, 32, 2, stride=2)
    module, x, y = torch.nn.Sequential(*layers), torch.randn(2, 1, 32, 4, 4), torch.randn(2, 1, 32, 2, 2)
    training = be.compile_training(module, (x[0],), loss="mse", learning_rate=0.1, effort="low")
    assert training.check(strict=True) == ()
    tiles = training.placement.tiles
    state = tiles.state("0.weight")
    assert state is not None
    assert state.shape == (9, 1, 1)
    movers = [op for op in tiles.ops.values() if op.attrs.get("identity")]
    assert movers
    assert not any(use.source in tiles.states for op in movers for use in op.uses)
    follows(training, module, torch.optim.SGD(module.parameters(), lr=0.1), zip(x, y, strict=True))


def test_a_kernel_of_patches_has_a_gradient_that_cores_share_out():
    """In slices along t, as 768 of a tile each, its sum would lie in one core, which has no room for them."""
    torch.manual_seed(6)
    module, x, y = torch.nn.Conv2d(3, 256, 32, stride=32), torch.randn(1, 1, 3, 32, 64), torch.randn(1, 1, 256, 1, 2)
    training = be.compile_training(module, (x[0],), loss="mse", learning_rate=0.1, effort="low", arch="grayskull")
    assert training.check(strict=True) == ()
    state = training.placement.tiles.state("weight")
    assert state is not None
    assert state.shape == (1, 96, 8)
    follows(training, module, torch.optim.SGD(module.parameters(), lr=0.1), zip(x, y, strict=True))


class Tied(torch.nn.Module):
    """One table to read words and to score them, a layer that nothing reads, and one whose result is detached."""

    def __init__(self):
        super().__init__()
        self.table, self.head = torch.nn.Embedding(19, 16), torch.nn.Linear(16, 19, bias=False)
        self.head.weight = self.table.weight
        self.unused, self.apart = torch.nn.Linear(3, 3), torch.nn.Linear(16, 16)

    def forward(self, words):
        x = torch.tanh(self.table(words))
        return self.head(x + self.apart(x).detach())


def test_a_tied_parameter_has_one_gradient_and_others_none():
    torch.manual_seed(3)
    module = Tied()
    x, y = torch.randint(0, 19, (2, 2, 5)), torch.randn(2, 2, 5, 19)
    training = be.compile_training(module, (x[0],), loss="mse", learning_rate=0.5, effort="low")
    assert set(training.gradients()) == {"table.weight"}
    optimizer = torch.optim.SGD([module.table.weight], lr=0.5)
    for step in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(module(x[step]), y[step])
        loss.backward()
        assert training.train_step(x[step], y[step]) == pytest.approx(loss.item(), rel=1e-4)
        np.testing.assert_allclose(training.gradients()["table.weight"], module.table.weight.grad, atol=1e-6)
        optimizer.step()
    with torch.no_grad():
        module.table.weight.zero_()
    training.load_into(module)
    np.testing.assert_array_equal(training.parameters()["table.weight"], module.head.weight.detach().numpy())


class Scaled(torch.nn.Module):
    """Its only parameters are a number and a row."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift = torch.nn.Parameter(torch.tensor(0.5)), torch.nn.Parameter(torch.zeros(3))

    def forward(self, x):
        return x * self.scale + self.shift


def test_a_number_is_a_parameter():
    module = Scaled()
    x, y = torch.randn(3, 40, 3), torch.randn(3, 40, 3)
    training = be.compile_training(module, (x[0],), loss="mse", optimizer="adam", learning_rate=0.1, effort="low")
    follows(training, module, torch.optim.Adam(module.parameters(), lr=0.1), zip(x, y, strict=True))


class Remembering(torch.nn.Module):
    """Scales its input by what it saw before, which the backward pass reads when the forward pass overwrote it."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
        self.register_buffer("seen", torch.full((8,), 0.5))

    def forward(self, x):
        before = self.seen.clone()
        self.seen.copy_(before * 0.5 + x.detach().mean(0))
        return self.layer(x * before) * before


@pytest.mark.parametrize("microbatches", [1, 3])
def test_a_backward_pass_reads_states_as_its_forward_pass_found_them(microbatches):
    torch.manual_seed(0)
    module = Remembering()
    x, y = torch.randn(2, 6, 8), torch.randn(2, 6, 8)
    training = be.compile_training(
        module,
        (x[0][: 6 // microbatches],),
        loss="mse",
        microbatches=microbatches,
        learning_rate=0.1,
        effort="low",
    )
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(2):
        found = training.train_step(x[step], y[step])
        optimizer.zero_grad()
        total = 0.0
        for some, wanted in zip(x[step].chunk(microbatches), y[step].chunk(microbatches), strict=True):
            loss = torch.nn.functional.mse_loss(module(some), wanted) / microbatches
            loss.backward()
            total += loss.item()
        assert found == pytest.approx(total, rel=1e-5)
        for name, parameter in module.named_parameters():
            np.testing.assert_allclose(training.gradients()[name], parameter.grad.numpy(), rtol=1e-4, atol=1e-6)
        optimizer.step()
    np.testing.assert_allclose(training.state()["seen"], module.seen.numpy(), rtol=1e-5)


def transposed():
    """Transposed convolutions with stride, padding and groups, and padding at the end."""
    nn = torch.nn
    return nn.Sequential(
        nn.ConvTranspose2d(2, 4, 2, stride=2, groups=2),
        nn.Tanh(),
        nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1, dilation=2, bias=False),
    )


def resized():
    """Pixels repeated, interpolated, and averaged over unequal parts."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(2, 3, 1),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(3, 3, 1),
        nn.Upsample(size=(7, 5), mode="bilinear"),
        nn.AdaptiveAvgPool2d(3),
    )


def averaged():
    """Windows of several sizes: at the end, and where padding does not count; and a divisor of its own."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(2, 3, 1),
        nn.AvgPool2d(2, 2, ceil_mode=True),
        nn.Upsample(size=(7, 5)),
        nn.Conv2d(3, 3, 1),
        nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        nn.Conv2d(3, 2, 1),
        nn.AvgPool2d(2, 1, divisor_override=3),
    )


@pytest.mark.parametrize("make", [transposed, resized, averaged])
def test_backward_passes_of_images_that_grow_are_those_of_torch(make):
    torch.manual_seed(3)
    module = make()
    x = torch.randn(2, 2, 2, 4, 3)
    with torch.no_grad():
        y = torch.randn(2, *module(x[0]).shape)
    training = be.compile_training(module, (x[0],), loss="mse", learning_rate=0.1, effort="low")
    assert training.check(strict=True) == ()
    follows(training, module, torch.optim.SGD(module.parameters(), lr=0.1), zip(x, y, strict=True))


def test_dropout_that_is_on_is_refused():
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    with pytest.raises(be.UnsupportedError, match=r"dropout.*random: call eval\(\)"):
        be.compile_training(module, (torch.ones(2, 4),), loss="mse", effort="low")
    assert be.compile_training(module.eval(), (torch.ones(2, 4),), loss="mse", effort="low").check(strict=True) == ()


def test_an_optimizer_may_take_several_epochs():
    torch.manual_seed(5)
    layers = [torch.nn.Linear(70, 70) for _ in range(4)]
    x, y = torch.randn(2, 4, 70), torch.randn(2, 4, 70)
    module = torch.nn.Sequential(*layers)
    training = be.compile_training(
        module, (x[0],), loss="mse", optimizer="adam", learning_rate=0.01, microbatches=2, fuse=False, effort="low"
    )
    assert len(training.placement.programs["opt_0"]) > 1
    assert training.check(strict=True) == ()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    both = (x.reshape(8, 70), y.reshape(8, 70))
    follows(training, module, optimizer, [both] * 2)
    assert training.perf().cycles > 0


def test_a_constant_that_readers_cut_differently_is_pushed_to_each_of_its_queues():
    x, _ = batches(1)
    training = be.compile_training(net(), (x[0],), loss="mse", effort="low")
    constants = [queue for queue in training.placement.queues.values() if queue.role == "constant"]
    again = replace(constants[0], name=f"{constants[0].name}.cut1")
    training.placement.queues[again.name] = again
    found = dict(training.tensors())
    np.testing.assert_array_equal(found[again.name], found[constants[0].name])


@pytest.mark.parametrize("arch", ["grayskull", "wormhole_b0"])
def test_a_parameter_that_l1_has_room_for_once_is_written_from_a_single_buffer(arch):
    torch.manual_seed(6)
    module, x, y = torch.nn.Linear(1024, 8192, bias=False), torch.randn(8, 1024), torch.randn(8, 8192)
    training = be.compile_training(module, (x,), loss="mse", arch=arch, df="Float32", learning_rate=0.5, effort="low")
    written = {item.op for item in training.placement.tiles.stores.values() if not item.accumulate}
    assert [training.placement.ops[name].blocks.buf_size_mb for name in written] == [1]
    assert training.check(strict=True) == ()
    follows(training, module, torch.optim.SGD(module.parameters(), lr=0.5), [(x, y)])


def test_an_optimizer_that_has_no_room_as_one_op_is_taken_apart():
    torch.manual_seed(7)
    module, x, y = torch.nn.Linear(784, 8192, bias=False), torch.randn(8, 784), torch.randn(8, 8192)
    words = {"loss": "mse", "optimizer": "adam", "arch": "grayskull", "learning_rate": 0.01, "effort": "low"}
    training = be.compile_training(module, (x,), **words)
    ops = {name: placed.op for name, placed in training.placement.ops.items() if placed.op.program == "opt_0"}
    (last,) = (
        item.op for item in training.placement.tiles.stores.values() if item.op.startswith("optimizer.weight.subtract")
    )
    assert ops[last].type != "fused_op"
    assert any(op.type == "fused_op" for op in ops.values())
    assert training.check(strict=True) == ()
    follows(training, module, torch.optim.Adam(module.parameters(), lr=0.01), [(x, y)])
