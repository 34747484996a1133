"""explain, ops and formats print what the tables hold."""

import pytest

from buda_emu.app.cli.main import main
from buda_emu.app.documents.kinds import KINDS
from buda_emu.netlist.rules import RULES
from buda_emu.report.terminal.text import table
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES


def test_explain_lists_every_rule(capsys):
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(RULES)


@pytest.mark.parametrize("name", ["V041", "v041", "41"])
def test_explain_one_rule(name, capsys):
    assert main(["explain", name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"V041: {RULES['V041'].summary}\n")


def test_explain_suggests(capsys):
    assert main(["explain", "V041", "V04l"]) == 2
    shown = capsys.readouterr()
    assert shown.out.startswith("V041")
    assert "no rule V04l (did you mean V" in shown.err


def test_ops_lists_all(capsys):
    assert main(["ops"]) == 0
    shown = capsys.readouterr().out
    names = {line.split()[0] for line in shown.splitlines() if line}
    assert set(OP_TYPES) <= names
    assert set(ATTRIBUTES) - {"inputs"} | {"inputN"} <= names


def test_ops_of_one_type(capsys):
    assert main(["ops", "power"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"power: {OP_TYPES['power'].doc}\n")
    names = {line.split()[0] for line in shown.splitlines() if line}
    assert "exp" in names
    assert "slope" not in names


def test_an_unknown_op(capsys):
    assert main(["ops", "matmull"]) == 2
    assert "did you mean matmul?" in capsys.readouterr().err


def test_formats(capsys):
    assert main(["formats"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(FORMATS)
    assert next(line for line in lines if line.startswith("Bfp8_b ")).split()[6:9] == ["1088", "1120", "1152"]


def test_table_aligns_columns():
    shown = table(("name", "n"), [("a", "1"), ("long name", "20")], right=(1,))
    assert shown.splitlines() == ["name        n", "a           1", "long name  20"]


def test_explain_lists_the_rules_of_any_kind_of_document(capsys):
    for kind in KINDS:
        assert main(["explain", kind.name]) == 0
        lines = capsys.readouterr().out.splitlines()
        rules = kind.rules().rules
        assert [line.split()[0] for line in lines[1:]] == list(rules)
        assert all(name.startswith(kind.prefix) for name in rules)


def test_explain_says_what_to_do_about_an_image(capsys):
    assert main(["explain", "image-path"]) == 0
    assert capsys.readouterr().out == (
        "image-path: names of members are plain relative paths below unzipped_tti/\n"
        "  To do: write the archive again from a folder unzipped_tti.\n"
    )


def test_explain_searches_by_word(capsys):
    """Also by a word of other systems: bfloat16 is Float16_b here. Rules with it in their summary come first."""
    assert main(["explain", "transpose"]) == 0
    found = capsys.readouterr().out
    assert "V066" in found
    assert "V150" not in found
    assert main(["explain", "reduced"]) == 0
    assert "V209" in capsys.readouterr().out.splitlines()[1]
    assert main(["explain", "grid"]) == 0
    first = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    in_summary = ["grid" in RULES[name].summary.lower() for name in first]
    assert in_summary == sorted(in_summary, reverse=True)
    assert len(set(in_summary)) == 2
    assert main(["explain", "bfloat16"]) == 0
    assert "V" in capsys.readouterr().out
    assert main(["explain", "zebra"]) == 2
    assert "no rule zebra" in capsys.readouterr().err
