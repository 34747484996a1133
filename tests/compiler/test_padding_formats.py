"""Padding that is not 0 must not take the exponent that elements share in a block format (FORMATS 4)."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.spec.formats import FORMATS

torch = pytest.importorskip("torch")

WIDE = {"Bfp8": "Float16", "Bfp8_b": "Float16_b"}
Function = Callable[..., "torch.Tensor"]
"""Of one tensor; all are above 0.05 for numbers from 0.5 to 1.5 and what these give, and none spreads them over more
than two decades, so that no element is small beside its neighbours."""
LARGE: dict[str, Function] = {
    "reciprocal": torch.reciprocal,
    "log": lambda x: torch.log(x + 0.001) + 8,
    "rsqrt": torch.rsqrt,
    "division": lambda x: 1.5 / x,
    "shifted": lambda x: 1 / (x + 1e-6),
    "power": lambda x: x**-2,
    "exp": lambda x: torch.exp(4 - 2 * torch.clamp(x, max=2)),
    "added": lambda x: x + 20,
}
MASKED = {"reciprocal", "rsqrt", "division", "power"}
"""Those of `LARGE` whose results in padding of zeros are masked, by an op that is fused with them."""
HARMLESS: dict[str, Function] = {
    "relu": torch.relu,
    "scaled": lambda x: 0.7 * x,
    "sqrt": torch.sqrt,
    "transposed": lambda x: x.transpose(-1, -2),
    "turned": lambda x: x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]),
    "mean": lambda x: x / x.mean(-1, keepdim=True),
    "rows": lambda x: x / x.mean(-2, keepdim=True),
    "largest": lambda x: x / x.amax(-1, keepdim=True),
    "product": lambda x: x @ x.transpose(-1, -2) / x.shape[-1],
}


class Chain(torch.nn.Module):
    """One function after another."""

    def __init__(self, *functions: Function) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: "torch.Tensor") -> "torch.Tensor":
        for function in self.functions:
            x = function(x)
        return x


def drawn(seed: int) -> tuple[list[str], tuple[int, ...]]:
    """Names of functions, at least one of them large at 0, and a shape."""
    choice = random.Random(seed)
    names = [choice.choice([*LARGE, *HARMLESS]) for _ in range(choice.randint(1, 4))]
    names.insert(choice.randint(0, len(names)), choice.choice([*LARGE]))
    return names, (choice.randint(1, 2), choice.randint(1, 60), choice.choice([1, 5, 17, 20, 33, 50, 70]))


def error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The root of the mean square, relative to what is wanted."""
    return float(np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2)))


def numbers(shape: tuple[int, ...], seed: int = 0) -> "torch.Tensor":
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) + 0.5


def holds_up(seed: int, df: str) -> None:
    """With a block format a drawn chain is nearly as good as in 16 bits, and no element is lost."""
    names, shape = drawn(seed)
    model, x = Chain(*({**LARGE, **HARMLESS}[name] for name in names)), numbers(shape, seed)
    wanted = model(x).numpy()
    assert np.isfinite(wanted).all()
    compiled = {own: be.compile(model, (x,), df=own, effort="low") for own in (df, WIDE[df])}
    for precision in ("format", "device"):
        found, plain = (compiled[own](x.numpy(), precision=precision)[0] for own in (df, WIDE[df]))
        what = f"{names} of {shape} in {df}, {precision}"
        assert error(found, wanted) < 4 * error(plain, wanted) + 0.05, what
        if np.abs(wanted).max() < 64 * np.abs(wanted).min():
            assert (found != 0).all(), what


@pytest.mark.parametrize("seed", range(6))
def test_no_element_is_lost(seed: int) -> None:
    holds_up(seed, "Bfp8_b")


@pytest.mark.slow
@pytest.mark.parametrize("df", WIDE)
@pytest.mark.parametrize("seed", range(100, 150))
def test_no_element_is_lost_in_many_chains(seed: int, df: str) -> None:
    holds_up(seed, df)


@pytest.mark.parametrize("df", WIDE)
@pytest.mark.parametrize("name", sorted(LARGE.keys() - MASKED))
def test_the_report_names_ops_in_16_bits(name: str, df: str) -> None:
    compiled = be.compile(Chain(LARGE[name]), (numbers((1, 8, 20)),), df=df, effort="low")
    ops = [placed.op for placed in compiled.placement.ops.values() if placed.op.mixes_padding]
    assert ops
    for op in ops:
        assert (op.precision.df, op.avoids) == (WIDE[df], df)
        assert f"{op.name}: {WIDE[df]} instead of {df}" in compiled.report()


@pytest.mark.parametrize("df", WIDE)
@pytest.mark.parametrize("name", sorted(MASKED))
def test_masked_results_keep_their_format_and_their_elements(name: str, df: str) -> None:
    x = numbers((1, 8, 20))
    model = Chain(LARGE[name])
    compiled = be.compile(model, (x,), df=df, effort="low")
    assert not any(placed.op.mixes_padding for placed in compiled.placement.ops.values())
    assert error(compiled(x.numpy(), precision="device")[0], model(x).numpy()) < 0.02


@pytest.mark.parametrize("df", [*WIDE, *WIDE.values()])
@pytest.mark.parametrize("shape", [(2, 32, 64), (7, 32), (1, 20, 48), (5, 16)])
@pytest.mark.parametrize("name", ["reciprocal", "added"])
def test_whole_groups_keep_their_format(name: str, shape: tuple[int, ...], df: str) -> None:
    """Rows of padding share no exponent with elements, nor do whole groups of columns."""
    compiled = be.compile(Chain(LARGE[name]), (numbers(shape),), df=df, effort="low")
    assert {placed.op.avoids for placed in compiled.placement.ops.values()} == {""}
    assert "instead of" not in compiled.report()
    formats = {op.out_df for op in compiled.netlist.ops.values() if not op.untilize_output}
    assert formats == {df}


@pytest.mark.parametrize("name", ["relu", "scaled", "sqrt"])
def test_padding_that_stays_0_is_harmless(name: str) -> None:
    model = Chain(HARMLESS[name], lambda x: x + 0, torch.tanh)
    compiled = be.compile(model, (numbers((1, 8, 20)),), df="Bfp8_b", effort="low")
    assert {op.out_df for op in compiled.netlist.ops.values() if not op.untilize_output} == {"Bfp8_b"}


def test_rows_that_become_columns_count() -> None:
    """1/x of 20 rows of 32 columns is harmless until rows and columns are swapped."""
    model = Chain(torch.reciprocal, lambda x: x.transpose(-1, -2), torch.abs)
    x = numbers((1, 20, 32))
    compiled = be.compile(model, (x,), df="Bfp8_b", effort="low", fuse=False)
    formats = {name: op.out_df for name, op in compiled.netlist.ops.items()}
    assert formats["reciprocal"] == "Bfp8_b"
    assert "Float16_b" in [df for name, df in formats.items() if name.startswith("abs")]
    found = compiled(x.numpy(), precision="device")[0]
    assert error(found, model(x).numpy()) < 0.02


@pytest.mark.parametrize("df", ["Bfp8_b", "Float16_b"])
def test_rules_on_formats_do_not_bring_a_block_format_back(df: str) -> None:
    x = numbers((1, 8, 20))
    rules = [{"match": "*", "df": "Bfp8_b"}]
    compiled = be.compile(Chain(LARGE["shifted"]), (x,), df=df, mixed=rules, effort="low")
    names = [name for name, placed in compiled.placement.ops.items() if placed.op.mixes_padding]
    assert names
    for name in names:
        assert FORMATS[compiled.netlist.ops[name].out_df].kind != "block"
    assert error(compiled(x.numpy(), precision="device")[0], (1 / x).numpy()) < 0.02


def test_it_ends_where_the_padding_is_0_again() -> None:
    model = Chain(torch.reciprocal, lambda x: x @ torch.eye(x.shape[-1]) * 0.5, torch.relu)
    compiled = be.compile(model, (numbers((1, 8, 20)),), df="Bfp8_b", effort="low", fuse=False)
    formats = [op.out_df for op in compiled.netlist.ops.values() if not op.untilize_output]
    assert formats[0] == "Float16_b"
    assert set(formats[1:]) == {"Bfp8_b"}


class Attention(torch.nn.Module):
    """Linear attention with the feature map elu + 1."""

    def forward(self, q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor") -> "torch.Tensor":
        q, k = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        return q @ (k.transpose(-1, -2) @ v) / (q @ k.sum(-2, keepdim=True).transpose(-1, -2) + 1e-6)


@pytest.mark.parametrize("precision", ["format", "device"])
@pytest.mark.parametrize("objective", ["throughput", "latency"])
def test_linear_attention(precision: str, objective: str) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(1, 20, 24) for _ in range(3)]
    compiled = be.compile(Attention(), tuple(inputs), df="Bfp8_b", objective=objective, effort="low")
    found = compiled(*(x.numpy() for x in inputs), precision=precision)[0]
    assert error(found, Attention()(*inputs).numpy()) < 0.03


def test_the_numerics_of_a_model_count_elements_alone() -> None:
    """The padding of a softmax over 45 columns is 2^100 on the way, and its reciprocals are right in one column."""
    x = torch.randn(1, 4, 20, 45, generator=torch.Generator().manual_seed(1))
    compiled = be.compile(Chain(lambda x: torch.softmax(x, -1)), (x,), effort="low")
    found = [op for layer in compiled.numerics([x]).layers for op in layer.ops]
    assert len(found) > 4
    for op in found:
        assert op.total.rms is not None
        assert 1e-6 < op.total.rms < 0.02, op.name
        assert op.local is None or op.local.rms is None or op.local.rms < 0.02, op.name


def test_workers_count_elements_alone_too(tmp_path: Path) -> None:
    x = torch.randn(1, 4, 20, 45, generator=torch.Generator().manual_seed(1))
    compiled = be.compile(Chain(lambda x: torch.softmax(x, -1)), (x,), effort="low")
    _, image = compiled.save(tmp_path)
    alone, shared = (be.numerics(image, inputs=[x], workers=count).to_json() for count in (1, 2))
    assert json.dumps(alone) == json.dumps(shared)


@pytest.mark.parametrize("copies", [1, 2])
def test_the_numerics_of_an_image_are_those_of_its_model(copies: int, tmp_path: Path) -> None:
    """The image has the places of the elements, so padding does not count there, either."""
    x = torch.randn(1, 4, 20, 45, generator=torch.Generator().manual_seed(1))
    board = {1: "n150", 2: "n300"}[copies]
    compiled = be.compile(Chain(lambda x: torch.softmax(x, -1)), (x,), effort="low", board=board)
    _, image = compiled.save(tmp_path)
    errors = {op.name: (op.total.rms, op.local) for op in be.numerics(compiled, inputs=[x]).ops}
    for op in be.numerics(image, inputs=[x]).ops:
        name, _, chip = op.name.rpartition(".") if copies == 2 else (op.name, "", "0")
        if chip == "0":
            assert (op.total.rms, op.local) == errors[name], op.name
        else:  # this copy gets other inputs
            assert op.local is None or op.local.rms is None or op.local.rms < 0.02, op.name
