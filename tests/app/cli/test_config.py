"""Settings of a project, and the choice among findings."""

import subprocess

import pytest

from buda_emu.app.cli.config import COMMAND_LINE_ONLY, WITHOUT_SETTINGS
from buda_emu.app.cli.main import VERBS, build_parser, main
from buda_emu.app.cli.shared_arguments import natural
from buda_emu.foreign.darwinn.linking import build
from foreign.darwinn import example_trees as ex
from netlist.rules.cases import edited
from netlist.rules.cases_habits import CASES
from report.results import nop
from shared_files import ROOT

CASE = next(case for case in CASES if case.rule == "V208")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a netlist that has one warning, V208, on its first queue that is too small."""
    (tmp_path / "net.yaml").write_text(edited(CASE.base, CASE.broken))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(capsys, *words):
    """Exit code and what `check` prints but for the last line."""
    code = main(["check", "net.yaml", *words])
    shown = capsys.readouterr()
    return code, [line for line in shown.out.splitlines() if line.startswith("net.yaml:")], shown.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.buda-emu]\nignore = ['V208']", False),
        ("[ tool . 'buda-emu' ]\nignore = ['V208']", False),
        ("[tool]\nbuda-emu.ignore = ['V208']", False),
        ("['tool'] # all\n[tool.\"buda-emu\"]\nignore = ['V208']", False),
        ("tool.buda-emu.ignore = ['V208']", False),
        ("tool = {buda-emu = {ignore = ['V208']}}", False),
        ("[project]\nname = 'buda-emu'\n[tool.ruff]\nline-length = 120", True),
        ("[tools.buda-emu]\nignore = ['V208']", True),
    ],
)
def test_the_table_is_found_in_every_spelling(place, capsys, text, told):
    (place / "pyproject.toml").write_text(text)
    _, lines, _ = check(capsys)
    assert bool(lines) is told


def test_without_settings(place, capsys):
    code, (line,), _ = check(capsys)
    assert code == 0
    assert "warning[V208]" in line


@pytest.mark.parametrize("name", ["buda-emu.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ('ignore = ["V208"]', 0, ""),
        ('ignore = ["V2"]', 0, ""),
        ('select = ["V1", "G"]', 0, ""),
        ('select = ["V20"]', 0, "warning[V208]"),
        ('error = ["V208"]', 2, "error[V208]"),
        ('error = ["V"]\nignore = ["V1"]', 2, "error[V208]"),
        ("", 0, "warning[V208]"),
    ],
)
def test_the_choice_among_findings(name, text, code, told, place, capsys):
    (place / name).write_text(("[tool.buda-emu]\n" if name == "pyproject.toml" else "") + text)
    assert check(capsys)[0] == code
    assert [told in line for line in check(capsys)[1]] == ([True] if told else [])


def test_options_go_before_settings(place, capsys):
    (place / "buda-emu.toml").write_text('ignore = ["V208"]\n[check]\nformat = "github"\n')
    code, lines, _ = check(capsys, "--ignore", "V154", "--format", "text", "--error", "V208,V209")
    assert code == 2
    assert "error[V208]" in lines[0]
    assert check(capsys, "--config", "none")[1]
    other = place / "other.toml"
    other.write_text('error = ["V208"]')
    assert check(capsys, "--config=other.toml")[0] == 2


def test_what_refuses_a_netlist_stays(place, capsys):
    (place / "buda-emu.toml").write_text('select = ["G"]\n')
    (place / "net.yaml").write_text((place / "net.yaml").read_text().replace("type: queue", "type: qeue", 1))
    code, lines, _ = check(capsys)
    assert code == 2
    assert "error[V013]" in lines[0]


def test_the_nearest_file_counts(place, capsys, monkeypatch):
    (place / ".git").mkdir()
    (place / "buda-emu.toml").write_text('error = ["V208"]')
    (place / "pyproject.toml").write_text("[tool.buda-emu]\nselct = 3")  # its neighbour goes first
    below = place / "a" / "b"
    below.mkdir(parents=True)
    (below / "net.yaml").write_text((place / "net.yaml").read_text())
    monkeypatch.chdir(below)
    assert check(capsys)[0] == 2
    (place / "a" / "pyproject.toml").write_text("[project]\nname = 'buda-emu-user'\n")  # has no such table
    assert check(capsys)[0] == 2
    (place / "a" / "pyproject.toml").write_text("[tool.buda-emu]\nignore = ['V208']\n")
    assert check(capsys)[0] == 0


def test_other_verbs_report_only_the_chosen_findings(place, capsys):
    assert main(["perf", "net.yaml"]) == 0
    assert "warning[V208]" in capsys.readouterr().err
    (place / "buda-emu.toml").write_text('ignore = ["V208"]')
    assert main(["perf", "net.yaml"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("verb", ["perf", "run", "faults"])
def test_a_parameter_of_the_settings_is_for_the_netlists_that_take_it(verb, place, capsys):
    (place / "net.yaml").write_text(nop())
    (place / "buda-emu.toml").write_text(f'[{verb}]\nparam = ["elsewhere=2"]\n')
    words = [verb, "net.yaml"]
    if verb == "faults":
        words += ["--count", "2"]
    assert main(words) == 0
    assert main([*words, "--param", "elsewhere=3"]) == 2
    assert "no program takes the parameter $elsewhere" in capsys.readouterr().err


def test_a_value_of_a_parameter_that_no_machine_reads_has_its_place_in_the_settings(place, capsys):
    (place / "buda-emu.toml").write_text('[perf]\nparam = ["n=99999999999x"]\n')
    assert main(["perf", "net.yaml"]) == 2
    assert "buda-emu.toml: perf.param: " in (shown := capsys.readouterr().err)
    assert "'99999999999x' does not fit a 32-bit signed integer" in shown


def test_defaults_of_options(place, capsys):
    (place / "buda-emu.toml").write_text(
        'color = "always"\n[perf]\ntop = 1\nwhat-if = "clock=1200"\nquiet = false\n[gemini.run]\ndram-gibps = 8\n'
        '[run]\nno-cache = true\nparam = ["p_loop_count=1"]\n'
    )
    assert main(["perf", "net.yaml"]) == 0
    shown = capsys.readouterr().out
    assert "1200 MHz" in shown
    assert "\x1b[1m" in shown
    assert main(["perf", "net.yaml", "--what-if", "clock=500", "--color", "never"]) == 0
    shown = capsys.readouterr().out
    assert "500 MHz" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('selct = ["V1"]', "selct: no such key (did you mean 'select'?)"),
        ('select = "V1"', "select: expected a list, not 'V1'"),
        ("ignore = [3]", "ignore: expected a text, not 3"),
        ('ignore = ["V9"]', "ignore: no rule begins with 'V9'"),
        ('error = ["V2081"]', "error: no rule begins with 'V2081'; `buda-emu explain` lists them"),
        ('ignore = ["V013"]', "ignore: V013 refuses a document and cannot be ignored"),
        ("[chek]\nstrict = true", "chek: no such key (did you mean 'check'?)"),
        ("[check]\nstrct = true", "check.strct: no such key (did you mean 'strict'?)"),
        ("[check]\nhelp = true", "check.help: no such key"),
        ("[check]\nstrict = 1", "check.strict: expected true or false, not 1"),
        (
            '[check]\nformat = "txt"',
            "check.format: 'txt' is not one of text, json, github, sarif, concise (did you mean 'text'?)",
        ),
        ('color = "sometimes"', "color: 'sometimes' is not one of auto, always, never"),
        ("check = true", "check: expected a table, not True"),
        ("[check", "not TOML: "),
        ("a = " + "[" * 100_000, "not TOML: "),
        ("[check]\nstrict = " + "9" * 5000, "not TOML: "),
        ("[check]\nstrict = 0x" + "f" * 5000, "check.strict: not TOML: an integer of more than 64 bits"),
        ("ignore = [0x" + "f" * 17 + "]", "ignore: not TOML: an integer of more than 64 bits"),
        ("#" * (1 << 20) + "\n", "settings of more than 1,048,576 bytes are not read"),
    ],
    ids=lambda text: text[:40],
)
def test_errors_name_file_and_key(text, said, place, capsys):
    (place / "buda-emu.toml").write_text(text)
    code, _, err = check(capsys)
    assert code == 2
    assert err.startswith(f"buda-emu: buda-emu.toml: {said}")


def test_values_are_judged_as_on_the_command_line(place, capsys):
    (place / "buda-emu.toml").write_text("[numerics]\ntop = 0\n")
    assert main(["numerics", "net.yaml"]) == 2
    assert capsys.readouterr().err == "buda-emu: buda-emu.toml: numerics.top: must be at least 1\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_every_verb_can_be_set_to_its_default(verb, place, capsys):
    """What the schema allows is what the parser takes."""
    if verb in WITHOUT_SETTINGS:
        return
    lines: list[str] = []

    def tables(name, parser):
        if parser.below:
            for word, leaf in parser.below.items():
                tables(f"{name}.{word}", leaf)
            return
        lines.append(f"[{name}]")
        for option, action in parser.options.items():
            if option in ("help", "config", "select", "ignore", "error", *COMMAND_LINE_ONLY):
                continue
            if action.nargs == 0:
                lines.append(f"{option} = false")
            elif action.choices is not None:
                lines.append(f"{option} = {str(next(iter(action.choices)))!r}")
            elif action.type is natural:
                lines.append(f"{option} = 3")

    tables(verb, build_parser(verb).below[verb])
    (place / "buda-emu.toml").write_text("\n".join(lines) + "\n")
    with pytest.raises(SystemExit) as leaving:
        main([verb, "--help"])
    assert leaving.value.code == 0
    capsys.readouterr()


def test_unknown_rules_on_the_command_line(place, capsys):
    with pytest.raises(SystemExit):
        check(capsys, "--ignore", "V013")
    assert "V013 refuses a document and cannot be ignored" in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in (*VERBS, "fail-above", "explain"):
        assert word in script
    if shell == "bash":
        asked = 'COMP_WORDS=(buda-emu per); COMP_CWORD=1; _shtab_buda_emu; echo "${COMPREPLY[@]}"'
        done = subprocess.run(["bash"], input=f"{script}\n{asked}\n", capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["perf"], done.stderr


@pytest.fixture(scope="module")
def other_documents(tmp_path_factory):
    """A document of each other kind with one finding that refuses nothing: words of the verb, its rule, the file."""
    folder = tmp_path_factory.mktemp("others")
    late = (ROOT / "examples/vpux/clamp.mlir").read_text().split("// -----")[0].replace("<256>", "<2096896>")
    (folder / "late.mlir").write_text(late)
    tree = ex.edges()
    ex.hint(tree, 3)["size_in_bytes"] = 511
    (folder / "short.dwn").write_bytes(build(tree))
    return {
        "gemini": ("G090", str(ROOT / "examples/gemini/unplaced.json")),
        "vpux": ("X033", str(folder / "late.mlir")),
        "darwinn": ("D060", str(folder / "short.dwn")),
    }


@pytest.mark.parametrize("room", ["gemini", "vpux", "darwinn"])
def test_rooms_of_their_own_choose_alike(room, other_documents, tmp_path, monkeypatch, capsys):
    rule, path = other_documents[room]
    monkeypatch.chdir(tmp_path)

    def check(*words):
        code = main([room, "check", path, *words])
        return code, f"[{rule}]" in capsys.readouterr().out

    assert check() == (0, True)
    assert check("--ignore", rule) == (0, False)
    assert check("--select", f"{rule[0]}001") == (0, False)
    code, told = check("--error", rule)
    assert told
    assert code == (1 if room == "gemini" else 2)
    (tmp_path / "buda-emu.toml").write_text(f'ignore = ["{rule}"]\n')
    assert check() == (0, False)
    assert check("--ignore", "V2") == (0, True)  # options go before settings
    (tmp_path / "buda-emu.toml").write_text(f'error = ["{rule}"]\n')
    assert check() == (code, True)
    (tmp_path / "buda-emu.toml").write_text(f'[{room}.check]\nignore = ["{rule}"]\n')
    assert main([room, "check", path]) == 2  # choices stand at the top, for every verb alike
    assert f"{room}.check.ignore: no such key" in capsys.readouterr().err
