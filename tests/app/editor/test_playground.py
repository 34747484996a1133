"""The session behind the page of docs/playground, as the page calls it: by method and JSON."""

import json
import subprocess
import sys

import pytest

import buda_emu as be
from buda_emu.app.editor.playground import METHODS, PlaygroundSession
from buda_emu.netlist.formatter import format_text
from buda_emu.netlist.load import check_text
from shared_files import ROOT

NETLISTS = sorted((ROOT / "netlists").glob("*.yaml"))
MATMUL = (ROOT / "netlists" / "matmul.yaml").read_text()
BROKEN = MATMUL.replace("type: matmul", "type: matmull", 1)


def ask(session, method, *arguments):
    return json.loads(session.answer(method, json.dumps(arguments)))["result"]


@pytest.fixture
def session():
    """A session with the text of netlists/matmul.yaml."""
    made = PlaygroundSession()
    ask(made, "open", MATMUL, "matmul.yaml")
    return made


def test_it_finds_what_the_command_finds(session):
    found = ask(session, "check", BROKEN)["findings"]
    expected = check_text(BROKEN).diagnostics
    assert [(item["rule"], item["line"], item["column"], item["message"]) for item in found] == [
        (item.rule, item.line, item.column, item.message) for item in expected
    ]
    assert found[0]["rule"] == "V051"
    assert found[0]["fix"]["edits"][0]["text"] == "matmul"


def test_a_broken_text_is_mended_by_its_fixes(session):
    ask(session, "check", BROKEN)
    assert ask(session, "fix") == MATMUL
    assert ask(session, "check", MATMUL)["findings"] == []


def test_the_picture_stays_that_of_the_last_sound_version(session):
    line = next(number for number, text in enumerate(MATMUL.splitlines(), 1) if text.startswith("    product:"))
    before = ask(session, "picture", line)
    assert before["lines"]["product"] == line
    assert "product" in before["shown"]
    ask(session, "check", BROKEN)
    assert ask(session, "picture", line)["svg"] == before["svg"]
    ask(session, "open", BROKEN, "other.yaml")
    assert ask(session, "picture", line)["svg"] == ""


def test_completion_and_hover_are_the_language_servers(session):
    line, text = next((n, row) for n, row in enumerate(MATMUL.splitlines(), 1) if "type: matmul" in row)
    column = text.index("type: matmul") + len("type: mat") + 1
    offers = ask(session, "complete", line, column)
    assert {"text": "matmul", "kind": "word"}.items() <= offers[0].items()
    assert "matmul" in ask(session, "hover", line, column)


def test_format_is_that_of_fmt_and_leaves_what_cannot_be_read(session):
    loose = MATMUL.replace("grid_loc: [0, 0]", "grid_loc:   [0,0]")
    ask(session, "check", loose)
    assert ask(session, "format") == format_text(loose) != loose
    ask(session, "check", "a: [")
    assert ask(session, "format") == "a: ["


def test_diff_names_what_moved_and_refuses_broken_texts(session):
    ask(session, "check", MATMUL.replace("grid_loc: [0, 0]", "grid_loc: [2, 1]", 1))
    difference = ask(session, "diff", MATMUL, "before.yaml")
    assert [(row["kind"], row["field"]) for row in difference["changes"]] == [("op", "grid_loc")]
    assert ask(session, "diff", BROKEN, "before.yaml") == {"refused": ["before.yaml"]}


@pytest.mark.parametrize("rule", ["V051", "v051", "D083", "G001"])
def test_rules_of_every_kind_are_explained(session, rule):
    about = ask(session, "explain", rule)
    assert about["id"] == rule.upper()
    assert about["summary"]


def test_a_rule_that_is_none(session):
    assert ask(session, "explain", "V999") is None


def test_cycles_are_those_of_perf(session):
    cycles = ask(session, "cycles")
    assert cycles["cycles"] == be.perf(ROOT / "netlists" / "matmul.yaml").cycles
    assert cycles["sentences"]
    ask(session, "check", BROKEN)
    assert ask(session, "cycles") == {"refused": ["matmul.yaml"]}


def test_what_cannot_be_modelled_says_why(session, monkeypatch):
    def refuse(_):
        raise be.UnsupportedError("no such chip")

    monkeypatch.setattr("buda_emu.app.api.perf.perf", refuse)
    assert json.loads(session.answer("cycles", "[]")) == {"error": "no such chip"}


def test_a_page_calls_no_other_method(session):
    with pytest.raises(ValueError, match="no method '_checked'"):
        session.answer("_checked", "[]")
    assert all(callable(getattr(session, method)) for method in METHODS)


BROWSER = """
import os, sys

class PurePython:
    def find_spec(self, name, path=None, target=None):
        if name == "yaml._yaml" or name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is not in a browser", name=name)

sys.meta_path.insert(0, PurePython())
for name in ("geteuid", "getegid", "getuid", "getgid", "fork"):
    delattr(os, name)

import json
import buda_emu as be
from buda_emu.app.editor.playground import METHODS, PlaygroundSession

for file in {files!r}:
    assert be.check(file).netlist is not None, file
    text = open(file).read()
    session = PlaygroundSession()
    calls = {{
        "open": (text, file), "check": (text + "# more\\n",), "complete": (20, 3), "hover": (20, 3), "format": (),
        "fix": (), "picture": (30,), "diff": (text, "before"), "explain": ("V051",),
    }}
    assert {{*calls, "cycles"}} == set(METHODS)
    for method, arguments in calls.items():
        assert "result" in json.loads(session.answer(method, json.dumps(arguments))), method
for name, module in sys.modules.items():
    if (getattr(module, "__file__", None) or "").endswith((".so", ".pyd")):
        if name.partition(".")[0] not in sys.stdlib_module_names:
            print(name)
"""


def test_nothing_in_a_browser_needs_compiled_code_or_users_of_files(child_environment, tmp_path):
    """Every call but `cycles`, on every netlist, with neither the base's compiled packages nor PyYAML's."""
    blocked = ("numpy", "numba", "llvmlite", "rich", "jinja2", "markupsafe", "jsonschema", "networkx", "shtab")
    script = BROWSER.format(blocked=blocked, files=[str(path) for path in NETLISTS])
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
