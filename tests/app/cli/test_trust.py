"""What a settings file may not decide, and which files are taken for one."""

import argparse
import os
import re
from pathlib import Path

import pytest

from buda_emu.app.cli.config import configure, explain_distrust, find_top_folder, require_within, setting_trust
from buda_emu.app.cli.main import VERBS, build_parser, main
from buda_emu.app.cli.parser import VALUE_METAVARS, ExampleParser, takes_path
from buda_emu.emulator.memory.host import default_memory_limit
from buda_emu.support.errors import BudaError, HostError
from shared_files import ROOT

TABLE = Path(__file__).with_name("settings.txt")
NETLIST = str(ROOT / "netlists/matmul.yaml")


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def leaves():
    """Every verb that takes no further one: its name and its parser."""

    def walk(name, parser):
        for word, leaf in parser.below.items():
            yield from walk(f"{name} {word}", leaf)
        if not parser.below:
            yield name, parser

    for verb in VERBS:
        yield from walk(verb, build_parser(verb).below[verb])


def table():
    """Every option of every verb: verb, option, its word in the help, how far a setting of it is trusted."""
    lines = []
    for name, parser in leaves():
        for option, action in parser.options.items():
            if option not in ("help", "config", "color", "verbose"):
                lines.append(f"{name}\t{option}\t{action.metavar or '-'}\t{setting_trust(option, action)}")
    return "".join(f"{line}\n" for line in lines)


def test_every_option_was_judged():
    """A new option changes the table: look whether a stranger's file may set it, then write it anew."""
    assert table() == TABLE.read_text(), f"python {__file__} writes it"


def is_path_by_looks(action):
    """Whether the metavar or the type of an argument says that it is a path."""
    looks = re.search("FILE|DIR|PATH", f"{action.metavar}") is not None
    try:
        return looks or (callable(action.type) and isinstance(action.type("../outside.npz"), os.PathLike))
    except (ValueError, TypeError, argparse.ArgumentTypeError, BudaError):
        return looks


def test_every_argument_that_is_a_path_is_known_as_one():
    """By its metavar or its type; a setting that leads outside of the project is refused for each such option."""
    paths = 0
    for name, parser in leaves():
        for action in parser.arguments:
            if is_path_by_looks(action):
                assert takes_path(action), f"{name}: {action.option_strings or action.dest}"
        for option, action in parser.options.items():
            if setting_trust(option, action) == "file":
                paths += 1
                with pytest.raises(HostError, match="lies outside"):
                    require_within(option, action, f"{'N=' * ('=' in str(action.metavar))}../outside.npz", "")
    assert paths > 80


def test_an_option_with_a_new_metavar_is_taken_for_a_path():
    option = ExampleParser().add_argument("--recording", metavar="RECORDING")
    assert setting_trust("recording", option) == "file"


def test_every_metavar_of_other_values_is_in_use():
    metavars = {
        str(action.metavar).rpartition("=")[2].removesuffix(",...")
        for _, parser in leaves()
        for action in parser.arguments
    }
    assert metavars >= VALUE_METAVARS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[run]\nallow-pickle = true", "run.allow-pickle: no setting, because a pickle can run any code"),
        ("[test]\nallow-pickle = false", "test.allow-pickle: no setting"),
        ("[numerics]\nallow-pickle = true", "numerics.allow-pickle: no setting"),
        ("[test]\ndask = 'tcp://far:8786'", "test.dask: no setting, because a scheduler runs the work"),
        ("[run]\njson = '../x.json'", "run.json: ../x.json lies outside of this folder: give --json on"),
        ("[run]\noutputs = '/etc'", "run.outputs: /etc lies outside"),
        ("[test]\nbaseline = 'link/known.json'", "test.baseline: link/known.json lies outside"),
        ("[compile]\nchips = '../cluster.yaml'", "compile.chips: ../cluster.yaml lies outside"),
        ("[faults]\ninputs = '../x.npz'", "faults.inputs: ../x.npz lies outside"),
        ("[vpux.run]\ninput = ['0=../x.npy']", "vpux.run.input: ../x.npy lies outside"),
    ],
)
def test_what_widens_trust_is_no_setting(text, said, place, capsys):
    (place / "link").symlink_to("..")
    (place / "buda-emu.toml").write_text(text)
    verb = text[1:].partition("]")[0].partition(".")[0]
    assert main([verb, NETLIST]) == 2
    assert f"buda-emu: buda-emu.toml: {said}" in capsys.readouterr().err


def test_files_of_the_project_are_settings(place, capsys, monkeypatch):
    (place / ".git").mkdir()
    (place / "ci").mkdir()
    monkeypatch.chdir(place / "ci")
    (place / "buda-emu.toml").write_text("[perf]\njson = '../figures.json'\nquiet = true\n[compile]\nchips = '2'\n")
    assert main(["perf", NETLIST]) == 0
    assert (place / "figures.json").exists()


def parse_memory_limit(words, verb="run"):
    parser = build_parser(verb)
    configure(parser.below[verb], verb, VERBS, words)
    return parser.parse_args([*words]).memory_limit


def test_a_limit_of_memory_is_only_lowered(place):
    (place / "buda-emu.toml").write_text("[run]\nmemory-limit = '64M'\n[test]\nmemory-limit = '100T'\n")
    assert parse_memory_limit(["run", NETLIST]) == 64 << 20
    assert parse_memory_limit(["run", NETLIST, "--memory-limit", "100T"]) == 100 << 40
    assert parse_memory_limit(["test", NETLIST], "test") <= default_memory_limit() * 1.1


def test_settings_of_the_repository_and_no_further(place, capsys):
    (place.parent / "buda-emu.toml").write_text("[check]\nstrct = true\n")
    assert main(["check", NETLIST]) == 0
    (place.parent / ".git").mkdir()
    assert main(["check", NETLIST]) == 2
    assert "strct" in capsys.readouterr().err


def test_settings_are_looked_for_up_to_the_top_folder(tmp_path, monkeypatch):
    deep = tmp_path / "home/user/work/deep"
    deep.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home/user"))
    assert find_top_folder(str(deep)) == str(tmp_path / "home/user")
    (tmp_path / "home/user/work/.git").write_text("gitdir: elsewhere\n")  # of a worktree
    assert find_top_folder(str(deep)) == str(tmp_path / "home/user/work")
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    (tmp_path / "home/user/work/.git").unlink()
    assert find_top_folder(str(deep)) == str(deep)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
def test_never_through_a_folder_that_others_can_write_to(mode, place, capsys, monkeypatch):
    (place / ".git").mkdir()
    (place / "buda-emu.toml").write_text("[check]\nstrct = true\n")
    below = place / "open" / "mine"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert main(["check", NETLIST]) == 2
    (place / "open").chmod(mode)
    capsys.readouterr()
    assert main(["check", NETLIST]) == 0
    assert capsys.readouterr().err == ""
    (place / "open/buda-emu.toml").write_text("[check]\nstrct = true\n")
    assert main(["check", NETLIST]) == 0
    said = capsys.readouterr().err
    assert "settings not used: " in said
    assert "others can write to the folder" in said
    assert main(["check", NETLIST, "--config", str(place / "open/buda-emu.toml")]) == 2


def test_a_folder_of_another_user(tmp_path, monkeypatch):
    assert explain_distrust(str(tmp_path)) == ""
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(os, "getegid", lambda: 4711)
    if tmp_path.stat().st_uid != 0:
        assert explain_distrust(str(tmp_path)) == "the folder belongs to another user"
    assert explain_distrust(str(tmp_path / "none")) == "No such file or directory"


def test_verbose_names_the_file(place, capsys):
    assert main(["check", NETLIST, "--verbose"]) == 0
    assert capsys.readouterr().err == "buda-emu: settings: none\n"
    (place / "buda-emu.toml").write_text("[check]\nstrict = false\n")
    assert main(["check", NETLIST, "-v"]) == 0
    assert capsys.readouterr().err == "buda-emu: settings: buda-emu.toml\n"
    assert main(["check", NETLIST]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(os.name == "nt", reason="no permissions")
@pytest.mark.parametrize("name", ["buda-emu.toml", "pyproject.toml"])
def test_a_file_that_others_can_write_is_passed_over(name, place, capsys):
    """Wherever it lies, and after a link, too."""
    file = place.parent / "elsewhere.toml"
    file.write_text("[tool.buda-emu.check]\nstrict = true" if name == "pyproject.toml" else "[check]\nstrict = true")
    file.chmod(0o666)
    (place / name).symlink_to(file)
    assert main(["check", "--verbose", NETLIST]) == 0
    said = capsys.readouterr().err
    assert "others can write to the file" in said
    assert "settings: none" in said
    file.chmod(0o644)
    assert main(["check", "--verbose", NETLIST]) == 0
    assert f"settings: {name}" in capsys.readouterr().err


if __name__ == "__main__":
    TABLE.write_text(table())
