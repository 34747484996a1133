"""Modules and torch.compile. What a model is made of is told apart in test_models.py, without torch."""

import importlib.metadata
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.compiler.compiled import layer_of
from buda_emu.compiler.importers.source import read_model
from buda_emu.compiler.pipeline import Observer

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


class Block(torch.nn.Module):
    """Convolution, norm, pooling, attention and a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 10, 3, 2, 1), torch.nn.BatchNorm2d(10)
        self.table, self.head = torch.nn.Embedding(20, 10), torch.nn.Linear(10, 7)

    def forward(self, image, words):
        x = torch.relu(self.norm(self.conv(image))).flatten(2).transpose(1, 2)
        y = torch.nn.functional.scaled_dot_product_attention(self.table(words), x, x)
        return self.head(y), torch.nn.functional.gelu(y).mean(1)


def built():
    """The module and its inputs."""
    torch.manual_seed(0)
    return Block().eval(), (torch.randn(2, 3, 9, 11), torch.randint(0, 20, (2, 5)))


def test_a_module_gives_what_torch_gives():
    module, inputs = built()
    with torch.no_grad():
        expected = module(*inputs)
    compiled = be.compile(module, inputs)
    assert compiled.check(strict=True) == ()
    for got, want in zip(compiled(*inputs), expected, strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-3, atol=2e-4)


def test_a_pt2_file_is_a_model(tmp_path):
    module, inputs = built()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module, inputs), tmp_path / "block.pt2")
    compiled = be.compile(tmp_path / "block.pt2")
    with torch.no_grad():
        np.testing.assert_allclose(compiled(*inputs)[0], module(*inputs)[0].numpy(), rtol=1e-3, atol=2e-4)


def test_the_backend_is_an_entry_point_that_torch_finds():
    found = {item.name: item for item in importlib.metadata.entry_points(group="torch_dynamo_backends")}
    if "buda" not in found:
        pytest.skip("buda-emu was installed before it had this entry point")
    module, inputs = built()
    with torch.no_grad():
        got = torch.compile(module, backend="buda")(*inputs)
        np.testing.assert_allclose(got[0].numpy(), module(*inputs)[0].numpy(), rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("norm_first", [False, True])
def test_layers_of_transformers_that_torch_fuses_are_taken_apart(norm_first):
    """torch.compile under no_grad hands over one operator for a whole layer, with the mask that torch made of two."""
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(
        24, 4, 40, batch_first=True, norm_first=norm_first, activation="gelu" if norm_first else "relu"
    ).eval()
    x, causal = torch.randn(2, 6, 24), torch.ones(6, 6, dtype=torch.bool).triu(1)
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    seen = []

    def backend(module, inputs):
        seen.extend(str(node.target) for node in module.graph.nodes)
        compiled = be.compile(module, inputs)
        return lambda *given: tuple(torch.from_numpy(item) for item in compiled(*given))

    with torch.no_grad():
        got = torch.compile(lambda x: layer(x, causal, padding), backend=backend)(x)
        np.testing.assert_allclose(got.numpy(), layer(x, causal, padding).numpy(), rtol=1e-3, atol=2e-4)
    assert any("_transformer_encoder_layer_fwd" in target for target in seen)


@pytest.mark.parametrize("mask_type", [None, 0, 1, 2])
def test_attention_that_torch_fuses_is_taken_apart(mask_type):
    """Whatever is not zero in a mask is masked, as torch has it; the weights of all heads, or their mean."""
    torch.manual_seed(2)
    shape = {None: None, 0: (5, 5), 1: (2, 5), 2: (2, 4, 5, 5)}[mask_type]
    mask = None if shape is None else (torch.rand(shape) < 0.4) * -1.5
    if mask is not None:
        mask[..., 0] = 0
    query, key, value = (torch.randn(2, 5, 16) for _ in range(3))
    weights = torch.randn(48, 16) / 4, torch.randn(48), torch.randn(16, 16) / 4, torch.randn(16)
    fused = torch.ops.aten._native_multi_head_attention.default

    class Attention(torch.nn.Module):
        def forward(self, query, key, value):
            every = fused(query, key, value, 16, 4, *weights, mask, True, False, mask_type)
            return *every, fused(query, key, value, 16, 4, *weights, mask, True, True, mask_type)[1]

    inputs = query, key, value
    for got, want in zip(be.compile(Attention(), inputs)(*inputs), Attention()(*inputs), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-3, atol=2e-4)


def test_operators_without_a_handler_are_named_with_the_users_line():
    class Odd(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.det(x)

    with pytest.raises(be.UnsupportedError, match=r"_linalg_det.*test_torch.py"):
        be.compile(Odd(), (torch.randn(2, 8, 8),))


class Small(torch.nn.Module):
    """One function."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, x):
        return self.run(x)


@pytest.mark.parametrize("mode", ["floor", "trunc"])
@pytest.mark.parametrize("divisor", [7.0, -3.0])
def test_quotients_that_are_rounded_are_right_at_multiples(mode, divisor):
    """x times 1 / 7 in Float16_b is a little off: what is left tells."""
    x = torch.arange(-64, 64, dtype=torch.float32).reshape(4, 32)
    module = Small(lambda x: torch.div(x, divisor, rounding_mode=mode))
    for arch in ("grayskull", "wormhole_b0"):
        compiled = be.compile(module, [x], arch=arch, effort="low")
        for precision in ("ideal", "format", "device"):
            np.testing.assert_array_equal(compiled(x, precision=precision)[0], module(x).numpy(), precision)


@pytest.mark.parametrize(
    "run",
    [
        lambda x: torch.fmod(x, 0.7),
        lambda x: x.min(1).values,
        lambda x: x.min(),
        lambda x: torch.special.expm1(x),
        lambda x: torch.log1p(x.abs()),
        lambda x: torch.special.xlogy(x.relu(), x.relu()),
        lambda x: x.unfold(1, 3, 2),
        lambda x: x.norm(dim=2),
        lambda x: torch.linalg.vector_norm(x, 1, dim=(0, 2)),
        lambda x: torch.linalg.vector_norm(x, float("inf"), dim=-1, keepdim=True),
        lambda x: torch.nn.functional.normalize(x, dim=1),
        lambda x: torch.nn.functional.instance_norm(x, weight=torch.arange(1.0, 8), bias=torch.ones(7)),
        lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(7, 7).tril().bool()),
    ],
)
def test_operators_give_what_torch_gives(run):
    torch.manual_seed(1)
    x, module = torch.randn(2, 7, 9), Small(run)
    np.testing.assert_allclose(be.compile(module, (x,))(x)[0], module(x).numpy(), rtol=2e-3, atol=2e-4)


def test_a_module_needs_inputs():
    with pytest.raises(be.HostError, match="needs example inputs"):
        be.compile(built()[0])


def test_layers_are_named_by_their_modules_and_compared_with_torch():
    module, inputs = built()
    compiled = be.compile(module, inputs)
    found = compiled.compare(precision="format")
    assert {"conv", "head", "scaled_dot_product_attention"} & {item.name for item in found.layers}
    named = {layer_of(compiled.graph, compiled.placement, op) for op in compiled.netlist.ops}
    assert {item.name for item in found.layers} <= named
    assert [item.shape for item in found.outputs] == [(2, 5, 7), (2, 10)]
    assert all(item.pcc > 0.999 for item in (*found.outputs, *found.layers))
    assert found.tool.startswith("torch")


@pytest.mark.parametrize("element_type", [torch.bfloat16, torch.float16, torch.float64])
def test_a_module_of_any_element_type_is_compared_on_any_inputs(element_type):
    torch.manual_seed(1)
    module = torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.ReLU()).eval().to(element_type)
    compiled = be.compile(module, (torch.randn(4, 12, dtype=element_type),), effort="low")
    for inputs in (None, [np.linspace(-1, 1, 48, dtype=np.float32).reshape(4, 12)]):
        assert all(output.pcc > 0.999 for output in compiled.compare(inputs).outputs)


def test_a_module_that_is_called_twice_gives_two_layers():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(8, 8)

        def forward(self, x):
            return self.inner(torch.relu(self.inner(x)))

    compiled = be.compile(Twice().eval(), (torch.randn(2, 8),), fuse=False)
    layers = list(dict.fromkeys(layer_of(compiled.graph, compiled.placement, op) for op in compiled.netlist.ops))
    assert layers == ["inner.linear", "relu", "inner.linear_1"]


def test_every_operator_has_one_declaration():
    from buda_emu.compiler.importers.from_torch.declared import ATEN, FAMILIES

    declared = list(ATEN.values())
    assert {op.family for op in declared} == set(FAMILIES)
    assert all(op.becomes and callable(op.handler) for op in declared)
    own = [op.name for op in declared if "." not in op.name]  # others are of libraries, by `library.name`
    places = (torch.ops.aten, torch.ops.higher_order)  # of the latter those that call graphs, as flex_attention
    assert [name for name in own if not any(hasattr(place, name) for place in places)] == []


def test_shapes_that_an_operator_does_not_take_are_a_refusal_with_its_name(monkeypatch):
    """However odd the operands are that torch allows, no stranger's model ends in a traceback."""
    from buda_emu.compiler.importers.from_torch import reader
    from buda_emu.compiler.importers.from_torch.declared import ATEN

    def odd(builder, x):
        return builder.transpose(x, perm=(1, 0))

    monkeypatch.setattr(reader, "ATEN", {**ATEN, "sin": ATEN["sin"]._replace(handler=odd)})
    with pytest.raises(be.UnsupportedError, match=r"sin\.default \(no order of the dimensions of \[3\].*first at"):
        be.compile(Sine(), (torch.ones(3),))


def test_a_refusal_names_the_line_of_the_model_and_not_of_torch():
    class Dropped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))

        def forward(self, x):
            return self.inner(x)

    with pytest.raises(be.UnsupportedError, match=r'native_dropout.*first at File ".*test_torch\.py", line'):
        be.compile(Dropped(), torch.ones(2, 4))


class Sine(torch.nn.Module):
    """One operator."""

    def forward(self, x):
        return torch.sin(x)


class Asserting(torch.nn.Module):
    """Asks its input for what the chip cannot tell while it computes."""

    def forward(self, tokens):
        torch._check(tokens.max().item() <= 9)
        torch._check_tensor_all(tokens <= 9)
        torch._assert_async(tokens.min() >= 0)
        return tokens.float().exp()


def test_what_a_model_asserts_of_its_data_is_left_out():
    tokens = torch.randint(0, 9, (2, 40))
    compiled = be.compile(Asserting(), (tokens,), effort="low")
    assert compiled.check(strict=True) == ()
    np.testing.assert_allclose(compiled(tokens)[0], tokens.float().exp().numpy(), rtol=1e-3)


class FixedNumber(torch.nn.Module):
    """Asserts what a number of its input is, and has shapes by it."""

    def forward(self, x, count):
        number = count.item()
        torch._check(number >= 3)
        torch._check(number <= 3)
        return x[:, :number] * 2


@pytest.mark.parametrize("exported", [False, True])
def test_a_number_of_an_input_that_an_assertion_fixes_is_not_ignored(exported):
    inputs = (torch.randn(3, 4), torch.tensor(3))
    source, examples = FixedNumber(), inputs
    if exported:
        source, examples = torch.export.export(source, inputs), None
    with pytest.raises(be.UnsupportedError, match="_local_scalar_dense"):
        be.compile(source, examples)


class Deciding(torch.nn.Module):
    """Goes one way or the other, as its data says."""

    def forward(self, x):
        if x.numpy().sum() > 0:  # this line
            return x.exp()
        return x


def test_what_torch_cannot_trace_is_refused_with_the_line_of_the_model_and_what_to_do():
    number = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "# this " in text)
    with pytest.raises(be.HostError, match=rf'{Path(__file__).name}", line {number}, in forward: if .*; write it'):
        be.compile(Deciding(), (torch.ones(2, 3),))


def test_a_module_that_asks_its_layers_for_the_type_they_have_is_traced():
    class Router(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.wide = torch.nn.Linear(5, 4), torch.nn.Linear(5, 4)

        def forward(self, x):
            self.layer = self.layer.to(x.dtype).cpu()
            return self.layer(x) + self.wide.float()(x)

    x, module = torch.randn(3, 5), Router().eval()
    before = torch.nn.Module._apply
    with torch.no_grad():
        np.testing.assert_allclose(be.compile(module, (x,))(x)[0], module(x).numpy(), rtol=1e-3, atol=1e-4)
    assert torch.nn.Module._apply is before
    assert module.double().layer.weight.dtype == torch.float64


@pytest.mark.parametrize(("size", "picks"), [(12, 1), (48, 2)])
def test_taps_of_an_image_that_was_scaled_up_are_picked_by_themselves_where_they_are_too_many(size, picks):
    torch.manual_seed(0)
    grown = torch.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
    module = torch.nn.Sequential(torch.nn.Conv2d(16, 8, 3, padding=1), grown, torch.nn.Conv2d(8, 32, 3, padding=1))
    x = torch.randn(1, 16, size, size)
    compiled = be.compile(module.eval(), (x,), arch="grayskull", effort="low")
    assert compiled.check(strict=True) == ()
    assert sum("v_2.conv.pick" in name for name in compiled.netlist.ops) == picks
    with torch.no_grad():
        np.testing.assert_allclose(compiled(x)[0], module(x).numpy(), rtol=1e-3, atol=1e-4)


def test_decisions_by_constants_are_taken_and_others_refused_with_the_line(capfd):
    """What torch cannot trace for a decision is right where what was decided hangs on no input."""

    class Masked(torch.nn.Module):
        def forward(self, x, mask=None):
            mask = torch.ones(4) if mask is None else mask
            if (mask < 0.5).any():
                return x * mask
            return x + int(mask.sum().item())

    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    compiled = be.compile(Masked(), (x,))
    np.testing.assert_allclose(compiled(x)[0], x.numpy() + 4, rtol=1e-6)
    with pytest.raises(be.UnsupportedError, match=r"_local_scalar_dense\.default \(Python decides.*test_torch\.py"):
        be.compile(Masked(), (x, torch.ones(4)))
    with pytest.raises(be.UnsupportedError, match=r"index\.Tensor \(a mask as index: the size of its result depends"):
        be.compile(Chosen(), (x,))
    with pytest.raises(be.UnsupportedError, match=r"nonzero\.default"):
        be.compile(Places(), (x,))
    assert capfd.readouterr().err == ""


def test_every_line_that_decides_by_values_is_named():
    class Twice(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                x = x + 1
            if x.mean() > 2:
                x = x * 2
            return x

    line = Twice.forward.__code__.co_firstlineno
    with pytest.raises(be.UnsupportedError) as caught:
        be.compile(Twice(), (torch.ones(3, 4),))
    places = re.findall(r'(first|then) at File "[^"]*", line (\d+)', str(caught.value))
    assert places == [("first", str(line + 1)), ("then", str(line + 3))]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_modules_of_torchs_own_quantisation_are_refused_with_what_to_do():
    quantised = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(4, 4)), {torch.nn.Linear})
    with pytest.raises(be.HostError, match=r"takes no modules of torch\.ao\.quantization: compile the float module"):
        be.compile(quantised, (torch.ones(2, 4),))


class PaddedConvolution(torch.nn.Module):
    """A convolution whose padding hangs on sizes in buffers, as in codecs of sounds."""

    def __init__(self, width, stride):
        super().__init__()
        self.conv = torch.nn.Conv1d(3, 5, width, stride)
        self.register_buffer("stride", torch.tensor(stride), persistent=False)
        self.register_buffer("width", torch.tensor(width))
        self.register_buffer("total", torch.tensor(width - stride))

    def forward(self, x):
        length = x.shape[-1]
        frames = torch.ceil((length - self.width + self.total) / self.stride + 1).to(torch.int64) - 1
        extra = frames * self.stride + self.width - self.total - length
        if length <= max(self.total, extra):
            x = torch.nn.functional.pad(x, (0, 1))
        return self.conv(torch.nn.functional.pad(x, (self.total, extra)))[..., : self.width]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 22))])
def test_sizes_that_are_computed_from_numbers_in_buffers(seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    stride = int(rng.integers(1, 5))
    module = PaddedConvolution(stride + int(rng.integers(0, 5)), stride).eval()
    x = torch.randn(1, 3, int(rng.integers(3, 40)))
    (output,) = be.compile(module, (x,), effort="low")(x)
    with torch.no_grad():
        assert np.abs(output - module(x).numpy()).max() < 1e-5


class Counter(torch.nn.Module):
    """Decides by a number that it changes itself, in place or by a view of it."""

    def __init__(self, change):
        super().__init__()
        self.change = change
        self.register_buffer("calls", torch.tensor([2]))

    def forward(self, x):
        view = self.calls.view(1)
        if self.change:
            view.add_(1)
        return 2 * x if self.calls > 2 else x


def test_a_number_in_a_buffer_that_each_call_changes_is_no_constant():
    x = torch.ones(1, 4)
    (output,) = be.compile(Counter(False).eval(), (x,), effort="low")(x)
    assert np.array_equal(output, x)
    with pytest.raises(be.BudaError, match=r"changes in place: buffer calls|cannot trace Counter"):
        be.compile(Counter(True).eval(), (x,), effort="low")


class Places(torch.nn.Module):
    """Values decide first whether, then of how many places there is something to say."""

    def forward(self, x):
        if (x > 2).any().item():
            return x
        among = torch.arange((x > 0).long().sum(1).max()) < 2
        return x * among.nonzero(as_tuple=True)[0].sum()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x: x[x.nonzero(as_tuple=True)].sum(), r"nonzero_numpy\.default \(the size .* at File .*test_torch\.py"),
        (torch.relu, r"torch cannot take it apart into its core operators: bound of u1$"),
    ],
)
def test_what_torch_cannot_take_apart_is_refused_by_name(function, said, monkeypatch):
    """As of a Longformer, where torch takes a size that depends on data for one that does not."""

    def fails(*_):
        raise AssertionError("bound of u1\nWhile executing")

    class Whole(torch.nn.Module):
        def forward(self, x):
            return function(x)

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", fails)
    with pytest.raises(be.UnsupportedError, match=said):
        be.compile(Whole(), (torch.ones(2, 3),))


def test_a_unit_matrix_of_any_size_is_a_constant():
    """torch takes it apart into indices of 16 bits without a sign, for which it has no kernels."""

    class Shifted(torch.nn.Module):
        def forward(self, x):
            return x - torch.eye(x.shape[0])

    x = torch.randn(300, 300)
    (found,) = be.compile(Shifted(), (x,), effort="low")(x)
    np.testing.assert_array_equal(found, (x - torch.eye(300)).numpy())


class Chosen(torch.nn.Module):
    """As many values as are above 0."""

    def forward(self, x):
        return x[x > 0]


def test_weights_are_copied_once_and_later_changes_of_them_do_not_count():
    torch.manual_seed(0)
    module, x = torch.nn.Linear(64, 96).eval(), torch.randn(32, 64)
    weights, seen = module.weight.detach().numpy(), []

    def look(_, graph):
        seen.extend(node.value for node in graph if node.op == "constant" and node.value.size == weights.size)

    compiled = be.compile(module, (x,), effort="low", observer=Observer(dump=look))
    assert seen
    assert all(np.shares_memory(item, weights) for item in seen)
    expected = module(x).detach().numpy()
    module.weight.data.zero_()
    assert np.allclose(compiled(x.numpy(), precision="ideal")[0], expected, atol=1e-5)


class Turned(torch.nn.Module):
    """A product by a transposed weight, as some libraries write their linear layers."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 6))

    def forward(self, x):
        return x @ self.weight.T


def test_a_transposed_weight_is_read_without_a_copy():
    module, x = Turned().eval(), torch.randn(2, 6)
    graph = read_model(module, (x,))
    (held,) = (node.value for node in graph if node.op == "constant" and node.shape == (6, 8))
    assert np.shares_memory(held, module.weight.detach().numpy())
    compiled = be.compile(module, (x,), effort="low", df="Float32", fidelity="HiFi4")
    with torch.no_grad():
        np.testing.assert_allclose(compiled(x)[0], module(x).numpy(), atol=1e-5)


@pytest.mark.parametrize("within", [lambda x: (x,), lambda x: [x], lambda x: ([x],)])
def test_masked_example_inputs_are_refused(within):
    module, plain = torch.nn.Linear(3, 4).eval(), np.ones((2, 3), np.float32)
    masked = within(np.ma.masked_array(plain, plain > 0))
    with pytest.raises(be.HostError, match="example inputs: a masked array"):
        be.compile(module, masked)
    with pytest.raises(be.HostError, match="example inputs: a masked array"):
        be.compile_training(module, masked, loss="mse")
    with pytest.raises(be.HostError, match="target: a masked array"):
        be.compile_training(module, (plain,), loss="mse", target=within(np.ma.masked_array(plain))[0])
    with pytest.raises(be.HostError, match="example inputs: a masked array"):
        be.compile_programs({"one": be.Program(module, masked, {})})


class _Changes(torch.nn.Module):
    def __init__(self, change):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))
        self.change = change

    def forward(self, x):
        self.change(self, x)
        return self.linear(x) + self.seen


def test_training_refuses_changes_of_inputs_and_keeps_those_of_buffers():
    def training(change):
        return be.compile_training(_Changes(change), (torch.ones(2, 4),), loss="mse", effort="low")

    for change in (lambda _, x: x.add_(1), lambda _, x: x[0].mul_(2), lambda _, x: x.copy_(x.flip(0))):
        with pytest.raises(be.UnsupportedError, match="_Changes: not supported: each call changes in place: input "):
            training(change)
    counting = training(lambda module, _: module.seen.add_(1))
    assert any(output.state == "seen" for output in counting.graph.outputs)
