"""Elements without a result, which a model leaves out, stop no run of a compiled netlist."""

import random
from pathlib import Path

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.compiler.compile import compile_from, compile_until
from buda_emu.compiler.compiled import CompiledModel
from buda_emu.compiler.ir.text import write_ir
from buda_emu.support.errors import ProgramError

torch = pytest.importorskip("torch")

FUNCTIONS = {
    "sqrt": torch.sqrt,
    "log": torch.log,
    "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "power": lambda x: x**1.5,
    "inverse power": lambda x: x**-0.5,
    "root of a logarithm": lambda x: torch.sqrt(torch.log(x + 1)),
    "inverse of a logarithm": lambda x: 1 / (torch.log(x) + 3),
    "entropy": lambda x: x * torch.log(x),
    "acosh": lambda x: torch.acosh(1 + x),
}
GUARDS = {
    "where": lambda f, x, c: torch.where(x > 0.15, f(x), c),
    "the other side": lambda f, x, c: torch.where(x <= 0.15, torch.full_like(x, c), f(x)),
    "masked_fill": lambda f, x, c: f(x).masked_fill(x < 0.15, c),
    "a value": lambda f, x, c: torch.where(x > 0.15, f(x) - c, 2 * x),
    "twice": lambda f, x, c: torch.where(x > 0.15, f(x), torch.where(x < -0.15, f(-x), c)),
    "then a product": lambda f, x, c: torch.where(x > 0.15, f(x), c) @ torch.eye(x.shape[-1]),
    "then a sum": lambda f, x, c: torch.where(x > 0.15, f(x), c).sum(-1),
    "read twice": lambda f, x, c: (
        lambda y: torch.where(x > 0.15, y, c) + torch.where(x > 0.5, 2 * y, x).sum(-1, True)
    )(f(x)),
}
SECTION = "buda-emu:\n  undefined: nan\n"
NEAR = {"ideal": 1e-3, "format": 0.06, "device": 0.12}


class Guarded(torch.nn.Module):
    def __init__(self, function: str, guard: str, other: float = -1.0) -> None:
        super().__init__()
        self.parts = FUNCTIONS[function], GUARDS[guard], other

    def forward(self, x: "torch.Tensor") -> "torch.Tensor":
        function, guard, other = self.parts
        return guard(function, x, other)


def is_as_in_torch(seed: int) -> None:
    """A drawn guarded expression, in each precision."""
    choice = random.Random(seed)
    model = Guarded(choice.choice([*FUNCTIONS]), choice.choice([*GUARDS]), choice.choice([-1.0, 0.0, 2.5]))
    x = (
        4 * torch.rand(2, choice.randint(1, 40), choice.randint(1, 40), generator=torch.Generator().manual_seed(seed))
        - 2
    )
    for edge in (0.15, 0.5, -0.15):  # rounding must not choose another side
        x[(x - edge).abs() < 0.05] = 1.0
    x[..., 0] = choice.choice([0.0, -3.0, -1e-40])
    wanted = model(x).numpy()
    assert np.isfinite(wanted).all()
    df = choice.choice(["Float32", "Float16_b", "Float16"])
    compiled = be.compile(model, (x,), df=df, effort="low")
    for precision, near in NEAR.items():
        found = compiled(x.numpy(), precision=precision)[0]
        assert np.isfinite(found).all(), (df, precision)
        assert np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2)) < near, (df, precision)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_not_selected_does_not_count(seed: int) -> None:
    is_as_in_torch(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_what_is_not_selected_does_not_count_in_many_models(seed: int) -> None:
    is_as_in_torch(seed)


@pytest.mark.parametrize("precision", ["ideal", "format"])
@pytest.mark.parametrize("fuse", [True, False])
def test_what_is_shown_is_not_a_number(precision: str, fuse: bool) -> None:
    x = torch.tensor([[-4.0, 4.0]])
    compiled = be.compile(Guarded("sqrt", "a value", 0.0), (x,), fuse=fuse)
    assert compiled(x.numpy(), precision=precision)[0].tolist()[0][0] == -8
    shown = be.compile(_Root(), (x,), fuse=fuse)(x.numpy(), precision=precision)[0]
    assert np.isnan(shown[0, 0])
    assert abs(shown[0, 1] - 2) < 0.01


def test_the_chip_has_its_own_result() -> None:
    """Which a model leaves out as well."""
    x = torch.tensor([[-4.0, 4.0]])
    assert be.compile(_Root(), (x,))(x.numpy(), precision="device")[0][0, 0] == np.inf


class _Root(torch.nn.Module):
    def forward(self, x: "torch.Tensor") -> "torch.Tensor":
        return torch.sqrt(x)


def test_a_saved_model_says_so(tmp_path: Path) -> None:
    x = torch.tensor([[-4.0, 4.0]])
    compiled = be.compile(Guarded("sqrt", "where"), (x,))
    assert compiled.check(strict=True) == ()
    text, image = compiled.save(tmp_path)
    assert text.read_text().endswith(SECTION)
    np.savez(tmp_path / "x.npz", x=x.numpy())
    loaded = be.load_image(image)
    for precision in NEAR:
        report = run_netlist(loaded.for_inputs, image=loaded, inputs=tmp_path / "x.npz", precision=precision)
        (found,) = report.arrays.values()
        assert np.allclose(found.ravel(), [-1, 2], atol=0.01)
    assert be.load(text).undefined_is_nan


@pytest.mark.parametrize("section", ["", "buda-emu: {undefined: stop}\n", "buda-emu:\n"])
@pytest.mark.parametrize("fuse", [True, False])
def test_without_the_section_a_run_stops_as_the_reference_does(section: str, fuse: bool, tmp_path: Path) -> None:
    model = torch.nn.Sequential(_Root(), torch.nn.ReLU(), _Root())
    compiled = be.compile(model, (torch.tensor([[-4.0, 4.0]]),), fuse=fuse)
    text, _ = compiled.save(tmp_path)
    run_netlist(be.load(text), inputs=_negative(compiled, tmp_path), precision="ideal")
    text.write_text(text.read_text().removesuffix(SECTION) + section)
    with pytest.raises(ProgramError, match="sqrt of NaN or of a negative number"):
        run_netlist(be.load(text), inputs=_negative(compiled, tmp_path), precision="ideal")


def _negative(compiled: CompiledModel, folder: Path) -> Path:
    """Numbers below 0 for the input's queue, whatever its shape."""
    (queue,) = (queue for queue in compiled.netlist.queues.values() if queue.host_fed and queue.type == "queue")
    held = np.full((queue.entries, *queue.blocking.element_shape), -4.0, np.float32)
    np.savez(folder / "x.npz", **{queue.name: held})
    return folder / "x.npz"


def test_the_ir_keeps_it(tmp_path: Path) -> None:
    x = torch.tensor([[-4.0, 4.0]])
    text, _ = write_ir(tmp_path, "model", compile_until(Guarded("sqrt", "where"), (x,), stop_after="lower"))
    assert compile_from(text).text == be.compile(Guarded("sqrt", "where"), (x,)).text


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.softmax(x, -1),
        lambda x: torch.nn.functional.layer_norm(x, (x.shape[-1],)),
        lambda x: torch.sqrt(x * x + 1e-6),
        lambda x: torch.nn.functional.normalize(x, dim=-1),
        torch.sigmoid,
        torch.log,
    ],
)
def test_netlists_that_always_have_a_result_say_nothing(function) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: "torch.Tensor") -> "torch.Tensor":
            return function(x)

    compiled = be.compile(Model(), (torch.rand(1, 8, 20),), effort="low")
    assert "undefined:" not in compiled.text.split("programs:")[1]


def test_comparisons_with_nan_are_what_the_page_says():
    """`>=`, `<=`, `==` and `!=` as torch has them; what stands for `>` on the page is false, too."""

    class Compares(torch.nn.Module):
        def forward(self, x, y):
            x = torch.sqrt(x)
            return (x >= y).float(), (x <= y).float(), (x == y).float(), (x != y).float(), ((x >= y) & (x != y)).float()

    module, x, y = Compares(), torch.tensor([[-1.0, 4.0, 1.0, 0.25]]), torch.ones(1, 4)
    for ours, theirs in zip(be.compile(module, (x, y), effort="low")(x, y), module(x, y), strict=True):
        assert ours.tolist() == theirs.tolist()
