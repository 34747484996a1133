"""Shapes of results."""

from buda_emu.spec.blocking import Shape
from buda_emu.testing.generator.draft import NetlistDraft

_SIZES = (1, 1, 1, 2, 2, 3, 4)


def any_shape(draft: NetlistDraft) -> Shape:
    """(t, tile rows, tile columns): often that of something that is there, so that ops come to follow each other."""
    draw = draft.draw
    there = [value.shape for value in draft.graph.values]
    if there and draw.chance(60):
        return draw.pick(there)
    t, rows, cols = (draw.pick(_SIZES) for _ in range(3))
    while t * rows * cols > draft.most_tiles:
        t, rows, cols = max(1, t // 2), max(1, rows // 2), max(1, cols // 2)
    return t, rows, cols
