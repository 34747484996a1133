"""UNIDIRECTIONAL_SEQUENCE_LSTM."""

from typing import Any, NamedTuple

import numpy as np

from buda_emu.foreign.darwinn.tflite import SequenceLstmOptions
from buda_emu.foreign.darwinn.twin.graph import Array
from buda_emu.foreign.darwinn.twin.operators.base import Call, operator
from buda_emu.foreign.darwinn.twin.rounding import Ints, Multiplier, logistic, multiplier, right, scaled, tanh
from buda_emu.support.checker.text import plural

_X, _W, _V, _BIASES, _H, _C = 0, range(1, 5), range(5, 9), range(12, 16), 18, 19
_NOT_COMPUTED = (9, 10, 11, 16, 17, 20, 21, 22, 23)  # peephole, projection, layer norm
_GATE_BITS, _BITS, _TANH = 3, 16, 4
_GATE_SCALE = np.float32(4096)


class _Gate(NamedTuple):
    w: Ints
    v: Ints
    bias: Ints  # with the part of the zero point
    recurrent_bias: Ints
    by: Multiplier
    recurrent_by: Multiplier


@operator(44, "int8, state int8 and int16")
def sequence_lstm(call: Call) -> list[Array]:
    """A long short-term memory over time, in fixed point; its state is kept from run to run."""
    options = call.option(SequenceLstmOptions)
    x, y, h, c = call.input(_X), call.output(), call.input(_H), call.input(_C)
    _refuse_variants(call, options)
    sequence = x.array.astype(np.int64) if options.time_major else x.array.astype(np.int64).swapaxes(0, 1)
    gates = [_gate(call, number) for number in range(4)]
    power = _power(call, c.tensor.scale)
    scale, zero = call.quantised(call.intermediates[4])
    by = multiplier(float(np.float32(2.0**-30 / scale)))
    clip = min(int(options.cell_clip / 2.0**power), 32767) if options.cell_clip > 0 else None
    hidden, cell = h.array.astype(np.int64), c.array.astype(np.int64)
    steps: list[Ints] = []
    for step in sequence:
        acts = [_sat16(scaled(step @ gate.w.T + gate.bias, gate.by)) for gate in gates]
        acts = [
            _sat16(a + scaled(hidden @ gate.v.T + gate.recurrent_bias, gate.recurrent_by))
            for a, gate in zip(acts, gates, strict=True)
        ]
        i, f, o = (logistic(acts[number], _GATE_BITS, _BITS) for number in (0, 1, 3))
        g = tanh(acts[2], _GATE_BITS, _BITS)
        cell = _sat16(right(f * cell, 15) + right(i * g, 30 + power))
        cell = cell if clip is None else np.clip(cell, -clip, clip)
        hidden = np.clip(scaled(o * tanh(cell, 15 + power, _BITS), by) + zero, -128, 127)
        steps.append(hidden)
    call.state[h.tensor.name] = hidden.astype(h.tensor.dtype)
    call.state[c.tensor.name] = cell.astype(c.tensor.dtype)
    out: Any = np.stack(steps).astype(y.dtype)
    return [call.shaped(np.ascontiguousarray(out if options.time_major else out.swapaxes(0, 1)))]


def _refuse_variants(call: Call, options: SequenceLstmOptions) -> None:
    x, h, c = call.input(_X), call.input(_H), call.input(_C)
    call.types((x.tensor, h.tensor, call.output()), "int8")
    call.types((c.tensor,), "int16")
    extra = [number for number in _NOT_COMPUTED if call.optional(number) is not None]
    if extra:
        raise call.refuse(f"input {extra[0]} (peephole, projection or layer norm)")
    if any(call.optional(number) is None for number in (*_W, *_V, *_BIASES)):
        raise call.refuse("a gate without weights or bias (coupled gates)")
    if options.act != _TANH or options.proj_clip > 0:
        raise call.refuse(f"activation {options.act} or a projection clip of {options.proj_clip}")
    units, inputs = call.input(_W[0]).array.shape[0], x.array.shape[-1]
    shapes = [(_W, (units, inputs)), (_V, (units, units)), (_BIASES, (units,))]
    if x.array.ndim != 3 or not x.array.size or len(call.intermediates) < 5:
        raise call.refuse(f"input of shape {x.array.shape} with {plural(len(call.intermediates), 'intermediate')}")
    for numbers, shape in shapes:
        for number in numbers:
            call.types((call.input(number).tensor,), "int32" if numbers is _BIASES else "int8")
            if call.input(number).array.shape != shape:
                raise call.refuse(f"input {number} of shape {call.input(number).array.shape}, not {shape},")
    batch = x.array.shape[1 if options.time_major else 0]
    if not h.array.shape == c.array.shape == (batch, units):
        raise call.refuse(f"state of shapes {h.array.shape} and {c.array.shape}")


def _gate(call: Call, number: int) -> _Gate:
    x, h = call.input(_X).tensor, call.input(_H).tensor
    w, v, bias = call.input(_W[number]), call.input(_V[number]), call.input(_BIASES[number])
    (sx, zx), (sh, zh) = call.quantised(x), call.quantised(h)
    weights, recurrent = w.array.astype(np.int64), v.array.astype(np.int64)
    return _Gate(
        weights,
        recurrent,
        bias.array.astype(np.int64) - zx * weights.sum(axis=1),
        -zh * recurrent.sum(axis=1),
        multiplier(float(np.float32(np.float32(call.quantised(w.tensor)[0]) * np.float32(sx)) * _GATE_SCALE)),
        multiplier(float(np.float32(np.float32(call.quantised(v.tensor)[0]) * np.float32(sh)) * _GATE_SCALE)),
    )


def _power(call: Call, scale: tuple[float, ...]) -> int:
    """s of a cell state of scale 2^s."""
    fraction, exponent = np.frexp(scale[0] if len(scale) == 1 else 0.0)
    if fraction != 0.5 or not -15 <= exponent - 1 <= 0:
        raise call.refuse(f"a cell state of scale {scale}")
    return int(exponent) - 1


def _sat16(values: Any) -> Ints:
    return np.clip(values, -(1 << 15), (1 << 15) - 1)
