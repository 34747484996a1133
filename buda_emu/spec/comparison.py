"""How a test-config says that two tensors are compared (NETLIST 5.3): the fields and the words they take."""

from dataclasses import dataclass
from typing import Final

COMPARISON_TYPES: Final = ("Exact", "AllClose", "AllCloseHw")
VERBOSITIES: Final = ("Concise", "AllFails", "Verbose")
METHODS: Final = ("FlatTensor", "TilizedTensor")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The fields of one comparison-config with their built-in defaults. `type` "" means that none was given."""

    type: str = ""
    verbosity: str = "Concise"
    method: str = "FlatTensor"
    atol: float = 1e-3
    rtol: float = 1e-4
    check_pct: float = 1.0
    check_pcc: float = 0.999
    check_tile_rows_range: tuple[int, int] = (1, 32)
    check_tile_cols_range: tuple[int, int] = (1, 32)
    lhs_header: str = "Golden"
    rhs_header: str = "Observed"


VENDOR_COMPARISON: Final = Comparison("AllCloseHw", atol=0.01, rtol=0.15, check_pct=0.0, check_pcc=0.98)
"""What the vendor's default file says for every queue (NETLIST 5)."""
