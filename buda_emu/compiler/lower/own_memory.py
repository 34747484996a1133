"""Large constants of a model in memory of their own: a model may change its parameters after it was compiled."""

from typing import Any

import numpy as np

from buda_emu.compiler.graph.array_key import ArrayKey
from buda_emu.compiler.graph.graph import Array
from buda_emu.tensor.referenced import LARGE, Referenced, referenced


class OwnMemory:
    """One copy of each, however many forms of the model are lowered and however many constants are made of it: these
    refer to the copy, and are transposed, cut and padded when somebody reads them."""

    def __init__(self) -> None:
        self._held: dict[ArrayKey, Array] = {}

    def of(self, array: Array, name: str) -> Any:
        """The array by reference to its copy; a small one, one of whole numbers, and one that is held by reference
        already as it is. A transposed or reshaped one has the copy of the original. `name` is for messages."""
        if isinstance(array, Referenced) or array.dtype.kind != "f" or array.nbytes < LARGE:
            return array
        order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
        turned = array.transpose(order)  # as it lies in memory
        flat = turned.reshape(-1)
        key = ArrayKey(flat)
        if key not in self._held:
            self._held[key] = flat.copy() if np.may_share_memory(flat, array) else flat
        own = referenced(self._held[key].reshape(turned.shape), name)
        return own.transpose(np.argsort(order).tolist())
