"""depthwise: products of column groups with rows of weight tiles. Bias and requantisation are those of matmul."""

from collections.abc import Sequence

import numpy as np

from buda_emu.arithmetic.kernels.products.sparse import mark_finite_tiles
from buda_emu.arithmetic.kernels.products.tile_product import depthwise_tiles
from buda_emu.arithmetic.kernels.tiles import tile_memory
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Tiles, implements
from buda_emu.emulator.ops.common import blank, items, kernel_operand, require_operands
from buda_emu.emulator.ops.matmul import add_bias, require_full_shape
from buda_emu.emulator.ops.matmul_sparse import tile_product
from buda_emu.emulator.ops.operands import all_entries, blank_in_place, run_add
from buda_emu.spec.blocking import Shape
from buda_emu.support.errors import ProgramError


@implements("depthwise")
class Depthwise(Implementation):
    """A depthwise product of in0 (T, R, m_k * C) and in1 (T, m_k, C): out[t][r][c] = sum over k of in0[t][r][c + k * C]
    x in1[t][k][c]."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return (T, R, C). Raises ProgramError where the dims do not match."""
        attributes = call.attributes
        require_operands(call, 2 + attributes.bias)
        (t, rows, inner), weights = (operand.map.shape for operand in call.operands[:2])
        if attributes.u_kt != 1:
            raise ProgramError(f"op {call.name}: depthwise with u_kt {attributes.u_kt}, it must be 1")
        if attributes.m_k < 1 or attributes.m_k != weights[1]:
            raise ProgramError(
                f"op {call.name}: depthwise with m_k {attributes.m_k}, {weights[1]} rows of weight tiles"
            )
        if inner != attributes.m_k * weights[2] or t > weights[0]:
            raise ProgramError(
                f"op {call.name}: depthwise of input 0 with dims {[t, rows, inner]} by input 1 with {list(weights)}, "
                f"m_k {attributes.m_k}"
            )
        shape = t, rows, weights[2]
        if attributes.bias:
            require_full_shape(call, 2, shape, "bias")
        return shape

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the result by the definition, in numpy; see `buda_emu.emulator.ops.base`."""
        t, _, cols = self.shape(call)
        data, weights, *bias = all_entries(inputs)
        weights = weights[:, :t]
        result = np.zeros((*data.shape[:3], cols, 32, 32), np.float32)
        with np.errstate(all="ignore"):
            for k in range(call.attributes.m_k):
                result += tile_product(data[:, :, :, k * cols : (k + 1) * cols], weights[:, :, k : k + 1])
        if call.attributes.bias:
            result = add_bias(result, bias[0], first_row=True)
        return blank(result, call.operands[0].tile_dim)

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute product, bias and blanking by kernels. Weight tiles are marked as finite first, since those with
        infinity or NaN are multiplied with zeros too."""
        _, rows, cols = self.shape(call)
        in0 = kernel_operand(call, 0, inputs)
        in1 = kernel_operand(call, 1, inputs)
        finite = np.empty(inputs[1].shape[:2], np.bool_)
        parallel(mark_finite_tiles, items(inputs[1]), finite, inputs[1])
        parallel(depthwise_tiles, items(out), out, in0, in1, finite, (rows, cols, call.attributes.m_k))
        if call.attributes.bias:
            run_add(out, kernel_operand(call, 2, inputs), parallel, tile_memory.FIRST_ROW)
        blank_in_place(out, call.operands[0].tile_dim, parallel)
