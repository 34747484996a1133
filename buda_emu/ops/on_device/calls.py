"""The call of an op on the device, from the netlist's op; what is not emulated is refused here, before data flows."""

import warnings

from buda_emu.errors import StochasticRoundingWarning, UnsupportedError
from buda_emu.netlist.model import Op
from buda_emu.ops.base import OpCall
from buda_emu.ops.on_device import device_op
from buda_emu.ops.on_device.base import DeviceCall
from buda_emu.tensix.products.fidelity import PHASES
from buda_emu.tensix.words import Core


def device_call(call: OpCall, op: Op, core: Core) -> DeviceCall:
    """`call` with what matters on the chip besides: fidelity, core, gradient accumulation.

    Raises UnsupportedError; warns with StochasticRoundingWarning where the chip would round at random (4.7).
    """
    if op.math_fidelity not in PHASES:
        raise UnsupportedError(f"op {op.name}: math_fidelity {op.math_fidelity!r} is not one of {', '.join(PHASES)}")
    if op.gradient_op and op.intermed_df != op.out_df:
        raise UnsupportedError(
            f"op {op.name}: a gradient op keeps its sum in intermed_df {op.intermed_df}, its result is {op.out_df}"
        )
    if op.attributes.srnd_fpu_en or op.attributes.stoch_rnd_mode not in ("", "none"):
        warnings.warn(
            f"op {op.name} asks for stochastic rounding, which is not modelled: it rounds to nearest",
            StochasticRoundingWarning,
            stacklevel=2,
        )
    found = DeviceCall(call, core, op.math_fidelity, op.gradient_op)
    device_op(op.type).registers(found)
    return found
