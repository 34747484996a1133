"""Run kernels through their argument buffers: pack, decode, and touch memory by the decoded addresses (VPUX 5, 6)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from buda_emu.foreign.vpux.arguments import (
    SLICE_BYTES,
    WINDOW_CMX,
    Abi,
    TensorArg,
    Unpacked,
    UnpackedTensor,
    flatten,
    pack,
    unpack,
)
from buda_emu.foreign.vpux.elements import element
from buda_emu.foreign.vpux.execute.memory import Region, Watch, round_to
from buda_emu.foreign.vpux.kernels import Call, Kernel, Tensor
from buda_emu.foreign.vpux.kernels.declare import fail_op
from buda_emu.foreign.vpux.layout import DimsOrder
from buda_emu.foreign.vpux.model import Op, Use, Value
from buda_emu.foreign.vpux.program import Buffer, Program
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, ProgramError

MOST_ELEMENTS: Final = 1 << 26
"""The largest operand of a kernel, which computes with 8 bytes for each element."""

# where kernels see memory that is not CMX: the emulator's own map (VPUX 6, D)
_BASES: Final[Mapping[str, tuple[int, int]]] = {
    "DDR": (0x80000000, 0), "NetworkInput": (0x90000000, 1 << 24), "NetworkOutput": (0xA0000000, 1 << 24),
    "ProfilingOutput": (0xB0000000, 1 << 24), "Const": (0xC0000000, 1 << 20), "Alloc": (0xD0000000, 0),
    "Result": (0xD0000000, 0), "Constant": (0xC0000000, 1 << 20),
}  # fmt: skip


def device_address(space: str, address: int, slice_in_address: bool) -> int:
    """Return the 32-bit address at which a kernel sees a byte of a memory space such as CMX1 or NetworkInput0. With
    `slice_in_address` the slices of CMX follow each other, else each is seen at the same address."""
    name = space.partition("@")[0].rstrip("0123456789")
    digits = space.partition("@")[0][len(name) :]
    number = int(digits) if digits else 0
    if name == "CMX":
        base = WINDOW_CMX
        step = SLICE_BYTES if slice_in_address else 0
    else:
        base, step = _BASES.get(name, (0, 0))
    return base + number * step + address & 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Relocation:
    """A device address in the arguments, and the bytes that it stands for."""

    address: int
    spaces: tuple[str, ...]
    offset: int
    bits: int
    elements: int

    def place(self, address: int) -> int:
        """Return the byte of the space at a device address."""
        return self.offset + address - self.address


@dataclass(frozen=True, slots=True)
class Invocation:
    """One `.run`: the packed arguments, and the linker's knowledge of them: the tensors, the types of the scalars, and
    the bytes that each address stands for."""

    data: bytes
    abi: Abi
    scalar_types: tuple[str, ...]
    tensors: tuple[TensorArg, ...]
    relocations: tuple[Relocation, ...]
    shape_relocations: tuple[Relocation | None, ...]


def make_invocations(program: Program, kernel: Op) -> list[Invocation]:
    """Return an invocation for each `.run` of a VPUIP.SW.Kernel. Raises ProgramError (X046) for operands that cannot be
    packed."""
    return [_make_invocation(program, kernel, op) for op in kernel.body if op.name == "VPUIP.SW.Kernel.run"]


def _make_invocation(program: Program, kernel: Op, run: Op) -> Invocation:
    """Return the invocation of one `.run` of a kernel op. Raises ProgramError (X046) for operands that cannot be
    packed."""
    constants = {op.results[0]: op for op in kernel.body if op.name == "constant" and op.results}
    operands = _list_inner_operands(kernel)
    tensors: list[TensorArg] = []
    relocations: list[Relocation] = []
    shapes: list[Relocation | None] = []
    scalars: list[Any] = []
    types: list[str] = []
    for use in run.clause(""):
        value = use.value
        if value in constants:
            constant = constants[value]
            scalars.append((constant.types[0].text, constant.attributes["value"]))
            types.append(constant.types[0].text)
        elif value in operands:
            clause, number, outer = operands[value]
            relocation = _make_relocation(program, outer)
            shape = _shape_operand(program, kernel, clause, number)
            tensors.append(_make_tensor_arg(program, outer, relocation, shape))
            relocations.append(relocation)
            shapes.append(shape)
    for scalar in _flatten_attributes(run):
        types.append("f32" if isinstance(scalar, float) else "i64")
        scalars.append(scalar if program.abi == 36 else (types[-1], scalar))
    try:
        data = pack(tensors, scalars, program.abi, arch=program.arch.name)
    except HostError as error:
        fail_op(str(error))
    return Invocation(
        data=data,
        abi=program.abi,
        scalar_types=tuple(types),
        tensors=tuple(tensors),
        relocations=tuple(relocations),
        shape_relocations=tuple(shapes),
    )


def _list_inner_operands(kernel: Op) -> dict[Value | None, tuple[str, int, Use]]:
    """Return clause, number and outer operand of each value that a kernel's region knows."""
    operands: dict[Value | None, tuple[str, int, Use]] = {}
    for clause in ("inputs", "outputs"):
        for number, use in enumerate(kernel.clause(clause)):
            if use.inner is not None:
                operands[use.inner] = (clause, number, use)
    return operands


def _flatten_attributes(run: Op) -> list[int | float]:
    """Return the scalars among the attributes of a `.run`. Raises ProgramError (X046) for anything but scalars."""
    attrs = run.attributes.get("attrs")
    try:
        scalars = flatten(attrs if isinstance(attrs, tuple) else ())
    except HostError as error:
        fail_op(str(error))
    for scalar in scalars:
        if not isinstance(scalar, int | float):
            fail_op(f"{scalar!r} is not a scalar of a kernel")
    return scalars


def _make_relocation(program: Program, use: Use) -> Relocation:
    """Return the address at which a kernel sees an operand, and the bytes behind it. Raises ProgramError (X046) for
    an operand without a layout."""
    buffer = program.buffer(use)
    if buffer is None or not buffer.type.is_laid_out:
        fail_op(f"operand {use.name} has no layout")
    address = device_address(buffer.spaces[0], buffer.address, program.arch.slice_in_address)
    return Relocation(
        address=address, spaces=buffer.spaces, offset=buffer.address, bits=buffer.type.bits, elements=buffer.type.count
    )


def _make_tensor_arg(program: Program, use: Use, relocation: Relocation, shape: Relocation | None) -> TensorArg:
    """Return an operand as the argument of a kernel. `shape` is where its actual dimensions stand, None for a
    static one."""
    buffer = program.buffer(use)
    assert buffer is not None
    of = buffer.type
    return TensorArg(
        shape=of.shape or (),
        order=of.order,
        dtype=of.element_name,
        strides=of.memory_strides,
        location=_location_name(buffer),
        address=relocation.address,
        dynamic=shape is not None,
        dims_address=None if shape is None else shape.address,
    )


def _location_name(buffer: Buffer) -> str:
    """Return the name of a buffer's memory in arguments: CMX_NN or DDR."""
    if "CMX" in buffer.spaces[0]:
        return "CMX_NN"
    return "DDR"


def _shape_operand(program: Program, kernel: Op, clause: str, number: int) -> Relocation | None:
    """Return where the actual dimensions of an operand stand; None for a static one."""
    side = "Input" if clause == "inputs" else "Output"
    entries = kernel.integers(f"dynamic{side}ShapesMap")
    operands = kernel.clause(f"dynamic{side}Shapes")
    if entries is None or not number < len(entries) or not 0 <= entries[number] < len(operands):
        return None
    return _make_relocation(program, operands[entries[number]])


def execute(watch: Watch, kernel: Kernel, call: Invocation) -> None:
    """Run a kernel on the arguments of a call, which are read from its packed buffer, and write its results to
    memory. Raises ProgramError (X045, X046)."""
    arguments = _unpack_arguments(kernel, call)
    tensors: list[UnpackedTensor] = arguments["tensors"]
    _require_tensors(kernel, call, tensors)
    # by position: a run may name one of the kernel's inputs as its output
    inputs = range(kernel.inputs)
    outputs = range(kernel.inputs, kernel.inputs + kernel.outputs)
    # bits are moved as they are only between equal types; otherwise their values are converted (VPUX 5)
    moved = kernel.moves_raw and all(tensors[n]["dtype"] == tensors[0]["dtype"] for n in outputs)
    decoded = [_read_input(watch, kernel, call, n, tensors[n], moved and n == 0) for n in inputs]
    shapes = tuple(_result_shape(kernel, decoded, tensors[n], _find_bound(tensors[n], call, n)) for n in outputs)
    orders = tuple(_decode_order(tensors[n]) for n in outputs)
    try:
        attributes = kernel.read(arguments["scalars"], decoded[0].order.rank if decoded else 0)
        with np.errstate(all="ignore"):
            computed = kernel.compute(Call(tuple(decoded), attributes, shapes, orders))
    except (ValueError, IndexError, OverflowError) as error:
        fail_op(f"{kernel.name}: {error}")
    if isinstance(computed, np.ndarray | np.generic):
        results = [computed]
    else:
        results = list(computed)
    for n, values in zip(outputs, results, strict=True):
        _write_output(watch, kernel, call, n, tensors[n], shapes[n - kernel.inputs], np.asarray(values), moved)


def _unpack_arguments(kernel: Kernel, call: Invocation) -> Unpacked:
    """Return what the packed buffer of a call holds. Raises ProgramError (X046) for one that cannot be read."""
    try:
        return unpack(call.data, len(call.tensors), call.scalar_types, call.abi)
    except HostError as error:
        fail_op(f"{kernel.name}: {error}")


def _require_tensors(kernel: Kernel, call: Invocation, tensors: Sequence[Mapping[str, Any]]) -> None:
    """Raise ProgramError where a kernel gets another number of tensors than it takes, or one that is too large."""
    if len(tensors) != kernel.inputs + kernel.outputs:
        fail_op(
            f"{kernel.name} takes {plural(kernel.inputs, 'input')} and {plural(kernel.outputs, 'output')}, "
            f"not {plural(len(tensors), 'tensor')}"
        )
    for n, tensor in enumerate(tensors):
        if math.prod(tensor["dims"] or call.tensors[n].shape) > MOST_ELEMENTS:
            raise ProgramError(f"{kernel.name}: an operand of more than {MOST_ELEMENTS} elements", kind="limit")


def _result_shape(
    kernel: Kernel, inputs: Sequence[Tensor], tensor: Mapping[str, Any], bound: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the shape that an output takes: the first input's for a dynamic output of a kernel that keeps the
    shape, else `bound`, the largest (VPUX 2). Raises ProgramError (X045) for a shape beyond the bound."""
    if tensor["static"] or not kernel.keeps_shape:
        return bound
    shape = inputs[0].shape
    if len(shape) != len(bound) or any(size > limit for size, limit in zip(shape, bound, strict=True)):
        fail_op(f"{kernel.name}: result {list(shape)} exceeds the bound {list(bound)}", "X045")
    return shape


def _decode_order(tensor: Mapping[str, Any]) -> DimsOrder:
    """Return the order of a decoded tensor argument from its code, which has the innermost dimension first."""
    if tensor["order"]:
        code = f"{tensor['order']:x}"
    else:
        code = ""
    return DimsOrder.from_code(int(code[::-1] or "0", 16))


def _find_bound(tensor: Mapping[str, Any], call: Invocation, n: int) -> tuple[int, ...]:
    """Return the logical shape that tensor `n` of a call has room for."""
    dims: Sequence[int] = tensor["dims"] or list(reversed(call.tensors[n].memory()[0]))
    return _decode_order(tensor).to_logical(list(reversed(dims)))


def _tensor_region(tensor: Mapping[str, Any], call: Invocation, n: int, shape: tuple[int, ...], space: str) -> Region:
    """Return the region of a memory shape at the address of tensor `n` of a call."""
    relocation = call.relocations[n]
    strides = tuple(stride // 8 for stride in reversed(tensor["strides"]))
    return Region(
        space=space,
        address=relocation.place(tensor["address"]),
        shape=shape,
        strides=strides,
        element=relocation.bits // 8,
    )


def _dims_region(tensor: Mapping[str, Any], call: Invocation, n: int, space: str = "") -> Region:
    """Return the region that holds the actual dimensions of dynamic tensor `n` of a call, in `space` or else in the
    first one. Raises ProgramError (X046) where it does not hold them as int32."""
    relocation = call.shape_relocations[n]
    rank = tensor["num_dims"]
    if relocation is None or relocation.bits != 32 or relocation.elements < rank:
        fail_op(f"a shape operand holds {rank} dimensions as int32")
    return Region(
        space=space or relocation.spaces[0],
        address=relocation.place(tensor["dims_address"]),
        shape=(rank,),
        strides=(4,),
        element=4,
    )


def _stored_dtype(tensor: Mapping[str, Any], bits: int, moved: bool) -> Any:
    """Return the numpy type of stored elements; raw bits where they are only moved."""
    element_type = element(tensor["dtype"])
    if moved or element_type is None:
        return f"uint{bits}"
    return element_type.numpy


def _read_input(
    watch: Watch, kernel: Kernel, call: Invocation, n: int, tensor: Mapping[str, Any], moved: bool
) -> Tensor:
    """Read tensor `n` of a call as an input of a kernel; with `moved` as raw bits. Raises ProgramError (X045) for
    an actual shape beyond its bound."""
    order = _decode_order(tensor)
    bound = call.tensors[n].memory()[0]
    if tensor["static"]:
        shape = tuple(reversed(tensor["dims"]))
    else:
        dims = watch.read(_dims_region(tensor, call, n)).view(np.int32).tolist()
        shape = tuple(reversed(dims))
        if any(not 0 <= size <= limit for size, limit in zip(shape, bound, strict=True)):
            fail_op(f"{kernel.name}: actual shape {list(shape)} in memory exceeds its bound {list(bound)}", "X045")
    data = watch.read(_tensor_region(tensor, call, n, shape, call.relocations[n].spaces[0]))
    raw = data.view(_stored_dtype(tensor, call.relocations[n].bits, moved)).reshape(shape)
    return Tensor(raw.transpose([order.perm.index(dim) for dim in range(order.rank)]), order)


def _write_output(
    watch: Watch,
    kernel: Kernel,
    call: Invocation,
    n: int,
    tensor: Mapping[str, Any],
    shape: tuple[int, ...],
    values: np.ndarray[Any, Any],
    moved: bool,
) -> None:
    """Write values of a shape to tensor `n` of a call, rounded once to its type or, with `moved`, as raw bits; with
    the actual dimensions of a dynamic one. Raises ProgramError (X046) for values of another shape."""
    order = _decode_order(tensor)
    if values.shape != shape:
        fail_op(f"{kernel.name}: a result of shape {list(values.shape)} for an output of {list(shape)}")
    element_type = element(tensor["dtype"])
    kind = _stored_dtype(tensor, call.relocations[n].bits, moved)
    if moved or element_type is None:
        stored = values.astype(kind)
    else:
        stored = round_to(values, element_type)
    memory = stored.transpose(order.perm)
    data = np.frombuffer(memory.tobytes(), np.uint8)
    for space in call.relocations[n].spaces:
        watch.write(_tensor_region(tensor, call, n, memory.shape, space), data)
    if not tensor["static"]:
        dims = np.array(memory.shape[::-1], "<i4").tobytes()
        relocation = call.shape_relocations[n]
        for space in relocation.spaces if relocation is not None else ():
            watch.write(_dims_region(tensor, call, n, space), np.frombuffer(dims, np.uint8))
