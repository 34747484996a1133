"""The one test that every op type passes through: its kernels give the bits of its reference."""

import numpy as np
import pytest

from buda_emu.emulator import ops
from buda_emu.emulator.ops.common import relu
from buda_emu.emulator.ops.operands import run_onto, run_relu
from buda_emu.spec.ops import OP_TYPES
from op_examples import FAMILIES, TYPES, Example, assert_kernel_equals_reference, declared, examples, examples_of
from op_examples.declared import is_covered


def test_every_op_type_has_examples():
    assert all(examples_of(type) for type in TYPES)
    assert set(FAMILIES) <= {op.family for op in OP_TYPES.values()}


DECLARED = [example for type in TYPES if is_covered(OP_TYPES[type]) for example in declared(type)]


@pytest.mark.parametrize("example", DECLARED, ids=str)
def test_an_op_holds_to_its_declaration(example: Example):
    """Whatever its declaration says of operands, tiles and attributes."""
    assert_kernel_equals_reference(example, entries=(1, 2))


@pytest.mark.parametrize("example", examples(), ids=str)
def test_kernel_equals_reference(example: Example):
    assert_kernel_equals_reference(example)


@pytest.mark.tiny
@pytest.mark.parametrize("type", TYPES)
def test_first_example_of_each_type(type: str):
    """Also with NUMBA_DISABLE_JIT=1, where all examples would take minutes."""
    assert_kernel_equals_reference(examples_of(type)[0], entries=(1,))


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
