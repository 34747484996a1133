"""Example calls of every op type, and the check that an op's kernels give its reference's bits.

To cover an op family, write a module with a function that returns its examples, and enter it in `FAMILIES`.
"""

from collections.abc import Callable

from buda_emu.spec.ops import OP_TYPES
from op_examples import elementwise, fused, matmul, moves, reduce
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


def examples() -> list[Example]:
    """All examples of all op types."""
    return [example for op in OP_TYPES.values() if op.family in FAMILIES for example in FAMILIES[op.family](op.name)]


__all__ = ["FAMILIES", "Example", "assert_kernel_equals_reference", "examples"]
