"""`pytest netlists/`: what is collected, what is said, and that nobody else pays for it."""

import random
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from buda_emu.app.cli.main import build_parser
from buda_emu.app.cli.verbs.test import make_cases
from buda_emu.app.pytest_plugin import EFFECTIVE, pytest_configure
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
    (summary,) = re.findall("^FAILED .*", done.stdout, re.MULTILINE)
    assert "netlist - netlists/sub/bad.yaml:" in summary
    assert "error[V" in summary  # the reason, beside the name
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


class OptionsOnly:
    """The part of pytest's configuration that has options of `--buda-emu`, and no folders."""

    def __init__(self, options):
        self.options = options

    def getoption(self, _):
        return self.options

    def getini(self, _):
        return []


VALUES = {
    "shard": "1/3",
    "threshold": "0.7",
    "param": "a=1",
    "reference": ".",
    "defaults": "file.yaml",
    "config": "file.toml",
}
ACTIONS = [action for action in build_parser("test").below["test"].arguments if action.dest != "help"]


def words_of(action):
    """Words that give an argument another value than its default."""
    words = list(action.option_strings[-1:])
    if action.nargs == 0:
        return words
    value = VALUES.get(action.dest, "7")
    if action.choices is not None:
        value = next(choice for choice in action.choices if choice != action.default)
    return [*words, value]


def spelled(action):
    return (action.option_strings or [action.metavar])[-1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "file.yaml").write_text("a: 1\n")
    (tmp_path / "file.toml").write_text("[test]\nseed = 5\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("action", [a for a in ACTIONS if a.dest not in EFFECTIVE], ids=spelled)
def test_options_without_effect_are_refused_by_name(action, folder):
    options = " ".join(words_of(action))
    with pytest.raises(pytest.UsageError) as refusal:
        pytest_configure(OptionsOnly(options))
    said = str(refusal.value).removeprefix(f"--buda-emu={options}: ")
    assert said.startswith("without effect in pytest: ")
    assert spelled(action) in said.split(": ", 1)[1]
    assert "\n" not in said


@pytest.mark.parametrize("action", [a for a in ACTIONS if a.dest in EFFECTIVE], ids=spelled)
def test_other_options_reach_the_test(action, folder):
    from buda_emu.app.pytest_plugin import _parse_options

    options = " ".join(words_of(action))
    pytest_configure(OptionsOnly(options))
    assert make_cases(_parse_options(options, "a.yaml"), ["a.yaml"]) != make_cases(
        _parse_options("", "a.yaml"), ["a.yaml"]
    )


def test_the_document_names_the_possible_options():
    text = (ROOT / "docs" / "netlists" / "ci.md").read_text()
    possible = text.partition("Possible are those")[2].partition("All others")[0]
    spellings = {spelled(action) for action in ACTIONS if action.dest in EFFECTIVE}
    assert set(re.findall(r"`(-[^`]+)`", possible)) == spellings


@pytest.mark.parametrize("options", ["--reference nowhere", "--defaults nowhere.yaml"])
def test_files_that_are_not_there_are_refused_before_any_test(options, run):
    done = run("netlists", "-q", f"--buda-emu={options}")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert len(done.stderr.strip().splitlines()) == 1
    assert options.split()[1] in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(("name", "reason"), [("nowhere", "does not exist"), ("data/matmul.yaml", "is a file")])
def test_a_configured_folder_that_is_none_is_refused(name, reason, run, place):
    done = run("tests", "-q", "-o", f"buda_emu_netlists=data {name}".replace(" ", "\n"))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"buda_emu_netlists: {place / name} {reason}" in done.stderr
