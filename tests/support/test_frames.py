"""What a notebook shows of an exception."""

import numpy as np
import pytest

import buda_emu as be
from shared_files import ROOT


def test_a_notebook_shows_the_callers_line_and_the_message():
    emu = be.Emulator(be.load(ROOT / "netlists/attention.yaml"))
    with pytest.raises(be.ProgramError) as caught:
        emu.run("run_fwd", {"$p_loop_count": 1})
    lines = caught.value._render_traceback_()
    assert lines[0].startswith(f'File "{__file__}", line ')
    assert lines[0].endswith('emu.run("run_fwd", {"$p_loop_count": 1})')
    assert lines[1] == f"ProgramError: {caught.value}"
    assert len(lines) == 2


def test_frames_of_other_packages_stay():
    def made(entries):
        raise be.HostError("no")

    with pytest.raises(be.HostError) as caught:
        np.apply_along_axis(made, 0, np.zeros((2, 2)))
    places = [line for line in caught.value._render_traceback_() if line.startswith("File ")]
    assert any("numpy" in place for place in places)
    assert "in made" in places[-1]


def test_cells_are_named_as_cells():
    code = compile("raise be.HostError('no')", "/tmp/ipykernel_12/34.py", "exec")
    with pytest.raises(be.HostError) as caught:
        exec(code, {"be": be})
    assert "cell, line 1" in caught.value._render_traceback_()


def test_a_bug_keeps_all_of_its_frames():
    from buda_emu.support.errors import InternalError

    with pytest.raises(InternalError) as caught:
        raise InternalError("a bug")
    lines = caught.value._render_traceback_()
    assert lines[0].startswith("Traceback ")
    assert lines[-1].endswith("InternalError: a bug")
