"""What a handler of an operator says of what it cannot take."""

from buda_emu.errors import UnsupportedError


class NotSupportedError(UnsupportedError):
    """Why one node cannot be taken; the reader collects them."""
