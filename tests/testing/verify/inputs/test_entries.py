"""How many entries a run needs, and default parameters (NETLIST 3.7, 5.4)."""

import json

import pytest

from buda_emu.emulator.inputs.entries import default_parameters, entries_read
from buda_emu.netlist.load import load
from buda_emu.netlist.test_config import read_test_config
from buda_emu.support.errors import ProgramError
from shared_files import corpus_files


def read(root, name, parameters=None):
    netlist = load(root / f"netlists/{name}.yaml")
    programs = list(netlist.programs.values())
    config = read_test_config(netlist.path, netlist.sections)
    return entries_read(netlist, programs, {**default_parameters(programs, config.args), **(parameters or {})})


def test_a_streamed_queue_gets_what_the_loops_read(root):
    assert read(root, "attention", {"$p_loop_count": "1"})["x"] == 2
    assert read(root, "attention", {"$p_loop_count": "2"})["x"] == 4


def test_never_more_than_the_queue_holds(root):
    assert read(root, "attention", {"$p_loop_count": "5"})["x"] == 4


def test_a_static_queue_is_filled(root):
    assert read(root, "attention")["mask"] == 1


def test_several_programs_read_one_queue(root):
    assert read(root, "training") == {"x": 2, "grad_y": 2}


def test_a_program_that_fails_says_so_before_it_runs(root):
    with pytest.raises(ProgramError, match="loop count"):
        read(root, "attention", {"$p_loop_count": "0"})


def test_defaults_follow_the_test_args(root):
    programs = list(load(root / "netlists/training.yaml").programs.values())
    assert default_parameters(programs, {}) == {"$p_loop_count": "1", "$p_zero_grad": "1"}
    given = {"microbatch_count": "7", "zero_grad": "0", "unrelated": "3"}
    assert default_parameters(programs, given) == {"$p_loop_count": "7", "$p_zero_grad": "0"}


def test_unknown_names_count_once_where_they_count_a_loop(root):
    text = (root / "netlists/two_chips.yaml").read_text()
    from buda_emu.netlist.load import check_text

    netlist = check_text(
        text.replace("$p_loop_count", "$rounds").replace("param: [$rounds]", "param: [$rounds, $other]")
    ).netlist
    programs = list(netlist.programs.values())
    assert default_parameters(programs, {}) == {"$rounds": "1", "$other": "0"}
    assert default_parameters(programs, {"rounds": "4"})["$rounds"] == "4"


@pytest.mark.parametrize(
    "path", corpus_files("vectors/verif/**/netlist_programs*.json") + corpus_files("vectors/loader/**/*.json")
)
def test_enough_for_every_public_vector(path, corpus):
    """Real programs read no more than the vectors' inputs hold, and parameters default to those of the vectors."""
    vector = json.loads(path.read_text())
    netlist = load(corpus / "netlists" / vector["netlist"], vector["arch"])
    programs = [netlist.programs[name] for name in dict.fromkeys(netlist.program_order)]
    config = read_test_config(netlist.path, netlist.sections)
    assert default_parameters(programs, config.args) == vector["params"]
    needed = entries_read(netlist, programs, vector["params"])
    assert {name: count for name, count in needed.items() if count > vector["inputs"][name]["shape"][0]} == {}


def test_a_loop_that_no_run_ends_is_refused_before_anything_is_walked(root):
    with pytest.raises(ProgramError, match=r"100000000 rounds of this loop take at least .* instructions"):
        read(root, "attention", {"$p_loop_count": "100000000"})
