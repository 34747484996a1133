"""Every rule is in the docs, and every rule has a test that breaks it."""

from pathlib import Path

import pytest

from buda_emu.emulator.image.rules import RULES, ImageError
from buda_emu.support.checker.text import short_line
from shared_files import ROOT


def test_the_docs_list_every_rule():
    lines = (ROOT / "docs" / "compile" / "images.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| `image-")]
    assert table == [f"| `{rule.id}` | {rule.summary} |" for rule in RULES.values()]


@pytest.mark.parametrize("rule", RULES)
def test_a_test_breaks_it(rule):
    tests = [path for path in Path(__file__).parent.glob("test_*.py") if path.name != Path(__file__).name]
    assert any(rule in path.read_text() for path in tests)


def test_a_message_names_archive_member_problem_rule_and_what_to_do():
    error = ImageError("a.tti", "x/\x1b[31m", "image-path", "it is bad")
    rule = RULES["image-path"]
    assert str(error) == f"a.tti: x/\\x1b[31m: it is bad [image-path: {rule.summary}]; {rule.fix}"
    assert (error.archive, error.member, error.rule, error.exit_code) == ("a.tti", "x/\x1b[31m", "image-path", 2)


def test_names_from_images_are_shown_on_one_short_line():
    assert short_line("a" * 500) == "a" * 160 + "..."
    assert short_line("a\nb\ud800") == "a\\nb\\ud800"
