"""The writer: turns declared tables into bytes, by the `flatbuffers` library's builder."""

from collections.abc import Sequence
from typing import Any

from buda_emu.foreign.darwinn.flatbuffer.read import Table, fields_of
from buda_emu.support.errors import UnsupportedError


def write(root: Table, identifier: bytes = b"", page: int = 0) -> bytes:
    """Return the bytes of a FlatBuffer with this root table, padded to a multiple of `page` if that is not 0.

    Raises UnsupportedError where the `flatbuffers` library is not installed."""
    writer = Writer()
    position = writer.table(root)
    if page:
        writer.builder.Prep(page, 0)
    writer.builder.Finish(position, identifier or None)
    return bytes(writer.builder.Output())


class Writer:
    """A writer of one buffer. Its methods return positions, as the library's builder counts them: from the buffer's
    end."""

    def __init__(self) -> None:
        try:
            from flatbuffers import Builder  # pyright: ignore[reportMissingTypeStubs]
        except ImportError:
            raise UnsupportedError(
                "packages are written with the flatbuffers library: pip install 'buda-emu[darwinn]'"
            ) from None
        self.builder: Any = Builder(1024)

    def table(self, table: Table) -> int:
        """Write a table with everything it holds and return its position."""
        slots = fields_of(type(table))
        values = [getattr(table, slot.name) for slot in slots]
        positions: list[int] = []
        for slot, value in zip(slots, values, strict=True):
            positions.append(0 if value is None else slot.kind.write(self, value))
        self.builder.StartObject(len(slots))
        for number, (slot, value, position) in enumerate(zip(slots, values, positions, strict=True)):
            if value is not None:
                slot.kind.place(self, number, value, position, slot.default)
        return self.builder.EndObject()

    def data(self, value: Any, page: int) -> int:
        """Write a vector of bytes, at a multiple of `page` unless it is empty, and return its position."""
        if page and len(value):
            self.builder.Prep(page, len(value))
        return self.builder.CreateByteVector(bytes(value))

    def blob(self, value: Any, page: int) -> int:
        """Write a string of bytes with its NUL, at a multiple of `page`, and return its position."""
        if page:
            self.builder.Prep(page, len(value) + 1)
        return self.builder.CreateString(bytes(value))

    def scalars(self, flag: str, size: int, values: Sequence[Any], width: int = 1) -> int:
        """Write a vector of scalars, or of structs of `width` scalars, and return its position. `flag` is the
        builder's name of the type."""
        self.builder.StartVector(size * width, len(values) // width, size)
        prepend = getattr(self.builder, f"Prepend{flag}")
        for value in reversed(values):
            prepend(value)
        return self.builder.EndVector()

    def offsets(self, positions: Sequence[int]) -> int:
        """Write a vector of offsets to these positions and return its own position."""
        self.builder.StartVector(4, len(positions), 4)
        for position in reversed(positions):
            self.builder.PrependUOffsetTRelative(position)
        return self.builder.EndVector()
