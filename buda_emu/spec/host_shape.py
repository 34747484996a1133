"""Which four dimensions a host tensor of any number of them has (LAYOUT 1, NETLIST 7.4)."""

from collections.abc import Sequence

from buda_emu.support.errors import HostError

Shape4 = tuple[int, int, int, int]


def expand_shape(shape: Sequence[int]) -> Shape4:
    """The shape [w, z, r, c] of a pushed tensor.

    Of fewer than 4 dimensions the outermost becomes w: [n, h, w] -> [n, 1, h, w], [n, c] -> [n, 1, 1, c]. Leading ones
    beyond 4 are dropped. Raises HostError for more than 4 real dimensions, or none.
    """
    extra = max(0, len(shape) - 4)
    if not shape or any(size != 1 for size in shape[:extra]):
        raise HostError(f"a tensor of shape {tuple(shape)} has no form [w, z, r, c]")
    kept = tuple(shape[extra:])
    return outermost_first((*([1] * (4 - len(kept))), *kept), len(kept))


def outermost_first(shape: Sequence[int], dim: int) -> Shape4:
    """Of 4 numbers, the last `dim` of which are meaningful: the outermost of these exchanged with the first."""
    swapped = list(shape)
    swapped[0], swapped[4 - dim] = swapped[4 - dim], swapped[0]
    w, z, r, c = swapped
    return w, z, r, c
