"""Arguments of operators: each is read by the handler, decides nothing, or is refused by its name."""

import dis
import warnings
from functools import cache
from inspect import Parameter, signature

import numpy as np
import pytest

from buda_emu.compiler.graph.graph import Node
from buda_emu.compiler.importers.arguments import (
    IRRELEVANT,
    REQUIRED,
    Argument,
    RecordedAttributes,
    RecordedOperands,
    is_irrelevant,
    refuse_unread,
)
from buda_emu.compiler.importers.operators import OpenSizes
from buda_emu.compiler.parted import evaluate
from buda_emu.support.errors import UnsupportedError

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
from buda_emu.compiler.importers.from_onnx.call import ONNX  # noqa: E402 - only where onnx is
from buda_emu.compiler.importers.from_onnx.reader import read_proto  # noqa: E402 - only where onnx is
from buda_emu.compiler.importers.from_torch.declared import ATEN  # noqa: E402 - only where torch is
from buda_emu.compiler.importers.from_torch.reader import read_torch  # noqa: E402 - only where torch is
from tests.helpers import onnx_arguments, torch_arguments  # noqa: E402 - only where both are

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
CLOSE = {"rtol": 2e-3, "atol": 2e-4, "equal_nan": True}


class Small(torch.nn.Module):
    """One function."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, *items):
        return self.run(*items)


def tensors(result):
    """All of a result, in order."""
    return [result] if isinstance(result, torch.Tensor) else [part for item in result for part in tensors(item)]


# --------------------------------------------------------------------------------------------------- the mechanism
def test_what_is_not_read_is_refused_by_its_name_unless_it_is_at_its_default():
    node = Node("n", "input", (), {}, (2, 3), "float32", "")
    at_default = [
        Argument("a", 1.0, 1),
        Argument("b", None, None),
        Argument("c", [0, 0], (0, 0)),
        Argument("d", b"x", b"x"),
    ]
    refuse_unread("torch", "add", at_default)
    refuse_unread("torch", "add", [Argument("device", "cuda", None)])
    with pytest.raises(UnsupportedError, match=r"^alpha=2, mode=floor, bias=a tensor of shape \[2, 3\], size=4$"):
        refuse_unread(
            "torch",
            "add",
            [
                Argument("alpha", 2, 1),
                Argument("mode", b"floor", b""),
                Argument("bias", node, None),
                Argument("size", 4, REQUIRED),
            ],
        )


def test_records_note_what_is_read():
    attributes = RecordedAttributes({"a": 1, "b": {"c": 2, "d": [3]}, "e": 4})
    assert "a" in attributes
    assert [name for name, _ in attributes.unread()] == ["a", "b", "e"]
    assert attributes.get("missing", 7) == 7
    assert attributes["b"]["c"] + attributes.get("a") == 3
    assert list(attributes.unread()) == [("d", [3]), ("e", 4)]
    operands = RecordedOperands("abcd")
    assert operands[-1] + operands[0] == "da"
    assert list(operands.unread()) == [(1, "b"), (2, "c")]
    assert "".join(operands[1:]) == "bcd"
    assert not list(operands.unread())


def test_every_row_of_the_table_is_of_an_argument_that_there_is():
    for row in IRRELEVANT["torch"]:
        if "." in row:
            name, argument = row.split(".")
            packet = getattr(torch.ops.aten, name)
            names = [
                item.name for overload in packet.overloads() for item in getattr(packet, overload)._schema.arguments
            ]
            assert name in ATEN, row
            assert argument in names, row
    schemas = onnx.defs.get_all_schemas_with_history()
    for row in IRRELEVANT["onnx"]:
        name, _, argument = row.rpartition(".")
        own = [schema for schema in schemas if schema.name == name or not name]
        assert not name or name in ONNX, row
        assert any(argument in (*schema.attributes, *(item.name for item in schema.inputs)) for schema in own), row


REFUSED = {
    "_embedding_bag": "padding_idx", "_embedding_bag_forward_only": "padding_idx", "_grouped_mm": "bias out_dtype",
    "addmm": "out_dtype", "baddbmm": "out_dtype", "bmm": "out_dtype", "mm": "out_dtype",
}  # fmt: skip
"""Arguments of torch's operators that no handler reads, and that are refused away from their defaults."""


def overloads(name):
    """The schemas of an operator on tensors, without those that write into their operands."""
    packet = getattr(torch.ops.aten, name, None)
    schemas = [getattr(packet, item)._schema for item in packet.overloads()] if packet is not None else []
    for schema in schemas:
        writes = any(item.alias_info is not None and item.alias_info.is_write for item in schema.arguments)
        if not writes and any("Tensor" in str(item.type) for item in schema.arguments):
            yield schema


@pytest.mark.parametrize("name", sorted(ATEN))
def test_every_argument_of_torch_is_read_or_refused(name):
    parameters = list(signature(ATEN[name].handler).parameters.values())[1:]
    named = {item.name for item in parameters if item.kind is Parameter.KEYWORD_ONLY}
    places = [item.name for item in parameters if item.kind is Parameter.POSITIONAL_OR_KEYWORD]
    takes_all = any(item.kind is Parameter.VAR_POSITIONAL for item in parameters)
    unread = set()
    for schema in overloads(name):
        in_order = [item for item in schema.arguments if not item.kwarg_only and item.name not in named]
        read = named | {item.name for item, own in zip(in_order, places, strict=False) if not own.startswith("_")}
        read |= {item.name for item in in_order} if takes_all else set()
        unread |= {item.name for item in schema.arguments if item.name not in read}
    assert {item for item in unread if not is_irrelevant("torch", name, item)} == set(REFUSED.get(name, "").split())


@pytest.mark.parametrize("name", sorted(ATEN))
def test_handlers_of_torch_read_what_they_take(name):
    """A parameter that is not to be read begins with an underscore, and is then refused away from its default."""
    function = ATEN[name].handler
    function = getattr(function, "__wrapped__", function)
    code = function.__code__
    loaded = {item.argval for item in dis.get_instructions(code) if item.opname.startswith("LOAD")}
    taken = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    assert [item for item in taken if not item.startswith("_") and item not in loaded] == []


# ------------------------------------------------------------------------------------------- random arguments, torch
def read_or_refusal(read):
    """The graph, or None and why there is none."""
    try:
        return read(), ""
    except UnsupportedError as error:
        return None, str(error)


def is_right_or_refused_of_torch(name, seed):
    run, inputs = torch_arguments.draw(name, seed)
    with torch.no_grad():
        expected = tensors(run(*(item.clone() for item in inputs)))
    module = run if isinstance(run, torch.nn.Module) else Small(run).eval()
    graph, refusal = read_or_refusal(lambda: read_torch(module, inputs, None, OpenSizes({})))
    if graph is None:
        assert "not supported: " in refusal
        return
    labels = [graph.nodes[node].attrs["label"] for node in graph.inputs]
    values = evaluate(graph, dict(zip(labels, (item.numpy() for item in inputs), strict=True)))
    assert len(graph.outputs) == len(expected)
    for output, want in zip(graph.outputs, expected, strict=True):
        got = np.asarray(values[output.value], np.float64)
        np.testing.assert_allclose(got, want.double().numpy(), **CLOSE, err_msg=f"{name} {seed}")


@pytest.mark.parametrize("name", torch_arguments.DRAWN)
def test_random_arguments_of_torch_are_right_or_refused(name):
    is_right_or_refused_of_torch(name, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", torch_arguments.DRAWN)
def test_many_random_arguments_of_torch_are_right_or_refused(name):
    for seed in range(1, 60):
        is_right_or_refused_of_torch(name, seed)


# -------------------------------------------------------------------------------------------- random attributes, ONNX
@cache
def runtime():
    """onnxruntime, quiet, and its options."""
    module = pytest.importorskip("onnxruntime")
    module.set_default_logger_severity(4)
    options = module.SessionOptions()
    options.graph_optimization_level = module.GraphOptimizationLevel.ORT_DISABLE_ALL
    return module, options


def expected_of_onnx(proto, feeds):
    """What onnxruntime gives, then what onnx's own evaluator does: for edges of Resize they differ."""
    module, options = runtime()
    session = module.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    yield session.run(None, feeds)
    with warnings.catch_warnings(action="ignore"):
        yield onnx.reference.ReferenceEvaluator(proto).run(None, feeds)


def agrees(got, wanted):
    """Whether values are of the same shapes and close."""
    pairs = zip(got, wanted, strict=True)
    return all(a.shape == b.shape and np.allclose(np.float64(a), np.float64(b), **CLOSE) for a, b in pairs)


def is_right_or_refused_of_onnx(name, seed):
    model = onnx_arguments.draw(name, seed)
    proto, feeds = model.proto(), model.feeds()
    graph, refusal = read_or_refusal(lambda: read_proto(proto))
    if graph is None:
        assert f"not supported: {model.op} (" in refusal or "without elements" in refusal
        return
    values = evaluate(graph, feeds)
    got = [values[output.value] for output in graph.outputs]
    assert any(agrees(got, wanted) for wanted in expected_of_onnx(proto, feeds)), (name, seed, model)


@pytest.mark.parametrize("name", onnx_arguments.DRAWN)
def test_random_attributes_of_onnx_are_right_or_refused(name):
    for seed in range(5):
        is_right_or_refused_of_onnx(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", onnx_arguments.DRAWN)
def test_many_random_attributes_of_onnx_are_right_or_refused(name):
    for seed in range(5, 200):
        is_right_or_refused_of_onnx(name, seed)


@pytest.mark.parametrize(
    ("axis", "shape"), [(None, (3, 4)), (0, (2,)), (0, (2, 3)), (1, (3,)), (-2, (3, 4)), (2, (4,))]
)
def test_broadcasts_by_an_axis_before_opset_7(axis, shape):
    x, y = (np.arange(1, 1 + np.prod(item), dtype=np.float32).reshape(item) for item in ((2, 3, 4), shape))
    attributes = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
    behind = 0 if axis is None else 3 - axis % 3 - len(shape)
    for op, form in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)):
        graph = read_proto(onnx_arguments.Model(op, {"x": x, "y": y}, attributes, opset=6).proto())
        got = evaluate(graph, {"x": x, "y": y})[graph.outputs[0].value]
        np.testing.assert_allclose(got, form(x, y.reshape(*shape, *(1,) * behind)), rtol=1e-6)


def test_attributes_of_onnx_that_nobody_reads_are_refused_by_name():
    x, each = np.ones((2, 3, 4, 4), np.float32), np.ones(3, np.float32)
    names = ("scale", "bias", "mean", "var")
    inputs = {"x": x} | dict.fromkeys(names, each)
    old = onnx_arguments.Model("BatchNormalization", inputs, {"spatial": 0}, names, opset=7)
    with pytest.raises(UnsupportedError, match=r"BatchNormalization \(spatial=0\)"):
        read_proto(old.proto())


# --------------------------------------------------------------------------------- operators that nobody handles
@torch.library.custom_op("buda_test::both", mutates_args=())
def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """An operator of a library's own, with several results."""
    return x + 1, x - 1


@both.register_fake
def _(x):
    return torch.empty_like(x), torch.empty_like(x)


@torch.library.custom_op("buda_test::several", mutates_args=())
def several(x: torch.Tensor) -> list[torch.Tensor]:
    """An operator of a library's own, with a list of results."""
    return [x + 1, x - 1]


@several.register_fake
def _(x):
    return [torch.empty_like(x), torch.empty_like(x)]


@torch.library.custom_op("buda_test::grow", mutates_args=("x",))
def grow(x: torch.Tensor) -> None:
    """An operator of a library's own that writes into its operand."""
    x.add_(1)


@grow.register_fake
def _(x):
    return None


def grown(x):
    """What an operator wrote."""
    own = x.clone()
    torch.ops.buda_test.grow(own)
    return own * 2


@pytest.mark.parametrize(
    ("run", "name"),
    [
        (torch.linalg.inv, r"linalg_inv_ex\.default"),
        (torch.linalg.cholesky, r"linalg_cholesky_ex\.default"),
        (lambda x: torch.linalg.solve(x, x), r"_linalg_solve_ex\.default"),
        (lambda x: x @ torch.linalg.inv(torch.eye(3) * 2), r"aten\._linalg_check_errors\.default in with_effects"),
        (torch.linalg.svd, r"_linalg_svd\.default"),
        (lambda x: torch.linalg.eigh(x)[1], r"_linalg_eigh\.default"),
        (lambda x: torch.ops.buda_test.both(x)[1] + 1, r"buda_test\.both\.default"),
        (lambda x: torch.ops.buda_test.several(x)[1], r"buda_test\.several\.default"),
        (grown, r"buda_test\.grow\.default in auto_functionalized"),
        (lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), "cond"),
        (lambda x: torch._higher_order_ops.scan(lambda c, a: (c + a, c * a), x[0], x)[1], "scan"),
    ],
)
def test_operators_that_nobody_handles_are_refused_by_name(run, name):
    with pytest.raises(UnsupportedError, match=f"not supported: (.*; )?{name}"):
        read_torch(Small(run).eval(), (torch.eye(3) + 0.1,), None, OpenSizes({}))
