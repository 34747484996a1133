"""The attributes of ops, one declaration each: type, default, legal op types, meaning (NETLIST 1.4, OPS 6.14)."""

from collections.abc import Mapping
from dataclasses import field, fields
from functools import partial
from typing import Any, Final, Literal

from buda_emu.spec.ops import OP_TYPES, SFPU_TYPES
from buda_emu.support.records import dataclass

LAST_OF_T: Final = 1 << 30
LAST_IN_TILE: Final = 1 << 31
"""Marks beside a strip's number in the encoding of an identity matmul: the last one of its t, and of its tile (OPS
6.2)."""

AttributeKind = Literal["int", "float", "bool", "text", "word", "ints", "broadcasts", "splice"]


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """The declaration of one attribute of the netlist language."""

    name: str
    kind: AttributeKind
    default: Any
    doc: str
    everywhere: bool  # legal on every op type, or on those whose declaration names it
    words: tuple[str, ...]
    in_fused: bool  # may stand in a schedule, on sub-ops on which it is legal
    has_effect: bool  # False: parsed and checked, but without effect on the reference's values
    acts_on: tuple[str, ...]  # names and traits of the op types on which it has an effect; (): on all that may have it

    def is_legal_on(self, op_type: str) -> bool:
        """Return whether an op of a type may have the attribute. Raises KeyError for an unknown type."""
        return self.everywhere or self.name in OP_TYPES[op_type].attributes

    def acts(self, op_type: str) -> bool:
        """Return whether the attribute has an effect on ops of a type; whether it is legal there (`is_legal_on`) is not
        asked. Raises KeyError for an unknown type."""
        declaration = OP_TYPES[op_type]
        return not self.acts_on or not {declaration.name, *declaration.traits}.isdisjoint(self.acts_on)

    @property
    def types(self) -> tuple[str, ...] | None:
        """Return the op types on which the attribute is legal, or None for all."""
        if self.everywhere:
            return None
        return tuple(op.name for op in OP_TYPES.values() if self.name in op.attributes)

    @property
    def fused_types(self) -> tuple[str, ...] | None:
        """Return the types of sub-ops that may have the attribute in a schedule: None for all, () where it may not
        stand in one."""
        if not self.in_fused:
            return ()
        if self.everywhere:
            return None
        return tuple(name for name in self.types or () if OP_TYPES[name].in_fused)


def _attribute(
    kind: AttributeKind,
    default: Any,
    doc: str,
    *,
    everywhere: bool = True,
    words: tuple[str, ...] = (),
    in_fused: bool = False,
    effect: bool = False,
    acts_on: tuple[str, ...] = (),
) -> Any:
    """Declare an attribute as a field of `Attributes`; the parameters are the fields of `AttributeSpec`, where
    `effect` is `has_effect`.
    """
    meta = {
        "kind": kind,
        "doc": doc,
        "everywhere": everywhere,
        "words": words,
        "in_fused": in_fused,
        "effect": effect,
        "acts_on": acts_on,
    }
    return field(default=default, metadata=meta)


_own = partial(_attribute, everywhere=False)
"""Declare an attribute that is legal only on the op types whose declaration names it."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of one op or sub-op, with the reference's defaults where the netlist has none.

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
    m_k: int = _attribute("int", 0, "mblocks along the inner dimension", effect=True, in_fused=True)
    u_kt: int = _attribute("int", 0, "tiles of the inner dimension in a ublock", effect=True, in_fused=True)
    bias: bool = _attribute("bool", False, "the third input is a bias", effect=True, acts_on=("matmul", "depthwise"))
    accumulate: bool = _attribute(
        "bool", False, "sum the product over runs of z slices", effect=True, acts_on=("matmul",)
    )
    approximate_mode: bool = _attribute("bool", False, "SFPU approximation")
    relu_en: bool = _attribute("bool", False, "apply relu to the result", effect=True, in_fused=True)
    sfpu_op: str = _attribute(
        "word",
        "",
        "SFPU function at the end of a matmul; only gelu runs",
        words=SFPU_TYPES,
        effect=True,
        acts_on=("matmul",),
    )
    vector: str = _attribute(
        "word",
        "",
        "SFPU region: r = first 4 rows, c = first 16 columns, rc = whole tile",
        words=("r", "c", "rc"),
        effect=True,
        in_fused=True,
        acts_on=("vector unit", "matmul"),
    )
    relu_threshold: float = _attribute("float", 0.0, "relu threshold, >= 0", effect=True, in_fused=True)
    relu_mode: str = _attribute(
        "word",
        "",
        "min: below threshold becomes 0; max: clamp to [0, threshold]",
        words=("min", "max", "none"),
        effect=True,
        in_fused=True,
    )
    srnd_fpu_en: bool = _attribute("bool", False, "legacy form of stoch_rnd_mode: fpu")
    stoch_rnd_mode: str = _attribute("word", "none", "stochastic rounding", words=("none", "fpu", "pack", "all"))
    identity: bool = _own("bool", False, "sparse (identity) matmul", effect=True)
    num_sparse_tiles: int = _own("int", 0, "unique sparse tiles of a sparse matmul")
    num_columns: int = _own("int", 0, "columns of a sparse matmul")
    indices_len: int = _own("int", 0, "length of the index stream")
    fracture_factor: int = _own("int", 1, "column groups of the sparse weights", effect=True)
    starting_row: int = _own("int", 0, "first row of a sparse matmul")
    act_t: int = _own("int", 0, "t of the activations of a sparse matmul")
    num_index_tiles: int = _own("int", 0, "tiles of the sparse encoding for each core row")
    sparse_tile_ptr_bits: int = _own("int", 0, "bits of a sparse tile number in the encoding", effect=True)
    sparse_ublock_idx_bits: int = _own(
        "int", -1, "bits of a ublock index; <= 0 means sparse_tile_ptr_bits", effect=True
    )
    num_nz_strips: tuple[int, ...] = _own("ints", (0,), "non-zero strips of each core")
    min_buffer_input: int = _own("int", -1, "which operand is kept in small buffers (0 or 1)")
    l1_acc: bool = _own("bool", False, "accumulate in L1 while packing")
    dim: str = _own(
        "word", "", "dimension that reduce removes", words=("r", "c", "z", "rc"), in_fused=True, effect=True
    )
    type: str = _own("word", "", "what reduce computes", words=("max",), in_fused=True, effect=True)
    z: int = _own("int", 0, "slices that one result slice takes: reduce dim z, matmul accumulate", effect=True)
    p: float = _own("float", 0.0, "dropout probability, 0 to 1; absent also means scale 0", in_fused=True, effect=True)
    seed: int = _own("int", 0, "dropout seed, ignored by the reference", in_fused=True)
    slope: float = _own("float", 0.01, "leaky relu slope", in_fused=True, effect=True)
    exp: int = _own("int", 0, "exponent of power", in_fused=True, effect=True)
    fused_op_id: str = _own("text", "", "which entry of fused_ops runs", effect=True)
    granularity: str = _own("word", "ublock", "what splice moves", words=("ublock", "t"), effect=True)
    inputs: tuple[tuple[int, tuple[int, ...]], ...] = _own(
        "splice", (), "inputN: [index, length, stride], one for each splice input", effect=True
    )
    num_indices: int = _own("int", 0, "rows that embedding looks up, a multiple of 32", effect=True)
    sfpu_execution_thread: str = _own("word", "", "thread that runs the SFPU", words=("math", "pack"))
    requant: bool = _own("bool", False, "requantise the product with the last input", effect=True)
    dequant: bool = _own("bool", False, "dequantise the product with the last input", effect=True)
    k: int = _own("int", 0, "how many topk keeps", effect=True)
    sort: str = _own(
        "word", "", "what topk returns: values (max) or indices (argmax)", words=("max", "argmax"), effect=True
    )
    kreduce: bool = _own("bool", False, "topk input is already sorted in runs of k", effect=True)
    zero_point: float = _attribute(
        "float",
        0.0,
        "zero point of (re/de)quantisation",
        effect=True,
        acts_on=("matmul", "quantization", "requantization", "dequantization"),
    )
    ingress_channels: tuple[int, ...] = _attribute("ints", (), "Ethernet channels in")
    egress_channels: tuple[int, ...] = _attribute("ints", (), "Ethernet channels out")
    dest_device: int = _attribute("int", -1, "chip that an Ethernet copy writes to")

    @property
    def inner(self) -> tuple[int, int]:
        """Return the blocks of the inner dimension, and the tiles of each: m_k and u_kt."""
        return self.m_k, self.u_kt

    @property
    def inner_tiles(self) -> int:
        """Return the tiles of the inner dimension."""
        return self.m_k * self.u_kt

    @property
    def ublock_index_bits(self) -> int:
        """Return the bits of a ublock's index in a sparse encoding: those of a tile's number unless they are given (OPS
        6.2)."""
        if self.sparse_ublock_idx_bits > 0:
            return self.sparse_ublock_idx_bits
        return self.sparse_tile_ptr_bits

    @property
    def relu(self) -> tuple[str, float] | None:
        """Return mode and threshold of the relu that follows the op, None without one."""
        if not self.relu_en:
            return None
        return self.relu_mode, self.relu_threshold


def _specs() -> Mapping[str, AttributeSpec]:
    """Return the declarations of all attributes by name, from the fields of `Attributes`."""
    table: dict[str, AttributeSpec] = {}
    for entry in fields(Attributes):
        meta = entry.metadata
        if meta["kind"] is None:
            continue
        table[entry.name] = AttributeSpec(
            name=entry.name,
            kind=meta["kind"],
            default=entry.default,
            doc=meta["doc"],
            everywhere=meta["everywhere"],
            words=meta["words"],
            in_fused=meta["in_fused"],
            has_effect=meta["effect"],
            acts_on=meta["acts_on"],
        )
    return table


ATTRIBUTES: Mapping[str, AttributeSpec] = _specs()
