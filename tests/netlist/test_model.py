import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, replace

import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Op, Queue
from buda_emu.netlist.sourced import NO_MARK, evolve
from netlist.netlist_texts import NETLIST


def test_a_copy_with_other_values() -> None:
    queue = Queue(name="a", entries=2)
    other = evolve(queue, name="a.1", entries=3)
    assert (other.name, other.entries, other.df) == ("a.1", 3, queue.df)
    assert (queue.name, queue.entries) == ("a", 2)
    with pytest.raises(TypeError, match="Queue has no entrys"):
        evolve(queue, entrys=3)


def test_objects_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Queue(name="a").entries = 3  # type: ignore[misc]


def test_equality_does_not_look_at_the_source() -> None:
    assert Queue(name="a") == Queue(name="a", broken=True)
    assert Queue(name="a") != Queue(name="b")
    assert Queue(name="a") != Op(name="a", graph="g")
    assert len({Queue(name="a"), Queue(name="a"), Queue(name="b")}) == 2


def test_the_text_of_an_object_shows_what_is_not_the_default() -> None:
    assert repr(Queue(name="a", entries=2)) == "Queue(name='a', entries=2)"


def test_places_of_fields() -> None:
    netlist = check_text(NETLIST).netlist
    assert netlist is not None
    queue = netlist.queues["src"]
    line = NETLIST.splitlines()[2]
    assert (queue.at("df").line, queue.at("df").column) == (3, line.index("Float16_b") + 1)
    assert queue.at("nope", "df") == queue.at("df")
    assert queue.name_node is not None
    assert queue.at("nope") == queue.name_node.mark
    assert Queue(name="a").at("df") == NO_MARK


def test_objects_are_made_of_their_fields_and_stay() -> None:
    queue = Queue(name="q", entries=2)
    assert (queue.entries, queue.layout, queue.source) == (2, "tilized", None)
    with pytest.raises(TypeError, match="Queue needs name"):
        Queue(entries=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Queue has no colour"):
        Queue(name="q", colour="red")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Queue("q")  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="entries"):
        queue.entries = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="entries"):
        del queue.entries
    with pytest.raises(AttributeError):
        object.__setattr__(queue, "colour", "red")  # no room for more
    assert replace(queue, entries=3) == evolve(queue, entries=3) == Queue(name="q", entries=3) != queue
    assert pickle.loads(pickle.dumps(queue)) == copy.deepcopy(queue) == queue
    assert len({queue, Queue(name="q", entries=2), Queue(name="r")}) == 2
    assert asdict(queue)["entries"] == 2
