"""Every op of precision "device": its kernels give the bits of its reference, for formats and architectures."""

from dataclasses import replace

import numpy as np
import pytest

from buda_emu.arithmetic.formats.stored import Bits
from buda_emu.emulator.ops.on_device import device_op
from buda_emu.emulator.ops.on_device.base import reference
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import UnsupportedError
from op_examples import FAMILIES, examples_of
from op_examples.device import DeviceExample, Formats, device_examples, outcome

# What the device cannot do, or the reference refuses, in words of the error.
REFUSED = (
    "does not run on the device", "gelu of integers", "has no elements of its own", "is beyond a table",
    "needs an encoding of RawUInt32",
)  # fmt: skip


def of_type(type: str) -> list[DeviceExample]:
    return list(device_examples(examples_of(type)))


TYPES = [op.name for op in OP_TYPES.values() if op.device]


@pytest.mark.parametrize("type", TYPES)
def test_kernels_equal_the_reference(type: str):
    found = of_type(type)
    failures = [text for example in found if (text := outcome(example, (1,)))]
    assert all(any(words in text for words in REFUSED) for text in failures)
    assert len(failures) <= len(found) / 2


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("entries", [(2,), (1, 3), (3, 1)], ids=["two entries", "first repeated", "second repeated"])
def test_an_operand_may_be_one_entry_for_all(type: str, entries: tuple[int, ...]):
    for example in [one for one in of_type(type) if not one.gradient][:3]:
        outcome(example, entries, seed=2)


@pytest.mark.tiny
@pytest.mark.parametrize("type", [type for type in TYPES if type not in ("matmul", "depthwise")])
def test_first_example_of_each_type(type: str):
    """Also with NUMBA_DISABLE_JIT=1, where all examples would take minutes, and products of tiles do."""
    outcome(of_type(type)[0], (1,))


@pytest.mark.parametrize("out_df", ["Float16_b", "Float32"])
def test_identity_matmul_that_adds_in_l1(out_df: str):
    """Rows of tiles with products of one strip, of several and of none are neighbours."""
    formats = Formats("wormhole_b0", "Float16_b", out_df, "Float16_b", "Float16_b", "LoFi")
    found = [one for one in FAMILIES["matmul"]("matmul") if one.call.attributes.identity]
    assert found
    for example in found:
        op = replace(example.call, attributes=replace(example.call.attributes, l1_acc=True))
        outcome(DeviceExample(replace(example, call=op), formats), (1,))


@pytest.mark.parametrize("df", ["Float16_b", "Float16", "Bfp8_b", "Bfp8", "Bfp4_b", "Bfp2"])
def test_a_datacopy_keeps_what_its_units_hold(df: str):
    example = FAMILIES["unary"]("datacopy")[0]
    call = DeviceExample(replace(example, values=("plain",)), Formats("wormhole_b0", df, df, df, df, "HiFi4")).call()
    bits = Bits.encode(df, np.random.default_rng(0).normal(0, 2, (1, 4, 1024)).astype(np.float32))
    assert np.array_equal(reference(call, [bits]).datums, bits.datums)


def test_a_type_that_cannot_run_is_refused():
    with pytest.raises(UnsupportedError, match="drainer"):
        device_op("drainer")
