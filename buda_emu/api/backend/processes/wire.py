"""Messages between processes: small ones are pickled, the memory of arrays follows unchanged."""

import os
import pickle
from multiprocessing.connection import Connection
from typing import Any, Final

_MOST_BYTES: Final = 64 << 30  # of arrays in one message; memory is taken when they come


def send(connection: "Connection[Any, Any]", message: object) -> None:
    """Send anything that can be pickled. Raises OSError."""
    buffers: list[memoryview] = []

    def beside(buffer: pickle.PickleBuffer) -> None:
        buffers.append(buffer.raw())

    head = pickle.dumps(message, protocol=5, buffer_callback=beside)
    connection.send((head, [buffer.nbytes for buffer in buffers]))
    for buffer in buffers:
        while buffer:
            buffer = buffer[os.write(connection.fileno(), buffer) :]


def receive(connection: "Connection[Any, Any]") -> Any:
    """What the other side sent. Raises EOFError when it hung up, OSError."""
    head, sizes = connection.recv()
    if sum(sizes) > _MOST_BYTES or min(sizes, default=0) < 0:
        raise ValueError(f"a message of {sum(sizes)} bytes")
    buffers = [bytearray(size) for size in sizes]
    for buffer in buffers:
        rest = memoryview(buffer)
        while rest:
            count = os.readv(connection.fileno(), [rest])
            if not count:
                raise EOFError
            rest = rest[count:]
    return pickle.loads(head, buffers=buffers)
