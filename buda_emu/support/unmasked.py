"""Masked arrays of `numpy.ma`, which are refused wherever arrays are given."""

import sys
from collections.abc import Sequence
from typing import cast

from buda_emu.support.errors import HostError


def refuse_masked_arrays(given: object, where: str) -> None:
    """Raise HostError for an array of `numpy.ma`, alone or in lists: as a plain array it would lose its mask without a
    word, and what the mask hides would be computed with."""
    masked = sys.modules.get("numpy.ma")
    if masked is None:  # then nobody has made one
        return
    if isinstance(given, masked.MaskedArray):
        raise HostError(
            f"{where}: a masked array, and its mask would be ignored: pass array.filled(value), which puts a value in "
            "place of what is masked, or array.data"
        )
    if isinstance(given, list | tuple):
        for element in cast("Sequence[object]", given):
            refuse_masked_arrays(element, where)
