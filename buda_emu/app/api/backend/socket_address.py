"""The address of a machine's socket, which all processes of one front end can derive.

All processes that `multiprocessing` starts share the authentication key of their first one. Address and password of a
machine follow from that key, the netlist and the backend type, so that a pickled DramIODesc needs nothing more than
its fields (NETLIST 7.2): whoever holds the key finds the machine, and nobody else can tell where it is.
"""

import hashlib
import os
import tempfile
from pathlib import Path

from buda_emu.app.api.backend.enums import BackendType
from buda_emu.support.errors import HostError

Key = tuple[str, int]
"""Real path of the netlist, and number of the backend type."""

_LONGEST = 86  # bytes of the folder's path: that of a socket in it must stay below 104, on every system


def machine_key(netlist_path: str, backend: BackendType) -> Key:
    """What tells one machine of a front end from another."""
    return os.path.realpath(netlist_path), int(backend)


def password() -> bytes:
    """The key that this process shares with its relatives."""
    from multiprocessing import current_process

    return bytes(current_process().authkey)


def folder() -> Path:
    """The private folder of this family of processes; it may not exist."""
    name = f"buda-emu-{hashlib.sha256(b'folder' + password()).hexdigest()[:16]}"
    place = Path(tempfile.gettempdir()) / name
    return place if len(os.fsencode(place)) <= _LONGEST else Path("/tmp") / name


def socket_path(key: Key) -> Path:
    """The socket of a machine."""
    return folder() / hashlib.sha256(f"{key[1]}:{key[0]}".encode()).hexdigest()[:16]


def make_folder() -> Path:
    """Make the folder for this user alone. Raises HostError when somebody else's stands there."""
    place = folder()
    place.mkdir(mode=0o700, exist_ok=True)
    state = place.lstat()
    if not place.is_dir() or place.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise HostError(f"{place} is not a private folder of this user")
    return place
