"""numpy and its arrays, for a room that needs neither to check an image: imported when something is computed."""

from typing import TYPE_CHECKING, Any

from buda_emu.support.lazy import lazy

if TYPE_CHECKING:
    import numpy as np  # pyright: ignore[reportUnusedImport] - handed on
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    np = lazy("numpy")
    Array = Any
