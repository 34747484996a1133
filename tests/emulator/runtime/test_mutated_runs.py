"""Whatever is done to a valid netlist that the check then accepts: its run ends with results or a documented error."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import buda_emu as be
from buda_emu.emulator.inputs.default import default_inputs
from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.netlist.load import check_text
from buda_emu.netlist.test_config import read_test_config
from buda_emu.netlist.yaml_reader import read_tree
from mutations import Tree, mutated, text_of, tree_of
from netlist.netlist_texts import FUSED, NETLIST

MEMORY_LIMIT = 64 << 20
STEP_LIMIT = 2_000
SMALL = tree_of(read_tree(NETLIST + FUSED))
_INPUT_BYTES = 16 << 20


def runs(text: str) -> bool:
    """Run what the check accepts; True when it got to the end. Only documented errors may come out."""
    netlist = check_text(text).netlist
    if netlist is None:
        return False
    programs = list(netlist.programs.values())
    try:
        parameters = default_parameters(programs, {})
        with be.Emulator(netlist, threads=1, memory_limit=MEMORY_LIMIT, step_limit=STEP_LIMIT) as emulator:
            config = read_test_config("net.yaml", netlist.sections)
            pushed = 0
            for block in default_inputs(netlist, config, programs, parameters, seed=0):
                pushed += block.array.nbytes
                if pushed > _INPUT_BYTES:
                    return False
                emulator.push(block.queue, block.array, block.slot)
            for program in netlist.programs:
                emulator.run(program, parameters)
            emulator.outputs()
    except be.InternalError:
        raise
    except be.BudaError:
        return False
    return True


def test_the_netlists_run_before_they_are_mutated() -> None:
    assert runs(text_of(SMALL))


@settings(max_examples=60, deadline=None)
@given(mutated(SMALL))
def test_a_mutated_netlist_runs_or_says_why_not(tree: Tree) -> None:
    runs(text_of(tree))


# Valid mutants of the corpus: one netlist for each kind of op.
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_netlist_of_the_corpus_runs_or_says_why_not(corpus: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted((corpus / "mutants").glob("*_valid_*.yaml"))))
    tree = tree_of(read_tree(path.read_text(encoding="utf-8")))
    runs(text_of(data.draw(mutated(tree))))
