"""Starting up is cheap: what is imported when, and how long it takes."""

import json
import os
import subprocess
import sys

import pytest

HEAVY = {"numpy", "numba", "yaml", "jsonschema", "networkx", "llvmlite", "jinja2", "rich", "shtab"}
BUDGET_SECONDS = 0.040
MODULES_OF_A_RUN = 440


def modules_after(statement, environment):
    """Root names of the modules that a fresh interpreter has after a statement."""
    roots = "sorted({name.partition('.')[0] for name in sys.modules})"
    script = f"import json, sys\n{statement}\nprint(json.dumps({roots}))"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    [
        "import buda_emu",
        "import buda_emu.app.cli.main",
        "import buda_emu.spec.ops",
        "from buda_emu.foreign import gemini",
    ],
)
def test_nothing_heavy_is_imported(statement, child_environment):
    assert modules_after(statement, child_environment) & HEAVY == set()


def test_import_stays_within_its_budget(child_environment, tmp_path):
    script = "import time; start = time.process_time(); import buda_emu; print(time.process_time() - start)"
    # As installed: byte code is kept, here in a place of its own. Processor time: other tests run beside this one.
    environment = {**child_environment, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    times = []
    for _ in range(8):
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    assert min(times) < BUDGET_SECONDS


def test_check_loads_no_numpy_and_a_second_one_no_yaml(root, child_environment, tmp_path):
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path)}
    netlist = root / "netlists" / "matmul.yaml"
    statement = f"from buda_emu.app.cli.main import main; assert main(['check', {str(netlist)!r}]) == 0"
    assert modules_after(statement, environment) & HEAVY == {"yaml"}
    assert modules_after(statement, environment) & HEAVY == set()


def test_a_check_of_a_netlist_asks_no_other_packages_for_kinds_of_documents(root, child_environment, tmp_path):
    """`importlib.metadata`, which finds them, imports these."""
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path)}
    netlist = root / "netlists" / "matmul.yaml"
    statement = f"from buda_emu.app.cli.main import main; assert main(['check', {str(netlist)!r}]) == 0"
    modules_after(statement, environment)
    assert modules_after(statement, environment) & {"email", "zipfile", "csv", "pathlib"} == set()


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled or cached")
@pytest.mark.parametrize("precision", ["format", pytest.param("device", marks=pytest.mark.slow)])
def test_a_warm_run_needs_no_compiler_and_gives_the_same_bytes(root, child_environment, tmp_path, precision):
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path / "caches")}
    # one thread: a second run may start helpers, and compile their kernel, where the first did not find it worth while
    arguments = ["run", "-q", str(root / "netlists" / "matmul.yaml"), "--threads", "1", "--precision", precision]
    loaded, outputs = [], []
    for name in ("cold", "warm"):
        folder = tmp_path / name
        statement = (
            f"from buda_emu.app.cli.main import main; assert main({[*arguments, '--outputs', str(folder)]!r}) == 0"
        )
        loaded.append(modules_after(statement, environment) & {"numba", "llvmlite", "yaml"})
        outputs.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert loaded == [{"numba", "llvmlite", "yaml"}, {"llvmlite"}]
    assert outputs[0] == outputs[1]
    assert outputs[0]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled or cached")
def test_a_warm_run_imports_no_more_than_it_needs(root, child_environment, tmp_path):
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path)}
    arguments = ["run", "--threads", "1", str(root / "netlists" / "matmul.yaml")]
    command = f"import sys; from buda_emu.app.cli.main import main; main({arguments!r})"
    script = f"{command}\nprint(*sys.modules)"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
    loader = modules_after("import llvmlite.binding", environment)  # LLVM's, and what that needs for itself
    loaded = [name for name in done.stdout.splitlines()[-1].split() if name not in loader]
    rules = [name for name in loaded if name.startswith(("buda_emu.netlist.rules", "buda_emu.netlist.reader"))]
    assert not rules
    assert {"rich", "yaml", "numba", "pathlib", "logging", "zipfile", "tomllib", "decimal"}.isdisjoint(loaded)
    assert "numpy.random" in loaded  # the list is one
    assert len(loaded) <= MODULES_OF_A_RUN


def test_who_hands_out_tests_needs_no_numpy(child_environment, tmp_path):
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path)}
    netlist = tmp_path / "refused.yaml"
    netlist.write_text("devices: {arch: wormhole_b0}\nqueues: {}\ngraphs: {}\nprograms: []\nmore: [\n")
    command = f"from buda_emu.app.cli.main import main; assert main(['test', {str(netlist)!r}]) == 2"
    statement = f"if __name__ == '__main__':\n    {command}"
    assert [modules_after(statement, environment) & HEAVY for _ in range(2)] == [set(), set()]


def test_checking_a_schedule_loads_nothing_heavy(root, child_environment):
    path, network = (str(root / "examples" / "gemini" / name) for name in ("halo.json", "halo.frontend.json"))
    statement = f"from buda_emu.foreign import gemini; assert gemini.load({path!r}).check({network!r}) == []"
    assert modules_after(statement, child_environment) & HEAVY == set()


def test_every_public_name_can_be_had():
    import buda_emu

    for name in buda_emu.__all__:
        assert getattr(buda_emu, name) is not None
    assert set(buda_emu.__all__) <= set(dir(buda_emu))


def test_an_unknown_name_is_an_attribute_error():
    import buda_emu

    with pytest.raises(AttributeError, match="no attribute 'Emulater'"):
        buda_emu.Emulater  # noqa: B018 - the access is the test
