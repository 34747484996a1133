"""DEVICE_NUMERICS 1.1, row by row."""

import pytest

from buda_emu.arithmetic.tensix.registers import OpRegisters, core_of, op_registers
from buda_emu.support.errors import UnsupportedError

pytestmark = pytest.mark.tiny

HALF, BRAIN, SINGLE = "Float16", "Float16_b", "Float32"

# inputs, out_df, intermed_df, acc_df -> registers of the inputs, of the intermediate, Dst
# fmt: off
CASES = [
    ((BRAIN, "Bfp4_b"), BRAIN, BRAIN, BRAIN, (BRAIN, "Bfp8_b"), BRAIN, "bf16"),
    ((HALF, "Bfp2", "Lf8"), HALF, "Bfp8", HALF, (HALF, "Bfp8", "Lf8"), "Bfp8", "fp16"),
    ((BRAIN,), SINGLE, SINGLE, SINGLE, (BRAIN,), "Tf32", "fp32"),
    ((SINGLE, BRAIN), BRAIN, SINGLE, SINGLE, ("Tf32", BRAIN), "Tf32", "fp32"),
    ((SINGLE, SINGLE), SINGLE, SINGLE, SINGLE, ("Tf32", "Tf32"), "Tf32", "fp32"),
    ((SINGLE, HALF), HALF, SINGLE, SINGLE, (HALF, HALF), HALF, "fp32"),  # family A has no Tf32
    ((SINGLE, HALF), HALF, HALF, HALF, (HALF, HALF), HALF, "fp16"),
    ((SINGLE, BRAIN), BRAIN, BRAIN, BRAIN, (BRAIN, BRAIN), BRAIN, "bf16"),
    ((SINGLE,), SINGLE, SINGLE, HALF, (HALF,), HALF, "fp16"),  # computed in fp16
    ((SINGLE,), BRAIN, SINGLE, BRAIN, (BRAIN,), BRAIN, "bf16"),
    ((SINGLE,), HALF, SINGLE, BRAIN, (HALF,), HALF, "fp16"),
    ((SINGLE,), SINGLE, BRAIN, BRAIN, (BRAIN,), BRAIN, "bf16"),  # the intermediate's family
    (("RawUInt16", SINGLE), BRAIN, BRAIN, BRAIN, (HALF, BRAIN), BRAIN, "bf16"),
    (("Int8", "UInt8"), "Int32", "Int32", "Int32", ("Int8", "UInt8"), "Int32", "int32"),
    (("Int32", SINGLE), "Int8", "Int32", "Int32", ("Int32", SINGLE), "Int32", "int32"),
    ((SINGLE, SINGLE), "Int8", "Int32", "Int32", (SINGLE, SINGLE), "Int32", "int32"),  # quantization
]
# fmt: on


@pytest.mark.parametrize(("inputs", "out", "intermed", "acc", "registers", "back", "dst"), CASES)
def test_registers_of_an_op(inputs, out, intermed, acc, registers, back, dst):
    assert op_registers(inputs, out, intermed, acc, "wormhole_b0") == OpRegisters(registers, back, dst)


def test_families_do_not_mix():
    with pytest.raises(UnsupportedError, match="mix"):
        op_registers((HALF, "Bfp8_b"), HALF, HALF, HALF, "wormhole_b0")


@pytest.mark.parametrize("place", range(3))
def test_e4m3_is_blackholes(place):
    formats = [HALF, HALF, HALF]
    formats[place] = "Fp8_e4m3"
    read, out, intermed = formats
    assert op_registers((read,), out, intermed, HALF, "blackhole").dst == "fp16"
    with pytest.raises(UnsupportedError, match="Fp8_e4m3 is a format of blackhole"):
        op_registers((read,), out, intermed, HALF, "wormhole_b0")


@pytest.mark.parametrize(("inputs", "acc"), [((SINGLE,), SINGLE), (("Int8",), "Int32")])
def test_grayskull_has_no_wide_dst(inputs, acc):
    with pytest.raises(UnsupportedError, match="Grayskull"):
        op_registers(inputs, inputs[0], inputs[0], acc, "grayskull")


def test_an_architecture_without_documents_has_no_core():
    assert core_of("wormhole") == "wormhole_b0"
    with pytest.raises(UnsupportedError, match="jawbridge"):
        core_of("jawbridge")
