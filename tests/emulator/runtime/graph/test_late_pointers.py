"""A ram's pointer that a varinst moves beyond the slots: an error at once in the reference, on silicon when it is used
(NETLIST 12)."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.support.errors import ProgramError
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

CACHE = 4


def netlist(*instructions):
    """`write` fills slots of the ram `cache`, which has 4, `read` reads them; pointers move one for each."""
    source = text(
        [queue("x", entries=8), queue("cache", "write", kind="ram", entries=CACHE), queue("out", "read", entries=8)],
        [graph("w", op("write", "nop", ["x"])), graph("r", op("read", "nop", ["cache"]))],
        [
            program(
                "run",
                "param: [$p_count]",
                "var: {$c_zero: 0, $at: 0, $l: 0, $inc: 1}",
                "loop: $p_count",
                *instructions,
                "endloop",
            )
        ],
    )
    found = check_text(source, "net.yaml").netlist
    assert found is not None
    return found


WRITE = execute("w", fifo_settings("x", "$l", "$l"), ram_settings("cache", wr="$at"))
READ = execute("r", ram_settings("cache", rd="$at"))
STEP = ("varinst: [$l, incwrap, 1, 16]", "varinst: [$at, add, $at, 1]")


def ran(count, late, *instructions):
    with be.Emulator(netlist(*instructions), "ideal", 1, late_pointer_checks=late) as emulator:
        emulator.push("x", np.arange(8, dtype=np.float32).reshape(8, 1, 1, 1) * np.ones((8, 1, 32, 32), np.float32))
        for slot in range(CACHE):
            emulator.push("cache", np.full((1, 1, 32, 32), -1, np.float32), slot)
        emulator.run("run", {"$p_count": str(count)})
        return emulator.peek("cache", CACHE, "raw", 0)[:, 0, 0, 0]


@pytest.mark.parametrize("instruction", [WRITE, READ], ids=["write", "read"])
def test_one_past_the_last_slot_after_the_last_use(instruction):
    with pytest.raises(ProgramError, match="_ptr_global 4 outside ram cache"):
        ran(CACHE, False, instruction, *STEP)
    expected = np.arange(CACHE) if instruction == WRITE else np.full(CACHE, -1)
    assert np.array_equal(ran(CACHE, True, instruction, *STEP), expected)


@pytest.mark.parametrize("instruction", [WRITE, READ], ids=["write", "read"])
def test_a_use_beyond_the_slots_is_an_error(instruction):
    with pytest.raises(ProgramError, match="_ptr_global 4 outside ram cache"):
        ran(CACHE + 1, True, instruction, *STEP)


def test_a_use_without_settings_is_an_error_too():
    bare = execute("w", fifo_settings("x", "$l", "$l"))
    with pytest.raises(ProgramError, match="wr_ptr_global 7 outside ram cache"):
        ran(1, True, WRITE, "varinst: [$at, set, 7]", bare)


def test_who_only_reads_minds_no_write_pointer_and_a_pointer_may_come_back():
    other = execute("r", ram_settings("cache"))
    back = ("varinst: [$at, set, 7]", "varinst: [$at, set, 1]")
    assert np.array_equal(ran(1, True, WRITE, "varinst: [$at, set, 7]", execute("r")), [0, -1, -1, -1])
    assert np.array_equal(ran(1, True, WRITE, *back, execute("w", fifo_settings("x", "$l", "$l"))), [0, 0, -1, -1])
    assert np.array_equal(ran(1, True, WRITE, "varinst: [$at, set, 7]", other), [0, -1, -1, -1])


def test_a_read_pointer_moves_by_what_its_variable_is_now():
    """A varinst goes on to the settings that are written with its variable (NETLIST 4.3)."""
    begin = execute("r", ram_settings("cache", more=", global_rdptr_autoinc: $inc"))
    bare = execute("r")
    with be.Emulator(netlist(begin, "varinst: [$inc, set, 0]", bare, bare), "ideal", 1) as emulator:
        for slot in range(CACHE):
            emulator.push("cache", np.full((1, 1, 32, 32), slot, np.float32), slot)
        emulator.run("run", {"$p_count": "1"})
        assert emulator.pop("out", 3)[:, 0, 0, 0].tolist() == [0, 1, 1]
