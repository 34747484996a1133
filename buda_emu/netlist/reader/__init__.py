"""Tree -> model objects as written: every field is read and judged by itself, nothing is derived yet."""

from buda_emu.netlist.reader.document import Document, read_document

__all__ = ["Document", "read_document"]
