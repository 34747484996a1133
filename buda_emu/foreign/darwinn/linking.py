"""Linking of base addresses into instruction chunks (DARWINN 5), and packages built from trees of plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

from buda_emu.foreign.darwinn import flexbuffer, tflite
from buda_emu.foreign.darwinn.container import CUSTOM_CODE
from buda_emu.foreign.darwinn.document import load
from buda_emu.foreign.darwinn.flatbuffer.read import from_plain
from buda_emu.foreign.darwinn.flatbuffer.write import write
from buda_emu.foreign.darwinn.idl import (
    IDENTIFIER,
    INPUT,
    LOWER,
    OUTPUT,
    PAGE,
    PARAMETER,
    SCRATCH,
    UPPER,
    Executable,
    Layer,
    Meta,
    MultiExecutable,
    PackageTable,
)
from buda_emu.foreign.darwinn.rules.package import VARIABLE_SUFFIX
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError, PackageError, UnsupportedError

_BITS = 32  # of a field of an instruction (DARWINN 3)
_MASK = (1 << _BITS) - 1
_ADDRESS_BITS = 64  # of a device address, of which a field holds one half
_MOST_BYTES = 1 << 28  # a thousand times the largest public bitstream (DARWINN 3)
Addresses = Mapping[str, Any]
"""Base addresses: one for `parameter`, one for `scratch`, and for `inputs` and `outputs` by name one for each batch."""
_KEYS = ("parameter", "scratch", "inputs", "outputs")


def link(executable: Executable, addresses: Addresses) -> list[bytes]:
    """Return the chunks with every field replaced by its half of a base address; fields without an address stay
    unchanged.

    Raises PackageError for a field outside of its chunk, and for a batch of a named layer that has no address;
    HostError for malformed addresses.
    """
    _check_addresses(addresses)
    total = sum(len(chunk.bitstream or b"") for chunk in executable.chunks)
    if total > _MOST_BYTES:  # chunks that overlap in the file may hold more than the file
        raise PackageError(f"{total} bytes of instructions, more than {_MOST_BYTES}")
    return [_link_chunk(number, executable, addresses) for number in range(len(executable.chunks))]


def _link_chunk(number: int, executable: Executable, addresses: Addresses) -> bytes:
    """Return chunk `number` of an executable with base addresses in its fields. Raises PackageError for a field
    outside of the chunk, of no position, or for a batch without an address."""
    chunk = executable.chunks[number]
    code = bytearray(chunk.bitstream or b"")
    for field in chunk.field_offsets or ():
        if not 0 <= field.offset_bit <= 8 * len(code) - _BITS:
            raise PackageError(
                f"chunk {number}: a field at bit {field.offset_bit} of {8 * len(code)} cannot be linked (D035)"
            )
        if field.meta is None:
            continue
        address = _base_address(field.meta, addresses, number)
        if address is None:
            continue
        if field.meta.position not in (LOWER, UPPER):
            raise PackageError(f"chunk {number}: a field of position {field.meta.position} cannot be linked (D042)")
        half = (address if field.meta.position == LOWER else address >> _BITS) & _MASK
        _replace_bits(code, field.offset_bit, half)
    return bytes(code)


def _replace_bits(code: bytearray, offset: int, half: int) -> None:
    """Replace the 32 bits of `code` at a bit offset, which need not be a multiple of 8, by `half`, in place."""
    first, shift = divmod(offset, 8)
    length = (_BITS + shift + 7) // 8
    bits = int.from_bytes(code[first : first + length], "little")
    bits = bits & ~(_MASK << shift) | half << shift
    code[first : first + length] = bits.to_bytes(length, "little")


def _base_address(meta: Meta, addresses: Addresses, chunk: int) -> int | None:
    """Return the base address that a field is for; None where none was passed. `chunk` is the number of the field's
    chunk, for messages. Raises PackageError for a batch without an address."""
    if meta.desc == PARAMETER:
        return addresses.get("parameter")
    if meta.desc == SCRATCH:
        if meta.batch:
            raise PackageError(f"chunk {chunk}: scratch has no batch {meta.batch} (D039)")
        return addresses.get("scratch")
    group = {INPUT: "inputs", OUTPUT: "outputs"}.get(meta.desc)
    if group is None:
        return None
    batches: Sequence[int] | None = addresses.get(group, {}).get(meta.name)
    if batches is None:
        return None
    if not 0 <= meta.batch < len(batches):
        raise PackageError(
            f"chunk {chunk}: {meta.name!r} has addresses for {plural(len(batches), 'batch')}, none for {meta.batch}"
        )
    return batches[meta.batch]


def _check_addresses(addresses: Addresses) -> None:
    """Raise HostError unless every key is one of the four and every value is an address of 64 bits."""
    unknown = set(addresses) - set(_KEYS)
    if unknown:
        raise HostError(f"addresses are given for {', '.join(_KEYS)}, not {', '.join(sorted(map(str, unknown)))}")
    values: list[Any] = [addresses[key] for key in ("parameter", "scratch") if addresses.get(key) is not None]
    for key in ("inputs", "outputs"):
        for batches in addresses.get(key, {}).values():
            values += batches
    for value in values:
        if not (isinstance(value, int) and 0 <= value < 1 << _ADDRESS_BITS):
            raise HostError(f"{value!r} is not an address of {_ADDRESS_BITS} bits")


def build(tree: Mapping[str, Any]) -> bytes:
    """Build a bare package from a tree like that of `Package.to_dict(data=True)`; an absent field has its default.

    Raises HostError, with table and field, for a malformed tree, UnsupportedError without the `flatbuffers` library.
    """
    fields = dict(tree)
    executables: Sequence[Any] | None = fields.pop("executables", None)
    try:
        if executables is not None:
            if "serialized_multi_executable" in fields:
                raise ValueError("Package: executables and serialized_multi_executable exclude each other")
            serialized = tuple(write(from_plain(Executable, executable), page=PAGE) for executable in executables)
            multi = MultiExecutable(serialized_executables=serialized)
            fields["serialized_multi_executable"] = write(multi, page=PAGE)
        return write(from_plain(PackageTable, fields), IDENTIFIER, PAGE)
    except (TypeError, ValueError) as error:
        raise HostError(f"this is not a tree of a package: {error}") from None


def wrap(
    package: bytes, *, version: int = 0, execution_preference: int = -1, chips: Sequence[int] | None = None
) -> bytes:
    """Return a `.tflite` with one custom operator that holds a bare package, like those that the compiler writes
    (DARWINN 1).

    Its inputs and outputs are the layers of the package's main executable without the states. Raises PackageError for
    bytes that are no package.
    """
    main = load(package).main
    states = {f"{layer.name}{VARIABLE_SUFFIX}" for layer in main.inputs}
    inputs = [layer for layer in main.inputs if f"{layer.name}{VARIABLE_SUFFIX}" not in _layer_names(main.outputs)]
    outputs = [layer for layer in main.outputs if layer.name not in states]
    values: dict[str, flexbuffer.Plain] = {"1": version, "4": package, "5": execution_preference}
    if chips is not None:
        values |= {"6": tuple(chips), "7": ()}
    numbers = tuple(range(len(inputs) + len(outputs)))
    ends = numbers[: len(inputs)], numbers[len(inputs) :]
    operator = tflite.Operator(inputs=ends[0], outputs=ends[1], custom_options=flexbuffer.write_map(values))
    graph = tflite.SubGraph(
        tensors=tuple(_host_tensor(layer) for layer in (*inputs, *outputs)),
        inputs=ends[0],
        outputs=ends[1],
        operators=(operator,),
    )
    code = tflite.OperatorCode(
        deprecated_builtin_code=tflite.CUSTOM, custom_code=CUSTOM_CODE, builtin_code=tflite.CUSTOM
    )
    model = tflite.Model(version=3, operator_codes=(code,), subgraphs=(graph,), buffers=(tflite.Buffer(),))
    return write(model, tflite.IDENTIFIER)


def _layer_names(layers: Sequence[Layer]) -> set[str | None]:
    """Return the names of layers."""
    return {layer.name for layer in layers}


def _host_tensor(layer: Layer) -> tflite.Tensor:
    """Return the tensor that a layer is in the host's model. Raises UnsupportedError for a type that TFLite does not
    have."""
    kinds = {name: number for number, name in tflite.TENSOR_TYPES.items()}
    element = layer.element
    numerics = layer.numerics
    if element is None or element.dtype not in kinds:
        raise UnsupportedError(
            f"layer {layer.name!r}: a TFLite model has no {element.name if element else layer.data_type}"
        )
    quantization = None
    if numerics is not None:
        if element.signed:
            flip = 1 << (8 * element.size - 1)
        else:
            flip = 0
        zero = numerics.zero_point - flip
        quantization = tflite.Quantization(scale=(numerics.dequantization_factor,), zero_point=(zero,))
    shape = (layer.execution_count_per_inference, layer.y_dim, layer.x_dim, layer.z_dim)
    return tflite.Tensor(shape=shape, type=kinds[element.dtype], name=layer.name, quantization=quantization)
