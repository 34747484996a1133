"""Faults of queues: lost entries and wrong pointers end as the emulator says."""

import numpy as np
import pytest

from buda_emu.app.api.faults import Maker, Settings, Subject
from buda_emu.testing.injection.fault import Fault
from faults_bench import bench
from small_netlists import execute, fifo_settings, graph, op, program, queue, ram_settings, text

B = "Float16_b"


def two_graphs(tmp_path):
    """Two inputs through exp, then abs, with a queue between."""
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [
                queue("x", entries=2, df=B),
                queue("between", "first", entries=2, df=B),
                queue("z", "second", entries=2, df=B),
            ],
            [
                graph("a", op("first", "exp", ["x"], df=B), inputs=2),
                graph("b", op("second", "abs", ["between"], df=B), inputs=2),
            ],
            [
                program(
                    "run", "var: {$c_zero: 0}", execute("a", fifo_settings("x")), execute("b", fifo_settings("between"))
                )
            ],
        )
    )
    return str(path)


def effect(found, kind, where, **more):
    fault = Fault(0, kind, "dram", where, "queue", B, **more)
    return found._inject(found._draw.resolve(fault), None)


@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_lost_entry_leaves_a_program_waiting(tmp_path, precision):
    found = bench(two_graphs(tmp_path), precision)
    made = effect(found, "entry", "between", entry=2, tile=1, how="lost")
    assert made.outcome == "deadlock"
    assert "read beyond the entries pushed to queue between" in made.error
    assert effect(found, "entry", "x", entry=0, tile=0, how="lost").outcome == "deadlock"
    made = effect(found, "entry", "z", entry=4, tile=1, how="lost")
    assert (made.outcome, made.error) == ("corrupt", "z: the host finds 1 entries, not 2")


def test_later_entries_move_up(tmp_path):
    """Of an input that the program reads less of than there is, the second entry comes first."""
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [queue("x", entries=2, df=B), queue("z", "first", entries=1, df=B)],
            [graph("a", op("first", "abs", ["x"], df=B))],
            [program("run", "var: {$c_zero: 0}", execute("a", fifo_settings("x")))],
        )
    )
    values = np.stack([np.full((1, 32, 32), number, np.float32) for number in (1, 2)])
    np.savez(tmp_path / "in.npz", x=values)
    found = Maker(Subject(str(path), inputs=str(tmp_path / "in.npz")), Settings())()
    (number,) = found._comparison.outputs.values()
    fault = found._draw.resolve(Fault(0, "entry", "dram", "x", "queue", B, entry=0, tile=0, how="lost"))
    left = found._machines.run_with_fault(fault, found.trace, found._comparison.outputs)
    assert (found.trace.nodes[number].value == 1).all()
    assert (left.values[number] == 2).all()


def test_wrong_pointers(tmp_path):
    found = bench(two_graphs(tmp_path))
    full = effect(found, "pointer", "between", entry=0, bits=(1,), how="wr")  # as if two entries lay in it
    assert full.outcome == "deadlock"
    assert "full queue: queue between" in full.error
    empty = effect(found, "pointer", "x", entry=1, bits=(1,), how="rd")
    assert empty.outcome == "deadlock"
    assert "empty queue: queue x" in empty.error
    assert effect(found, "pointer", "x", entry=1, bits=(0,), how="local").outcome == "corrupt"  # input 0 again
    for name in ("rd", "local"):  # settings place them anew
        assert effect(found, "pointer", "between", entry=0, bits=(0,), how=name).outcome == "masked"


def test_a_pointer_outside_of_a_ram_stops_the_run():
    made = effect(bench("attention"), "pointer", "bv", entry=0, bits=(0,), how="rd")
    assert made.outcome == "stopped"
    assert "rd_ptr_global 1 outside ram bv" in made.error


@pytest.mark.parametrize("precision", ["format", "device"])
def test_a_campaign_of_both(precision):
    found = bench("attention", precision, kinds=("entry", "pointer"))
    effects = [found.effect(number) for number in range(60)]
    assert {"deadlock", "stopped", "corrupt", "masked"} <= {item.outcome for item in effects}
    assert {"lost", "twice", "swapped", "rd", "wr"} <= {item.fault.how for item in effects}


def test_an_entry_that_is_added_shifts_those_after_it(tmp_path):
    """Of two entries the second is the first once more; a queue without room keeps the writer waiting."""
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [queue("x", entries=4, df=B), queue("z", "first", entries=4, df=B)],
            [graph("a", op("first", "abs", ["x"], df=B), inputs=2)],
            [program("run", "var: {$c_zero: 0}", execute("a", fifo_settings("x")))],
        )
    )
    values = np.stack([np.full((1, 32, 32), number, np.float32) for number in (1, 2)])
    np.savez(tmp_path / "in.npz", x=values)
    found = Maker(Subject(str(path), inputs=str(tmp_path / "in.npz")), Settings())()
    fault = found._draw.resolve(Fault(0, "entry", "dram", "x", "queue", B, entry=0, tile=0, how="added"))
    left = found._machines.run_with_fault(fault, found.trace, found._comparison.outputs)
    assert [float(value.max()) for value in left.values.values()] == [1.0, 1.0]
    assert len(left.windows["x"]) == 3
    full = bench(two_graphs(tmp_path))
    made = effect(full, "entry", "between", entry=2, tile=0, how="added")
    assert made.outcome == "deadlock"
    assert "full" in made.error


VIEWS = text(
    [queue("x", entries=4, df=B, t=1), queue("whole", "put", kind="ram", entries=2, df=B, t=1),
     queue("pair", kind="ram", entries=1, df=B, t=2, more=", alias: whole"), queue("z", "get", entries=4, df=B, t=2)],
    [graph("a", op("put", "nop", ["x"], df=B), inputs=2),
     graph("b", op("get", "exp", ["pair"], df=B, t=2))],
    [program("run", "var: {$c_zero: 0}",
             execute("a", fifo_settings("x"), ram_settings("whole", more=", global_wrptr_autoinc: 1")),
             execute("b", ram_settings("pair")))],
)  # fmt: skip


def with_views():
    """The second ram lies where the first one does."""
    lines = VIEWS.splitlines()
    own = next(line for line in lines if line.startswith("  whole:"))
    address = own.partition("dram: ")[2].partition("]]")[0]
    return (
        "\n".join(
            line.partition("dram: ")[0] + "dram: " + address + "]]" + line.partition("]]")[2]
            if line.startswith("  pair:")
            else line
            for line in lines
        )
        + "\n"
    )


@pytest.mark.parametrize("precision", ["format", "device"])
def test_what_one_view_wrote_another_reads(tmp_path, precision):
    path = tmp_path / "views.yaml"
    path.write_text(with_views())
    found = bench(str(path), precision)
    for entry in (0, 1):
        fault = Fault(0, "flip", "dram", "whole", "queue", B, entry=entry, tile=0, datum=5, bits=(15,))
        made = found._inject(found._draw.resolve(fault), None)
        assert made.outcome != "masked"
        assert made.maps == {"whole": "1", "z": f"{1 << entry:x}"}
