"""JSON to the model: the values first, then the records of both dialects (facts GEMINI 1 to 3, rules G001 to G003)."""

from buda_emu.gemini.reader.document import read

__all__ = ["read"]
