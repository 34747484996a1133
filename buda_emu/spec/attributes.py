"""The attributes of an op, one declaration each: type, default, where it is legal, what it means (NETLIST 1.4, OPS
6.14)."""

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Literal

from buda_emu.records import dataclass

AttributeKind = Literal["int", "float", "bool", "text", "word", "ints", "broadcasts", "splice"]

SFPU_TYPES = (
    "exp", "log", "sqrt", "gelu", "gelu_derivative", "reciprocal", "sigmoid", "dropout", "tanh", "square", "power",
    "sine", "cosine", "lrelu", "abs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """What the netlist language says of one attribute. `types` None means legal on every op type."""

    name: str
    kind: AttributeKind
    default: Any
    doc: str
    types: tuple[str, ...] | None
    words: tuple[str, ...]
    fused_types: tuple[str, ...] | None  # sub-op types that may carry it in a schedule; () = none, None = all
    has_effect: bool  # on values; False: parsed and checked, no effect on the reference's numbers


def _attribute(
    kind: AttributeKind,
    default: Any,
    doc: str,
    types: tuple[str, ...] | None = None,
    *,
    words: tuple[str, ...] = (),
    fused: tuple[str, ...] | None = (),
    effect: bool = False,
) -> Any:
    meta = {"kind": kind, "doc": doc, "types": types, "words": words, "fused": fused, "effect": effect}
    return field(default=default, metadata=meta)


_MATMUL = ("matmul", "fused_op")
_SPARSE = ("matmul", "fused_op", "buffer")


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of one op or sub-op, with the reference's defaults where the netlist gives none.

    `given` names those that were written. A field here is the whole declaration of an attribute: parser, schema,
    documentation and `buda-emu ops` derive from `ATTRIBUTES`.
    """

    given: frozenset[str] = field(default=frozenset(), metadata={"kind": None})
    kernel_broadcast: tuple[tuple[int, int], ...] = _attribute(
        "broadcasts", (), "{input_N: tiles}: the core keeps only the first tiles of that operand, which repeats"
    )
    kernel_broadcast_per_t: tuple[tuple[int, int], ...] = _attribute(
        "broadcasts", (), "{input_N: tiles}: as kernel_broadcast, for every t slice"
    )
    single_tile: tuple[int, ...] = _attribute("ints", (), "input indices; the same as kernel_broadcast 1")
    m_k: int = _attribute("int", 0, "mblocks along the inner dimension", effect=True, fused=None)
    u_kt: int = _attribute("int", 0, "tiles of the inner dimension in a ublock", effect=True, fused=None)
    bias: bool = _attribute("bool", False, "the third input is a bias", effect=True)
    accumulate: bool = _attribute("bool", False, "sum the product over runs of z slices", effect=True)
    approximate_mode: bool = _attribute("bool", False, "SFPU approximation")
    relu_en: bool = _attribute("bool", False, "apply relu to the result", effect=True, fused=None)
    sfpu_op: str = _attribute(
        "word", "", "SFPU function at the end of a matmul; only gelu runs", words=SFPU_TYPES, effect=True
    )
    vector: str = _attribute(
        "word",
        "",
        "SFPU region: r = first 4 rows, c = first 16 columns, rc = whole tile",
        words=("r", "c", "rc"),
        effect=True,
        fused=None,
    )
    relu_threshold: float = _attribute("float", 0.0, "relu threshold, >= 0", effect=True, fused=None)
    relu_mode: str = _attribute(
        "word",
        "",
        "min: below threshold becomes 0; max: clamp to [0, threshold]",
        words=("min", "max", "none"),
        effect=True,
        fused=None,
    )
    srnd_fpu_en: bool = _attribute("bool", False, "legacy form of stoch_rnd_mode: fpu")
    stoch_rnd_mode: str = _attribute("word", "none", "stochastic rounding", words=("none", "fpu", "pack", "all"))
    identity: bool = _attribute("bool", False, "sparse (identity) matmul", _MATMUL, effect=True)
    num_sparse_tiles: int = _attribute("int", 0, "unique sparse tiles of a sparse matmul", _MATMUL)
    num_columns: int = _attribute("int", 0, "columns of a sparse matmul", _MATMUL)
    indices_len: int = _attribute("int", 0, "length of the index stream", _MATMUL)
    fracture_factor: int = _attribute("int", 1, "column groups of the sparse weights", _MATMUL, effect=True)
    starting_row: int = _attribute("int", 0, "first row of a sparse matmul", _MATMUL)
    act_t: int = _attribute("int", 0, "t of the activations of a sparse matmul", _MATMUL)
    num_index_tiles: int = _attribute("int", 0, "tiles of the sparse encoding for each core row", _SPARSE)
    sparse_tile_ptr_bits: int = _attribute(
        "int", 0, "bits of a sparse tile number in the encoding", _SPARSE, effect=True
    )
    sparse_ublock_idx_bits: int = _attribute(
        "int", -1, "bits of a ublock index; <= 0 means sparse_tile_ptr_bits", _SPARSE, effect=True
    )
    num_nz_strips: tuple[int, ...] = _attribute("ints", (0,), "non-zero strips of each core", _SPARSE)
    min_buffer_input: int = _attribute(
        "int", -1, "which operand is kept in small buffers (0 or 1)", ("matmul", "fused_op", "buffer", "depthwise")
    )
    l1_acc: bool = _attribute("bool", False, "accumulate in L1 while packing", ("matmul", "depthwise"))
    dim: str = _attribute(
        "word",
        "",
        "dimension that reduce removes",
        ("reduce", "fused_op"),
        words=("r", "c", "z", "rc"),
        fused=("reduce",),
        effect=True,
    )
    type: str = _attribute(
        "word", "", "what reduce computes", ("reduce", "fused_op"), words=("max",), fused=("reduce",), effect=True
    )
    z: int = _attribute(
        "int",
        0,
        "slices that one result slice takes: reduce dim z, matmul accumulate",
        ("reduce", "matmul", "fused_op"),
        effect=True,
    )
    p: float = _attribute(
        "float",
        0.0,
        "dropout probability, 0 to 1; absent also means scale 0",
        ("dropout", "fused_op"),
        fused=("dropout",),
        effect=True,
    )
    seed: int = _attribute(
        "int", 0, "dropout seed, ignored by the reference", ("dropout", "fused_op"), fused=("dropout",)
    )
    slope: float = _attribute("float", 0.01, "leaky relu slope", ("lrelu", "fused_op"), fused=("lrelu",), effect=True)
    exp: int = _attribute("int", 0, "exponent of power", ("power", "fused_op"), fused=("power",), effect=True)
    fused_op_id: str = _attribute("text", "", "which entry of fused_ops runs", ("fused_op",), effect=True)
    granularity: str = _attribute(
        "word", "ublock", "what splice moves", ("splice",), words=("ublock", "t"), effect=True
    )
    inputs: tuple[tuple[int, tuple[int, ...]], ...] = _attribute(
        "splice", (), "inputN: [index, length, stride], one for each splice input", ("splice",), effect=True
    )
    num_indices: int = _attribute(
        "int", 0, "rows that embedding looks up, a multiple of 32", ("embedding",), effect=True
    )
    sfpu_execution_thread: str = _attribute(
        "word", "", "thread that runs the SFPU", ("matmul", *SFPU_TYPES), words=("math", "pack")
    )
    requant: bool = _attribute("bool", False, "requantise the product with the last input", ("matmul",), effect=True)
    dequant: bool = _attribute("bool", False, "dequantise the product with the last input", ("matmul",), effect=True)
    k: int = _attribute("int", 0, "how many topk keeps", ("topk",), effect=True)
    sort: str = _attribute(
        "word",
        "",
        "what topk returns: values (max) or indices (argmax)",
        ("topk",),
        words=("max", "argmax"),
        effect=True,
    )
    kreduce: bool = _attribute("bool", False, "topk input is already sorted in runs of k", ("topk",), effect=True)
    zero_point: float = _attribute("float", 0.0, "zero point of (re/de)quantisation", effect=True)
    ingress_channels: tuple[int, ...] = _attribute("ints", (), "Ethernet channels in")
    egress_channels: tuple[int, ...] = _attribute("ints", (), "Ethernet channels out")
    dest_device: int = _attribute("int", -1, "chip that an Ethernet copy writes to")


def _specs() -> Mapping[str, AttributeSpec]:
    table: dict[str, AttributeSpec] = {}
    for item in fields(Attributes):
        meta = item.metadata
        if meta["kind"] is None:
            continue
        table[item.name] = AttributeSpec(
            item.name,
            meta["kind"],
            item.default,
            meta["doc"],
            meta["types"],
            meta["words"],
            meta["fused"],
            meta["effect"],
        )
    return table


ATTRIBUTES: Mapping[str, AttributeSpec] = _specs()
