"""One op on one core, as the cost model sees it: declaration, number formats and dimensions."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from buda_emu.spec.archs import ARCHS
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.spec.precision import PHASES
from buda_emu.support.errors import HostError, UnsupportedError

VectorMode = Literal["rc", "r", "c"]
ReduceDim = Literal["", "r", "c", "z"]

_LEAST = {"t": 1, "mblock_m": 1, "mblock_n": 1, "ublock_rt": 1, "ublock_ct": 1, "m_k": 0, "u_kt": 0, "z": 0,
          "nz_tiles": 0, "nz_ublocks": 0, "nz_strips": 0}  # fmt: skip
_MOST = 1 << 24  # of one dimension: sizes of a core's block lie far below


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCall:
    """One op on one core for one input.

    `t`, `mblock_m`, `mblock_n`, `ublock_rt`, `ublock_ct` are the block of the op's output on this core, in tiles
    (LAYOUT 4); for `reduce` over r or c they are those of the input, for `reduce` over z `z` input tiles make one
    output tile. `m_k` and `u_kt` belong to matmul and depthwise. `sparse` is a matmul with `identity: true`: `nz_tiles`
    encoded tiles (the vendor's `sparse_indices`) in `nz_ublocks` ublocks of `nz_strips` strips, for one pass over n.
    `in1_df` may stay empty for one operand, `out_df` for the format of the first input. `tile_rows` and `tile_cols`
    are the tile's dimensions; `untilize` is `untilize_output: true`.

    Raises HostError for values that no op can have, UnsupportedError for fused ops (the sum of their parts).
    """

    op_type: str
    arch: str = "wormhole_b0"
    t: int = 1
    mblock_m: int = 1
    mblock_n: int = 1
    ublock_rt: int = 1
    ublock_ct: int = 1
    m_k: int = 0
    u_kt: int = 0
    in0_df: str = "Float16_b"
    in1_df: str = ""
    out_df: str = ""
    fidelity: str = "HiFi4"
    approximate: bool = False
    vector_mode: VectorMode = "rc"
    reduce_dim: ReduceDim = ""
    z: int = 0
    l1_acc: bool = False
    sparse: bool = False
    nz_tiles: int = 0
    nz_ublocks: int = 0
    nz_strips: int = 0
    tile_rows: int = 32
    tile_cols: int = 32
    untilize: bool = False

    def __post_init__(self) -> None:
        _check_words(self)
        _check_sizes(self)

    @property
    def result_df(self) -> str:
        """Return the format of the output."""
        return self.out_df or self.in0_df

    @property
    def data_df(self) -> str:
        """Return the format of the operand that carries the data: the first, but for a sparse matmul the dense one."""
        if self.sparse:
            return self.in1_df or self.result_df
        return self.in0_df

    @property
    def phases(self) -> int:
        """Return the number of FPU passes over each tile product."""
        return len(PHASES[self.fidelity])

    @property
    def kind(self) -> str:
        """Return the op's name in the cost model: its type, with the dimension of a reduce or the sparseness of a
        matmul."""
        if OP_TYPES[self.op_type].has("reduces"):
            return f"reduce_{self.reduce_dim}"
        if self.sparse:
            return "matmul_sparse"
        return self.op_type

    @property
    def ublocks(self) -> int:
        """Return the number of ublocks of the output on one core."""
        return self.t * self.mblock_m * self.mblock_n

    @property
    def ublock_tiles(self) -> int:
        """Return the number of tiles of one ublock."""
        return self.ublock_rt * self.ublock_ct

    @property
    def tiles(self) -> int:
        """Return the number of tiles of the output on one core (of the input for reduce over r or c)."""
        return self.ublocks * self.ublock_tiles

    @property
    def products(self) -> int:
        """Return the number of tile products of a dense matmul or depthwise, 0 for other ops."""
        if self.has_inner and not self.sparse:
            return self.tiles * self.m_k * self.u_kt
        return 0

    @property
    def has_inner(self) -> bool:
        """Return whether the op has an inner dimension of `m_k` blocks of `u_kt` tiles."""
        return OP_TYPES[self.op_type].has("inner dimension")

    @property
    def is_sfpu(self) -> bool:
        """Return whether the vector unit (SFPU) computes the op; vector modes shorten only such ops."""
        return OP_TYPES[self.op_type].has("vector unit")


def _check_words(call: OpCall) -> None:
    """Raise HostError for a field whose text is none of the words that it allows, UnsupportedError for a fused op."""
    declared = OP_TYPES.get(call.op_type)
    if declared is not None and declared.has("sub-ops"):
        raise UnsupportedError(f"{call.op_type} has no cost as a whole: add up the ops of its schedule")
    if declared is None or not declared.runs:
        raise HostError(f"op_type: '{call.op_type}' is not an op type (buda-emu ops lists them)")
    _check_choice("arch", call.arch, [arch.name for arch in ARCHS.values() if arch.documented])
    _check_formats(call)
    _check_choice("fidelity", call.fidelity, PHASES)
    _check_choice("vector_mode", call.vector_mode, ("rc", "r", "c"))
    if declared.has("reduces"):
        _check_choice("reduce_dim", call.reduce_dim, ("r", "c", "z"))


def _check_formats(call: OpCall) -> None:
    """Raise HostError for a format that does not exist; all but that of operand 0 may be ""."""
    for column in ("in0_df", "in1_df", "out_df"):
        name = getattr(call, column)
        if name not in FORMATS and (name or column == "in0_df"):
            raise HostError(f"{column}: '{name}' is not a number format (buda-emu formats lists them)")


def _check_choice(column: str, word: str, choices: Collection[str]) -> None:
    """Raise HostError, which names the column, for a word that is not one of the choices."""
    if word not in choices:
        raise HostError(f"{column}: '{word}' is not one of {', '.join(choices)}")


def _check_sizes(call: OpCall) -> None:
    """Raise HostError for a size outside of its bounds, and for one that the op needs and does not have."""
    for column, least in _LEAST.items():
        value = getattr(call, column)
        if not least <= value <= _MOST:
            raise HostError(f"{column}: {value} is not between {least} and {_MOST}")
    if call.has_inner:
        _require_columns(call, ("m_k", "u_kt"), f"{call.op_type} needs it, at least 1")
    if call.sparse:
        if call.op_type != "matmul":
            raise HostError(f"sparse: only a matmul can be sparse, not {call.op_type}")
        _require_columns(call, ("nz_tiles", "nz_ublocks", "nz_strips"), "a sparse matmul needs it, at least 1")
    if call.tile_rows not in (1, 2, 4, 8, 16, 32) or call.tile_cols not in (16, 32):
        raise HostError(f"tile_rows, tile_cols: no tile is {call.tile_rows}x{call.tile_cols}")


def _require_columns(call: OpCall, columns: tuple[str, ...], problem: str) -> None:
    """Raise HostError for the first of the columns that is 0; `problem` says why it must not be."""
    for column in columns:
        if not getattr(call, column):
            raise HostError(f"{column}: {problem}")
