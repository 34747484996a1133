"""Tree -> model objects as written: every field read, every violation of a reading rule reported, nothing derived yet."""

from buda_emu.netlist.reader.document import Document, read_document

__all__ = ["Document", "read_document"]
