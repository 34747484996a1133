"""The address of a machine's socket, which all processes of a front end can derive.

All processes that `multiprocessing` starts share the authentication key of the first one. Address and password of a
machine follow from that key, the netlist and the backend type, so that a pickled DramIODesc needs nothing more than
its fields (NETLIST 7.2): a process with the key finds the machine, and no other process can tell where it is.
"""

import hashlib
import os
import tempfile
from pathlib import Path

from buda_emu.app.api.backend.enums import BackendType
from buda_emu.support.errors import HostError

Key = tuple[str, int]
"""The real path of a netlist, and the number of a backend type."""

_LONGEST = 86  # bytes of the folder's path: that of a socket in it must stay below 104, on every system


def machine_key(netlist_path: str, backend: BackendType) -> Key:
    """Return the key under which processes of a front end find a machine; there is one machine for each netlist file
    and backend type."""
    return os.path.realpath(netlist_path), int(backend)


def password() -> bytes:
    """Return the secret by which a client and a machine's server trust each other: the authentication key that
    `multiprocessing` hands to all processes of a family."""
    from multiprocessing import current_process

    return bytes(current_process().authkey)


def socket_folder() -> Path:
    """Return the path of the private folder for the sockets of all processes that share the authentication key; it may
    not exist."""
    name = f"buda-emu-{hashlib.sha256(b'folder' + password()).hexdigest()[:16]}"
    place = Path(tempfile.gettempdir()) / name
    if len(os.fsencode(place)) <= _LONGEST:
        return place
    return Path("/tmp") / name


def socket_path(key: Key) -> Path:
    """Return the path of a machine's socket."""
    return socket_folder() / hashlib.sha256(f"{key[1]}:{key[0]}".encode()).hexdigest()[:16]


def make_folder() -> Path:
    """Make the private folder, which only this user can read, and return it. Raises HostError for a folder of that name
    that is not private or belongs to another user."""
    place = socket_folder()
    place.mkdir(mode=0o700, exist_ok=True)
    state = place.lstat()
    if not place.is_dir() or place.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise HostError(f"{place} is not a private folder of this user")
    return place
