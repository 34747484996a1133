"""A package of the Edge TPU on one screen."""

import pytest

from buda_emu.app.cli.main import main
from buda_emu.foreign.darwinn.example import example_files
from report.columns import is_right_aligned, table_with


@pytest.fixture
def text(tmp_path, capsys):
    path = tmp_path / "edges_edgetpu.tflite"
    path.write_bytes(example_files()[path.name])
    assert main(["darwinn", "inspect", str(path)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "headings"),
    [
        ("executable", ("chunks", "instr. bytes", "param. bytes", "est. cycles")),
        ("layer", ("scale", "zero point", "bytes", "on device")),
    ],
)
def test_figures_stand_right(text, table, headings):
    for heading in headings:
        assert is_right_aligned(table_with(text, f"{table} "), heading), heading
