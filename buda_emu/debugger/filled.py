"""The value that a user writes into a tensor, expanded to all of its elements."""

from typing import Any

import numpy as np

from buda_emu.debugger.tensors import Found
from buda_emu.errors import HostError
from buda_emu.netlist.model import Op, Queue
from buda_emu.unmasked import require_unmasked


def filled(
    values: object, shape: tuple[int, int, int], before: Found | None, tile: tuple[int, int, int] | None, of: Queue | Op
) -> Any:
    """All elements [t, rows, columns], of which `values` may give one tile alone, of the tensor as it is `before`."""
    require_unmasked(values, of.name)
    given: Any = np.asarray(values)
    if tile is not None:
        assert before is not None
        return before.with_tile(tile, given).values()
    if given.ndim and given.size != int(np.prod(shape)):
        raise HostError(f"{of.name} takes {' x '.join(map(str, shape))} elements, not {given.shape}")
    return np.array(np.broadcast_to(given, shape) if not given.ndim else given.reshape(shape))
