"""Examples of ops on the device: those of the other precisions, on bits of formats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.arithmetic.tensix.registers import Core
from buda_emu.emulator.ops.base import Parallel, serial
from buda_emu.emulator.ops.on_device.base import DeviceCall, result_shape, run
from buda_emu.emulator.ops.on_device.kernel_units import KernelUnits
from buda_emu.emulator.ops.on_device.reference_units import ReferenceUnits
from buda_emu.emulator.ops.on_device.units import Units
from buda_emu.spec.formats import is_integer
from buda_emu.support.errors import BudaError
from op_examples.example import Example, sources_of, uneven


@dataclass(frozen=True)
class Formats:
    """Of one use of an op: operands, result, intermediate buffer, Dst, and how it multiplies."""

    core: Core
    in_df: str
    out_df: str
    intermed_df: str
    acc_df: str
    fidelity: str

    def __str__(self) -> str:
        return "-".join((self.core, self.in_df, self.out_df, self.intermed_df, self.acc_df, self.fidelity))


FLOATS = (
    Formats("wormhole_b0", "Float16_b", "Float16_b", "Float16_b", "Float16_b", "HiFi3"),
    Formats("blackhole", "Float16", "Float16", "Float16", "Float16", "HiFi2"),
    Formats("grayskull", "Bfp8", "Float16", "Bfp8", "Float16", "LoFi"),
    Formats("wormhole_b0", "Bfp8_b", "Bfp8_b", "Float32", "Float32", "HiFi2_B"),
    Formats("blackhole", "Float32", "Float32", "Float32", "Float32", "HiFi4"),
    Formats("wormhole_b0", "Float32", "Float32", "Float32", "Float16", "HiFi4"),
    Formats("wormhole_b0", "Float16", "Bfp4", "Float16", "Float32", "HiFi2_A"),
    Formats("wormhole_b0", "Bfp4_b", "Float32", "Float16_b", "Float16_b", "LoFi"),
)
RAW = (Formats("wormhole_b0", "RawUInt32", "RawUInt32", "Float32", "Float32", "HiFi4"),)
INTEGERS = (
    Formats("wormhole_b0", "Int8", "Int32", "Int32", "Int32", "HiFi4"),
    Formats("blackhole", "UInt8", "UInt8", "Int32", "Int32", "HiFi4"),
)


@dataclass(frozen=True)
class DeviceExample:
    """An example of the other precisions with formats."""

    example: Example
    formats: Formats
    gradient: bool = False

    def __str__(self) -> str:
        return f"{self.example}-{self.formats}" + ("-gradient" if self.gradient else "")

    def call(self) -> DeviceCall:
        """With the labels that a plan would give."""
        formats, op = self.formats, self.example.call
        operands = [replace(one, label=formats.in_df) for one in op.operands]
        if op.attributes.identity:
            operands[2] = op.operands[2]
        if op.type == "embedding":
            operands[1] = replace(op.operands[1], label="RawUInt32")
        if op.type == "topk":
            operands[1] = replace(op.operands[1], label="UInt16")
        if op.type == "matmul" and is_integer(formats.in_df):
            if op.attributes.bias and not op.attributes.identity:
                operands[2] = replace(operands[2], label="Int32")
            if op.attributes.requant or op.attributes.dequant:
                operands[-1] = replace(operands[-1], label="Float32")
        if op.type in ("requantization", "dequantization"):
            operands[1] = replace(operands[1], label="Float32")
        out_df = formats.out_df
        if op.type == "topk" and op.attributes.sort != "max":
            out_df = "UInt16"
        if op.type == "dequantization" or op.attributes.dequant:
            out_df = "Float32"
        if op.type == "ethernet_datacopy":
            out_df = formats.in_df
        intermed = out_df if self.gradient else formats.intermed_df
        made = replace(op, operands=tuple(operands), out_df=out_df, intermed_df=intermed, acc_df=formats.acc_df)
        return DeviceCall(made, formats.core, formats.fidelity, self.gradient)

    def inputs(self, call: DeviceCall, entries: Sequence[int], seed: int) -> list[Bits]:
        """Sources as stored bits, [w, tiles] each."""
        values = sources_of(self.example, entries, seed)
        return [
            Bits.encode(operand.label, _fitting(operand.label, value).reshape(len(value), -1, 1024))
            for operand, value in zip(call.op.operands, values, strict=True)
        ]


def _fitting(df: str, values: np.ndarray) -> np.ndarray:
    if not is_integer(df) or df == "UInt16":
        return values
    return np.clip(np.rint(np.nan_to_num(values)), -1e9, 1e9).astype(np.float32)


def integer_formats(type: str) -> tuple[Formats, ...]:
    """What an integer op of a type takes."""
    if type == "quantization":
        return (Formats("wormhole_b0", "Float32", "Int8", "Int32", "Int32", "HiFi4"),)
    if type in ("requantization", "dequantization"):
        return (Formats("blackhole", "Int32", "Int8", "Int32", "Int32", "HiFi4"),)
    return INTEGERS if type in ("nop", "datacopy", "add", "subtract", "multiply", "maximum", "matmul") else ()


def formats_of(type: str) -> tuple[Formats, ...]:
    """All that an op type is tried with."""
    if type in ("quantization", "requantization", "dequantization"):
        return integer_formats(type)
    raw = RAW if type in ("nop", "datacopy", "splice", "tilizer") else ()
    return (*FLOATS, *raw, *integer_formats(type))


def device_examples(found: Sequence[Example]) -> Iterator[DeviceExample]:
    """Each example with two of its type's formats, in turns, and as a gradient op where there is such.

    Of an identity matmul one of each encoding has weights with zeros; the reference is slow, and what acts hold is the
    product's own matter, which dense examples try.
    """
    kept = [example for example in found if not str(example).endswith("sparse weights, plain")]
    for number, example in enumerate(kept):
        formats = formats_of(example.call.type)
        for step in (0,) if example.call.type == "matmul" else (0, 3):
            yield DeviceExample(example, formats[(number + step) % len(formats)])
        attributes = example.call.attributes
        plain = not (attributes.bias or attributes.requant or attributes.dequant or attributes.identity)
        if example.call.type in ("matmul", "add", "multiply", "nop") and plain and attributes.sfpu_op != "gelu":
            yield DeviceExample(example, FLOATS[number % 4], gradient=True)


def outcome(example: DeviceExample, entries: Sequence[int], seed: int = 1) -> str:
    """Asserts that kernels give the reference's bits, or fail as it does; what came of it."""
    call = example.call()
    inputs = example.inputs(call, entries, seed)
    kept = [bits.copy() for bits in inputs]
    previous = None
    if example.gradient:
        t, rows, cols = result_shape(call)
        values = np.random.default_rng(seed + 1).normal(0, 2, (1, t * rows * cols, 1024)).astype(np.float32)
        previous = Bits.encode(call.op.out_df, values)
    expected = _attempt(call, inputs, previous, ReferenceUnits(call.core), serial)
    found = _attempt(call, inputs, previous, KernelUnits(call.core), uneven)
    for bits, before in zip(inputs, kept, strict=True):
        np.testing.assert_array_equal(bits.datums, before.datums)
    if not isinstance(expected, Bits) or not isinstance(found, Bits):
        assert expected == found
        return str(expected)
    np.testing.assert_array_equal(found.datums, expected.datums)
    np.testing.assert_array_equal(found.exponents, expected.exponents)
    return ""


def _attempt(
    call: DeviceCall, inputs: Sequence[Bits], previous: Bits | None, units: Units, parallel: Parallel
) -> Bits | str:
    """The result, or the error in words."""
    try:
        t, rows, cols = result_shape(call)
        out = Bits.empty(call.op.out_df, max(map(len, inputs)), t * rows * cols)
        out.datums[...] = 0xA5
        run(call, inputs, out, previous, units, parallel)
    except BudaError as error:
        return f"{type(error).__name__}: {error}"
    return out
