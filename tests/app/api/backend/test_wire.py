"""Messages between processes."""

import threading
from multiprocessing import Pipe

import numpy as np
import pytest

from buda_emu.app.api.backend.machine_server import receive, send


def carried(message):
    here, there = Pipe()
    with here, there:
        sender = threading.Thread(target=send, args=(here, message))
        sender.start()
        found = receive(there)
        sender.join(20)
    return found


@pytest.mark.parametrize("message", ["text", ("push", (1, None, 2.5)), {"a": [b"bytes"]}])
def test_small_messages(message):
    assert carried(message) == message


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3 << 20, dtype=np.float32).reshape(3, 1024, 1024),
        np.arange(24, dtype=np.uint16).reshape(2, 3, 4)[:, ::2],
        np.asfortranarray(np.arange(12, dtype=np.int8).reshape(3, 4)),
        np.zeros((0, 4), np.float32),
    ],
    ids=["large", "strided", "columns first", "empty"],
)
def test_arrays(array):
    name, found, again = carried(("read", array, array[:1]))
    assert name == "read"
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)
    np.testing.assert_array_equal(again, array[:1])
    assert found.flags.writeable


def test_a_line_that_breaks():
    here, there = Pipe()
    with there:
        with here:
            here.send((b"head", [1 << 20]))
        with pytest.raises(EOFError):
            receive(there)
        with pytest.raises(EOFError):
            receive(there)
