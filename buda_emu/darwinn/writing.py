"""Trees of plain data to packages, page aligned as the compiler aligns them (DARWINN 1)."""

from collections.abc import Mapping, Sequence
from typing import Any

from buda_emu.darwinn.flatbuffer.trees import from_plain
from buda_emu.darwinn.flatbuffer.write import write
from buda_emu.darwinn.idl import IDENTIFIER, PAGE, Executable, MultiExecutable, PackageTable
from buda_emu.errors import HostError


def build(tree: Mapping[str, Any]) -> bytes:
    """A bare package from a tree as `Package.to_dict(data=True)` gives it; what is left out has its default.

    Raises HostError, with table and field, for a tree that is none, UnsupportedError without the `flatbuffers` library.
    """
    rest = dict(tree)
    executables: Sequence[Any] | None = rest.pop("executables", None)
    try:
        if executables is not None:
            if "serialized_multi_executable" in rest:
                raise ValueError("Package: executables and serialized_multi_executable exclude each other")
            serialized = tuple(write(from_plain(Executable, item), page=PAGE) for item in executables)
            multi = MultiExecutable(serialized_executables=serialized)
            rest["serialized_multi_executable"] = write(multi, page=PAGE)
        return write(from_plain(PackageTable, rest), IDENTIFIER, PAGE)
    except ValueError as error:
        raise HostError(f"this is no tree of a package: {error}") from None
