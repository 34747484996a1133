"""Three doors with the same options, and how the first one took the jobs of all."""

import warnings
from dataclasses import FrozenInstanceError

import pytest

import buda_emu as be
from buda_emu.compiler.compilation import FIELDS, OptionWords, require_words

onnx = pytest.importorskip("onnx")
RELU = ("Relu", ["x"], ["y"])
OPTIONS = be.CompileOptions(arch="grayskull", df="Bfp8_b", effort="low", name="own")


def model(nodes, inputs):
    """Of nodes (op type, inputs, output): every value is [32, 64]."""
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [32, 64]) for name in inputs]
    outputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [32, 64]) for *_, (name,) in nodes]
    made = onnx.helper.make_graph([onnx.helper.make_node(*node) for node in nodes], "small", info, outputs)
    return onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 18)])


def small():
    return model([RELU], ["x"])


def test_keywords_are_the_fields_of_the_options():
    assert set(OptionWords.__annotations__) == set(FIELDS)


def test_every_field_says_what_it_means():
    """Read from the source: a string after each field."""
    import ast
    import inspect

    from buda_emu.compiler import compilation as options

    (made,) = (
        item for item in ast.parse(inspect.getsource(options)).body if getattr(item, "name", "") == "CompileOptions"
    )
    fields = [number for number, item in enumerate(made.body) if isinstance(item, ast.AnnAssign)]
    assert len(fields) == len(FIELDS)
    for number in fields:
        assert isinstance(made.body[number + 1], ast.Expr), ast.unparse(made.body[number])


def test_options_and_keywords_give_the_same_netlist():
    whole = be.compile(small(), options=OPTIONS)
    assert whole.netlist.arch.name == "grayskull"
    assert whole.text == be.compile(small(), arch="grayskull", df="Bfp8_b", effort="low", name="own").text


def test_a_keyword_replaces_a_field():
    found = be.compile(small(), options=OPTIONS, arch="wormhole_b0")
    assert found.text == be.compile(small(), arch="wormhole_b0", df="Bfp8_b", effort="low", name="own").text


def test_options_are_not_changed_once_made():
    with pytest.raises(FrozenInstanceError):
        OPTIONS.arch = "blackhole"


def test_other_functions_take_the_same_options(tmp_path):
    from buda_emu.compiler.compile import compile_from, compile_until
    from buda_emu.compiler.ir.text import write_ir

    assert be.compile_in_parts(small(), on_host=[], options=OPTIONS).compiled.netlist.arch.name == "grayskull"
    until = compile_until(small(), stop_after="dce", options=OPTIONS)
    paths = write_ir(tmp_path, "model", until)
    path = next(path for path in paths if path.suffix == ".ir")
    assert compile_from(path, options=OPTIONS).netlist.arch.name == "grayskull"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: be.compile(small(), efort="low"), r"compile\(\) has no option 'efort'; did you mean 'effort'\?$"),
        (lambda: be.compile(small(), zzz=1), r"compile\(\) has no option 'zzz'$"),
        (lambda: be.compile(small(), precison="device"), r"no option 'precison'; precision is chosen in a call"),
        (lambda: be.compile(small(), on_host=["relu"]), r"no option 'on_host'; compile_in_parts has on_host$"),
        (lambda: be.compile_training(None, loss="mse", lr=1), r"no option 'lr'; did you mean 'learning_rate'\?$"),
        (lambda: be.compile_programs({}, loss="mse"), r"compile_programs\(\) has no option 'loss'"),
        (lambda: be.compile_training(None, loss="mse", keeps={}), r"compile_training\(\) has no option 'keeps'"),
    ],
)
def test_an_option_that_does_not_exist_is_refused_by_name(call, said):
    with pytest.raises(TypeError, match=said):
        call()


def test_the_backend_of_torch_has_a_precision():
    with pytest.raises(TypeError, match=r"compile\(\) has no option 'precison'; did you mean 'precision'\?$"):
        require_words(["precison"], "compile", also=("precision",))
    require_words(["precision", "effort"], "compile", also=("precision",))


def test_a_value_that_does_not_exist_is_refused():
    with pytest.raises(be.HostError, match="objective 'speed' is not one of"):
        be.compile(small(), options=be.CompileOptions(objective="speed"))


# ------------------------------------------------------------------------------------------ as it was before
def test_a_loss_makes_a_training_and_says_which_door_to_take():
    torch = pytest.importorskip("torch")
    net, x = torch.nn.Linear(8, 4), torch.ones(2, 8)
    words = {"optimizer": "adam", "microbatches": 2, "effort": "low"}
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        older = be.compile(net, (x,), loss="mse", keeps=None, **words)
    (own,) = (item for item in found if "buda_emu" in str(item.message))
    assert own.category is DeprecationWarning
    assert own.filename == __file__  # of the line to change
    assert "`optimizer`" in str(own.message)
    assert "call buda_emu.compile_training" in str(own.message)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert older.text == be.compile_training(net, (x,), loss="mse", **words).text


def test_words_of_a_training_without_a_loss_mean_nothing_as_before():
    with pytest.warns(DeprecationWarning, match=r"`optimizer`.*compile_training"):
        found = be.compile(small(), optimizer="adam", effort="low")
    assert found.text == be.compile(small(), effort="low").text


def kept():
    """y = x + seen, which is kept."""
    return model([("Add", ["x", "seen"], ["y"]), ("Identity", ["y"], ["next"])], ["x", "seen"])


def test_caches_and_several_programs_say_which_door_to_take():
    import numpy as np

    example = (np.zeros((32, 64), np.float32),) * 2
    program = be.Program(small_kept := kept(), example, {0: "seen"})
    alone = be.compile_programs(program, effort="low")
    with pytest.warns(DeprecationWarning, match="`keeps`.*call buda_emu.compile_programs"):
        assert be.compile(small_kept, example, keeps={0: "seen"}, effort="low").text == alone.text
    with pytest.warns(DeprecationWarning, match="a mapping of Programs.*call buda_emu.compile_programs"):
        assert be.compile({"model": program}, effort="low", optimizer="sgd").text == alone.text
