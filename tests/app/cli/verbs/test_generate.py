"""`buda-emu generate`: what it writes, and that a series can be cut into parts."""

import json

import pytest

from buda_emu.app.cli.main import main


def test_a_series_of_netlists(tmp_path, capsys):
    assert main(["generate", "-o", str(tmp_path / "all"), "--count", "6", "--seed", "3"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{tmp_path / 'all'}: 6 netlists with ")
    for option in ("--precision format --reference DIR\n", "--baseline FILE\n"):
        assert f"buda-emu test {tmp_path / 'all'} {option}" in shown
    assert main(["generate", "-o", str(tmp_path / "part"), "--count", "3", "--seed", "3", "--first", "3", "-q"]) == 0
    assert capsys.readouterr().out == ""
    whole = {path.name: path.read_text() for path in (tmp_path / "all").iterdir()}
    part = {path.name: path.read_text() for path in (tmp_path / "part").iterdir()}
    assert sorted(whole) == [f"generated_3_{number}.yaml" for number in range(6)]
    assert part == {f"generated_3_{number}.yaml": whole[f"generated_3_{number}.yaml"] for number in range(3, 6)}
    assert main(["check", str(tmp_path / "all")]) == 0


def test_an_op_type_that_does_not_exist_is_refused(tmp_path, capsys):
    assert main(["generate", "-o", str(tmp_path), "--types", "matmull"]) == 2
    assert "op types matmull: known are matmul, depthwise" in capsys.readouterr().err


@pytest.mark.slow
def test_netlists_for_missing_coverage_are_written(tmp_path, capsys):
    from buda_emu.emulator.image.opened import netlist_of
    from buda_emu.testing import generate
    from buda_emu.testing.coverage.report import coverage_of, every_list

    known = coverage_of(generate(seed).netlist for seed in range(60))
    for subject in ("queues and rams", "device steps"):  # test_steering.py has these
        known.counts[subject] = dict.fromkeys(every_list()[subject], 1)
    path, there = tmp_path / "coverage.json", 100 - known.percent
    path.write_text(json.dumps(known.as_json()))
    assert main(["generate", "-o", str(tmp_path / "new"), "--for-coverage", str(path)]) == 0
    said = capsys.readouterr().out
    assert "100.0 % of the language" in said
    assert "not reached" not in said
    assert there > 5
    for made in (tmp_path / "new").iterdir():
        known.add(netlist_of(str(made), None))
    assert known.percent == 100


def test_mutants_are_written_beside_what_they_were_made_of(tmp_path, capsys):
    assert main(["generate", "-o", str(tmp_path), "--break", "V012", "--count", "2"]) == 0
    assert "2 netlists, and as many that break V012" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "generated_0_0.yaml")]) == 0
    assert main(["check", str(tmp_path / "generated_0_0.V012.yaml")]) == 2
    assert "V012" in capsys.readouterr().out
