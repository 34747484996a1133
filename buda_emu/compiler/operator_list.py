"""The operators that the compiler supports, collected from their declarations for `--ops` and the docs."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Final, NamedTuple

from buda_emu.compiler.graph.registry import front_ops
from buda_emu.compiler.importers.operators import COVERAGE_HEADERS

HEADERS: Final = ("op", "stage", "family", "what it is")


class Standard(NamedTuple):
    """A set of operators that models are written in. `package`: the Python package that defines them; `module`: the
    module of the importers that says where each of them is computed."""

    name: str
    package: str
    module: str

    @property
    def is_installed(self) -> bool:
        """Return whether the standard's package is installed."""
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        """The version of its package, without the part that names a build."""
        return version(self.package).partition("+")[0]

    def rows(self) -> Iterator[Sequence[str]]:
        """Yield each operator in the order of `COVERAGE_HEADERS`. Raises ImportError where the package is absent."""
        yield from import_module(f"buda_emu.compiler.importers.{self.module}").list_coverage()


STANDARDS: Final = (
    Standard("Core ATen (PyTorch)", "torch", "from_torch.core_aten"),
    Standard("ONNX", "onnx", "from_onnx.coverage"),
)
__all__ = ["COVERAGE_HEADERS", "HEADERS", "STANDARDS", "Standard", "rows"]


def rows() -> Iterator[Sequence[str]]:
    """Yield the columns of each front-end op, in the order of `HEADERS`."""
    for op in front_ops():
        yield op.name, "core" if op.is_core else "decomposes", op.family, op.doc
