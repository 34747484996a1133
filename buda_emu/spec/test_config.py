"""Fields of a test-config: the data of inputs, and the comparison of outputs (NETLIST 5)."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from buda_emu.spec.varinst import stored_name
from buda_emu.support.records import dataclass

COMPARISON_TYPES: Final = ("Exact", "AllClose", "AllCloseHw")
VERBOSITIES: Final = ("Concise", "AllFails", "Verbose")
METHODS: Final = ("FlatTensor", "TilizedTensor")
WHOLE_TILE: Final = (1, 32)  # rows and columns of a tile, counted from 1


def _field(default: Any, doc: str, words: tuple[str, ...] = ()) -> Any:
    """Declare a field of `Comparison` with its description and, for a field that takes one of several words, these."""
    return field(default=default, metadata={"doc": doc, "words": words})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields of one comparison-config with their built-in defaults. An empty `type` means that none was written."""

    type: str = _field("", "Exact: equality; AllClose: tolerances; AllCloseHw: tolerances and PCC", COMPARISON_TYPES)
    verbosity: str = _field("Concise", "Verbose compares tile by tile, as TilizedTensor does", VERBOSITIES)
    method: str = _field("FlatTensor", "what is compared together: consecutive elements or a tile", METHODS)
    atol: float = _field(1e-3, "absolute tolerance")
    rtol: float = _field(1e-4, "relative tolerance, of the larger magnitude")
    check_pct: float = _field(1.0, "share of elements that must be within the tolerances; 0: they are ignored")
    check_pcc: float = _field(0.999, "least Pearson correlation; 0: it is ignored")
    check_tile_rows_range: tuple[int, int] = _field(WHOLE_TILE, "rows of each tile that are compared, from 1")
    check_tile_cols_range: tuple[int, int] = _field(WHOLE_TILE, "columns of each tile that are compared, from 1")
    lhs_header: str = _field("Golden", "name of the expected side")
    rhs_header: str = _field("Observed", "name of the observed side")


VENDOR_COMPARISONS: Final[Mapping[str, Comparison]] = {
    "default": Comparison("AllCloseHw", atol=0.01, rtol=0.15, check_pct=0.0, check_pcc=0.98),
    "determinism_test": Comparison("Exact"),
}
"""The comparisons of the vendor's default file (NETLIST 5)."""


NAN: Final = float("nan")

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
"""For each kind of stimulus a description and the mandatory fields (NETLIST 5.1)."""


def _stimulus_field(default: Any, doc: str) -> Any:
    """Declare a field of `Stimulus` with its description."""
    return field(default=default, metadata={"doc": doc})


@dataclass(frozen=True, slots=True)
class Stimulus:
    """The fields of one stimulus with their built-in defaults (NETLIST 5.1). `type` is in lower case."""

    type: str = _stimulus_field("", "the kind of data; case does not matter")
    uniform_lower_bound: float = _stimulus_field(NAN, "Uniform: the least value")
    uniform_upper_bound: float = _stimulus_field(NAN, "Uniform: the bound above")
    normal_mean: float = _stimulus_field(NAN, "Normal: the mean")
    normal_stddev: float = _stimulus_field(NAN, "Normal: the standard deviation")
    constant_value: float = _stimulus_field(NAN, "Constant: the value")
    debug_tile_id_base: float = _stimulus_field(NAN, "DebugTileId: the value of tile 0")
    debug_tile_id_step: float = _stimulus_field(NAN, "DebugTileId: what each further tile adds")
    step_start: float = _stimulus_field(NAN, "Step kinds: the first value; unset gives NaN data")
    step_increment: float = _stimulus_field(NAN, "Step kinds: what each step adds; unset gives NaN data")
    set_tile_rows: tuple[int, int] = _stimulus_field(WHOLE_TILE, "rows of each tile that are filled, from 1")
    set_tile_cols: tuple[int, int] = _stimulus_field(WHOLE_TILE, "columns of each tile that are filled, from 1")
    zero_strip_freq: float = _stimulus_field(0.0, "sparse_encoding: the share of strips without values")
    zero_ublock_freq: float = _stimulus_field(0.0, "sparse_encoding: the share of ublocks without values in a strip")
    zero_tile_freq: float = _stimulus_field(0.0, "sparse_encoding: the share of tiles without values in a ublock")
    nz_strips: int = _stimulus_field(-1, "sparse_encoding_nz_counts: strips with values")
    nz_ublocks: int = _stimulus_field(-1, "sparse_encoding_nz_counts: ublocks with values")
    nz_tiles: int = _stimulus_field(-1, "sparse_encoding_nz_counts: tiles with values")
    enc_tile_byte_size: int = _stimulus_field(4096, "sparse encodings: bytes of an encoding tile that are used")
    matmul_ident_name: str = _stimulus_field("", "Sparse and sparse encodings: the identity matmul that reads the data")


VENDOR_STIMULUS: Final = Stimulus("uniform", 0.001, 2.0)
"""The stimulus of the vendor's default file, for every queue (NETLIST 5)."""


PARAMETER_ARGS: Final[Mapping[str, tuple[str, str]]] = {
    "p_microbatch_count": ("microbatch_count", "1"),
    "p_loop_count": ("microbatch_count", "1"),
    "p_microbatch_size": ("microbatch_size", "1"),
    "p_zero_grad": ("zero_grad", "1"),
    "p_cache_write_index": ("cache_write_index", "0"),
    "p_inner_increment": ("inner_increment", "0"),
    "p_inner_loop_count": ("inner_loop_count", "1"),
    "p_outer_increment": ("outer_increment", "0"),
    "p_outer_loop_count": ("outer_loop_count", "1"),
}
"""What the harnesses give: a parameter follows the test-arg of this name, else it has this value."""
OTHER_TEST_ARGS: Final = ("minibatch_count", "program_loop_count", "sequence_length", "sequence_lenth", "head_size")
"""Test-args beside those of parameters that the vendor's harnesses read (NETLIST 5)."""


def key_of_parameter(parameter: str) -> str:
    """Return the key of test-args that a parameter of a program follows. One that no harness knows follows the key of
    its name without `$` and `p_`."""
    name = stored_name(parameter)
    if name in PARAMETER_ARGS:
        return PARAMETER_ARGS[name][0]
    return name.removeprefix("p_")
