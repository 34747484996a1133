"""The tables of a DarwiNN package, slot by slot (DARWINN 2). Reader, writer, JSON form and docs derive from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from buda_emu.foreign.darwinn.flatbuffer import Table, kinds
from buda_emu.foreign.darwinn.flatbuffer.declare import (
    blobs,
    boolean,
    data,
    float32,
    int16,
    int32,
    int64,
    many,
    numbers,
    one,
    structs,
    text,
    uint64,
    union,
    union_type,
)

PAGE: Final = 4096
"""Bytes of a page: packages, executables and parameters begin at multiples of it (DARWINN 1)."""
IDENTIFIER: Final = b"DWN1"

DESCRIPTIONS: Final[Mapping[int, str]] = {
    0: "BASE_ADDRESS_OUTPUT_ACTIVATION",
    1: "BASE_ADDRESS_INPUT_ACTIVATION",
    2: "BASE_ADDRESS_PARAMETER",
    3: "BASE_ADDRESS_SCRATCH",
}
OUTPUT, INPUT, PARAMETER, SCRATCH = range(4)
POSITIONS: Final[Mapping[int, str]] = {0: "LOWER_32BIT", 1: "UPPER_32BIT"}
LOWER, UPPER = range(2)
DIRECTIONS: Final[Mapping[int, str]] = {0: "INFEED", 1: "OUTFEED"}
INFEED, OUTFEED = range(2)
INTERRUPTS: Final[Mapping[int, str]] = {n: f"SCALAR_CORE_INT_{n}" for n in range(4)}
EXECUTABLE_TYPES: Final[Mapping[int, str]] = {0: "STAND_ALONE", 1: "PARAMETER_CACHING", 2: "EXECUTION_ONLY"}
STAND_ALONE, PARAMETER_CACHING, EXECUTION_ONLY = range(3)


class ElementType(NamedTuple):
    """A DataType. `dtype` is numpy's name of the type that the host sees; numpy has no bfloat, which stays bits."""

    name: str
    size: int
    dtype: str
    signed: bool = False  # the device sees it with its top bit flipped (DARWINN 7)


ELEMENT_TYPES: Final[Mapping[int, ElementType]] = {
    0: ElementType("FIXED_POINT8", 1, "uint8"),
    1: ElementType("FIXED_POINT16", 2, "uint16"),
    2: ElementType("SIGNED_FIXED_POINT32", 4, "int32"),
    3: ElementType("BFLOAT", 2, "uint16"),
    4: ElementType("HALF", 2, "float16"),
    5: ElementType("SINGLE", 4, "float32"),
    8: ElementType("SIGNED_FIXED_POINT8", 1, "int8", signed=True),
    9: ElementType("SIGNED_FIXED_POINT16", 2, "int16", signed=True),
}
DATA_TYPES: Final[Mapping[int, str]] = {number: element.name for number, element in ELEMENT_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Meta(Table):
    """The buffer of a request that an address or a transfer is for."""

    desc: int = int16(DESCRIPTIONS)
    batch: int = int32()
    name: str | None = text()
    position: int = int16(POSITIONS)


@dataclass(frozen=True, slots=True)
class FieldOffset(Table):
    """A field of 32 bits in a chunk that linking overwrites with one half of a base address."""

    meta: Meta | None = one(Meta)
    offset_bit: int = int32()


@dataclass(frozen=True, slots=True)
class InstructionBitstream(Table):
    """A chunk of instructions, which are not public: chunks are linked and moved, never decoded."""

    bitstream: memoryview | bytes | None = data()
    field_offsets: tuple[FieldOffset, ...] | None = many(FieldOffset)


@dataclass(frozen=True, slots=True)
class DmaDescriptorHint(Table):
    """A transfer between the host's buffer and the device."""

    meta: Meta | None = one(Meta)
    offset_in_bytes: int = int32()
    size_in_bytes: int = int32()


@dataclass(frozen=True, slots=True)
class InstructionHint(Table):
    """The transfer of a whole chunk of instructions."""

    instruction_chunk_index: int = int32()


@dataclass(frozen=True, slots=True)
class InterruptHint(Table):
    """The device's signal to the host."""

    type: int = int16(INTERRUPTS)


@dataclass(frozen=True, slots=True)
class FenceHint(Table):
    """A fence: all transfers before it end before any transfer after it begins."""


ANY_HINT: Final[Mapping[int, type[Table]]] = {1: DmaDescriptorHint, 2: InstructionHint, 3: InterruptHint, 4: FenceHint}
AnyHint = DmaDescriptorHint | InstructionHint | InterruptHint | FenceHint


def _names(members: Mapping[int, type[Table]]) -> dict[int, str]:
    """Return the names of a union's types by their numbers: NONE for 0, else the class of the table."""
    return {0: "NONE"} | {number: member.__name__ for number, member in members.items()}


@dataclass(frozen=True, slots=True)
class DmaHint(Table):
    """One transfer or signal that the device will ask of the host."""

    any_hint_type: int = union_type(_names(ANY_HINT))
    any_hint: AnyHint | None = union(ANY_HINT)
    direction: int = int16(DIRECTIONS)


@dataclass(frozen=True, slots=True)
class DmaHints(Table):
    """All steps of an executable in order; `fully_deterministic` says that the list is complete."""

    hints: tuple[DmaHint, ...] | None = many(DmaHint)
    fully_deterministic: bool = boolean()


@dataclass(frozen=True, slots=True)
class NumericsConstants(Table):
    """Quantisation: real value = (stored value - zero_point) * dequantization_factor, with the device's unsigned view
    of signed types."""

    zero_point: int = int32()
    dequantization_factor: float = float32()


@dataclass(frozen=True, slots=True)
class OutputLayout(Table):
    """Six maps that give the place of element (y, x, z) of an output. All count elements, even those named after
    bytes."""

    y_coordinate_to_linear_tile_id_map: Sequence[int] | None = numbers(kinds.INT)
    x_coordinate_to_linear_tile_id_map: Sequence[int] | None = numbers(kinds.INT)
    linearized_tile_byte_offset: Sequence[int] | None = numbers(kinds.INT)
    x_coordinate_to_local_byte_offset: Sequence[int] | None = numbers(kinds.INT)
    y_coordinate_to_local_y_offset: Sequence[int] | None = numbers(kinds.INT)
    x_coordinate_to_local_y_row_size: Sequence[int] | None = numbers(kinds.INT)


@dataclass(frozen=True, slots=True)
class TensorShape(Table):
    """A box of ranges, both ends included."""

    dimension: tuple[tuple[int, int], ...] | None = structs("start", "end")


@dataclass(frozen=True, slots=True)
class TensorLayout(Table):
    """A box of a tensor, with strides in elements relative to the box's start."""

    shape: TensorShape | None = one(TensorShape)
    stride: Sequence[int] | None = numbers(kinds.INT)


@dataclass(frozen=True, slots=True)
class OutputShapeInfo(Table):
    """An output in slices, each at a byte offset."""

    slice_layout: tuple[TensorLayout, ...] | None = many(TensorLayout)
    slice_offset: Sequence[int] | None = numbers(kinds.INT)


@dataclass(frozen=True, slots=True)
class OutputLayer(Table):
    """The fields of a layer that only outputs have."""

    layout: OutputLayout | None = one(OutputLayout)
    data_type: int = int16(DATA_TYPES)
    shape_info: OutputShapeInfo | None = one(OutputShapeInfo)


@dataclass(frozen=True, slots=True)
class InputLayer(Table):
    """The fields of a layer that only inputs have: none."""


ANY_LAYER: Final[Mapping[int, type[Table]]] = {1: OutputLayer, 2: InputLayer}


@dataclass(frozen=True, slots=True)
class Layer(Table):
    """An input or output of an executable. `size_bytes` is the padded size for one execution."""

    name: str | None = text()
    size_bytes: int = int32()
    y_dim: int = int32()
    x_dim: int = int32()
    z_dim: int = int32()
    numerics: NumericsConstants | None = one(NumericsConstants)
    data_type: int = int16(DATA_TYPES)
    any_layer_type: int = union_type(_names(ANY_LAYER))
    any_layer: OutputLayer | InputLayer | None = union(ANY_LAYER)
    execution_count_per_inference: int = int32(1)
    cache_on_dram: bool = boolean()
    shape: TensorShape | None = one(TensorShape)

    @property
    def element(self) -> ElementType | None:
        """The type of the layer's elements; None for an unknown type."""
        return ELEMENT_TYPES.get(self.data_type)

    @property
    def elements(self) -> int:
        """The number of elements of one execution (DARWINN 7): the product of `shape` if present, else y * x * z."""
        if self.shape is None:
            return self.y_dim * self.x_dim * self.z_dim
        product = 1
        for start, end in self.shape.dimension or ():
            product *= max(end - start + 1, 0)
        return product

    @property
    def actual_bytes(self) -> int:
        """The size in bytes of the host's data for all executions; 0 for an unknown type."""
        if self.element:
            element_bytes = self.element.size
        else:
            element_bytes = 0
        return self.elements * element_bytes * self.execution_count_per_inference

    @property
    def padded_bytes(self) -> int:
        """The size in bytes on the device for all executions."""
        return self.size_bytes * self.execution_count_per_inference

    @property
    def output(self) -> OutputLayer | None:
        """The fields that only outputs have; None for an input."""
        if isinstance(self.any_layer, OutputLayer):
            return self.any_layer
        return None

    @property
    def slices(self) -> OutputShapeInfo | None:
        """The slices of an output; None for an input or an output that is not sliced."""
        info = self.output.shape_info if self.output else None
        if info is None or not info.slice_layout:
            return None
        return info


@dataclass(frozen=True, slots=True)
class Executable(Table):
    """One program for the device with its parameters."""

    version: int = int32()
    name: str | None = text()
    serialized_model: memoryview | bytes | None = data()
    batch_size: int = int32()
    scratch_size_bytes: int = int32()
    instruction_bitstreams: tuple[InstructionBitstream, ...] | None = many(InstructionBitstream)
    parameters: memoryview | bytes | None = data(PAGE)
    dma_hints: DmaHints | None = one(DmaHints)
    input_layers: tuple[Layer, ...] | None = many(Layer)
    output_layers: tuple[Layer, ...] | None = many(Layer)
    chip: str | None = text()
    estimated_cycles: int = int32()
    used_narrow_memory_bytes_per_tile: int = int32()
    type: int = int16(EXECUTABLE_TYPES)
    parameter_caching_token: int = uint64()
    use_tpu_dram_for_parameters: bool = boolean()
    estimated_cycles_64bit: int = int64()

    @property
    def kind(self) -> str:
        """The type by name; the number as text for an unknown type."""
        return EXECUTABLE_TYPES.get(self.type, str(self.type))

    @property
    def inputs(self) -> tuple[Layer, ...]:
        """The input layers, empty where there are none."""
        return self.input_layers or ()

    @property
    def outputs(self) -> tuple[Layer, ...]:
        """The output layers, empty where there are none."""
        return self.output_layers or ()

    @property
    def chunks(self) -> tuple[InstructionBitstream, ...]:
        """The chunks of instructions, empty where there are none."""
        return self.instruction_bitstreams or ()

    @property
    def hints(self) -> tuple[DmaHint, ...]:
        """The steps of the DMA list, empty where there is none."""
        if self.dma_hints is None:
            return ()
        return self.dma_hints.hints or ()

    @property
    def fully_deterministic(self) -> bool:
        """Return whether the executable has a DMA list that is complete."""
        return self.dma_hints is not None and self.dma_hints.fully_deterministic

    @property
    def parameter_bytes(self) -> int:
        """The size of the parameters in bytes."""
        return len(self.parameters or b"")

    @property
    def cycles(self) -> int | None:
        """The compiler's estimate of the cycles; None where there is no estimate (DARWINN 3)."""
        if self.estimated_cycles_64bit <= 0:
            return None
        return self.estimated_cycles_64bit

    def layer(self, desc: int, name: str | None) -> Layer | None:
        """Return the input or output of this name; None where there is none or `desc` is no kind of layer."""
        if name is None:
            return None
        layers: tuple[Layer, ...] = ()
        if desc == INPUT:
            layers = self.inputs
        elif desc == OUTPUT:
            layers = self.outputs
        return next((layer for layer in layers if layer.name == name), None)


@dataclass(frozen=True, slots=True)
class MultiExecutable(Table):
    """A FlatBuffer of its own inside the package; each string is an `Executable` in a FlatBuffer of its own."""

    serialized_executables: tuple[memoryview | bytes, ...] | None = blobs(PAGE)


@dataclass(frozen=True, slots=True)
class SerializedPackage(Table):
    """A package for a single chip inside a package for several chips."""

    serialized_package: memoryview | bytes | None = data()


@dataclass(frozen=True, slots=True)
class PackageTable(Table):
    """The root table of a package."""

    min_runtime_version: int = int32()
    serialized_multi_executable: memoryview | bytes | None = data(PAGE)
    signature: memoryview | bytes | None = data()
    keypair_version: int = int32()
    compiler_version: str | None = text()
    virtual_chip_id: int = int32()
    multi_chip_package: tuple[SerializedPackage, ...] | None = many(SerializedPackage)
    model_identifier: str | None = text()


TABLES: Final[tuple[type[Table], ...]] = (
    PackageTable, SerializedPackage, MultiExecutable, Executable, InstructionBitstream, FieldOffset, Meta, DmaHints,
    DmaHint, DmaDescriptorHint, InstructionHint, InterruptHint, FenceHint, Layer, NumericsConstants, OutputLayer,
    InputLayer, OutputLayout, OutputShapeInfo, TensorLayout, TensorShape,
)  # fmt: skip
"""Every table in the order of the docs."""
