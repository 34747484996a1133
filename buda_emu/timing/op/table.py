"""Rows of a table of ops, as the published sweeps have them, to `OpCall`s."""

from collections.abc import Mapping
from typing import Final

from buda_emu.errors import HostError, UnsupportedError
from buda_emu.timing.op.call import OpCall

WORDS: Final = {"arch": "arch", "op_type": "op_type", "fidelity": "fidelity", "in0_df": "in0_df", "in1_df": "in1_df",
                "out_df": "out_df"}  # fmt: skip
LOWER: Final = {"vector_mode": "vector_mode", "reduce_dim": "reduce_dim"}
COUNTS: Final = {name: name for name in (
    "t", "mblock_m", "mblock_n", "ublock_rt", "ublock_ct", "m_k", "u_kt", "z", "nz_strips", "nz_ublocks", "nz_tiles",
)}  # fmt: skip
FLAGS: Final = {"approx": "approximate", "l1_acc": "l1_acc", "sparse": "sparse"}

COLUMNS: Final = (*WORDS, *LOWER, *COUNTS, *FLAGS)
"""The columns that describe an op. An empty cell or an absent column takes the default of `OpCall`."""
REQUIRED: Final = ("op_type", "mblock_m", "mblock_n", "ublock_rt", "ublock_ct")


def read_row(row: Mapping[str, str | None]) -> OpCall:
    """One row, column name to text, as an op. Raises HostError that names the column."""
    given: dict[str, object] = {}
    for column in COLUMNS:
        text = (row.get(column) or "").strip()
        if not text:
            if column in REQUIRED:
                raise HostError(f"{column}: empty")
        elif column in COUNTS:
            given[COUNTS[column]] = _count(column, text)
        elif column in FLAGS:
            given[FLAGS[column]] = _flag(column, text)
        else:
            given[column] = text.lower() if column in LOWER else text
    try:
        return OpCall(**given)  # type: ignore[arg-type]  # columns are fields, checked by OpCall
    except UnsupportedError as error:
        raise UnsupportedError(f"op_type: {error}") from error


def _count(column: str, text: str) -> int:
    try:
        value = float(text)  # sweeps write 4 as 4.0
    except ValueError:
        value = 0.5
    if not value.is_integer():
        raise HostError(f"{column}: '{text}' is not an integer")
    return int(value)


def _flag(column: str, text: str) -> bool:
    words = {"0": False, "1": True, "false": False, "true": True}
    if text.lower() not in words:
        raise HostError(f"{column}: '{text}' is neither 0 nor 1")
    return words[text.lower()]
