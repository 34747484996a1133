"""FULLY_CONNECTED."""

from math import prod

import numpy as np

from buda_emu.foreign.darwinn.tflite import WEIGHTS_FORMATS, FullyConnectedOptions
from buda_emu.foreign.darwinn.twin.graph import Array
from buda_emu.foreign.darwinn.twin.operators.base import Call, Value, operator
from buda_emu.foreign.darwinn.twin.rounding import Ints, multiplier, multipliers, scaled_once
from buda_emu.support.checker.text import plural


@operator(9, "uint8, int8; a scale for each channel: int8")
def fully_connected(call: Call) -> list[Array]:
    """Sums over rows of weights, rescaled with one multiplier or one for each output channel, and rounded once."""
    options = call.option(FullyConnectedOptions)
    x, w, bias, y = call.input(0), call.input(1), call.optional(2), call.output()
    call.types((x.tensor, y), "uint8", "int8")
    if not x.tensor.type == w.tensor.type == y.type:
        raise call.refuse(f"{x.tensor.type} with weights of {w.tensor.type} to {y.type}")
    _refuse_variants(call, options)
    per_channel = len(w.tensor.scale) > 1
    if per_channel:
        _check_channel_scales(call, w)
    zw = 0 if per_channel else call.quantised(w.tensor)[1]  # the kernel ignores zero points of channels
    _, zx = call.quantised(x.tensor)
    rows = x.array.reshape(-1, w.array.shape[1]).astype(np.int64) - zx
    sums = rows @ (w.array.astype(np.int64) - zw).T
    if bias is not None:
        sums += bias.array.astype(np.int64).reshape(-1)
    values = _rescale(call, sums) + call.quantised(y)[1]
    if values.size != prod(y.shape):
        raise call.refuse(f"an output of shape {y.shape} from {values.shape}")
    return [call.clamped(values, options.act).reshape(y.shape)]


def _rescale(call: Call, sums: Ints) -> Ints:
    """Bring sums to the output's scale, with one multiplier or one for each output channel."""
    sx, _ = call.quantised(call.input(0).tensor)
    sy, _ = call.quantised(call.output())
    reals = [sx * sw / sy for sw in call.input(1).tensor.scale]
    return scaled_once(sums, multipliers(reals) if len(reals) > 1 else multiplier(reals[0]))


def _refuse_variants(call: Call, options: FullyConnectedOptions) -> None:
    x, w, bias = call.input(0), call.input(1), call.optional(2)
    if options.weights_format:
        name = WEIGHTS_FORMATS.get(options.weights_format, str(options.weights_format))
        raise call.refuse(f"weights format {name}")
    if w.array.ndim != 2 or not w.array.size or x.array.size % w.array.shape[1]:
        raise call.refuse(f"input of shape {x.array.shape} with weights of shape {w.array.shape}")
    if options.keep_num_dims and (not x.array.ndim or x.array.shape[-1] != w.array.shape[1]):
        raise call.refuse(f"keep_num_dims for an input of shape {x.array.shape} with weights of shape {w.array.shape}")
    if bias is not None:
        call.types((bias.tensor,), "int32")
        if bias.array.size != w.array.shape[0]:
            raise call.refuse(f"a bias of {bias.array.size} for {plural(w.array.shape[0], 'channel')}")


def _check_channel_scales(call: Call, weights: Value) -> None:
    """Refuse scales per channel that are not one positive number for each row of int8 weights."""
    call.types((weights.tensor,), "int8")
    scales, axis = weights.tensor.scale, weights.tensor.axis
    if len(scales) != weights.array.shape[0] or axis != 0:
        raise call.refuse(f"weights with {plural(len(scales), 'scale')} along dimension {axis}")
    if not all(np.isfinite(scale) and scale > 0 for scale in scales):
        raise call.refuse("a scale that is not a positive number")
