"""The data that a test-config asks for (NETLIST 5.1): the fields of a stimulus."""

from dataclasses import dataclass
from typing import Final

NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class Stimulus:
    """The fields of one stimulus with their built-in defaults (NETLIST 5.1). `type` is in lower case."""

    type: str = ""
    uniform_lower_bound: float = NAN
    uniform_upper_bound: float = NAN
    normal_mean: float = NAN
    normal_stddev: float = NAN
    constant_value: float = NAN
    debug_tile_id_base: float = NAN
    debug_tile_id_step: float = NAN
    step_start: float = NAN
    step_increment: float = NAN
    set_tile_rows: tuple[int, int] = (1, 32)
    set_tile_cols: tuple[int, int] = (1, 32)
    zero_strip_freq: float = 0.0
    zero_ublock_freq: float = 0.0
    zero_tile_freq: float = 0.0
    nz_strips: int = -1
    nz_ublocks: int = -1
    nz_tiles: int = -1
    enc_tile_byte_size: int = 4096
    matmul_ident_name: str = ""


VENDOR_STIMULUS: Final = Stimulus("uniform", 0.001, 2.0)
"""What the vendor's default file says for every queue (NETLIST 5)."""
