"""What lies between machines: it holds no more than it may, and what is not a message is refused."""

import os
import random
import socket
import time
from contextlib import ExitStack, closing
from threading import Thread

import numpy as np
import pytest

from buda_emu.emulator.distributed import part as link
from buda_emu.emulator.distributed.part import Entrance, Inbox, Link, LinkLostError, Security, connect, listener
from buda_emu.support.errors import HostError
from case_functions import until

SIZE = 1 << 18


@pytest.fixture
def ends():
    pair = socket.socketpair()
    both = [Link(end) for end in pair]
    yield both
    for end in both:
        end.close()


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
        (200_000).to_bytes(4, "little") + b"[" * 100_000 + b"]" * 100_000,
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


# ------------------------------------------------------------------------------------------------------- the entrance
HOST = "127.0.0.1"


@pytest.fixture
def security():
    return Security(os.urandom(32))


@pytest.fixture
def entrance(security):
    with Entrance(listener(HOST), security) as found:
        yield found


def stranger(entrance):
    return socket.create_connection((HOST, entrance.port), 10)


def is_hung_up_on(line):
    """Whether the entrance closes a connection, after the nonce that it begins with."""
    line.settimeout(10)
    try:
        while line.recv(64):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def test_who_knows_the_secret_is_let_in_with_its_first_message(entrance, security):
    with closing(connect(HOST, entrance.port, security)) as there:
        there.send({"part": 3})
        here, words = entrance.next_guest(10)
        assert words == {"part": 3}
        with closing(here):
            there.send({}, [np.arange(4)])
            assert (here.receive()[1][0] == np.arange(4)).all()


def test_who_does_not_know_it_is_not(entrance, monkeypatch):
    monkeypatch.setattr(link, "_ATTEMPTS", 2)
    with pytest.raises(LinkLostError):
        connect(HOST, entrance.port, Security(os.urandom(32)))
    with pytest.raises(TimeoutError):
        entrance.next_guest(0.1)


def drip(line, seconds):
    """A byte at a time, each well within any time-out of a single read."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            line.sendall(b"x")
            time.sleep(0.2)
    except OSError:
        pass


def test_all_of_a_handshake_has_one_deadline(security, monkeypatch):
    monkeypatch.setattr(link, "HANDSHAKE_SECONDS", 1.0)
    with Entrance(listener(HOST), security) as entrance, stranger(entrance) as silent, stranger(entrance) as slow:
        start = time.monotonic()
        thread = Thread(target=drip, args=(slow, 30))
        thread.start()
        assert is_hung_up_on(silent)
        assert is_hung_up_on(slow)
        thread.join()
        assert 0.9 < time.monotonic() - start < 8


def test_a_first_message_that_does_not_come_is_late_too(security, monkeypatch):
    monkeypatch.setattr(link, "HANDSHAKE_SECONDS", 1.0)
    with Entrance(listener(HOST), security) as entrance, closing(connect(HOST, entrance.port, security)) as guest:
        with pytest.raises(LinkLostError):
            guest.receive()
        with pytest.raises(TimeoutError):
            entrance.next_guest(0.1)


@pytest.mark.parametrize("count", [1, 20, 200])
def test_silent_strangers_keep_nobody_out(entrance, security, count):
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(stranger(entrance))
        start = time.monotonic()
        with closing(connect(HOST, entrance.port, security)) as there:
            there.send({"part": 0})
            here, _ = entrance.next_guest(10)
            here.close()
        assert time.monotonic() - start < 5


def test_strangers_are_bounded_and_the_oldest_goes_first(entrance, monkeypatch):
    monkeypatch.setattr(link, "MOST_STRANGERS", 4)
    with ExitStack() as stack:
        first, *others = [stack.enter_context(stranger(entrance)) for _ in range(5)]
        assert is_hung_up_on(first)
        assert until(lambda: len(entrance._strangers) == 4)
        for other in others:
            other.settimeout(0.05)
            assert len(other.recv(64)) == 32
            with pytest.raises(TimeoutError):
                other.recv(64)


def test_who_closes_the_entrance_hangs_up_on_all(security):
    with Entrance(listener(HOST), security) as entrance:
        line = stranger(entrance)
        guest = connect(HOST, entrance.port, security)
        guest.send({"part": 0})
        assert until(lambda: not entrance._guests.empty())
        assert until(lambda: len(entrance._strangers) == 1)
    assert is_hung_up_on(line)
    with pytest.raises(LinkLostError):
        guest.receive()
    line.close()
    guest.close()
    assert until(lambda: entrance._listening.fileno() < 0)


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_drawn_strangers_keep_nobody_out(entrance, security, seed):
    """Some are silent, some send noise, some leave in the middle; three who know the secret come between them."""
    draw = random.Random(seed)
    guests = []
    with ExitStack() as stack:
        for number in sorted(draw.sample(range(150), 3)):
            for _ in range(number // 3):
                line = stack.enter_context(stranger(entrance))
                kind = draw.choice(("silent", "noise", "leaves"))
                if kind == "noise":
                    line.sendall(draw.randbytes(draw.choice((1, 31, 32, 500))))
                elif kind == "leaves":
                    line.close()
            guest = stack.enter_context(closing(connect(HOST, entrance.port, security)))
            guest.send({"part": number})
            guests.append(number)
        met = []
        for _ in guests:
            here, words = entrance.next_guest(10)
            stack.enter_context(closing(here))
            met.append(words["part"])
    assert sorted(met) == guests
