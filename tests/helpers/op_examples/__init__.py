"""Example calls of every op type, and the check that an op's kernels give its reference's bits.

Of an op type that works tile by tile, examples follow from its declaration (`declared`). To cover another one, or to
try more, write a module with a function that returns its family's examples, and enter it in `FAMILIES`.
"""

from collections.abc import Callable

from buda_emu.spec.ops import OP_TYPES
from op_examples import elementwise, fused, matmul, moves, reduce
from op_examples.declared import declared
from op_examples.example import Example, assert_kernel_equals_reference

# family of spec.ops -> (op type -> its examples)
FAMILIES: dict[str, Callable[[str], list[Example]]] = {
    "unary": elementwise.copies,
    "ethernet": elementwise.copies,
    "binary": elementwise.binaries,
    "quantization": elementwise.quantizations,
    "sfpu": elementwise.sfpus,
    "reduce": reduce.reductions,
    "fused": fused.schedules,
    "matmul": matmul.products,
    "depthwise": matmul.depthwises,
    "splice": moves.splices,
    "embedding": moves.embeddings,
    "tilizer": moves.tilizers,
    "topk": moves.topks,
}


TYPES = tuple(op.name for op in OP_TYPES.values() if op.runs)


def examples_of(type: str) -> list[Example]:
    """The examples of one op type: its family's, else those of its declaration."""
    return FAMILIES.get(OP_TYPES[type].family, declared)(type)


def examples() -> list[Example]:
    """All examples of all op types."""
    return [example for type in TYPES for example in examples_of(type)]


__all__ = ["FAMILIES", "TYPES", "Example", "assert_kernel_equals_reference", "declared", "examples", "examples_of"]
