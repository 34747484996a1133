"""Kernels of one input and one output, element by element."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.foreign.vpux.kernels import elementary as el
from buda_emu.foreign.vpux.kernels.declare import Array, Call, Kernel, fail_op, family

Floats = NDArray[np.float64]


def _gelu(x: Floats) -> Floats:
    return x / 2 * (1 + el.erf(x / np.sqrt(2.0)))


def _softplus(x: Floats) -> Floats:
    return np.where(x > 30, x + el.exp(-np.maximum(x, 30.0)), el.log(1 + el.exp(np.minimum(x, 30.0))))


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + el.exp(-x))


_PLAIN: Final[tuple[tuple[str, bool, str, Callable[[Floats], Floats]], ...]] = (
    ("relu", True, "max(x, 0)", lambda x: np.maximum(x, 0.0)),
    ("sigmoid", False, "1/(1 + e^-x)", _sigmoid),
    ("hswish", False, "x·clip(x + 3, 0, 6)/6", lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ("hsigmoid", False, "clip(x + 3, 0, 6)/6", lambda x: np.clip(x + 3, 0, 6) / 6),
    ("tanh", False, "tanh x", el.tanh),
    ("exp", False, "e^x", el.exp),
    ("log", False, "ln x", el.log),
    ("abs", True, "|x|", np.abs),
    ("floor", True, "the next integer below", np.floor),
    ("ceil", True, "the next integer above", np.ceil),
    ("sqrt", False, "√x", np.sqrt),
    ("erf", False, "erf x", el.erf),
    ("sin", False, "sin x", lambda x: el.sin_cos(x)[0]),
    ("cos", False, "cos x", lambda x: el.sin_cos(x)[1]),
    ("tan", False, "tan x", lambda x: np.divide(*el.sin_cos(x))),
    ("sinh", False, "sinh x", el.sinh),
    ("cosh", False, "cosh x", el.cosh),
    ("asin", False, "arcsin x", el.asin),
    ("acos", False, "arccos x", el.acos),
    ("atan", False, "arctan x", el.atan),
    ("asinh", False, "arsinh x", el.asinh),
    ("acosh", False, "arcosh x", el.acosh),
    ("atanh", False, "artanh x", el.atanh),
    ("sign", True, "-1, 0 or 1", np.sign),
    ("negative", True, "-x", np.negative),
    ("softplus", False, "ln(1 + e^x)", _softplus),
    ("mish", False, "x·tanh(softplus x)", lambda x: x * el.tanh(_softplus(x))),
    ("gelu", False, "x/2·(1 + erf(x/√2))", _gelu),
)


def _plain(function: Callable[[Floats], Floats]) -> Callable[[Call], Array]:
    return lambda call: function(call.inputs[0].floats)


def _clamp(call: Call) -> Array:
    return np.minimum(np.maximum(call.inputs[0].floats, call.number("lo")), call.number("hi"))


def _elu(call: Call) -> Array:
    x = call.inputs[0].floats
    return np.where(x > 0, x, call.number("a") * (el.exp(np.minimum(x, 0.0)) - 1))


def _selu(call: Call) -> Array:
    return call.number("l") * _elu(call)


def _hardsigmoid(call: Call) -> Array:
    return np.clip(call.number("a") * call.inputs[0].floats + call.number("b"), 0.0, 1.0)


def _swish(call: Call) -> Array:
    x = call.inputs[0].floats
    return x * _sigmoid(call.number("b") * x)


def _leaky(call: Call) -> Array:
    x = call.inputs[0].floats
    return np.where(x > 0, x, call.number("s") * x)


def _round(call: Call) -> Array:
    mode = call.integer("mode")
    if mode not in (0, 1):
        fail_op(f"round mode {mode}: 0 and 1 are known")
    x = call.inputs[0].floats
    if mode == 0:
        return np.rint(x)
    return np.trunc(x + np.copysign(0.5, x))


def _all() -> Iterator[Kernel]:
    for name, exact, text, function in _PLAIN:
        yield Kernel(f"activation_{name}", 1, _plain(function), text, exact=exact, keeps_shape=True)
    relu = _plain(_PLAIN[0][3])
    yield Kernel("relu_fp16", 1, relu, "max(x, 0)", keeps_shape=True)
    for name, compute, text, attributes, exact in (
        ("activation_clamp", _clamp, "min(max(x, lo), hi)", ("lo", "hi"), True),
        ("activation_elu", _elu, "x > 0: x, else a·(e^x - 1)", ("a",), False),
        ("activation_selu", _selu, "l·elu(x, a)", ("a", "l"), False),
        ("activation_hardsigmoid", _hardsigmoid, "clip(a·x + b, 0, 1)", ("a", "b"), False),
        ("activation_swish", _swish, "x·sigmoid(b·x)", ("b",), False),
        ("leaky_relu_fp16", _leaky, "x > 0: x, else s·x", ("s",), False),
        ("round_fp16", _round, "0 half to even, 1 half away from 0", ("mode",), True),
    ):
        yield Kernel(
            name=name, inputs=1, compute=compute, summary=text, attributes=attributes, exact=exact, keeps_shape=True
        )


KERNELS: Final = family("activations", tuple(_all()))
