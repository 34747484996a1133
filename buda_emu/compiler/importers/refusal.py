"""What a handler of an operator says of what it cannot take."""

from typing import Final

from buda_emu.errors import UnsupportedError

REFUSED: Final = "*"
"""Among names of operators for the host: whatever cannot become ops of the device."""


class NotSupportedError(UnsupportedError):
    """Why one node cannot be taken; the reader collects them."""
