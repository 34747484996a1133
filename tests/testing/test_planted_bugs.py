"""Bugs in kernels are found by generated netlists, and reduced to a few ops (tools/planted_bugs.py)."""

import os
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


def test_kernels_without_a_bug_show_none(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = planted_bugs.hunt(2, 0)
    assert found["netlists"] >= 1
    assert found["ops"] is None


def test_a_bug_that_ends_the_process_is_found_and_reduced(tmp_path):
    text = (ROOT / "netlists/softmax.yaml").read_text()
    (tmp_path / planted_bugs.TRIED).write_text(text)
    (tmp_path / "plain_definitions.py").write_text(
        "import os, signal\n\ndef difference(text, precision, arch):\n"
        "    if 'type: exp' in text and (precision, arch) == ('format', 'wormhole_b0'):\n"
        "        os.kill(os.getpid(), signal.SIGSEGV)\n    return ''\n"
    )
    row = {"netlists": 1, "seconds": 0.0, "ops": 4, "arch": "wormhole_b0", "precision": "format"}
    path = os.pathsep.join(map(str, (tmp_path, ROOT, ROOT / "tools")))
    assert planted_bugs._of_crash(row, tmp_path, path)["left"] == 1


def test_what_shows_a_bug_is_reduced(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
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
