"""The writer: declared tables into bytes, by the `flatbuffers` library's builder."""

from collections.abc import Sequence
from typing import Any

from buda_emu.foreign.darwinn.flatbuffer.table import Table, fields_of
from buda_emu.support.errors import UnsupportedError


def write(root: Table, identifier: bytes = b"", page: int = 0) -> bytes:
    """A buffer with this root table. `page`: the buffer's length becomes a multiple of it.

    Raises UnsupportedError where the `flatbuffers` library is not installed.
    """
    writer = Writer()
    where = writer.table(root)
    if page:
        writer.builder.Prep(page, 0)
    writer.builder.Finish(where, identifier or None)
    return bytes(writer.builder.Output())


class Writer:
    """One buffer that grows."""

    def __init__(self) -> None:
        try:
            from flatbuffers import Builder  # pyright: ignore[reportMissingTypeStubs]
        except ImportError:
            raise UnsupportedError(
                "packages are written with the flatbuffers library: pip install 'buda-emu[darwinn]'"
            ) from None
        self.builder: Any = Builder(1024)

    def table(self, table: Table) -> int:
        """The table and all in it; where it went."""
        slots = fields_of(type(table))
        values = [getattr(table, slot.name) for slot in slots]
        wheres = [
            0 if value is None else slot.kind.write(self, value) for slot, value in zip(slots, values, strict=True)
        ]
        self.builder.StartObject(len(slots))
        for number, (slot, value, where) in enumerate(zip(slots, values, wheres, strict=True)):
            if value is not None:
                slot.kind.place(self, number, value, where, slot.default)
        return self.builder.EndObject()

    def data(self, value: Any, page: int) -> int:
        """A vector of bytes, at a multiple of `page` if it is not empty."""
        if page and len(value):
            self.builder.Prep(page, len(value))
        return self.builder.CreateByteVector(bytes(value))

    def blob(self, value: Any, page: int) -> int:
        """A string of bytes with its NUL."""
        if page:
            self.builder.Prep(page, len(value) + 1)
        return self.builder.CreateString(bytes(value))

    def scalars(self, flag: str, size: int, values: Sequence[Any], width: int = 1) -> int:
        """A vector of scalars, or of structs of `width` of them. `flag`: the builder's name of the type."""
        self.builder.StartVector(size * width, len(values) // width, size)
        prepend = getattr(self.builder, f"Prepend{flag}")
        for value in reversed(values):
            prepend(value)
        return self.builder.EndVector()

    def offsets(self, wheres: Sequence[int]) -> int:
        """A vector of offsets."""
        self.builder.StartVector(4, len(wheres), 4)
        for where in reversed(wheres):
            self.builder.PrependUOffsetTRelative(where)
        return self.builder.EndVector()
