"""`pytest netlists/`: what is collected, what is said, and that nobody else pays for it."""

import random
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from shared_files import ROOT


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A project: netlists that pass and fail, other YAML, and tests with a netlist as data."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("netlists", "data", "tests"):
        (folder / name).mkdir()
    shutil.copy(ROOT / "netlists" / "two_chips.yaml", folder / "netlists" / "good.yaml")
    (folder / "netlists" / "other.yaml").write_text("a: 1\n")
    (folder / "netlists" / "sub").mkdir()
    (folder / "netlists" / "sub" / "bad.yaml").write_text(
        (ROOT / "netlists" / "two_chips.yaml").read_text().replace("type: queue", "type: qeue", 1)
    )
    shutil.copy(ROOT / "netlists" / "matmul.yaml", folder / "data" / "matmul.yaml")
    shutil.copy(ROOT / "netlists" / "matmul.yaml", folder / "tests" / "data.yaml")
    (folder / "tests" / "test_own.py").write_text(
        "import sys\ndef test_light():\n"
        "    assert not {'numpy', 'numba', 'yaml', 'rich', 'jsonschema'} & set(sys.modules)\n"
    )
    shutil.copytree(folder / "data", folder / "configured")
    (folder / "configured" / "conftest.py").write_text("import pytest\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


@pytest.fixture
def run(place, child_environment):
    def start(*words):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
        return subprocess.run(command, cwd=place, env=child_environment, capture_output=True, text=True, check=False)

    return start


def collected(done):
    return [line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("netlists", "data"), ["netlists/good.yaml", "netlists/sub/bad.yaml", "data/matmul.yaml"]),
        (("netlists/other.yaml", "tests/data.yaml::netlist"), ["netlists/other.yaml", "tests/data.yaml"]),  # named
        (("tests",), ["tests/test_own.py"]),  # its YAML is data
        (("configured",), ["configured/matmul.yaml"]),  # settings of pytest make no tests of a folder
        ((), ["tests/test_own.py"]),
        (("-o", "buda_emu_netlists=data"), ["data/matmul.yaml", "tests/test_own.py"]),
    ],
)
def test_what_is_collected(words, expected, run):
    assert collected(run("--collect-only", "-q", *words)) == expected


def test_netlists_are_tested(run, tmp_path):
    done = run("netlists", "-q", "--junitxml", str(tmp_path / "j.xml"), "--buda-emu=--precision format --seed 3")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "netlists/sub/bad.yaml: rejected" in done.stdout
    assert "did you mean 'queue'?" in done.stdout
    assert "buda-emu test netlists/sub/bad.yaml --precision format --seed 3" in done.stdout
    assert "Traceback" not in done.stdout
    cases = ElementTree.parse(tmp_path / "j.xml").iter("testcase")
    assert [entry.get("value") for case in cases for entry in case.iter("property")] == ["passed", "rejected"]


def test_settings_of_the_project_hold(place, run):
    (place / "buda-emu.toml").write_text('[test]\nprecision = "formt"\n')
    try:
        done = run("netlists/good.yaml", "-q")
    finally:
        (place / "buda-emu.toml").unlink()
    assert done.returncode == 1
    assert re.search(r"buda-emu\.toml: test\.precision: 'formt' is not one of .*did you mean 'format'", done.stdout)


def test_others_do_not_pay(run):
    assert run("tests", "-q").returncode == 0  # that test looks at the modules that are loaded


ODD_LETTERS = (
    "\n",
    "\x1b[31m",
    "\x7f",
    "\udcff",
    "\udced\udca0\udc80",
    "::",
    "[1]",
    ";$(touch ran)",
    "-n",
    "é",
    "\u202e",
    " ",
)


@pytest.mark.skipif(sys.platform == "win32", reason="names of POSIX")
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))])
def test_any_name_of_a_file_reaches_the_report_from_any_process(run, place, tmp_path, seed):
    draw = random.Random(seed)
    good, bad = ((place / "netlists" / name).read_bytes() for name in ("good.yaml", "sub/bad.yaml"))
    names = {"".join(draw.choices(ODD_LETTERS, k=draw.randrange(1, 4))) for _ in range(6)} | {ODD_LETTERS[seed % 4]}
    for number, name in enumerate(sorted(names)):
        (tmp_path / f"{name}.yaml").write_bytes(bad if number % 2 else good)
    report = place / f"names{seed}.xml"
    done = run(str(tmp_path), "-q", "-n", "2", "--junitxml", str(report))
    failed = len(names) // 2
    assert f"{failed} failed, {len(names) - failed} passed" in done.stdout, done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout
    assert "\x1b" not in done.stdout.replace("\x1b[0m", "")
    assert len(list(ElementTree.parse(report).iter("testcase"))) == len(names)
    assert not list(place.rglob("ran"))


@pytest.mark.parametrize("options", ["--nonsense", "'", "--config nofile", "--seed x", "--precision"])
def test_options_that_the_verb_does_not_take_are_refused_before_any_test(run, options):
    done = run("netlists", "-q", f"--buda-emu={options}")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"--buda-emu={options}: " in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
