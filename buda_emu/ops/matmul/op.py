"""matmul, dense or identity (sparse): product, then bias, requantisation and gelu (OPS 6.1, 6.2).

What makes sparse products is imported by the netlists that have them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from buda_emu.errors import ProgramError
from buda_emu.kernels.products.matmul import AS_IT_IS, ONTO, PLUS, PLUS_ROW, Ending
from buda_emu.lazy import lazy
from buda_emu.ops.base import OpCall, Parallel, Relu, Tiles, implements
from buda_emu.ops.common import blank, operand_map, relu_arguments
from buda_emu.ops.matmul import dense
from buda_emu.ops.matmul.tail import check_tail, follows_bias, integer_mode, reference_tail, run_bias, run_tail
from buda_emu.ops.operands import all_entries, plain
from buda_emu.spec.blocking import Shape

if TYPE_CHECKING:
    from buda_emu.ops.matmul import sparse
else:
    sparse = lazy("buda_emu.ops.matmul.sparse")

DENSE_OPERANDS: Final = 2
SPARSE_OPERANDS: Final = 3


def _product_operands(call: OpCall) -> int:
    """How many inputs the product takes; bias and scale follow."""
    return SPARSE_OPERANDS if call.attributes.identity else DENSE_OPERANDS


def _is_one_kernel(call: OpCall) -> bool:
    """Whether the kernel of the product adds the bias as well."""
    return not (call.attributes.identity or call.attributes.accumulate)


def _is_all(call: OpCall) -> bool:
    """Whether that is all: nothing comes after the bias."""
    known: bool | None = call.fixed.get("is_all")
    if known is None:
        known = call.fixed["is_all"] = _is_one_kernel(call) and not follows_bias(call)
    return known


def _ending(call: OpCall, inputs: Sequence[Tiles], relu: Relu | None) -> Ending:
    """What the kernel of a dense product does with it: bias and relu."""
    known: tuple[Relu | None, int, int, Any] | None = call.fixed.get("ending")
    if known is None or known[0] != relu:
        if call.attributes.bias:
            how, number = PLUS if integer_mode(call) else PLUS_ROW, DENSE_OPERANDS
        else:
            how, number = AS_IT_IS, 0  # any operand will do
        index, pad_value, _ = operand_map(call, number)
        after: Any = index, pad_value, *relu_arguments(relu)
        known = call.fixed["ending"] = relu, how, number, after
    _, how, number, after = known
    return Ending(how, inputs[number], *after)


@implements("matmul")
class Matmul:
    """in0 (T, R, K) by in1 (T, K, C); with `identity: true` sparse tiles, activations and an encoding."""

    def shape(self, call: OpCall) -> Shape:
        """(T, R, C), T / z with accumulate; the declared shape with identity."""
        first = _product_operands(call)
        if len(call.operands) < first:
            raise ProgramError(f"op {call.name}: matmul needs {first} inputs, it has {len(call.operands)}")
        if call.attributes.identity:
            shape = sparse.product_shape(call)
        else:
            shape = dense.product_shape(call)
        check_tail(call, first, shape)
        return shape

    def label(self, call: OpCall) -> str:
        """Label of input 0, with identity the declared out_df (OPS 3.1)."""
        return call.out_df if call.attributes.identity else call.operands[0].label

    def reference(self, call: OpCall, inputs: Sequence[Tiles]) -> Tiles:
        in0, in1, *others = all_entries(inputs)
        left = blank(in0, call.operands[0].tile_dim)
        right = blank(np.swapaxes(in1, -1, -2) if call.transpose else in1, call.operands[1].tile_dim)
        if call.attributes.identity:
            encoding, *others = others
            product = sparse.reference_product(call, left, right, encoding)
        else:
            product = dense.reference_product(call, left, right)
        return reference_tail(call, product, others)

    def run(self, call: OpCall, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        if self.run_relu(call, inputs, None, out, parallel):
            return
        if _is_one_kernel(call):
            dense.run_product(call, inputs, out, parallel, _ending(call, inputs, None))
        else:
            if call.attributes.identity:
                sparse.run_product(call, inputs, out, parallel)
            else:
                dense.run_product(call, inputs, out, parallel)
            run_bias(call, inputs, out, parallel, _product_operands(call))
        run_tail(call, inputs, out, parallel)

    def run_relu(
        self, call: OpCall, inputs: Sequence[Tiles], relu: Relu | None, out: Tiles, parallel: Parallel
    ) -> bool:
        """With relu at the end; see `buda_emu.ops.operands.run_relu`."""
        if not _is_all(call):
            return False
        dense.run_product(call, inputs, out, parallel, _ending(call, inputs, relu))
        return True

    def run_onto(self, call: OpCall, inputs: Sequence[Tiles], previous: Tiles, out: Tiles, parallel: Parallel) -> bool:
        """The sum of gradients; see `buda_emu.ops.operands.run_onto`."""
        if call.attributes.bias or not _is_all(call):
            return False
        dense.run_product(call, inputs, out, parallel, Ending(ONTO, *plain(previous)[:3]))
        return True
