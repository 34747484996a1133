"""The one test that every op type passes through: its kernels give the bits of its reference."""

import pytest

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
