"""Conversion of host tensors of any rank to four dimensions (LAYOUT 1, NETLIST 7.4)."""

from collections.abc import Sequence

from buda_emu.support.errors import HostError

Shape4 = tuple[int, int, int, int]


def expand_shape(shape: Sequence[int]) -> Shape4:
    """Return the shape [w, z, r, c] of a pushed tensor.

    With fewer than 4 dimensions the outermost becomes w: [n, h, w] -> [n, 1, h, w], [n, c] -> [n, 1, 1, c]. Leading
    ones beyond 4 are dropped. Raises HostError for more than 4 dimensions that are not leading ones, and for a
    scalar.
    """
    extra = max(0, len(shape) - 4)
    if not shape or any(size != 1 for size in shape[:extra]):
        raise HostError(f"a tensor of shape {tuple(shape)} has no form [w, z, r, c]")
    sizes = tuple(shape[extra:])
    return outermost_first((*([1] * (4 - len(sizes))), *sizes), len(sizes))


def outermost_first(shape: Sequence[int], dim: int) -> Shape4:
    """Return four sizes, of which the last `dim` are meaningful, with the outermost of these exchanged with the
    first."""
    swapped = list(shape)
    swapped[0], swapped[4 - dim] = swapped[4 - dim], swapped[0]
    w, z, r, c = swapped
    return w, z, r, c
