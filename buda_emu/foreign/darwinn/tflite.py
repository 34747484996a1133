"""The tables of a TFLite model that packages and twins need (DARWINN_TWIN 2), for the same reader and writer, and the
names that the schema gives to builtin operators and tensor types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from buda_emu.foreign.darwinn.flatbuffer import Table, kinds
from buda_emu.foreign.darwinn.flatbuffer.declare import (
    boolean,
    data,
    float32,
    int8,
    int32,
    many,
    numbers,
    one,
    text,
    uint32,
    union,
    union_type,
)

_OPERATORS: Final = """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX
SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE
BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL
LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT
RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT
UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR
LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK
ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4
NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE
READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL
GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE
STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE
STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG
STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT
STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL
STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE
STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT
STABLEHLO_CASE
"""
_TENSOR_TYPES: Final = """
float32 float16 int32 uint8 int64 string bool int16 complex64 int8 float64 complex128 uint64 resource
variant uint32 uint16 int4 bfloat16 int2 uint4 float8_e4m3fn float8_e5m2
"""

BUILTIN_OPERATORS: Final[Mapping[int, str]] = dict(enumerate(_OPERATORS.split()))
"""Builtin operator code to name."""
TENSOR_TYPE_NAMES: Final[Mapping[int, str]] = dict(enumerate(_TENSOR_TYPES.split()))
"""Tensor type to name; numpy's name where numpy has the type."""


def describe_builtin_operator(code: int) -> str:
    """Return the name of a builtin operator, or a text with its number if this version of the schema has no such
    operator."""
    return BUILTIN_OPERATORS.get(code, f"a builtin operator of number {code}, newer than the schema that is read here,")


IDENTIFIER: Final = b"TFL3"
ALIGNMENT: Final = 16
"""Buffers of a model begin at multiples of this number of bytes."""
TENSOR_TYPES: Final[Mapping[int, str]] = {0: "float32", 2: "int32", 3: "uint8", 4: "int64", 7: "int16", 9: "int8"}
"""numpy's names of the tensor types."""
ACTIVATIONS: Final[Mapping[int, str]] = {0: "none", 1: "relu", 2: "relu_n1_to_1", 3: "relu6"}
WEIGHTS_FORMATS: Final[Mapping[int, str]] = {0: "DEFAULT", 1: "SHUFFLED4x16INT8"}
PADDINGS: Final[Mapping[int, str]] = {0: "SAME", 1: "VALID"}
CUSTOM: Final = 32
"""The operator code of operators with a name of their own."""


@dataclass(frozen=True, slots=True)
class OperatorCode(Table):
    """The operator that an index stands for."""

    deprecated_builtin_code: int = int8()
    custom_code: str | None = text()
    version: int = int32(1)
    builtin_code: int = int32()

    @property
    def code(self) -> int:
        """The number of the operator: the larger of the two code fields."""
        return max(self.deprecated_builtin_code, self.builtin_code)


@dataclass(frozen=True, slots=True)
class Quantization(Table):
    """Real value = (stored value - zero_point) * scale, one pair or one for each slice of a dimension."""

    min: Sequence[float] | None = numbers(kinds.FLOAT)
    max: Sequence[float] | None = numbers(kinds.FLOAT)
    scale: Sequence[float] | None = numbers(kinds.FLOAT)
    zero_point: Sequence[int] | None = numbers(kinds.LONG)
    details_type: int = union_type({0: "NONE"})
    details: Table | None = union({})
    quantized_dimension: int = int32()


@dataclass(frozen=True, slots=True)
class Tensor(Table):
    """A tensor; constant where its buffer holds bytes."""

    shape: Sequence[int] | None = numbers(kinds.INT)
    type: int = int8(TENSOR_TYPES)
    buffer: int = uint32()
    name: str | None = text()
    quantization: Quantization | None = one(Quantization)
    is_variable: bool = boolean()


@dataclass(frozen=True, slots=True)
class ConvOptions(Table):
    """The options of the operator CONV_2D."""

    padding: int = int8(PADDINGS)
    stride_w: int = int32()
    stride_h: int = int32()
    act: int = int8(ACTIVATIONS)
    dilation_w: int = int32(1)
    dilation_h: int = int32(1)


@dataclass(frozen=True, slots=True)
class DepthwiseOptions(Table):
    """The options of the operator DEPTHWISE_CONV_2D."""

    padding: int = int8(PADDINGS)
    stride_w: int = int32()
    stride_h: int = int32()
    multiplier: int = int32()
    act: int = int8(ACTIVATIONS)
    dilation_w: int = int32(1)
    dilation_h: int = int32(1)


@dataclass(frozen=True, slots=True)
class PoolOptions(Table):
    """The options of the operator AVERAGE_POOL_2D."""

    padding: int = int8(PADDINGS)
    stride_w: int = int32()
    stride_h: int = int32()
    filter_w: int = int32()
    filter_h: int = int32()
    act: int = int8(ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class FullyConnectedOptions(Table):
    """The options of the operator FULLY_CONNECTED."""

    act: int = int8(ACTIVATIONS)
    weights_format: int = int8(WEIGHTS_FORMATS)
    keep_num_dims: bool = boolean()
    asymmetric_quantize_inputs: bool = boolean()
    quantized_bias_type: int = int8(TENSOR_TYPES)


@dataclass(frozen=True, slots=True)
class SoftmaxOptions(Table):
    """The options of the operator SOFTMAX."""

    beta: float = float32()


@dataclass(frozen=True, slots=True)
class ConcatenationOptions(Table):
    """The options of the operator CONCATENATION."""

    axis: int = int32()
    act: int = int8(ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class AddOptions(Table):
    """The options of the operator ADD."""

    act: int = int8(ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class MulOptions(Table):
    """The options of the operator MUL."""

    act: int = int8(ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class SubOptions(Table):
    """The options of the operator SUB."""

    act: int = int8(ACTIVATIONS)


@dataclass(frozen=True, slots=True)
class MaximumMinimumOptions(Table):
    """The options of the operators MAXIMUM and MINIMUM: none."""


@dataclass(frozen=True, slots=True)
class LeakyReluOptions(Table):
    """The options of the operator LEAKY_RELU."""

    alpha: float = float32()


@dataclass(frozen=True, slots=True)
class SquaredDifferenceOptions(Table):
    """The options of the operator SQUARED_DIFFERENCE: none."""


@dataclass(frozen=True, slots=True)
class ResizeBilinearOptions(Table):
    """The options of the operator RESIZE_BILINEAR."""

    unused_height: int = int32()
    unused_width: int = int32()
    align_corners: bool = boolean()
    half_pixel: bool = boolean()


@dataclass(frozen=True, slots=True)
class ReshapeOptions(Table):
    """The options of the operator RESHAPE, of which none is read: the output tensor has the shape."""


@dataclass(frozen=True, slots=True)
class PadOptions(Table):
    """The options of the operator PAD: none."""


@dataclass(frozen=True, slots=True)
class SplitOptions(Table):
    """The options of the operator SPLIT."""

    number: int = int32()


@dataclass(frozen=True, slots=True)
class ArgMaxOptions(Table):
    """The options of the operator ARG_MAX."""

    output_type: int = int8(TENSOR_TYPES)


@dataclass(frozen=True, slots=True)
class SequenceLstmOptions(Table):
    """The options of the operator UNIDIRECTIONAL_SEQUENCE_LSTM."""

    act: int = int8()
    cell_clip: float = float32()
    proj_clip: float = float32()
    time_major: bool = boolean()


OPTIONS: Final[Mapping[int, type[Table]]] = {
    1: ConvOptions, 2: DepthwiseOptions, 5: PoolOptions, 8: FullyConnectedOptions, 9: SoftmaxOptions,
    10: ConcatenationOptions, 11: AddOptions, 15: ResizeBilinearOptions, 17: ReshapeOptions, 21: MulOptions,
    22: PadOptions, 28: SubOptions, 35: SplitOptions, 39: MaximumMinimumOptions, 40: ArgMaxOptions,
    71: SequenceLstmOptions, 75: LeakyReluOptions, 76: SquaredDifferenceOptions,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operator(Table):
    """One operator of a graph; an input of -1 is absent."""

    opcode_index: int = uint32()
    inputs: Sequence[int] | None = numbers(kinds.INT)
    outputs: Sequence[int] | None = numbers(kinds.INT)
    builtin_options_type: int = union_type({0: "NONE"} | {number: table.__name__ for number, table in OPTIONS.items()})
    builtin_options: Table | None = union(OPTIONS)
    custom_options: memoryview | bytes | None = data(ALIGNMENT)
    custom_options_format: int = int8()
    mutating_variable_inputs: Sequence[bool] | None = numbers(kinds.BOOL)
    intermediates: Sequence[int] | None = numbers(kinds.INT)


@dataclass(frozen=True, slots=True)
class SubGraph(Table):
    """Tensors and operators, the operators in the order of execution."""

    tensors: tuple[Tensor, ...] | None = many(Tensor)
    inputs: Sequence[int] | None = numbers(kinds.INT)
    outputs: Sequence[int] | None = numbers(kinds.INT)
    operators: tuple[Operator, ...] | None = many(Operator)
    name: str | None = text()


@dataclass(frozen=True, slots=True)
class Buffer(Table):
    """The bytes of a constant; a buffer that is absent or empty holds no constant."""

    data: memoryview | bytes | None = data(ALIGNMENT)


@dataclass(frozen=True, slots=True)
class Model(Table):
    """The root table of a `.tflite`."""

    version: int = uint32()
    operator_codes: tuple[OperatorCode, ...] | None = many(OperatorCode)
    subgraphs: tuple[SubGraph, ...] | None = many(SubGraph)
    description: str | None = text()
    buffers: tuple[Buffer, ...] | None = many(Buffer)
    metadata_buffer: Sequence[int] | None = numbers(kinds.INT)


TABLES: Final[tuple[type[Table], ...]] = (
    Model, OperatorCode, SubGraph, Tensor, Quantization, Operator, Buffer, *OPTIONS.values(),
)  # fmt: skip
"""Every table that is read."""
