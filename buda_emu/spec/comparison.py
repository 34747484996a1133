"""How a test-config says that two tensors are compared (NETLIST 5.3): the fields and the words they take."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from buda_emu.records import dataclass

COMPARISON_TYPES: Final = ("Exact", "AllClose", "AllCloseHw")
VERBOSITIES: Final = ("Concise", "AllFails", "Verbose")
METHODS: Final = ("FlatTensor", "TilizedTensor")
WHOLE_TILE: Final = (1, 32)


def _field(default: Any, doc: str, words: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"doc": doc, "words": words})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields of one comparison-config with their built-in defaults. `type` "" means that none was given."""

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
"""What the vendor's default file says (NETLIST 5)."""
