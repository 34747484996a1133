"""Readers of values, and the fusion of two consecutive ops."""

from collections.abc import Container
from dataclasses import replace
from typing import Unpack

from buda_emu.compiler.lower.tiles import TileAttributes, TileGraph, TileOp, Use


def depths_of(tiles: TileGraph, uncounted: Container[str] = ()) -> dict[str, int]:
    """Ops one after the other up to each, and it, without those that are not counted."""
    found: dict[str, int] = {}
    for op in tiles.ops.values():
        before = max((found.get(use.source, 0) for use in op.uses), default=0)
        found[op.name] = before + (op.name not in uncounted)
    return found


class Readers:
    """The readers of every tensor of a graph, kept up while ops are put together."""

    def __init__(self, tiles: TileGraph) -> None:
        self.tiles = tiles
        self._of: dict[str, list[tuple[str, int]]] = {}
        for op in tiles.ops.values():
            self._add(op)

    def of(self, name: str) -> list[tuple[str, int]]:
        """(op, operand) for each time that a tensor is read."""
        return self._of.get(name, [])

    def only_source(self, op: TileOp, operand: int) -> TileOp | None:
        """The op of the same program that makes an operand, if nobody else reads it and no TM stands on the way."""
        use = op.uses[operand]
        source = self.tiles.ops.get(use.source)
        if source is None or source.program != op.program or use.tms or self.of(use.source) != [(op.name, operand)]:
            return None
        return source

    def join(self, first: TileOp, last: TileOp, uses: list[Use], **attrs: Unpack[TileAttributes]) -> TileOp:
        """`first`, with these operands and more attributes, in the place and by the name of `last`, its only reader."""
        made = replace(
            first,
            name=last.name,
            uses=uses,
            attrs={**first.attrs, **attrs},
            source=last.source,
            made_of=(*first.sources, *last.sources),
            mixes_padding=last.mixes_padding,
        )
        self.put([first, last], made)
        return made

    def put(self, gone: list[TileOp], made: TileOp) -> None:
        """One op for several; it has the name of the last of them, and its place."""
        for op in gone:
            if op.name != made.name:
                self.drop(op)
            else:
                self._drop(op)
        self.tiles.ops[made.name] = made
        self._add(made)

    def insert(self, made: TileOp, before: TileOp) -> None:
        """A new op in front of another."""
        ops = self.tiles.ops
        later = list(ops)[list(ops).index(before.name) :]
        ops[made.name] = made
        for name in later:
            ops[name] = ops.pop(name)
        self._add(made)

    def drop(self, op: TileOp) -> None:
        """An op that nobody reads any more."""
        self._drop(op)
        del self.tiles.ops[op.name]

    def _add(self, op: TileOp) -> None:
        for number, use in enumerate(op.uses):
            self._of.setdefault(use.source, []).append((op.name, number))

    def _drop(self, op: TileOp) -> None:
        for number, use in enumerate(op.uses):
            self._of[use.source].remove((op.name, number))
