"""What runs a program and what times it walk its epochs alike: the same executes complete one, the same are refused."""

import numpy as np
import pytest

import buda_emu as be
from buda_emu.emulator.inputs.entries import walk_programs
from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Netlist
from buda_emu.performance.timing.model import epochs
from buda_emu.support.errors import ProgramError
from netlist.rules import bases as b
from netlist.rules.cases import Edit, edited

AGAIN = "    - execute: {graph_name: g0, queue_settings: {a: {rd_ptr_local: $lp, rd_ptr_global: $gp}}}\n"
TWICE = (("", "    - varinst: [$lp", f"{AGAIN}{AGAIN}    - varinst: [$lp"),)
B = "b: {prologue: true, rd_ptr_global: $z, wr_ptr_global: $z}"


def netlist(base: str, *edits: Edit) -> Netlist:
    """The base with these edits; its warnings do not matter."""
    found = check_text(edited(base, edits), arch="wormhole_b0")
    assert found.netlist is not None, found.diagnostics
    return found.netlist


def refused_by_run(net: Netlist) -> str:
    with be.Emulator(net, threads=1) as emulator:
        for name, queue in net.queues.items():
            if queue.host_fed:
                t, rows, columns = queue.blocking.shape
                height, width = queue.blocking.tile_dim
                shape = (1, t, rows * height, columns * width)
                emulator.push(name, np.ones(shape, np.float32), 0 if queue.is_ram else None)
        with pytest.raises(ProgramError) as raised:
            emulator.run("main", {"$p_n": "1"})
    return str(raised.value)


def refused_by_timing(net: Netlist) -> str:
    with pytest.raises(ProgramError) as raised:
        epochs(net, list(net.programs.values()), {"$p_n": "1"})
    return str(raised.value)


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (netlist(b.TWO_CHIPS, *TWICE), "execute of g0 twice"),
        (netlist(b.ADD, ("", B, B.replace("prologue", "zero"))), "zero without prologue on ram b"),
        (netlist(b.ADD, ("", B, B.replace("true", "true, global_wrptr_autoinc: 1"))), "global_wrptr_autoinc together"),
        (netlist(b.ADD, ("", B, B.replace("rd_ptr_global: $z", "rd_ptr_global: $zz"))), "unknown variable $zz"),
    ],
    ids=["twice", "zero", "autoincrement", "variable"],
)  # fmt: skip
def test_what_the_run_refuses_is_not_timed(net: Netlist, words: str) -> None:
    said = refused_by_run(net)
    assert words in said
    assert said.startswith(refused_by_timing(net))


def test_an_epoch_is_complete_when_all_its_graphs_were_executed() -> None:
    (epoch,) = epochs(netlist(b.TWO_CHIPS), list(netlist(b.TWO_CHIPS).programs.values()), {"$p_n": "3"})
    assert epoch.temporal.graphs == ("g0", "g1")
    assert epoch.runs == 3
    assert {name: execute.graph for name, execute in epoch.executes.items()} == {"g0": "g0", "g1": "g1"}


def test_what_counts_inputs_stops_where_the_run_does() -> None:
    """Settings of a ram are evaluated, too: the endloop after is never reached."""
    wrong = netlist(
        b.ADD, ("", B, B.replace("rd_ptr_global: $z", "rd_ptr_global: $zz")), ("", "    - loop: $p_n\n", "")
    )
    with pytest.raises(ProgramError, match=r"instruction 4 \(execute, line \d+\): .*unknown variable \$zz"):
        walk_programs(wrong, list(wrong.programs.values()), {"$p_n": "1"})
