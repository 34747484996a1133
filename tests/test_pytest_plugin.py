"""`pytest netlists/`: what is collected, what is said, and that nobody else pays for it."""

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
