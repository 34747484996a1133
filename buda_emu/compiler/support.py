"""What the compiler takes: from the declarations, for `--ops` and the docs."""

from collections.abc import Iterator, Sequence
from typing import Final

from buda_emu.compiler.graph.registry import front_ops
from buda_emu.compiler.importers.from_torch.declared import ATEN

OPERATOR_HEADERS: Final = ("operator", "family", "becomes")
HEADERS: Final = ("op", "stage", "family", "what it is")


def rows() -> Iterator[Sequence[str]]:
    """One for each front-end op."""
    for op in front_ops():
        yield op.name, "core" if op.is_core else "decomposes", op.family, op.doc


def aten_rows() -> Iterator[Sequence[str]]:
    """One for each ATen operator."""
    return ATEN.rows()


def hlo_rows() -> Iterator[Sequence[str]]:
    """One for each StableHLO or CHLO operator, as jax writes them; imports nothing of jax."""
    from buda_emu.compiler.importers.from_jax.declared import HLO

    return HLO.rows()


def onnx_rows() -> Iterator[Sequence[str]]:
    """One for each ONNX operator that has a handler; imports `onnx`."""
    from buda_emu.compiler.importers.from_onnx.call import ONNX

    return ONNX.rows()
