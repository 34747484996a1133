"""The refusal of masked arrays of `numpy.ma`."""

import sys
from collections.abc import Sequence
from typing import cast

from buda_emu.support.errors import HostError


def refuse_masked_arrays(tensors: object, place: str) -> None:
    """Raise HostError for an array of `numpy.ma`, alone or in lists: as a plain array it would lose its mask without a
    word, and masked values would take part in results. `place` begins the message."""
    masked = sys.modules.get("numpy.ma")
    if masked is None:  # then nobody has made one
        return
    if isinstance(tensors, masked.MaskedArray):
        raise HostError(
            f"{place}: a masked array, and its mask would be ignored: pass array.filled(value), which puts a value in "
            "place of what is masked, or array.data"
        )
    if isinstance(tensors, list | tuple):
        for element in cast("Sequence[object]", tensors):
            refuse_masked_arrays(element, place)
