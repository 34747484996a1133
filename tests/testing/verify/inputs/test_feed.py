"""What a test run is fed with: tensors from outside first, the rest made up (NETLIST 5.4)."""

import io
from dataclasses import replace

import numpy as np
import pytest

from buda_emu.emulator.inputs.feed import Feed, initial_tensors, push
from buda_emu.emulator.inputs.reference import ContentFiles
from buda_emu.emulator.runtime.emulator import Emulator
from buda_emu.netlist.load import check_text
from buda_emu.netlist.test_config import read_test_config
from buda_emu.support.errors import HostError
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

CONFIG = """test-config:
  stimulus-config: {type: Constant, constant_value: 3}
"""


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def filled(entries, value=1.0):
    return npy(np.full((entries, 1, 32, 32), value, np.float32))


def netlist():
    """Queue a and ram w make s; ram r is read and written by n; two inputs."""
    body = text(
        [queue("a"), queue("w", kind="ram", entries=2), queue("r", "n", kind="ram", entries=3), queue("o", "s")],
        [graph("g", op("s", "add", ["a", "w"]), op("n", "nop", ["r"], loc=(0, 1)), inputs=2)],
        [
            program(
                "p",
                "var: {$c_zero: 0}",
                execute("g", fifo_settings("a"), ram_settings("w", prologue="true"), ram_settings("r")),
            )
        ],
    )
    loaded = check_text(body + CONFIG).netlist
    assert loaded is not None
    return loaded


def feed(contents, seed=0):
    one = netlist()
    config = read_test_config("net.yaml", one.sections)
    files = ContentFiles("given", contents) if contents is not None else None
    return Feed(one, config, list(one.programs.values()), {}, seed, files)


def blocks(contents):
    """Entries by queue, and the source of each queue's first block."""
    found = {}
    for block in feed(contents).blocks():
        found.setdefault(block.queue, []).append(block)
    return found


def test_everything_is_made_up_where_nothing_is_given():
    for contents in (None, {}):
        found = blocks(contents)
        assert {"a", "w"} <= set(found)
        assert sum(len(block.array) for block in found["a"]) == 2
        assert all((block.array == 3).all() and block.source == "test-config" for block in found["a"] + found["w"])


def test_given_queues_are_not_made_up():
    found = blocks({"a.npy": filled(2, 5)})
    (block,) = found["a"]
    assert (block.array.shape, block.slot, block.source) == ((2, 1, 32, 32), None, "a.npy")
    assert (block.array == 5).all()
    assert found["w"][0].source == "test-config"


def test_no_more_entries_are_taken_than_the_programs_read():
    (block,) = blocks({"a.npy": filled(4)})["a"]
    assert len(block.array) == 2


def test_too_few_entries_are_an_error():
    with pytest.raises(HostError, match=r"a\.npy has 1 entry of queue a, the programs read 2"):
        blocks({"a.npy": filled(1)})


def test_a_ram_takes_its_slots_from_the_first_one_on():
    (block,) = blocks({"w.npy": filled(1, 7)})["w"]
    assert (block.slot, len(block.array)) == (0, 1)
    (block,) = blocks({"w.npy": filled(9, 7)})["w"]
    assert len(block.array) == 2


def test_what_a_ram_of_ops_holds_before_has_a_name_of_its_own():
    found = blocks({"r.npy": filled(3, 7), "r.init.npy": filled(2, 8), "o.npy": filled(2, 9)})
    (block,) = found["r"]
    assert (block.slot, block.source) == (0, "r.init.npy")
    assert (block.array == 8).all()
    assert "o" not in found
    one = netlist()
    assert initial_tensors(ContentFiles("given", {"o.init.npy": filled(2)}), one.queues["o"]) is None


def test_the_same_blocks_as_often_as_asked():
    fed = feed({"w.npy": filled(2)})
    first, second = list(fed.blocks()), list(fed.blocks())
    assert [(block.queue, block.slot, block.source) for block in first] == [
        (block.queue, block.slot, block.source) for block in second
    ]
    assert all(np.array_equal(a.array, b.array) for a, b in zip(first, second, strict=True))


def test_push_says_what_was_pushed():
    told = []
    with Emulator(netlist(), "ideal", 1) as emulator:
        used = push(emulator, feed({"a.npy": filled(2)}).blocks(), told.append)
        emulator.run("p")
        assert (emulator.outputs()["o"] == 4).all()
    by_name = {one.queue: one for one in used}
    assert (by_name["a"].format, by_name["a"].shape, by_name["a"].source) == ("Float32", (2, 1, 32, 32), "a.npy")
    assert by_name["w"].source == "test-config"
    assert set(told) == {f"input {name}" for name in by_name}


def test_an_archive_is_unpacked_within_the_memory_limit(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros((2, 1, 32, 32), np.float32))
    given = replace(feed(None), archive=tmp_path / "x.npz", limit=8191)
    with pytest.raises(HostError, match="the memory limit is"):
        list(given.blocks())
    assert next(block.queue for block in replace(given, limit=8192).blocks()) == "a"
