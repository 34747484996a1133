"""Every kernel, run through its argument buffer, against scalar loops written from its formula."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from buda_emu.foreign import vpux
from buda_emu.foreign.vpux.kernels import KERNELS, Call, Kernel
from buda_emu.support.errors import ProgramError
from vpux_documents import kernel, module

NHWC = "#NHWC, "
TYPES = {"float16": "f16", "float32": "f32", "int32": "si32", "uint8": "ui8", "int8": "si8", "int64": "si64"}


def memref(shape: Sequence[int], dtype: str, order: str = "") -> str:
    return f"memref<{''.join(f'{size}x' for size in shape)}{TYPES[dtype]}, {order}[@CMX_NN, 0]>"


def call(
    name: str,
    arrays: Sequence[np.ndarray[Any, Any]],
    attrs: str = "[]",
    out: Sequence[tuple[Sequence[int], str]] = (),
    order: str = "",
    kernels: dict[str, Kernel] | None = None,
) -> list[np.ndarray[Any, Any]]:
    """Outputs of one call; each output has the first input's shape and type unless `out` says otherwise."""
    out = out or [(arrays[0].shape, str(arrays[0].dtype))]
    types = [memref(a.shape, str(a.dtype), order if a.ndim == 4 else "") for a in arrays]
    results = [memref(shape, dtype, order if len(shape) == 4 else "") for shape, dtype in out]
    names = [f"%arg{n}" for n in range(len(types) + len(results))]
    made = kernel(list(zip(names, types, strict=False)), list(zip(names[len(types) :], results, strict=True)), attrs)
    arguments = ", ".join(f"{value}: {of}" for value, of in zip(names, types + results, strict=True))
    back = ", ".join(names[len(types) :])
    back_types = ", ".join(results)
    body = f"func.func @main({arguments}) -> ({back_types}) {{\n{made}\nreturn {back} : {back_types}\n}}"
    result = vpux.run(vpux.read(module(body, name)), inputs=dict(enumerate(arrays)), kernels=kernels)
    return result.outputs


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def safe(function: Callable[[float], float]) -> Callable[[float], float]:
    def inner(x: float) -> float:
        try:
            return function(x)
        except (ValueError, ZeroDivisionError):
            return math.nan

    return inner


ONE: dict[str, tuple[str, Callable[[float], float]]] = {
    "activation_relu": ("[]", lambda x: max(x, 0)),
    "relu_fp16": ("[]", lambda x: max(x, 0)),
    "activation_sigmoid": ("[]", sigmoid),
    "activation_hswish": ("[]", lambda x: x * min(max(x + 3, 0), 6) / 6),
    "activation_hsigmoid": ("[]", lambda x: min(max(x + 3, 0), 6) / 6),
    "activation_tanh": ("[]", math.tanh),
    "activation_exp": ("[]", math.exp),
    "activation_log": ("[]", lambda x: math.log(x) if x else -math.inf),
    "activation_abs": ("[]", abs),
    "activation_floor": ("[]", math.floor),
    "activation_ceil": ("[]", math.ceil),
    "activation_sqrt": ("[]", math.sqrt),
    "activation_erf": ("[]", math.erf),
    "activation_sin": ("[]", math.sin),
    "activation_cos": ("[]", math.cos),
    "activation_tan": ("[]", math.tan),
    "activation_sinh": ("[]", math.sinh),
    "activation_cosh": ("[]", math.cosh),
    "activation_asin": ("[]", math.asin),
    "activation_acos": ("[]", math.acos),
    "activation_atan": ("[]", math.atan),
    "activation_asinh": ("[]", math.asinh),
    "activation_acosh": ("[]", math.acosh),
    "activation_atanh": ("[]", lambda x: math.copysign(math.inf, x) if abs(x) == 1 else math.atanh(x)),
    "activation_sign": ("[]", lambda x: (x > 0) - (x < 0)),
    "activation_negative": ("[]", lambda x: -x),
    "activation_softplus": ("[]", softplus),
    "activation_mish": ("[]", lambda x: x * math.tanh(softplus(x))),
    "activation_gelu": ("[]", lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2)))),
    "activation_clamp": ("[-1.5, 2.25]", lambda x: min(max(x, -1.5), 2.25)),
    "activation_elu": ("[0.5]", lambda x: x if x > 0 else 0.5 * math.expm1(x)),
    "activation_selu": ("[1.5, 1.25]", lambda x: 1.25 * (x if x > 0 else 1.5 * math.expm1(x))),
    "activation_hardsigmoid": ("[0.25, 0.5]", lambda x: min(max(0.25 * x + 0.5, 0), 1)),
    "activation_swish": ("[0.5]", lambda x: x * sigmoid(0.5 * x)),
    "leaky_relu_fp16": ("[0.125]", lambda x: x if x > 0 else 0.125 * x),
    "round_fp16": ("[0]", lambda x: float(round(x))),
    "eltwise_logical_not": ("[]", lambda x: float(x == 0)),
    "convert": ("[]", lambda x: x),
    "single_shave_convert": ("[]", lambda x: x),
    "clamp": ("[-1.0, 1.0]", lambda x: min(max(x, -1), 1)),
    "relu": ("[]", lambda x: max(x, 0)),
    "sigmoid": ("[]", sigmoid),
    "hswish": ("[]", lambda x: x * min(max(x + 3, 0), 6) / 6),
    "tanh": ("[]", math.tanh),
}  # fmt: skip
TWO: dict[str, Callable[[float, float], float]] = {
    "eltwise_add": lambda a, b: a + b,
    "eltwise_sub": lambda a, b: a - b,
    "eltwise_mul": lambda a, b: a * b,
    "eltwise_div": lambda a, b: a / b if b else (math.copysign(math.inf, a) if a else math.nan),
    "eltwise_min": min,
    "eltwise_max": max,
    "eltwise_power": lambda a, b: (a**b if a > 0 or b == int(b) else math.nan) if a else (0.0 if b > 0 else math.inf),
    "eltwise_squared_difference": lambda a, b: (a - b) ** 2,
    "eltwise_mod": lambda a, b: math.fmod(a, b) if b else math.nan,
    "eltwise_floor_mod": lambda a, b: a % b if b else math.nan,
    "eltwise_equal": lambda a, b: a == b,
    "eltwise_not_equal": lambda a, b: a != b,
    "eltwise_greater": lambda a, b: a > b,
    "eltwise_greater_equal": lambda a, b: a >= b,
    "eltwise_less": lambda a, b: a < b,
    "eltwise_less_equal": lambda a, b: a <= b,
    "eltwise_and": lambda a, b: bool(a) and bool(b),
    "eltwise_logical_or": lambda a, b: bool(a) or bool(b),
    "eltwise_logical_xor": lambda a, b: bool(a) != bool(b),
    "prelu_fp16": lambda a, b: a if a > 0 else a * b,
}
WHOLE: dict[str, Callable[[int, int], int]] = {
    "eltwise_bitwise_and": lambda a, b: a & b,
    "eltwise_bitwise_or": lambda a, b: a | b,
    "eltwise_bitwise_xor": lambda a, b: a ^ b,
    "eltwise_add": lambda a, b: a + b,
    "eltwise_mod": lambda a, b: int(math.fmod(a, b)) if b else 0,
    "eltwise_floor_mod": lambda a, b: a % b if b else 0,
    "eltwise_div": lambda a, b: int(a / b) if b else (a > 0) * (2**31 - 1) - (a < 0) * 2**31,
}
POINTS = [-4.0, -2.5, -1.5, -1.0, -0.75, -0.25, 0.0, 0.125, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.25, 4.0]


def close(got: np.ndarray[Any, Any], want: Any) -> None:
    wanted = np.array(want, np.float64).reshape(got.shape).astype(got.dtype)
    np.testing.assert_allclose(got, wanted, rtol=1e-3 if got.dtype == np.float16 else 2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_one_input(name: str, dtype: str) -> None:
    attrs, function = ONE[name]
    x = np.array(POINTS, dtype).reshape(1, 2, 4, 2)
    (got,) = call(name, [x], attrs, order=NHWC)
    close(got, [safe(function)(float(value)) for value in x.reshape(-1)])


@pytest.mark.parametrize("name", TWO)
def test_two_inputs(name: str) -> None:
    pairs = list(itertools.product(POINTS[::2], POINTS[1::2]))
    a, b = (np.array([pair[n] for pair in pairs], np.float32) for n in (0, 1))
    close(call(name, [a, b])[0], [float(TWO[name](*pair)) for pair in pairs])


@pytest.mark.parametrize("name", WHOLE)
def test_two_inputs_of_whole_numbers(name: str) -> None:
    pairs = list(itertools.product([-7, -1, 0, 3, 100], [-5, -2, 0, 4, 9]))
    a, b = (np.array([pair[n] for pair in pairs], np.int32) for n in (0, 1))
    assert call(name, [a, b])[0].tolist() == [WHOLE[name](*pair) for pair in pairs]


def test_broadcast_select_and_bitwise_not() -> None:
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert call("eltwise_add", [a, np.array([[10], [20]], np.int32)])[0].tolist() == [[10, 11, 12], [23, 24, 25]]
    (got,) = call("eltwise_select", [np.array([1, 0, 2], np.int32), a[0], a[1]])
    assert got.tolist() == [0, 4, 2]
    assert call("eltwise_bitwise_not", [a])[0].tolist() == [[-1, -2, -3], [-4, -5, -6]]
    x = np.arange(-4, 4, dtype=np.float16).reshape(1, 2, 2, 2)
    (got,) = call("prelu_fp16", [x, np.array([0.5, 2], np.float16)])
    assert got.reshape(-1).tolist() == [-2, -6, -1, -2, 0, 1, 2, 3]


def test_round_half_away_and_its_modes() -> None:
    x = np.array([-2.5, -0.5, -0.25, 0.5, 1.5, 2.5], np.float16)
    assert call("round_fp16", [x], "[1]")[0].tolist() == [-3, -1, 0, 1, 2, 3]
    assert call("round_fp16", [x], "[0]")[0].tolist() == [-2, 0, 0, 0, 2, 2]
    with pytest.raises(ProgramError, match="X046"):
        call("round_fp16", [x], "[2]")


@pytest.mark.parametrize(("dtype", "want"), [("uint8", [0, 255, 0, 2, 0]), ("int32", [-70000, 300, 0, 2, 0])])
def test_convert_truncates_and_saturates(dtype: str, want: list[int]) -> None:
    x = np.array([-70000, 300, math.nan, 2.9, -0.5], np.float32)
    assert call("convert", [x], out=[(x.shape, dtype)])[0].tolist() == want


@pytest.mark.parametrize("name", ["softmax", "softmaxFp32", "singleShaveSoftmax", "log_softmax"])
@pytest.mark.parametrize("order", ["", NHWC])
def test_softmax_counts_its_axis_from_the_innermost_in_memory(name: str, order: str) -> None:
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 4, 3, 2)
    (got,) = call(name, [x], "[0]", order=order)
    dim = 1 if order else 3
    weights = np.exp(x.astype(np.float64))
    want = weights / weights.sum(axis=dim, keepdims=True)
    close(got, np.log(want) if name == "log_softmax" else want)


def test_softmax_leaves_padding_out() -> None:
    (got,) = call("softmax", [np.array([1, 1, 9], np.float32)], "[0, 1]")
    assert got.tolist() == [0.5, 0.5, 0]
    with pytest.raises(ProgramError, match="X046"):
        call("softmax", [np.array([1, 1, 9], np.float32)], "[0, 4]")


@pytest.mark.parametrize("name", ["mvn1", "singleShaveMVN"])
@pytest.mark.parametrize(("across", "variance"), [*itertools.product(["true", "false"], repeat=2)])
def test_mvn1(name: str, across: str, variance: str) -> None:
    x = np.linspace(-2, 3, 24, dtype=np.float32).reshape(1, 2, 3, 4) ** 2
    (got,) = call(name, [x], f"[{across}, {variance}, 0.5]")
    axes = (1, 2, 3) if across == "true" else (2, 3)
    y = x.astype(np.float64)
    y = y - y.mean(axis=axes, keepdims=True)
    close(got, y / np.sqrt((y * y).mean(axis=axes, keepdims=True) + 0.5) if variance == "true" else y)


def test_cum_sum() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float16)
    want = {
        "[0, 0, 0]": [[1, 3, 6], [4, 9, 15]],
        "[0, 1, 0]": [[0, 1, 3], [0, 4, 9]],
        "[0, 0, 1]": [[6, 5, 3], [15, 11, 6]],
        "[0, 1, 1]": [[5, 3, 0], [11, 6, 0]],
        "[1, 0, 0]": [[1, 2, 3], [5, 7, 9]],
    }
    for attrs, values in want.items():
        assert call("cum_sum", [x], attrs)[0].tolist() == values, attrs


def test_normalize_l2() -> None:
    x = np.array([[3, 4], [0, 0.25]], np.float32)
    close(call("normalize_l2", [x], "[11.0, 0, 1, [1]]")[0], [[0.5, 4 / 6], [0, 0.25 / math.sqrt(11.0625)]])
    close(call("normalize_l2", [x], "[1.0, 1, 1, [1]]")[0], [[0.6, 0.8], [0, 0.25]])


def test_axes_of_normalize_l2_are_logical_and_count_from_either_side() -> None:
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 4, 3, 2)
    for axes, positive in (("[-3]", "[1]"), ("[-1, 1]", "[1, 3]"), ("[-4, -2]", "[0, 2]")):
        count = axes.count(",") + 1
        got, want = (call("normalize_l2", [x], f"[1.0, 0, {count}, {given}]", order=NHWC) for given in (axes, positive))
        assert got[0].tolist() == want[0].tolist()
    for axes in ("[4]", "[-5]", "[1, -3]"):
        with pytest.raises(ProgramError, match="X046"):
            call("normalize_l2", [x], f"[1.0, 0, {axes.count(',') + 1}, {axes}]")


@pytest.mark.parametrize(
    ("name", "attrs", "outputs"),
    [
        ("softmax", "[-1]", 1), ("log_softmax", "[-1]", 1), ("cum_sum", "[-1, 0, 0]", 1),
        ("topk", "[-1, 0, 0, 2]", 2), ("reduce_sum", "[1, 1, [-1]]", 1),
    ],
)  # fmt: skip
def test_axes_that_kernels_count_from_the_innermost_are_not_negative(name: str, attrs: str, outputs: int) -> None:
    out = [((2, 2), "float16")] * outputs
    with pytest.raises(ProgramError, match="axis -1 of 2 dimensions: a kernel counts from the innermost"):
        call(name, [np.zeros((2, 2), np.float16)], attrs, out)
    with pytest.raises(ProgramError, match="X046"):
        call("gather", [np.zeros((2, 2), np.float16), np.zeros(2, np.int32)], "[-1, 0, 1]", [((2, 2), "float16")])
    with pytest.raises(ProgramError, match="X046"):
        call("gather", [np.zeros((2, 2), np.float16), np.zeros((2, 2), np.int32)], "[0, -1, 2]", [((2, 2), "float16")])


REDUCE: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: sum(x),
    "mean": lambda x: sum(x) / len(x),
    "max": max,
    "min": min,
    "prod": lambda x: math.prod(x),
    "l1": lambda x: sum(abs(v) for v in x),
    "l2": lambda x: math.sqrt(sum(v * v for v in x)),
    "and": all,
    "or": any,
    "logical_and": all,
    "logical_or": any,
}


@pytest.mark.parametrize("name", REDUCE)
def test_reduce(name: str) -> None:
    x = np.array([[1, -2, 0.5], [3, 0, 4], [0, 0, 0]], np.float32)
    (rows,) = call(f"reduce_{name}", [x], "[1, 1, [0]]", [((3, 1), "float32")])
    close(rows, [[float(REDUCE[name](row.tolist()))] for row in x])
    (columns,) = call(f"reduce_{name}", [x], "[0, 1, [1]]", [((3,), "float32")])
    close(columns, [float(REDUCE[name](column.tolist())) for column in x.T])


def test_reorder_follows_its_reversed_permutation() -> None:
    x = np.arange(24, dtype=np.int32).reshape(1, 2, 3, 4)
    (got,) = call("reorder", [x], "[[0, 3, 1, 2]]", [((2, 3, 1, 4), "int32")])
    p = [3 - r for r in (2, 1, 3, 0)]
    assert got.tolist() == x.transpose(p).tolist()
    with pytest.raises(ProgramError, match="X046"):
        call("reorder", [x], "[[0, 3, 1, 1]]", [((2, 3, 1, 4), "int32")])


def test_tile_and_gather() -> None:
    x = np.arange(6, dtype=np.float16).reshape(2, 3)
    assert call("tile", [x], "[2, [1, 2]]", [((2, 6), "float16")])[0].tolist() == np.tile(x, (1, 2)).tolist()
    for name in ("gather", "single_shave_gather"):
        (got,) = call(name, [x, np.array([2, 0, -1], np.int32)], "[0, 0, 1]", [((2, 3), "float16")])
        assert got.tolist() == x[:, [2, 0, 2]].tolist()
    with pytest.raises(ProgramError, match="X046"):
        call("gather", [x, np.array([3], np.int32)], "[0, 0, 1]", [((2, 1), "float16")])
    (got,) = call("gather", [x, np.array([[1], [0]], np.int32)], "[0, 1, 2]", [((2, 1), "float16")])
    assert got.tolist() == [[1], [3]]


def test_topk_is_stable() -> None:
    x = np.array([[3, 1, 3, 2]], np.float16)
    out = [((1, 2), "float16"), ((1, 2), "int32")]
    values, places = call("topk", [x], "[0, 0, 1, 2]", out)
    assert (values.tolist(), places.tolist()) == ([[3, 3]], [[0, 2]])
    values, places = call("topk", [x], "[0, 1, 1, 2]", out)
    assert (values.tolist(), places.tolist()) == ([[1, 2]], [[1, 3]])
    values, places = call("topk", [x], "[0, 1, 2, 2]", out)
    assert places.tolist() == [[1, 3]]


@pytest.mark.parametrize("mode", [0, 1])
def test_depth_to_space_and_back(mode: int) -> None:
    x = np.arange(48, dtype=np.float16).reshape(1, 8, 2, 3)
    (got,) = call("depth_to_space", [x], f"[2, {mode}]", [((1, 2, 4, 6), "float16")])
    for c, h, w in itertools.product(range(2), range(4), range(6)):
        block = (h % 2) * 2 + w % 2
        assert got[0, c, h, w] == x[0, block * 2 + c if mode == 0 else c * 4 + block, h // 2, w // 2]
    (back,) = call("space_to_depth", [got], f"[2, {mode}]", [((1, 8, 2, 3), "float16")])
    assert back.tolist() == x.tolist()


TESTED = {
    *ONE, *TWO, *WHOLE, *(f"reduce_{name}" for name in REDUCE), "eltwise_select", "eltwise_bitwise_not", "softmax",
    "softmaxFp32", "singleShaveSoftmax", "log_softmax", "mvn1", "singleShaveMVN", "cum_sum", "normalize_l2", "reorder",
    "tile", "gather", "single_shave_gather", "topk", "depth_to_space", "space_to_depth",
}  # fmt: skip


def test_every_kernel_has_a_test() -> None:
    assert {*KERNELS} == TESTED


def test_too_few_attributes_are_a_fault_and_too_many_are_not() -> None:
    x = np.array([1, 9], np.float16)
    with pytest.raises(ProgramError, match="attribute hi is missing") as caught:
        call("activation_clamp", [x], "[1.0]")
    assert caught.value.rule == "X046"
    assert call("activation_clamp", [x], "[1.0, 2.0, 3.0]")[0].tolist() == [1, 2]


def test_a_kernel_of_ones_own() -> None:
    def double(given: Call) -> np.ndarray[Any, Any]:
        return given.inputs[0].floats * given.number("factor")

    mine = Kernel("times", 1, double, "x times a factor", ("factor",))
    assert call("times", [np.array([1, 2], np.float16)], "[3.0]", kernels={"times": mine})[0].tolist() == [3, 6]
