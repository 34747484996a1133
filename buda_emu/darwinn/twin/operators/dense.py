"""FULLY_CONNECTED."""

import numpy as np

from buda_emu.darwinn.tflite import FullyConnectedOptions
from buda_emu.darwinn.twin.graph import Array
from buda_emu.darwinn.twin.operators.base import Call, operator
from buda_emu.darwinn.twin.rounding import multiplier, scaled_once


@operator(9, "uint8, int8")
def fully_connected(call: Call) -> list[Array]:
    """Sums over rows of weights, rescaled and rounded once."""
    options = call.option(FullyConnectedOptions)
    x, w, bias, y = call.input(0), call.input(1), call.optional(2), call.output()
    call.types((x.tensor, y), "uint8", "int8")
    if not x.tensor.type == w.tensor.type == y.type:
        raise call.refuse(f"{x.tensor.type} with weights of {w.tensor.type} to {y.type}")
    if w.array.ndim != 2 or not w.array.size or x.array.size % w.array.shape[1]:
        raise call.refuse(f"input of shape {x.array.shape} with weights of shape {w.array.shape}")
    (sx, zx), (sw, zw), (sy, zy) = (call.quantised(item) for item in (x.tensor, w.tensor, y))
    rows = x.array.reshape(-1, w.array.shape[1]).astype(np.int64) - zx
    sums = rows @ (w.array.astype(np.int64) - zw).T
    if bias is not None:
        call.types((bias.tensor,), "int32")
        if bias.array.size != w.array.shape[0]:
            raise call.refuse(f"a bias of {bias.array.size} for {w.array.shape[0]} channels")
        sums += bias.array.astype(np.int64).reshape(-1)
    values = scaled_once(sums, multiplier(sx * sw / sy)) + zy
    if values.size != int(np.prod(y.shape)):
        raise call.refuse(f"an output of shape {y.shape} from {values.shape}")
    return [call.clamped(values, options.act).reshape(y.shape)]
