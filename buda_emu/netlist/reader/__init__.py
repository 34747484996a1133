"""Read a YAML tree into model objects as written: each field is read and checked by itself, and nothing is derived."""

from buda_emu.netlist.reader.document import WrittenNetlist, read_document

__all__ = ["WrittenNetlist", "read_document"]
