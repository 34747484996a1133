"""FlatBuffers without generated code: a table is one frozen dataclass whose fields say slot, type and default.

The same declaration drives the verifying reader (`read`), the writer (`write`), the JSON form (`plain`) and the docs.
Knows no particular format.
"""

from buda_emu.darwinn.flatbuffer.declare import Table, fields_of
from buda_emu.darwinn.flatbuffer.read import Malformed, read, starts

__all__ = ["Malformed", "Table", "fields_of", "read", "starts"]
