"""Bugs in kernels are found by generated netlists, and reduced to a few ops (tools/planted_bugs.py)."""

import subprocess
import sys

import pytest

import plain_definitions
import planted_bugs
from shared_files import ROOT


def test_what_is_planted_is_of_kernels_that_netlists_run():
    found = planted_bugs.planted(20, 0)
    assert len(found) == len({mutant.key for mutant in found}) == 20
    for mutant in found:
        room, *inside = mutant.path.relative_to(planted_bugs.PACKAGE).parts
        assert room == "kernels"
        assert inside[0] not in planted_bugs.OTHERS
        assert not mutant.at_import


def test_kernels_without_a_bug_show_none():
    found = planted_bugs.hunt(2, 0)
    assert found["netlists"] >= 1
    assert found["ops"] is None


def test_what_shows_a_bug_is_reduced(monkeypatch):
    seen = []

    def difference(text, precision, arch):
        seen.append((precision, arch))
        if "type: tanh" in text and arch == "blackhole":
            raise ZeroDivisionError
        return "an output" if "type: exp" in text and precision == "format" else ""

    monkeypatch.setattr(plain_definitions, "difference", difference)
    found = planted_bugs.hunt(60, 1)
    assert found["ops"] >= found["left"] == 1
    assert "type: exp" in found["text"] or "type: tanh" in found["text"]
    assert len(set(seen)) > 1


@pytest.mark.slow
def test_nine_of_ten_are_found_and_keep_three_ops_at_most():
    done = subprocess.run([sys.executable, str(ROOT / "tools/planted_bugs.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
