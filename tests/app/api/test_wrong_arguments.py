"""What a caller gets wrong is a HostError in one sentence that names the argument, in every function that has it."""

import inspect
from functools import partial

import numpy as np
import pytest

import buda_emu as be
from buda_emu.app.api.faults import Budget
from buda_emu.app.api.run_netlist import run_netlist
from buda_emu.app.api.sweep import sweep
from buda_emu.emulator.options import SharedOptions
from buda_emu.netlist.load import check_text
from buda_emu.support.options import declared_options
from buda_emu.testing.injection.campaign import Settings
from shared_files import ROOT

PATH = str(ROOT / "netlists/matmul.yaml")
TEXT = (ROOT / "netlists/matmul.yaml").read_text()


def swept(source, **options):
    return sweep(source, {"clock": [1000]}, **options)


FUNCTIONS = {
    "test": be.test,
    "perf": be.perf,
    "numerics": be.numerics,
    "debug": be.debug,
    "advise": be.advise,
    "sweep": swept,
    "reduce": partial(be.reduce, command="false"),
}
WRONG = {
    "programs": [3, b"run_fwd", ["nope"], "nope", [None]],
    "parameters": [{"nope": 1}, {"$nope": 1}, {"$p_loop_count": 4}, ["nope"], {3: 1}, {"$p_loop_count": "x"}],
    "arch": ["nope", 3, b"wormhole_b0"],
    "board": ["nope"],
    "precision": ["exact", 3, None],
    "expected": ["exact", 3],
    "compare": ["exact", 3],
    "seed": ["x", -1, 1.5],
    "threads": ["x", 0, -1, 1.5],
    "workers": ["x", 0, -1, 1.5],
    "memory_limit": ["8Q", "", "G", -5, 1.5, [8]],
    "timeout": ["x", 0, -1, float("nan"), None],
    "threshold": ["x", float("nan"), 99, None],
    "most_loss": ["x", float("nan"), float("inf"), -0.1],
    "tries": ["x", 0, -1, 1.5],
    "most_trials": ["x", 0, -1, 1.5],
    "inputs": ["nodir"],
    "reference": ["nodir"],
}


def keywords(function):
    names = inspect.signature(function).parameters
    return [name for name in WRONG if name in names] if function is not swept else ["programs", "parameters", "workers"]


CASES = [
    (name, keyword, value)
    for name, function in FUNCTIONS.items()
    for keyword in keywords(function)
    for value in WRONG[keyword]
]


@pytest.mark.parametrize(("name", "keyword", "value"), CASES)
def test_a_wrong_value_is_refused_by_its_name(name, keyword, value):
    with pytest.raises(be.HostError) as raised:
        FUNCTIONS[name](PATH, **{keyword: value})
    message = str(raised.value)
    assert len(message.splitlines()[0]) < 300
    if keyword in ("inputs", "reference"):
        assert message.startswith(f"{keyword}: nodir")
    if keyword not in ("programs", "parameters", "board"):
        assert keyword in message


def test_every_shared_option_with_a_type_of_its_own_is_tried():
    texts = {"dask", "cache", "allow_pickle"}
    assert declared_options(SharedOptions).keys() - texts <= WRONG.keys()


@pytest.mark.parametrize("limit", ["8G", "512MiB", "4096 M", 1 << 33, np.int64(1 << 33), None])
@pytest.mark.parametrize("name", ["test", "numerics", "debug"])
def test_a_limit_of_memory_in_every_form(name, limit):
    result = FUNCTIONS[name](PATH, memory_limit=limit)
    if name == "test":
        assert result.passed
    if name == "debug":
        result.close()


@pytest.mark.parametrize("limit", ["1M", 1 << 20])
def test_a_machine_takes_a_limit_in_every_form(tmp_path, limit):
    with be.Emulator(be.load(PATH), memory_limit=limit) as emu:
        assert emu.memory.limit == 1 << 20
        emu.save(tmp_path / "state")
    with be.Emulator.load(tmp_path / "state", memory_limit=limit) as emu:
        assert emu.memory.limit == 1 << 20
    for wrong in ("8Q", -1, 1.5):
        with pytest.raises(be.HostError, match="memory_limit"):
            be.Emulator(be.load(PATH), memory_limit=wrong)
        with pytest.raises(be.HostError, match="memory_limit"):
            be.Emulator.load(tmp_path / "state", memory_limit=wrong)


@pytest.mark.parametrize("name", ["threads", "inputs_at_once", "step_limit"])
@pytest.mark.parametrize("value", ["2", 1.5, -1, b"1"])
def test_a_machine_refuses_a_wrong_number_by_its_name(name, value):
    with pytest.raises(be.HostError, match=name):
        be.Emulator(be.load(PATH), **{name: value})


@pytest.mark.parametrize("read", [be.load, be.check, lambda path, arch: check_text(TEXT, path, arch)])
def test_an_architecture_is_a_word(read):
    with pytest.raises(be.HostError, match="arch must be a word, not 3"):
        read(PATH, arch=3)


def test_an_architecture_that_does_not_exist_is_no_fault_of_the_netlist():
    with pytest.raises(be.HostError, match=r"arch 'grayskul' is not one of: grayskull, "):
        be.load(PATH, arch="grayskul")


@pytest.mark.parametrize("seconds", [np.int64(5), np.float32(5), 5])
def test_a_time_limit_is_any_number(seconds):
    assert be.test(PATH, precision="ideal", timeout=seconds).passed


def test_a_program_that_one_of_several_netlists_has_is_no_mistake():
    paths = [PATH, str(ROOT / "netlists/training.yaml")]
    statuses = [case.status for case in be.test(paths, programs="run_opt", precision="ideal").cases]
    assert statuses[0] == "skipped"
    with pytest.raises(be.HostError, match="no program 'run_nope'"):
        be.test(paths, programs="run_nope", precision="ideal")


READERS = {
    **FUNCTIONS,
    "load": be.load,
    "check": be.check,
    "load_model": be.load_model,
    "load_image": be.load_image,
    "faults": be.faults,
    "Emulator": be.Emulator,
    "run_netlist": run_netlist,
}
SOURCES = [{"devices": 1}, 3, None, b"x", TEXT, f"  \n{TEXT}"]


@pytest.mark.parametrize("source", SOURCES, ids=["dict", "int", "None", "bytes", "text", "blank line first"])
@pytest.mark.parametrize("name", READERS)
def test_a_source_that_is_none_is_refused_in_one_sentence(name, source):
    with pytest.raises(be.HostError) as raised:
        READERS[name](source)
    message = str(raised.value)
    assert len(message) < 200
    assert "\n" not in message
    if isinstance(source, str) and name not in ("Emulator", "run_netlist"):
        assert "check_text" in message


@pytest.mark.parametrize("name", sorted({*READERS} - {"Emulator", "run_netlist", "check"}))
def test_a_file_that_is_missing_is_named(name):
    with pytest.raises((be.BudaError, FileNotFoundError), match=r"missing\.yaml"):
        READERS[name]("missing.yaml")


def test_a_run_takes_the_folder_of_inputs_in_every_form(tmp_path):
    netlist = be.load(PATH)
    for place in (str(tmp_path / "nodir"), tmp_path / "nodir"):
        with pytest.raises(be.HostError, match="nodir"):
            run_netlist(netlist, inputs=place)
    for keyword, value in (("inputs", 3), ("seed", "x"), ("seed", -1)):
        with pytest.raises(be.HostError, match=keyword):
            run_netlist(netlist, **{keyword: value})


def test_a_file_whose_name_has_two_lines_is_a_file(tmp_path):
    path = tmp_path / "a\nb.yaml"
    path.write_text(TEXT)
    assert be.load(path).ops.keys() == be.load(PATH).ops.keys()


@pytest.mark.parametrize(
    ("name", "budget", "settings"),
    [
        *(("budget", budget, {}) for budget in ("x", 1.5, -1, None)),
        *(("seconds", Budget(1, seconds=value), {}) for value in ("x", float("nan"), -1)),
        *(("width", Budget(1, width=value), {}) for value in ("x", float("nan"), 2)),
        *(("least_pcc", 1, {"least_pcc": value}) for value in ("x", float("nan"), 99)),
        *(("late", 1, {"late": value}) for value in ("x", float("nan"), -1)),
    ],
)
def test_limits_of_a_campaign_are_numbers(name, budget, settings):
    with pytest.raises(be.HostError, match=f"^{name} must be a"):
        be.faults(PATH, budget, settings=Settings(**settings))
