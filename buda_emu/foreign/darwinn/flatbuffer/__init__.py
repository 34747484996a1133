"""FlatBuffers without generated code: a table is one frozen dataclass whose fields hold slot, type and default.

The same declaration drives the verifying reader (`read`), the writer (`write`), the JSON form (`plain`) and the docs.
Nothing here depends on a particular format.
"""

from buda_emu.foreign.darwinn.flatbuffer.kinds import starts
from buda_emu.foreign.darwinn.flatbuffer.read import Malformed, Table, read

__all__ = ["Malformed", "Table", "read", "starts"]
