"""Node tests of the onnx package: models that are read give what it expects, computed in numpy.

What a netlist of each gives stands in docs/compile/compile-conformance.md; here no netlist is made, so that every
handler is asked with all of its cases, in milliseconds each.
"""

import re
import warnings
from functools import cache
from importlib import import_module

import numpy as np
import pytest

from buda_emu.compiler.parted import evaluate

onnx = pytest.importorskip("onnx")
from buda_emu.compiler.importers.from_onnx.reader import read_proto  # noqa: E402 - only where onnx is

OPERATORS = {
    "products": "matmul gemm conv convtranspose einsum globalaveragepool globalmaxpool quantizelinear dequantizelinear "
    "matmulinteger convinteger qlinearmatmul qlinearconv",
    "reductions": "reducesum reducemean reducemax reducel2 reduce_log_sum_exp argmax argmin softmax logsoftmax hardmax "
    "layernormalization rmsnormalization batch_normalization instance_normalization groupnormalization lrn cumsum "
    "meanvariancenormalization topk lpnormalization cumprod",
    "recurrent": "rnn gru lstm",
    "elementwise": "div mod pow max min sum mean clip leakyrelu thresholdedrelu elu selu celu hardsigmoid gelu swish "
    "where cast isnan shrink",
    "shapes": "reshape flatten squeeze unsqueeze transpose expand tile concat split slice pad gather gatherelements "
    "onehot gathernd shape size constantofshape eyelike depthtospace spacetodepth trilu reversesequence resize",
}
"""Of each file of handlers, the modules of node tests that cost no second to make."""
ON_DEVICE = {"test_l2normalization_axis_0"}
"""0 / 0, which is 0 by way of the device's reciprocal."""
REFUSED = re.compile(
    "empty_set|allowzero|zero_size|tri[ul]_zero|out_of_bounds|bfloat16|training|antialias|reverseseq|extrapol"
    "|greater_than_end|shape_int_shape_zero"
)
"""Names of tests that are refused whatever is held: nothing to compute, or no such operator on the device."""
OTHERWISE = {"test_resize_downsample_scales_linear_align_corners", "test_resize_downsample_scales_cubic_align_corners"}
"""2.4 is the length of the result for onnx's own evaluator, 2 for onnxruntime, and here."""


@cache
def cases(file):
    """By name; what functions of onnx expand to is left out."""
    from onnx.backend.test.case import node

    already = len(node._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in OPERATORS[file].split():
            import_module(f"onnx.backend.test.case.node.{name}")
    return {case.name: case for case in node._NodeTestCases[already:] if not case.name.endswith("_expanded")}


@pytest.fixture(scope="module")
def right(root):
    """Names of the tests that come out right when they are compiled."""
    page = (root / "docs/compile/compile-conformance.md").read_text(encoding="utf-8")
    names = re.search(r"^<summary>right \(\d+\)</summary>\n\n(.+?)\n\n</details>$", page, re.MULTILINE | re.DOTALL)
    return frozenset(names[1].replace(",\n", ", ").split(", "))


def gives(case, model, inputs, outputs):
    graph = read_proto(model)
    labels = [graph[item].attrs["label"] for item in graph.inputs]
    values = evaluate(graph, dict(zip(labels, map(np.asarray, inputs), strict=True)))
    for output, wanted in zip(graph.outputs, map(np.asarray, outputs), strict=True):
        got = values[output.value]
        assert got.shape == wanted.shape, case.name
        tolerance = {"rtol": max(case.rtol, 1e-3), "atol": max(case.atol, 1e-5)}
        np.testing.assert_allclose(got, wanted, **tolerance, err_msg=case.name)


@pytest.mark.parametrize("file", OPERATORS)
def test_models_that_are_read_give_what_onnx_expects(file, right):
    found = cases(file)
    asked = sorted((found.keys() & right) - ON_DEVICE)
    assert len(asked) >= 2 * len(OPERATORS[file].split())
    for name in asked:
        for inputs, outputs in found[name].data_sets:
            gives(found[name], found[name].model, inputs, outputs)


@pytest.mark.parametrize(("file", "least"), [("reductions", 60), ("shapes", 60)])
def test_operators_that_real_models_give_constants(file, least, right):
    """Axes, shapes, counts: inputs of the node tests. All but the first are held here, whether or not they must be."""
    asked = [
        case
        for name, case in cases(file).items()
        if name not in OTHERWISE | ON_DEVICE and not REFUSED.search(name)
        if name not in right or len(case.model.graph.input) > 1
    ]
    assert len(asked) >= least
    for case in asked:
        (inputs, outputs), *_ = case.data_sets
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        for value, array in list(zip(model.graph.input, inputs, strict=True))[1:]:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), value.name))
        del model.graph.input[1:]
        gives(case, model, inputs[:1], outputs)
