"""`buda-emu compile` by parts: printed, stopped, started from a file."""

import pytest

from buda_emu.app.cli.main import main
from buda_emu.compiler.pipeline import NAMES
from shared_files import SHARED, needs_corpus

pytest.importorskip("onnx")
pytestmark = needs_corpus
MODEL = str(SHARED / "compile" / "onnx" / "mlp.onnx")


@pytest.mark.parametrize("name", NAMES)
def test_from_any_pass_on_the_netlist_is_the_same(name, tmp_path, capsys):
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert main(["compile", MODEL, "-o", str(whole), "--quiet"]) == 0
    assert main(["compile", MODEL, "-o", str(part), "--quiet", "--stop-after", name]) == 0
    assert sorted(path.name for path in part.iterdir()) == [f"model.{name}.ir", f"model.{name}.npz"]
    assert main(["compile", "--start-from", str(part / f"model.{name}.ir"), "-o", str(part), "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert (part / "model.yaml").read_text() == (whole / "model.yaml").read_text()


def test_all_passes_are_printed_in_their_order(capsys):
    assert main(["compile", MODEL, "--print-after", "all", "--effort", "low", "--quiet"]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("# after ")]
    assert printed == [f"# after {name}" for name in NAMES]


def test_a_stopped_model_is_printed_where_no_folder_is_given(capsys):
    assert main(["compile", MODEL, "--stop-after", "dce"]) == 0
    assert capsys.readouterr().out.startswith("buda-emu ir 1\nafter dce\n\ncore ")


def test_times_are_a_table_of_passes(capsys):
    assert main(["compile", MODEL, "--time-passes", "--effort", "low", "--quiet", "--verify-each"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["pass", "seconds", "share"]
    assert [line.split()[0] for line in lines[1:]] == [*NAMES[1:], "all"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([MODEL, "--print-after", "decompos"], "did you mean 'decompose'? passes are import, gelu"),
        ([MODEL, "--stop-after", "dead"], "--stop-after dead: "),
        (["--start-from", "nowhere.ir"], "nowhere.ir"),
        (["--start-from", "nowhere.ir", MODEL], "--start-from cannot be combined with a model"),
        ([MODEL, "--stop-after", "dce", "--on-host", "Softmax"], "--stop-after does not go with --on-host"),
    ],
)
def test_impossible_requests_are_refused_with_a_reason(options, complaint, capsys):
    assert main(["compile", *options]) in (2, 3, 4)
    assert complaint in capsys.readouterr().err


def test_an_edited_file_that_makes_no_netlist_is_refused_and_no_bug(tmp_path, capsys):
    assert main(["compile", MODEL, "-o", str(tmp_path), "--quiet", "--stop-after", "lower"]) == 0
    path = tmp_path / "model.lower.ir"
    text = path.read_text()
    cut = [line for line in text.splitlines(keepends=True) if not line.startswith("  output ")]
    assert len(cut) < len(text.splitlines())
    path.write_text("".join(cut))
    assert main(["compile", "--start-from", str(path), "-o", str(tmp_path), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert f"{path}: invalid IR: " in said
    assert "Traceback" not in said
