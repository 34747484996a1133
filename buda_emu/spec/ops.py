"""Declarations of the op types of the netlist language (OPS 1). Their behaviour is implemented in
`buda_emu.emulator.ops`."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.support.other_packages import OPS, declared_by_others
from buda_emu.support.records import dataclass

Family: TypeAlias = str
"""The name of a group of op types that differ in little else than the function they compute."""

Trait = Literal[
    "tile by tile",  # each element of the result is made of those at its place in the operands
    "keeps shape",  # operands have the result's shape, in tiles of its width
    "copies",  # its operand, bit by bit
    "keeps sums",  # partial sums lie in intermed_df
    "inner dimension",  # of m_k blocks of u_kt tiles: rows of cores share operand 0, columns operand 1
    "rows by columns",  # tile (r, c) of the result: row r of operand 0 by column c of operand 1
    "takes turns",  # slices of the result come of its operands in turns
    "clamps",  # what it packs, by a relu of its own attributes: known of it
    "reduces",  # the dimension `dim`, over z where that is z
    "multiplies",  # tiles in the FPU, as often as the math fidelity says
    "vector unit",  # computes it: vector modes and approximate_mode matter
    "sub-ops",  # a schedule of a fused op is run, each part with attributes of its own
    "Ethernet",  # runs on no worker core
    "reads flat data",  # operand 0: row-major, from a queue in DRAM
    "reads what was pushed",  # before the queue rounds it
    "row-wise index",  # operand 1 says which rows of operand 0
    "result indices",  # operand 1 numbers what is sorted
    "rounds to Int8",
    "takes positive numbers",
    "keeps positive",  # no element of its result is below zero where none of its operands is
    "gives positive",  # no element of its result is below zero
    "large at 0",  # its result for 0 is infinite, or far from those for other numbers
    "Int32 sums of floats",  # acc_df may be Int32 without integer operands
    "integers beside floats",  # among operands; rules of its own say which
    "integers are indices",  # not computed with
    "ends a fused op",  # as a sub-op it is the last one: the front end's search ends after it (FRONTEND 3.3)
    "no gradient",
    "sums gradients on grayskull",
    "gradient transposes",
    "one operand is kept",  # min_buffer_input may be 0 only
    "cut by its attributes",  # what each core does stands there, or in a definition that others share
]
ResultTile = Literal["least", "of the op", "of operand 0", "full"]
Group = Literal["matmul", "binary", "sfpu", "reduce", "fused", "move"]


@dataclass(frozen=True, slots=True)
class OnDevice:
    """The claim about an op's bits in precision "device" on Wormhole B0 and Blackhole (DEVICE_NUMERICS 9, 10).

    `exact` holds the formats of operands and results for which every unit on the way was compared bit for bit with
    the public simulator, and their order read in the public kernels; none where a part of the op itself was read or
    inferred. `open` says what was not compared, apart from other formats.
    """

    exact: tuple[str, ...] = ()
    open: str = ""


@dataclass(frozen=True, slots=True)
class OpType:
    """One op type. `inputs` is (least, most) accepted at load (NETLIST 11.1 A4).

    `op` names the module that implements it: shape rule, format label, reference and kernels
    (`buda_emu.emulator.ops.base.Implementation`). `device` names the module of its steps on the device
    (`buda_emu.emulator.ops.on_device.base.DeviceOp`). They are imported when a netlist uses the op. The reference
    refuses a type without `op`.
    """

    name: str
    family: Family
    inputs: tuple[int, int]
    doc: str
    op: str = ""
    device: str = ""
    traits: tuple[Trait, ...] = ()
    attributes: tuple[str, ...] = ()  # beside those that every op may have
    late_z: tuple[str, str | bool] | None = None  # attribute and value that must stand before `z`
    in_fused: bool = False  # legal in a fused schedule (OPS 8.2)
    transposed: int | None = None  # operand whose tiles the transpose flag turns (OPS 7.4)
    transposes_on_grayskull: bool = True
    result_tile: ResultTile = "least"  # not blanked, on the device: the least of operand 0's and the op's (OPS 6)
    integers: tuple[str, ...] = ("Int8", "UInt8", "UInt16", "Int32", "RawUInt32")  # formats of integer operands (V102)
    integers_in_fused: tuple[str, ...] = ("Int8", "Int32")  # and of inputs of a fused op (V141)
    costs_as: str = "nop"  # whose cycles are nearest, where its own were not measured
    drawn_as: Group = "move"
    on_device: OnDevice = OnDevice()

    def has(self, trait: Trait) -> bool:
        """Return whether the op type has a trait."""
        return trait in self.traits

    @property
    def runs(self) -> bool:
        """Return whether the reference creates ops of this type."""
        return bool(self.op)

    @property
    def one_input(self) -> bool:
        """Return whether the op type takes exactly one input."""
        return self.inputs == (1, 1)

    def transpose_refusal(self, index: int, arch: str = "", df: str = "") -> str:
        """Return why operand `index` may not be transposed (NETLIST 1.6, OPS 7.4), "" if it may.

        `df` is the format of operand 0; "" stands for an architecture or a format that is not known.
        """
        if self.transposed is None:
            return f"{self.name} cannot transpose"
        if index != self.transposed and not self.one_input:
            return f"{self.name} transposes its input {self.transposed} only"
        if not self.transposes_on_grayskull and arch == "grayskull":
            return f"{self.name} cannot transpose on grayskull"
        if self.has("tile by tile") and df == "Int32":
            return f"{self.name} cannot transpose with an Int32 input 0"
        return ""

    @property
    def is_binary(self) -> bool:
        """Return whether it is an element-wise op of two operands; the quantisation family is among these."""
        return self.inputs[0] == 2 and self.has("tile by tile")

    @property
    def inputs_text(self) -> str:
        """Return the number of inputs as text: `1`, `2+` or `1-8`."""
        least, greatest = self.inputs
        if least == greatest:
            return str(least)
        if greatest == ANY:
            return f"{least}+"
        return f"{least}-{greatest}"


TILE_BY_TILE: tuple[Trait, ...] = ("tile by tile", "keeps shape")

ANY = 1 << 30
"""The greatest number of inputs of op types that have no limit."""

# Block formats of family A were not compared (DEVICE_NUMERICS 1.2, 4.5), nor max pool in any format of it (2.6).
WIDE = ("Float32", "Float16_b", "Bfp8_b", "Bfp4_b", "Bfp2_b")
FLOATS = (*WIDE, "Float16", "Lf8", "Fp8_e4m3")
INTEGERS = ("Int8", "UInt8", "Int32")
READ = OnDevice(open="its place among the units was inferred")


class OpTypes(Mapping[str, OpType]):
    """Op types by name: those of this package, and those that other packages declare by an entry point.

    Entry points are loaded once, when an unknown name is looked up for the first time: this takes longer than to read
    a netlist of known ops.
    """

    def __init__(self, built_in: Iterable[OpType]) -> None:
        self._types = {op.name: op for op in built_in}
        self._built_in = frozenset(self._types)
        self._entry_points_loaded = False

    def find(self, name: str) -> OpType | None:
        """Return the op type of a name, or None if there is none. Faster than `get`."""
        op_type = self._types.get(name)
        if op_type is None and not self._entry_points_loaded:
            self._load_entry_points()
            op_type = self._types.get(name)
        return op_type

    def __getitem__(self, name: str) -> OpType:
        op_type = self.find(name)
        if op_type is None:
            raise KeyError(name)
        return op_type

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def is_own(self, name: str) -> bool:
        """Return whether this package declares the op type."""
        return name in self._built_in

    def _load_entry_points(self) -> None:
        """Add the op types that other packages declare by entry points of the group `OPS`; names of this package
        stay as they are. Raises HostError for an entry point that is no op type of its name.
        """
        self._entry_points_loaded = True
        for op_type in declared_by_others(OPS, OpType):
            self._types.setdefault(op_type.name, op_type)


_binary = partial(
    OpType,
    family="binary",
    inputs=(2, ANY),
    op="buda_emu.emulator.ops.binary",
    device="buda_emu.emulator.ops.on_device.binary",
    in_fused=True,
    transposed=0,
    transposes_on_grayskull=False,
    drawn_as="binary",
    on_device=OnDevice((*FLOATS, *INTEGERS)),
)
_TRAITS: tuple[Trait, ...] = (*TILE_BY_TILE, "clamps")
_GROWING: tuple[Trait, ...] = (*_TRAITS, "keeps positive")
_SUMS = ("Int8", "UInt8", "Int32")  # NETLIST V102
_PRODUCTS = ("Int8", "UInt8")
_SUMS_IN_FUSED = ("Int8", "Int32")  # NETLIST V141
_PRODUCTS_IN_FUSED = ("Int8",)

BINARY: Iterable[OpType] = (
    _binary("add", doc="a + b", traits=_GROWING, integers=_SUMS, integers_in_fused=_SUMS_IN_FUSED),
    _binary("subtract", doc="a - b", traits=_TRAITS, integers=_PRODUCTS, integers_in_fused=_PRODUCTS_IN_FUSED),
    _binary(
        "multiply",
        doc="a * b",
        traits=(*_GROWING, "multiplies", "sums gradients on grayskull"),
        integers=_PRODUCTS,
        integers_in_fused=_PRODUCTS_IN_FUSED,
    ),
    _binary(
        "maximum",
        doc="the greater of a and b",
        traits=(*_GROWING, "no gradient"),
        integers=_SUMS,
        integers_in_fused=_SUMS_IN_FUSED,
    ),
)


_copy = partial(
    OpType,
    inputs=(1, 1),
    op="buda_emu.emulator.ops.moves",
    device="buda_emu.emulator.ops.on_device.moves",
    in_fused=True,
)
_ALL = OnDevice((*FLOATS, *INTEGERS))

COPIES: Iterable[OpType] = (
    _copy(
        "nop",
        "unary",
        doc="copy",
        traits=(
            *TILE_BY_TILE,
            "copies",
            "keeps positive",
            "clamps",
            "sums gradients on grayskull",
            "gradient transposes",
            "Int32 sums of floats",
        ),
        transposed=0,
        on_device=_ALL,
    ),
    _copy(
        "datacopy",
        "unary",
        doc="copy",
        traits=(*TILE_BY_TILE, "copies", "keeps positive", "sums gradients on grayskull", "gradient transposes"),
        transposed=0,
        on_device=_ALL,
    ),
    _copy(
        "ethernet_datacopy",
        "ethernet",
        doc="copy over an Ethernet link",
        traits=(*TILE_BY_TILE, "copies", "Ethernet", "cut by its attributes"),
        on_device=OnDevice(tuple(NETLIST_FORMATS)),
    ),
)


_quantization = partial(
    OpType,
    family="quantization",
    inputs=(2, ANY),
    op="buda_emu.emulator.ops.binary",
    device="buda_emu.emulator.ops.on_device.binary",
    in_fused=True,
    transposed=0,
    transposes_on_grayskull=False,
    drawn_as="binary",
    on_device=OnDevice(("Float32", "Int8", "Int32")),
)

QUANTIZATION: Iterable[OpType] = (
    _quantization(
        "quantization",
        doc="float to int8: a * scale + zero_point",
        traits=(*TILE_BY_TILE, "rounds to Int8", "Int32 sums of floats"),
    ),
    _quantization(
        "requantization",
        doc="int to int8: a * scale + zero_point",
        traits=(*TILE_BY_TILE, "rounds to Int8", "integers beside floats"),
    ),
    _quantization(
        "dequantization", doc="int to float: (a - zero_point) * scale", traits=(*TILE_BY_TILE, "integers beside floats")
    ),
)


_FUNCTION = "which of the kernel's sums and products the compiler makes one was read in its source"
_SEEN = OnDevice(FLOATS)
_INFERRED = OnDevice(open=_FUNCTION)
_BY_TABLE = OnDevice(open=f"{_FUNCTION}; table 2 of LUT16 was read in documents")
_BY_TURNS = OnDevice(open=f"{_FUNCTION}; the chip rounds the quotient by pi at random")
_BY_PLACE = OnDevice(open="which values are dropped depends on the core's place")


def _sfpu(name: str, doc: str, on_device: OnDevice, *traits: Trait, attributes: tuple[str, ...] = ()) -> OpType:
    """Declare an op type of the vector unit; `on_device` is the claim about its bits, `attributes` are those of its
    own.
    """
    return OpType(
        name,
        "sfpu",
        (1, 1),
        doc,
        op="buda_emu.emulator.ops.sfpu",
        device="buda_emu.emulator.ops.on_device.sfpu",
        traits=(*TILE_BY_TILE, "vector unit", *traits),
        attributes=("sfpu_execution_thread", *attributes),
        in_fused=True,
        transposed=0,
        drawn_as="sfpu",
        on_device=on_device,
    )


SFPU: Iterable[OpType] = (
    _sfpu("exp", "e^x, never above the largest finite float32", _INFERRED, "keeps positive", "ends a fused op"),
    _sfpu("log", "natural logarithm; log(0) = log(2^-23)", _INFERRED, "takes positive numbers", "large at 0"),
    _sfpu(
        "sqrt",
        "square root; a negative or NaN input fails the run",
        _INFERRED,
        "takes positive numbers",
        "keeps positive",
    ),
    _sfpu("gelu", "gelu by the tanh approximation", _INFERRED),
    _sfpu("gelu_derivative", "derivative of gelu", _BY_TABLE),
    _sfpu("reciprocal", "1/x; 1/0 = 2^23", _INFERRED, "takes positive numbers", "keeps positive", "large at 0"),
    _sfpu("sigmoid", "1/(1+e^-x)", _BY_TABLE, "gives positive"),
    _sfpu(
        "dropout",
        "zeroes a fixed pattern of elements and scales the rest",
        _BY_PLACE,
        "keeps positive",
        attributes=("p", "seed"),
    ),
    _sfpu("tanh", "hyperbolic tangent", _INFERRED),
    _sfpu("square", "x*x", _SEEN, "gives positive"),
    _sfpu(
        "power",
        "x to an integer power by repeated multiplication",
        _SEEN,
        "takes positive numbers",
        "keeps positive",
        attributes=("exp",),
    ),
    _sfpu("sine", "sin(x), radians", _BY_TURNS),
    _sfpu("cosine", "cos(x), radians", _BY_TURNS),
    _sfpu("lrelu", "x, or slope*x where x <= 0", _SEEN, attributes=("slope",)),
    _sfpu("abs", "absolute value", _SEEN, "gives positive"),
)
SFPU_TYPES = tuple(op.name for op in SFPU)
"""The op types of the vector unit; `sfpu_op` of a matmul may name them, too."""


EMBEDDING = OpType(
    "embedding", "embedding", (1, ANY), "rows of a table picked by indices",
    op="buda_emu.emulator.ops.moves",
    device="buda_emu.emulator.ops.on_device.moves",
    traits=("reads flat data", "row-wise index", "cut by its attributes"),
    attributes=("num_indices",),
    result_tile="full",
    on_device=READ,
)  # fmt: skip


REDUCE = OpType(
    "reduce", "reduce", (1, ANY), "maximum over rows, columns, tiles or z",
    op="buda_emu.emulator.ops.reduce",
    device="buda_emu.emulator.ops.on_device.reduce",
    traits=("reduces", "keeps sums", "multiplies"),
    attributes=("dim", "type", "z"),
    late_z=("dim", "z"),
    in_fused=True,
    result_tile="full",
    drawn_as="reduce",
    on_device=OnDevice(WIDE),
)  # fmt: skip


SPLICE = OpType(
    "splice", "splice", (1, 8), "concatenates pieces of its inputs",
    op="buda_emu.emulator.ops.moves",
    device="buda_emu.emulator.ops.on_device.moves",
    traits=("takes turns", "cut by its attributes"),
    attributes=("granularity", "inputs"),
    result_tile="full",
    on_device=READ,
)  # fmt: skip


TILIZER = OpType(
    "tilizer", "tilizer", (1, ANY), "row-major data of a flat queue into tiles",
    op="buda_emu.emulator.ops.moves",
    device="buda_emu.emulator.ops.on_device.moves",
    traits=("keeps shape", "reads flat data", "reads what was pushed", "cut by its attributes"),
    result_tile="of the op",
    on_device=READ,
)  # fmt: skip


TOPK = OpType(
    "topk", "topk", (1, ANY), "the k greatest values of each row, or their indices",
    op="buda_emu.emulator.ops.topk",
    device="buda_emu.emulator.ops.on_device.topk",
    traits=("result indices", "integers are indices", "cut by its attributes"),
    attributes=("k", "sort", "kreduce"),
    costs_as="maximum",
    drawn_as="reduce",
    on_device=OnDevice(open="its network was inferred"),
)  # fmt: skip


REFUSED: Iterable[OpType] = (
    OpType(
        "buffer", "refused", (1, ANY), "attribute rules exist, creation is refused by the reference",
        traits=("one operand is kept",),
        attributes=(
            "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips", "min_buffer_input",
        ),
    ),
    OpType("drainer", "refused", (1, 1), "performance only, refused by the reference unless enabled there"),
)  # fmt: skip


MATMUL = OpType(
    "matmul", "matmul", (2, ANY), "matrix product; identity: true makes it sparse",
    op="buda_emu.emulator.ops.matmul",
    device="buda_emu.emulator.ops.on_device.matmul",
    traits=(
        "inner dimension", "rows by columns", "keeps sums", "multiplies", "keeps positive", "clamps",
        "sums gradients on grayskull", "gradient transposes",
    ),
    attributes=(
        "identity", "num_sparse_tiles", "num_columns", "indices_len", "fracture_factor", "starting_row", "act_t",
        "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips", "min_buffer_input",
        "l1_acc", "z", "sfpu_execution_thread", "requant", "dequant",
    ),
    late_z=("accumulate", True),
    in_fused=True,
    transposed=1,
    result_tile="of the op",
    drawn_as="matmul",
    on_device=OnDevice((*FLOATS, *INTEGERS), "where an identity matmul spills was inferred"),
)  # fmt: skip


DEPTHWISE = OpType(
    "depthwise", "depthwise", (1, ANY), "depthwise product of column groups",
    op="buda_emu.emulator.ops.matmul",
    device="buda_emu.emulator.ops.on_device.matmul",
    traits=("inner dimension", "keeps sums", "multiplies", "clamps", "one operand is kept", "cut by its attributes"),
    attributes=("min_buffer_input", "l1_acc"),
    result_tile="of operand 0",
    drawn_as="matmul",
    on_device=OnDevice(FLOATS),
)  # fmt: skip


FUSED = OpType(
    "fused_op", "fused", (1, ANY), "a schedule of sub-ops, see fused_ops",
    op="buda_emu.emulator.ops.fused",
    device="buda_emu.emulator.ops.on_device.fused",
    traits=("sub-ops", "keeps sums", "integers beside floats", "Int32 sums of floats", "cut by its attributes"),
    attributes=(
        "identity", "num_sparse_tiles", "num_columns", "indices_len", "fracture_factor", "starting_row", "act_t",
        "num_index_tiles", "sparse_tile_ptr_bits", "sparse_ublock_idx_bits", "num_nz_strips", "min_buffer_input",
        "dim", "type", "z", "p", "seed", "slope", "exp", "fused_op_id",
    ),
    result_tile="full",
    drawn_as="fused",
    on_device=OnDevice(open="how dest becomes an operand, also by a cast, was read in the kernels"),
)  # fmt: skip


OP_TYPES = OpTypes(
    (
        MATMUL,
        DEPTHWISE,
        *BINARY,
        *QUANTIZATION,
        *COPIES,
        *SFPU,
        REDUCE,
        SPLICE,
        EMBEDDING,
        TILIZER,
        TOPK,
        FUSED,
        *REFUSED,
    )
)


class OfOpType:
    """Base of ops and scheduled ops, whose `type` may also be a word that names no op type."""

    __slots__ = ()
    if TYPE_CHECKING:
        type: str

    def has(self, trait: Trait) -> bool:
        """Return whether the op's type has a trait; False for an unknown type."""
        declared = OP_TYPES.find(self.type)
        return declared is not None and trait in declared.traits
