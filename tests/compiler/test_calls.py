"""Calls of compiled and loaded models after a call that failed, and from several threads at once."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.runtime.emulator import Emulator

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
ROWS = 2
SHAPE = (ROWS, 3)


class Line(torch.nn.Module):
    """Two inputs, so that one of them can be pushed without the other."""

    def forward(self, x, y):
        return x * 2 + y


class Table(torch.nn.Module):
    """A table that refuses some of its inputs by their values."""

    def forward(self, index, x):
        return torch.nn.functional.embedding(index, torch.arange(12.0).reshape(4, 3)) + x


class Sum(torch.nn.Module):
    """A cache, the sum of all inputs."""

    def forward(self, x, seen):
        return x + seen, x + seen


def numbers(value):
    """Return an input whose elements are all one number."""
    return np.full(SHAPE, value, np.float32)


def line():
    return be.compile(Line(), (torch.ones(SHAPE), torch.ones(SHAPE)), effort="low")


def parted():
    return be.compile_in_parts(
        torch.nn.Sequential(torch.nn.GELU(), torch.nn.ReLU()), torch.ones(SHAPE), on_host=["gelu"], effort="low"
    )


def cached():
    program = be.Program(Sum(), (torch.ones(SHAPE), torch.zeros(SHAPE)), keeps={1: "seen"})
    return be.compile_programs(program, effort="low")


def loaded(model, folder):
    """Return the model as another process would have it."""
    _, image = model.save(folder)
    return be.load_model(image)


class Interruption:
    """An error that the machine raises at the nth call of a function, as Ctrl-C or too little memory does."""

    def __init__(self, monkeypatch, name, calls):
        self.left = calls
        function = getattr(Emulator, name)

        def interrupted(machine, *arguments, **options):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
            return function(machine, *arguments, **options)

        monkeypatch.setattr(Emulator, name, interrupted)


POINTS = [("push", 2), ("run", 1), ("pop", 1)]


@pytest.mark.parametrize("form", ["compiled", "loaded"])
@pytest.mark.parametrize(("function", "calls"), POINTS)
def test_a_call_after_an_interrupted_one_has_its_own_inputs_only(tmp_path, monkeypatch, form, function, calls):
    model = line()
    if form == "loaded":
        model = loaded(model, tmp_path)
    assert model(numbers(1), numbers(1))[0][0, 0] == 3
    with monkeypatch.context() as patch:
        Interruption(patch, function, calls)
        with pytest.raises(KeyboardInterrupt):
            model(numbers(7), numbers(7))
    for value in (2, 3):
        np.testing.assert_array_equal(model(numbers(value), numbers(value))[0], numbers(3 * value))


@pytest.mark.parametrize("form", ["compiled", "loaded"])
@pytest.mark.parametrize(("function", "calls"), [("run", 1), ("pop", 1)])
def test_the_same_of_models_with_a_part_on_the_host(tmp_path, monkeypatch, form, function, calls):
    model = parted()
    if form == "loaded":
        model = loaded(model, tmp_path)
    assert model(numbers(-1))[0].max() == 0
    with monkeypatch.context() as patch:
        Interruption(patch, function, calls)
        with pytest.raises(KeyboardInterrupt):
            model(numbers(-1))
    np.testing.assert_allclose(model(numbers(9))[0], numbers(9), rtol=1e-3)


@pytest.mark.parametrize("form", ["compiled", "loaded"])
def test_a_set_that_is_refused_leaves_no_other_behind(tmp_path, form):
    model = be.compile(Table(), (torch.tensor([0, 1]), torch.zeros(SHAPE)), effort="low")
    if form == "loaded":
        model = loaded(model, tmp_path)
    rows = np.zeros((2 * ROWS, 3), np.float32)
    with pytest.raises(be.HostError, match="index 9"):
        model(np.array([0, 0, 0, 9]), rows)
    np.testing.assert_array_equal(model(np.array([1, 2]), rows[:ROWS])[0], np.arange(3, 9).reshape(SHAPE))


@pytest.mark.parametrize("form", ["compiled", "loaded"])
def test_a_round_that_is_refused_leaves_no_other_behind(tmp_path, form):
    model = cached()
    if form == "loaded":
        model = loaded(model, tmp_path)
    with pytest.raises(be.HostError):
        model.rounds([[numbers(7)], [numbers(7)[:1]]])
    np.testing.assert_array_equal(model(numbers(1))[0], numbers(1))


@pytest.mark.parametrize("form", ["compiled", "loaded"])
@pytest.mark.parametrize(("function", "seen"), [("push", 3), ("run", 3), ("pop", 10)])
def test_caches_stay_as_far_as_an_interrupted_round_came(tmp_path, monkeypatch, form, function, seen):
    model = cached()
    if form == "loaded":
        model = loaded(model, tmp_path)
    model(numbers(1))
    model(numbers(2))
    with monkeypatch.context() as patch:
        Interruption(patch, function, 1)
        with pytest.raises(KeyboardInterrupt):
            model(numbers(7))
    np.testing.assert_array_equal(model.caches()["seen"], numbers(seen))
    np.testing.assert_array_equal(model(numbers(4))[0], numbers(seen + 4))
    model.reset()
    np.testing.assert_array_equal(model(numbers(4))[0], numbers(4))


@pytest.mark.parametrize("form", ["compiled", "loaded"])
def test_another_precision_takes_over_the_caches(tmp_path, form):
    model = cached()
    if form == "loaded":
        model = loaded(model, tmp_path)
    model(numbers(1))
    np.testing.assert_array_equal(model(numbers(2), precision="device")[0], numbers(3))
    model.close()
    np.testing.assert_array_equal(model.caches()["seen"], numbers(0))
    np.testing.assert_array_equal(model(numbers(2))[0], numbers(2))


@pytest.mark.parametrize(("function", "calls"), [*POINTS, ("run", 2)])
def test_a_step_after_an_interrupted_one_has_its_own_inputs_only(monkeypatch, function, calls):
    losses = []
    for interrupt in (False, True):
        torch.manual_seed(0)
        module = torch.nn.Linear(3, 2)
        training = be.compile_training(module, (torch.ones(SHAPE),), loss="mse", learning_rate=0.1, effort="low")
        target = np.zeros((ROWS, 2), np.float32)
        steps = [training.train_step(numbers(1), target)]
        if interrupt:
            with monkeypatch.context() as patch:
                Interruption(patch, function, calls)
                with pytest.raises(KeyboardInterrupt):
                    training.train_step(numbers(70), target)
        steps += [training.train_step(numbers(value), target) for value in (2, 3)]
        losses.append(steps)
        assert training.step == 3
    assert losses[0] == losses[1]


@pytest.mark.parametrize("form", ["compiled", "loaded"])
def test_each_thread_gets_the_outputs_of_its_own_inputs(tmp_path, form):
    model = line()
    if form == "loaded":
        model = loaded(model, tmp_path)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda value: model(numbers(value), numbers(value))[0], range(80)))
    for value, result in enumerate(results):
        np.testing.assert_array_equal(result, numbers(3 * value))


def test_threads_compile_at_the_same_time():
    convert = torch.nn.Module._apply
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: line(), range(4)))
    assert all(model(numbers(1), numbers(2))[0][0, 0] == 4 for model in models)
    assert torch.nn.Module._apply is convert
