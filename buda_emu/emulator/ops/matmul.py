"""matmul, dense or identity (OPS 6.1, 6.2): product, then bias, requantisation and gelu. Also depthwise: products of
column groups with rows of weight tiles, whose bias and requantisation are those of matmul."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from buda_emu.arithmetic.kernels.products.matmul import (
    AS_IT_IS,
    ONTO,
    PLUS,
    PLUS_ROW,
    Ending,
    Extent,
    Reading,
    count_beyond,
    matmul_blocks,
    matmul_reference,
    matmul_tiles,
)
from buda_emu.arithmetic.kernels.products.sparse import mark_finite_tiles
from buda_emu.arithmetic.kernels.products.tile_product import depthwise_tiles
from buda_emu.arithmetic.kernels.tiles import binary as binary_kernel
from buda_emu.arithmetic.kernels.tiles import tile_memory
from buda_emu.arithmetic.tensor.tilemap import Index
from buda_emu.emulator.ops.base import Implementation, Parallel, PlannedOp, Relu, Tiles, implements
from buda_emu.emulator.ops.common import blank, items, kernel_operand, operand_map, relu_arguments, require_operands
from buda_emu.emulator.ops.matmul_sparse import tile_product
from buda_emu.emulator.ops.operands import all_entries, blank_in_place, blank_operand, plain, run_add, run_binary
from buda_emu.spec.blocking import FULL_TILE, Shape
from buda_emu.spec.ops import SFPU_TYPES
from buda_emu.support.errors import ProgramError
from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    from buda_emu.emulator.ops import matmul_sparse
else:
    matmul_sparse = lazy("buda_emu.emulator.ops.matmul_sparse")


def product_shape(call: PlannedOp) -> Shape:
    """Return the product's shape (T, R, C) for in0 (T, R, K) and in1 (T or more, K, C); T / z with accumulate. Raises
    ProgramError where dims or attributes do not fit."""
    attributes = call.attributes
    (t, rows, inner), right = (operand.map.shape for operand in call.operands[:2])
    dims = f"input 0 with dims {[t, rows, inner]} by input 1 with {list(right)} (t, r, c)"
    if inner != right[1] or t > right[0]:
        raise ProgramError(f"op {call.name}: matmul of {dims}")
    if attributes.inner_tiles != inner:
        raise ProgramError(f"op {call.name}: matmul with m_k {attributes.m_k} and u_kt {attributes.u_kt} of {dims}")
    if not attributes.accumulate:
        return t, rows, right[2]
    if t <= 1 or attributes.z < 1 or t % attributes.z:
        raise ProgramError(f"op {call.name}: matmul cannot accumulate t {t} in runs of z {attributes.z}")
    return t // attributes.z, rows, right[2]


def reference_product(call: PlannedOp, left: Tiles, right: Tiles) -> Tiles:
    """Return the product by the definition, of operands arranged and blanked, float32[w, t, R, C, 32, 32] each; with
    accumulate runs of z slices are added."""
    product = matmul_reference(left, right[:, : left.shape[1]])
    if not call.attributes.accumulate:
        return product
    z = call.attributes.z
    total = product[:, ::z]
    with np.errstate(all="ignore"):
        for s in range(1, z):
            total = total + product[:, s::z]
    return total


def run_product(
    call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel, ending: Ending | None = None
) -> None:
    """Compute the product by kernels into `out` float32[w, tiles, 1024]. `inputs` are source tensors before TMs,
    float32[w or 1, tiles, 1024]. `ending`: a last step in the same kernel, None for none; not together with
    accumulate."""
    fixed: _Fixed | None = call.fixed.get("product")
    if fixed is None:
        fixed = call.fixed["product"] = _fixed_arguments(call)
    if fixed.as_they_are:
        _multiply(call, inputs[0], inputs[1], fixed.reading, out, parallel, ending)
        return
    left = blank_operand(call, 0, inputs, parallel)
    right = blank_operand(call, 1, inputs, parallel, fixed.arrange)
    if not call.attributes.accumulate:
        _multiply(call, left[0], right[0], _kernel_reading(left[1:], right[1:]), out, parallel, ending)
        return
    # out[b] = sum over s of product[b * z + s]: one product for each s, so that no more than one waits in memory.
    z = call.attributes.z
    term = np.empty_like(out)
    for s in range(z):
        target = term if s else out
        reading = _kernel_reading(_select_slices(call, 0, left, s, z)[1:], _select_slices(call, 1, right, s, z)[1:])
        _multiply(call, left[0], right[0], reading, target, parallel)
        if s:
            run_add(out, plain(term), parallel)


class _Fixed(NamedTuple):
    """The fixed arguments of a product: how both operands are read, the arrangement of the second, and whether one
    product of the unchanged operands is the result."""

    reading: Reading
    arrange: int
    as_they_are: bool


def _fixed_arguments(call: PlannedOp) -> _Fixed:
    """Return the facts of a product's operands that do not depend on data."""
    left = operand_map(call, 0)[:2]
    right = operand_map(call, 1)[:2]
    if call.transpose:
        arrange = tile_memory.TRANSPOSE
    else:
        arrange = tile_memory.AS_IS
    full_tiles = all(operand.tile_dim == FULL_TILE for operand in call.operands[:2])
    reading = _kernel_reading((*left, tile_memory.AS_IS), (*right, arrange))
    return _Fixed(reading, arrange, full_tiles and not call.attributes.accumulate)


def _kernel_reading(left: tuple[Index, np.float32, int], right: tuple[Index, np.float32, int]) -> Reading:
    """Return the record by which the kernel reads both operands; each is given as map, pad value and arrangement."""
    return Reading(*left[:2], *right[:2], right[2] == tile_memory.TRANSPOSE)


def _select_slices(
    call: PlannedOp, index: int, operand: tile_memory.Operand, first: int, step: int
) -> tile_memory.Operand:
    """Return operand `index` with only the t slices first, first + step, ... of as many as in0 has: those of one of the
    products that accumulate adds. The source is shared."""
    source, tiles, pad_value, arrange = operand
    slices = tiles.reshape(call.operands[index].map.shape[0], -1)[: call.operands[0].map.shape[0]]
    chosen = np.ascontiguousarray(slices[first::step]).reshape(-1)
    chosen.flags.writeable = False  # as those of a tile map: one compiled kernel serves both
    return source, chosen, pad_value, arrange


def _multiply(
    call: PlannedOp, a: Tiles, b: Tiles, reading: Reading, out: Tiles, parallel: Parallel, ending: Ending | None = None
) -> None:
    """Compute out float32[w, t * R * C, 1024] = the product, then `ending`; t is that of `out`, which may be one of
    several slices."""
    blocks: tuple[int, int, Extent] | None = call.fixed.get("blocks")
    if blocks is None or blocks[0] != len(out):
        blocks = call.fixed["blocks"] = len(out), *_kernel_sizes(call, out)
    _, items, extent = blocks
    if ending is None:
        ending = Ending(AS_IT_IS, a, reading.a_index, reading.a_pad)
    parallel(matmul_tiles, items, out, a, b, reading, extent, ending)


def _kernel_sizes(call: PlannedOp, out: Tiles) -> tuple[int, Extent]:
    """Return the number of work items of the product kernel for this `out`, and the sizes that it takes."""
    (_, rows, inner) = call.operands[0].map.shape
    cols = call.operands[1].map.shape[2]
    t = out.shape[1] // (rows * cols)
    items, columns = matmul_blocks(len(out), t, rows, cols)
    return items, Extent(t=t, rows=rows, inner=inner, cols=cols, columns=columns)


EXACT_LIMIT: Final = np.float32(1 << 24)
"""Integers beyond this magnitude are not all exact in float32."""


def check_tail(call: PlannedOp, first: int, shape: Shape) -> None:
    """Raise ProgramError unless the operands from number `first` on are the bias and the scale that the attributes ask
    for, with the product's `shape`, and the SFPU function at the end, if any, is gelu."""
    attributes = call.attributes
    scaled = attributes.requant or attributes.dequant
    count = first + attributes.bias + scaled
    if len(call.operands) != count:
        raise ProgramError(f"op {call.name}: {call.type} needs {count} input(s), it has {len(call.operands)}")
    if attributes.bias:
        require_full_shape(call, first, shape, "bias")
    if scaled:
        require_full_shape(call, count - 1, shape, "scale")
    if attributes.sfpu_op in SFPU_TYPES and attributes.sfpu_op != "gelu":  # any other word means none
        raise ProgramError(f"op {call.name}: matmul with sfpu_op {attributes.sfpu_op}, only gelu runs")


def require_full_shape(call: PlannedOp, index: int, shape: Shape, role: str) -> None:
    """Raise ProgramError unless operand `index` has the dims `shape` of the result. `role` names the operand in the
    message."""
    dims = call.operands[index].map.shape
    if dims != shape:
        raise ProgramError(f"op {call.name}: {role} with dims {list(dims)} for a product of {list(shape)} (t, r, c)")


def integer_mode(call: PlannedOp) -> bool:
    """Return whether any input is labelled Int8 or Int32: the bias is then added element by element, not by its first
    row."""
    return any(operand.label in ("Int8", "Int32") for operand in call.operands)


def add_bias(product: Tiles, bias: Tiles, first_row: bool) -> Tiles:
    """Return product + bias; with `first_row` row 0 of each bias tile stands for all of its rows."""
    with np.errstate(all="ignore"):
        return product + (bias[..., :1, :] if first_row else bias)


def reference_tail(call: PlannedOp, product: Tiles, others: Sequence[Tiles]) -> Tiles:
    """Return the op's result from its product by the definition: bias, requantisation, gelu, blanking. `others`: bias
    and scale, as far as the op has them. Raises ProgramError for integers beyond 2^24 where the reference aborts on
    them."""
    attributes = call.attributes
    result = product
    if attributes.bias:
        result = add_bias(result, others[0], not integer_mode(call))
    if attributes.requant or attributes.dequant:
        _check_exact(call, int((np.abs(result) > EXACT_LIMIT).sum()))
        from buda_emu.emulator.ops.binary import multiply

        zero_point = np.float32(attributes.zero_point)
        with np.errstate(all="ignore"):
            if attributes.requant:
                result = multiply(result, others[-1]) + zero_point
            else:
                result = multiply(result + -zero_point, others[-1])
    if attributes.sfpu_op == "gelu":
        from buda_emu.emulator.ops.sfpu import on_region, region_of

        result = on_region(call, "gelu", region_of(call), result, outside=result)
    return blank(result, call.blocking.tile_dim)


def follows_bias(call: PlannedOp) -> bool:
    """Return whether anything follows the bias (requantisation, gelu or blanking), so that `run_tail` is needed."""
    attributes = call.attributes
    some = attributes.requant or attributes.dequant or attributes.sfpu_op == "gelu"
    return some or call.blocking.tile_dim != FULL_TILE


def run_bias(call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel, first: int) -> None:
    """Add the bias, operand `first`, in place to the product in `out`, if the op has one."""
    if call.attributes.bias:
        if integer_mode(call):
            arrange = tile_memory.AS_IS
        else:
            arrange = tile_memory.FIRST_ROW
        run_add(out, kernel_operand(call, first, inputs), parallel, arrange)


def run_tail(call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
    """Run what follows the bias, in place on `out`: requantisation, gelu, blanking. Raises ProgramError for integers
    beyond 2^24 where the reference aborts on them."""
    attributes = call.attributes
    if attributes.requant or attributes.dequant:
        if _must_be_exact(call):
            counts = np.zeros(items(out), np.int64)
            parallel(count_beyond, items(out), out, EXACT_LIMIT, counts)
            _check_exact(call, int(counts.sum()))
        if attributes.requant:
            code = binary_kernel.SCALE_SHIFT
        else:
            code = binary_kernel.SHIFT_SCALE
        scale = kernel_operand(call, len(inputs) - 1, inputs)
        run_binary(out, code, scale, parallel, attributes.zero_point)
    if attributes.sfpu_op == "gelu":
        from buda_emu.emulator.ops.sfpu import (  # all functions of the SFPU: few matmuls end in one
            region_of,
            run_in_place,
        )

        run_in_place(call, "gelu", region_of(call), out, parallel)
    blank_in_place(out, call.blocking.tile_dim, parallel)


def _must_be_exact(call: PlannedOp) -> bool:
    """Return whether integers beyond 2^24 are an error. The reference aborts on them only where no bias has been added;
    otherwise it warns."""
    return integer_mode(call) and not call.attributes.bias


def _check_exact(call: PlannedOp, beyond: int) -> None:
    """Raise ProgramError if `beyond`, the number of elements beyond 2^24, is not 0 and the op needs exact integers."""
    if beyond and _must_be_exact(call):
        raise ProgramError(f"op {call.name}: {beyond} element(s) beyond 2^24 before requantisation")


DENSE_OPERANDS: Final = 2  # before the operands of the tail, such as a bias
SPARSE_OPERANDS: Final = 3  # likewise: the third is the encoding


def _product_operands(call: PlannedOp) -> int:
    """Return how many inputs the product takes: 2, with identity 3; bias and scale come after these."""
    if call.attributes.identity:
        return SPARSE_OPERANDS
    return DENSE_OPERANDS


def _is_one_kernel(call: PlannedOp) -> bool:
    """Return whether one kernel computes product and bias."""
    return not (call.attributes.identity or call.attributes.accumulate)


def _is_whole_op(call: PlannedOp) -> bool:
    """Return whether one kernel computes the whole op: product and bias, which nothing follows."""
    is_all: bool | None = call.fixed.get("is_all")
    if is_all is None:
        is_all = call.fixed["is_all"] = _is_one_kernel(call) and not follows_bias(call)
    return is_all


def _ending(call: PlannedOp, inputs: Sequence[Tiles], relu: Relu | None) -> Ending:
    """Return the last step of the kernel of a dense product, which adds the bias and applies relu (None: no relu)."""
    ending: tuple[Relu | None, int, int, Any] | None = call.fixed.get("ending")
    if ending is None or ending[0] != relu:
        if call.attributes.bias:
            how = PLUS if integer_mode(call) else PLUS_ROW
            number = DENSE_OPERANDS
        else:
            how = AS_IT_IS
            number = 0  # any operand will do
        index, pad_value, _ = operand_map(call, number)
        after: Any = index, pad_value, *relu_arguments(relu)
        ending = call.fixed["ending"] = relu, how, number, after
    _, how, number, after = ending
    return Ending(how, inputs[number], *after)


@implements("matmul")
class Matmul:
    """The product of in0 (T, R, K) by in1 (T, K, C); with `identity: true` in0 has sparse tiles, in1 activations and
    in2 an encoding."""

    def shape(self, call: PlannedOp) -> Shape:
        """Return (T, R, C), T / z with accumulate; with identity the declared shape. Raises ProgramError,
        UnsupportedError."""
        first = _product_operands(call)
        if len(call.operands) < first:
            raise ProgramError(f"op {call.name}: matmul needs {first} inputs, it has {len(call.operands)}")
        if call.attributes.identity:
            shape = matmul_sparse.product_shape(call)
        else:
            shape = product_shape(call)
        check_tail(call, first, shape)
        return shape

    def label(self, call: PlannedOp) -> str:
        """Return the label of input 0, with identity the declared out_df (OPS 3.1)."""
        if call.attributes.identity:
            return call.out_df
        return call.operands[0].label

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the result by the definition: blanked operands, product, then bias, requantisation and gelu."""
        in0, in1, *others = all_entries(inputs)
        left = blank(in0, call.operands[0].tile_dim)
        right = blank(np.swapaxes(in1, -1, -2) if call.transpose else in1, call.operands[1].tile_dim)
        if call.attributes.identity:
            encoding, *others = others
            product = matmul_sparse.reference_product(call, left, right, encoding)
        else:
            product = reference_product(call, left, right)
        return reference_tail(call, product, others)

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute the result by kernels: in one where nothing follows the bias, else product, bias and tail one after
        the other."""
        if self.run_relu(call, inputs, None, out, parallel):
            return
        if _is_one_kernel(call):
            run_product(call, inputs, out, parallel, _ending(call, inputs, None))
        else:
            if call.attributes.identity:
                matmul_sparse.run_product(call, inputs, out, parallel)
            else:
                run_product(call, inputs, out, parallel)
            run_bias(call, inputs, out, parallel, _product_operands(call))
        run_tail(call, inputs, out, parallel)

    def run_relu(
        self, call: PlannedOp, inputs: Sequence[Tiles], relu: Relu | None, out: Tiles, parallel: Parallel
    ) -> bool:
        """Run the op with relu at the end in one kernel, and return True; do nothing and return False where that takes
        more than one. `relu` None: without relu."""
        if not _is_whole_op(call):
            return False
        run_product(call, inputs, out, parallel, _ending(call, inputs, relu))
        return True

    def run_onto(
        self, call: PlannedOp, inputs: Sequence[Tiles], previous: Tiles, out: Tiles, parallel: Parallel
    ) -> bool:
        """Compute out = previous + the op's result in one kernel, and return True; do nothing and return False where
        that takes more than one. `previous`: the sum of gradients so far."""
        if call.attributes.bias or not _is_whole_op(call):
            return False
        run_product(call, inputs, out, parallel, Ending(ONTO, *plain(previous)[:3]))
        return True


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
        """Compute the result by the definition, in numpy, on post-TM tensors float32[w, t, R, C, 32, 32]."""
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
        """Compute product, bias and blanking by kernels. Weight tiles with infinity or NaN are found first, since those
        are multiplied by zeros too."""
        _, rows, cols = self.shape(call)
        in0 = kernel_operand(call, 0, inputs)
        in1 = kernel_operand(call, 1, inputs)
        finite = np.empty(inputs[1].shape[:2], np.bool_)
        parallel(mark_finite_tiles, items(inputs[1]), finite, inputs[1])
        parallel(depthwise_tiles, items(out), out, in0, in1, finite, (rows, cols, call.attributes.m_k))
        if call.attributes.bias:
            run_add(out, kernel_operand(call, 2, inputs), parallel, tile_memory.FIRST_ROW)
        blank_in_place(out, call.operands[0].tile_dim, parallel)
