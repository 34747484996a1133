"""The operators that the compiler supports, collected from their declarations for `--ops` and the docs."""

from collections.abc import Iterator, Sequence
from typing import Final

from buda_emu.compiler.graph.registry import front_ops

HEADERS: Final = ("op", "stage", "family", "what it is")


def rows() -> Iterator[Sequence[str]]:
    """One for each front-end op."""
    for op in front_ops():
        yield op.name, "core" if op.is_core else "decomposes", op.family, op.doc
