"""Large constants of a model in memory of their own: a model may change its parameters after it was compiled."""

from typing import Any

from buda_emu.compiler.graph.array_key import ArrayKey
from buda_emu.compiler.graph.graph import Array
from buda_emu.tensor.referenced import LARGE, Referenced, referenced


class OwnMemory:
    """One copy of each, however many forms of the model are lowered and however many constants are made of it: these
    refer to the copy, and are transposed, cut and padded when somebody reads them."""

    def __init__(self) -> None:
        self._held: dict[ArrayKey, Referenced] = {}

    def of(self, array: Array, name: str) -> Any:
        """The array by reference to its copy; a small one, one of whole numbers, and one that is held by reference
        already as it is. `name` is for messages."""
        if isinstance(array, Referenced) or array.dtype.kind != "f" or array.nbytes < LARGE:
            return array
        key = ArrayKey(array)
        if key not in self._held:
            self._held[key] = referenced(array.copy(), name)
        return self._held[key]
