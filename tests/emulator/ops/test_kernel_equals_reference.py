"""The one test that every op type passes through: its kernels give the bits of its reference."""

import numpy as np
import pytest

from buda_emu.emulator import ops
from buda_emu.emulator.ops.common import relu
from buda_emu.emulator.ops.operands import run_onto, run_relu
from buda_emu.spec.ops import OP_TYPES
from op_examples import FAMILIES, Example, assert_kernel_equals_reference, examples


def test_every_family_has_examples():
    assert {op.family for op in OP_TYPES.values()} - {"refused"} == set(FAMILIES)


@pytest.mark.parametrize("example", examples(), ids=str)
def test_kernel_equals_reference(example: Example):
    assert_kernel_equals_reference(example)


@pytest.mark.tiny
@pytest.mark.parametrize("type", [op.name for op in OP_TYPES.values() if op.family in FAMILIES])
def test_first_example_of_each_type(type: str):
    """Also with NUMBA_DISABLE_JIT=1, where all examples would take minutes."""
    assert_kernel_equals_reference(FAMILIES[OP_TYPES[type].family](type)[0], entries=(1,))


@pytest.mark.parametrize("example", examples()[::7], ids=str)
@pytest.mark.parametrize("entries", [(1,), (1, 3), (3, 1)], ids=["one entry", "first repeated", "second repeated"])
def test_an_operand_may_be_one_entry_for_all(example: Example, entries: tuple[int, ...]):
    assert_kernel_equals_reference(example, entries, seed=2)


@pytest.mark.parametrize("example", examples(), ids=str)
@pytest.mark.parametrize("mode", ["min", "max"])
def test_relu_may_be_done_at_once(example: Example, mode: str):
    def kernels(call, inputs, out, parallel):
        run_relu(ops.implementation(call.type), call, inputs, (mode, 0.5), out, parallel)

    assert_kernel_equals_reference(example, kernels=kernels, after=lambda result: relu(result, mode, 0.5))


@pytest.mark.parametrize("example", examples(), ids=str)
def test_a_sum_of_gradients_may_be_done_at_once(example: Example):
    def previous(result):
        return np.random.default_rng(4).standard_normal(result.shape, np.float32)

    def kernels(call, inputs, out, parallel):
        run_onto(ops.implementation(call.type), call, inputs, previous(out), out, parallel)

    def sum_of(result):
        with np.errstate(all="ignore"):
            return previous(result) + result

    assert_kernel_equals_reference(example, kernels=kernels, after=sum_of)
