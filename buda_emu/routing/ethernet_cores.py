"""Where the cores of Ethernet channels are."""

from collections.abc import Mapping
from typing import Final

_COLUMNS: Final = (9, 1, 8, 2, 7, 3, 6, 4)

ETHERNET_CORES: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "grayskull": (),
    "wormhole_b0": tuple((row, column) for row in (0, 6) for column in _COLUMNS),
}
"""For each architecture the row and column of the NoC for each channel's core."""
