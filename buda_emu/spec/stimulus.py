"""The data that a test-config asks for (NETLIST 5.1): the kinds of stimulus and their fields."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from buda_emu.records import dataclass

NAN: Final = float("nan")
WHOLE_TILE: Final = (1, 32)

STIMULUS_KINDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "Uniform": (
        "every value of [lower, upper) equally likely; integer formats: of lower..upper",
        ("uniform_lower_bound", "uniform_upper_bound"),
    ),
    "Normal": (
        "a normal distribution; integer formats: rounded, halves away from zero",
        ("normal_mean", "normal_stddev"),
    ),
    "Constant": ("one value", ("constant_value",)),
    "DebugTileId": (
        "each tile holds base + step * its number, over all entries",
        ("debug_tile_id_base", "debug_tile_id_step"),
    ),
    "Sparse": ("tiles with a single 1 in each row, num_sparse_tiles for each grid row of the identity matmul", ()),
    "sparse_encoding": ("the encoding of an identity matmul, strips, ublocks and tiles dropped by frequency", ()),
    "sparse_encoding_nz_counts": (
        "the encoding of an identity matmul with so many strips, ublocks and tiles",
        ("nz_strips", "nz_ublocks", "nz_tiles"),
    ),
    "Step": ("starts at step_start and grows by step_increment with every element, tile by tile", ()),
    "StepRowwise": ("every row alike: step_start + tile column * tile width + column * step_increment", ()),
    "StepColumnwise": ("every column alike: step_start + tile row * tile width + row * step_increment", ()),
}
"""Name -> what it makes, and the fields that it cannot do without (NETLIST 5.1)."""


def _field(default: Any, doc: str) -> Any:
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class Stimulus:
    """The fields of one stimulus with their built-in defaults (NETLIST 5.1). `type` is in lower case."""

    type: str = _field("", "the kind of data; case does not matter")
    uniform_lower_bound: float = _field(NAN, "Uniform: the least value")
    uniform_upper_bound: float = _field(NAN, "Uniform: the bound above")
    normal_mean: float = _field(NAN, "Normal: the mean")
    normal_stddev: float = _field(NAN, "Normal: the standard deviation")
    constant_value: float = _field(NAN, "Constant: the value")
    debug_tile_id_base: float = _field(NAN, "DebugTileId: the value of tile 0")
    debug_tile_id_step: float = _field(NAN, "DebugTileId: what each further tile adds")
    step_start: float = _field(NAN, "Step kinds: the first value; unset gives NaN data")
    step_increment: float = _field(NAN, "Step kinds: what each step adds; unset gives NaN data")
    set_tile_rows: tuple[int, int] = _field(WHOLE_TILE, "rows of each tile that are filled, from 1")
    set_tile_cols: tuple[int, int] = _field(WHOLE_TILE, "columns of each tile that are filled, from 1")
    zero_strip_freq: float = _field(0.0, "sparse_encoding: the share of strips without values")
    zero_ublock_freq: float = _field(0.0, "sparse_encoding: the share of ublocks without values in a strip")
    zero_tile_freq: float = _field(0.0, "sparse_encoding: the share of tiles without values in a ublock")
    nz_strips: int = _field(-1, "sparse_encoding_nz_counts: strips with values")
    nz_ublocks: int = _field(-1, "sparse_encoding_nz_counts: ublocks with values")
    nz_tiles: int = _field(-1, "sparse_encoding_nz_counts: tiles with values")
    enc_tile_byte_size: int = _field(4096, "sparse encodings: bytes of an encoding tile that are used")
    matmul_ident_name: str = _field("", "Sparse and sparse encodings: the identity matmul that reads the data")


VENDOR_STIMULUS: Final = Stimulus("uniform", 0.001, 2.0)
"""What the vendor's default file says for every queue (NETLIST 5)."""
