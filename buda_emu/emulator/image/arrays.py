"""Lazily imported numpy: checking an image needs no arrays, so numpy is loaded only when values are computed."""

from typing import TYPE_CHECKING, Any

from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    import numpy as np  # pyright: ignore[reportUnusedImport] - handed on
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    np = lazy("numpy")
    Array = Any
