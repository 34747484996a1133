"""What lies between machines: it holds no more than it may, and what is not a message is refused."""

import socket
import time
from threading import Thread

import numpy as np
import pytest

from buda_emu.errors import HostError
from buda_emu.machines.link import Inbox, Link, LinkLostError
from case_functions import until

SIZE = 1 << 18


@pytest.fixture
def ends():
    pair = socket.socketpair()
    links = [Link(end) for end in pair]
    yield links
    for link in links:
        link.close()


def test_who_floods_another_waits_until_that_one_takes_what_it_has(ends):
    sender, receiver = ends
    inbox, sent = Inbox(receiver, 4 * SIZE), []

    def flood():
        for number in range(64):
            sender.send({"number": number}, [np.full(SIZE, number, np.uint8)])
            sent.append(number)

    thread = Thread(target=flood)
    thread.start()
    assert until(lambda: inbox._held >= 4 * SIZE)
    time.sleep(0.3)
    assert inbox._held <= 5 * SIZE
    assert len(sent) < 32
    for number in range(64):
        words, (array,) = inbox.take()
        assert words["number"] == number
        assert (array == number).all()
    thread.join(10)
    assert len(sent) == 64
    sender.close()
    with pytest.raises(LinkLostError):
        inbox.take()


@pytest.mark.parametrize(
    "data",
    [
        (1 << 31).to_bytes(4, "little"),
        (4).to_bytes(4, "little") + b"nope",
        (4).to_bytes(4, "little") + b"[1] ",
        (30).to_bytes(4, "little") + b'{"arrays": [["<f4", [-5, 2]]]}',
        (26).to_bytes(4, "little") + b'{"arrays": [["O", [1]]]}  ',
    ],
)
def test_what_is_no_message_is_refused(ends, data):
    sender, receiver = ends
    sender._connection.sendall(data)
    with pytest.raises(HostError, match="not a message of buda-emu"):
        receiver.receive()


def test_words_longer_than_any_message_are_refused_before_they_are_read(ends):
    sender, receiver = ends
    most = 1 << 20
    Thread(target=sender.send, args=({"words": "x" * (most - len('{"words": ""}'))},)).start()
    assert len(receiver.receive()[0]["words"]) == most - 13
    sender._connection.sendall((most + 1).to_bytes(4, "little"))
    sender.close()
    with pytest.raises(HostError, match="not a message of buda-emu"):
        receiver.receive()


def test_an_array_cut_short_is_a_lost_link(ends):
    sender, receiver = ends
    sender.send({}, [np.zeros(0, np.uint8)])
    assert receiver.receive()[1][0].size == 0
    head = b'{"arrays": [["<f4", [100]]]}'
    sender._connection.sendall(len(head).to_bytes(4, "little") + head + bytes(399))
    sender.close()
    with pytest.raises(LinkLostError):
        receiver.receive()
