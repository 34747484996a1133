"""Inputs by their names: examples for `compile`, and calls of compiled, loaded and parted models."""

import numpy as np
import pytest

import buda_emu as be

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")


class Masked(torch.nn.Module):
    """A module whose mask is not the second of its parameters, as of many models of transformers."""

    def forward(self, x, y=None, mask=None, doubles=True):
        if y is not None:
            x = x - y
        if mask is not None:
            x = x + mask
        if doubles:
            x = x * 2
        return x


X = torch.arange(6, dtype=torch.float32).reshape(2, 3)
MASK = torch.tensor([[1.0, 2, 3], [4, 5, 6]])


@pytest.fixture(scope="module")
def masked():
    """Without y, and with a constant that is no tensor."""
    return be.compile(Masked().eval(), {"mask": MASK, "x": X, "doubles": False}, effort="low")


def difference_model():
    """x - y, with an open size."""
    from onnx import TensorProto, helper

    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xyz"]
    graph = helper.make_graph([helper.make_node("Sub", ["x", "y"], ["z"])], "g", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_inputs_are_in_the_order_of_the_module_whatever_that_of_the_dict(masked):
    assert masked.io.labels == ("x", "mask")
    for call in (lambda: masked(X, MASK), lambda: masked(mask=MASK, x=X), lambda: masked(X, mask=MASK)):
        np.testing.assert_array_equal(call()[0], X + MASK)
    np.testing.assert_array_equal(masked.example_inputs()[1], MASK)


def test_a_model_with_a_constant_compares_with_its_source(masked):
    assert masked.compare().outputs[0].max_error == 0
    assert masked.compare({"mask": X, "x": MASK}).outputs[0].max_error == 0


def test_a_single_tensor_is_one_input_of_a_comparison():
    model = be.compile(torch.nn.ReLU(), X, effort="low")
    assert model.compare(X).outputs[0].shape == (2, 3)
    assert model.numerics(X).layers


def test_a_loaded_model_takes_names_too(masked, tmp_path):
    masked.save(tmp_path)
    loaded = be.load_model(tmp_path)  # the only image of the folder
    np.testing.assert_array_equal(loaded(mask=MASK, x=X)[0], X + MASK)
    with pytest.raises(be.HostError, match="no input mask; the model takes 2: x, mask"):
        loaded(x=X)
    (tmp_path / "model.tti").rename(tmp_path / "a.tti")
    masked.save(tmp_path)
    with pytest.raises(be.HostError, match=r"folder, not an image: it holds a\.tti, model\.tti"):
        be.load_model(tmp_path)


@pytest.mark.parametrize(
    ("inputs", "named", "said"),
    [
        ((X,), {"msk": MASK}, r"no input is called 'msk'; did you mean 'mask'\?; the model takes 2: x, mask"),
        ((X,), {"x": MASK}, "input x: given by position and by name"),
        ((), {"x": X}, "no input mask; the model takes 2"),
        ((X, MASK, X), {"mask": X}, "3 inputs by position, the model takes 2"),
        ((X,), {}, "1 input, the model takes 2: x, mask"),
        ((X, MASK), {"precison": "device"}, r"no input is called 'precison'; did you mean 'precision'\?"),
    ],
)
def test_other_inputs_are_refused(masked, inputs, named, said):
    with pytest.raises(be.HostError, match=said):
        masked(*inputs, **named)


def test_examples_of_an_onnx_model_by_name():
    model = be.compile(difference_model(), {"y": np.ones((2, 3), np.float32), "x": X}, effort="low")
    np.testing.assert_array_equal(model(y=X, x=MASK)[0], MASK - X)
    np.testing.assert_array_equal(model.example_inputs()[0], X)
    parted = be.compile_in_parts(difference_model(), {"y": X, "x": X}, on_host=["Sub"])
    np.testing.assert_array_equal(parted(y=X, x=MASK)[0], MASK - X)


@pytest.mark.parametrize(
    ("model", "inputs", "said"),
    [
        (Masked(), {"x": X, "w": X}, "compile: Masked: example inputs: got an unexpected keyword argument 'w'"),
        (Masked(), {"mask": X}, "compile: Masked: example inputs: missing a required argument: 'x'"),
        (difference_model(), {"x": X}, "compile: example inputs: no y; the model takes x, y"),
        (difference_model(), {"x": X, "q": X}, "no input is called 'q'; the model takes x, y"),
        (Masked(), {1: X}, "example inputs: 1 is not the name of an input"),
    ],
)
def test_other_examples_are_refused(model, inputs, said):
    with pytest.raises(be.HostError, match=said):
        be.compile(model, inputs)


def test_a_program_takes_the_names_of_its_inputs():
    class Running(torch.nn.Module):
        def forward(self, x, total):
            return x + total, x + total

    program = be.Program(Running(), (X, torch.zeros(2, 3)), keeps={1: "total"})
    model = be.compile_programs(program, effort="low")
    assert [float(model(x=X)[0].sum()) for _ in range(2)] == [15, 30]
    with pytest.raises(be.HostError, match="no input is called 'y'"):
        model(y=X)


class Cached(torch.nn.Module):
    class State:
        """An object that torch.export does not know."""

    def forward(self, x, use_cache=True):
        if use_cache:
            return x * 2, self.State()
        return x * 2


def test_a_model_that_returns_its_cache_is_told_how_to_leave_it_out():
    with pytest.raises(be.HostError, match=r"is not a known type: let the model return tensors.*use_cache=False"):
        be.compile(Cached(), (X,))
    model = be.compile(Cached(), {"x": X, "use_cache": False}, effort="low")
    np.testing.assert_array_equal(model(X)[0], 2 * X)
