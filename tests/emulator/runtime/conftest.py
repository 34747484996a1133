"""What tests of machines share."""

import pytest

import buda_emu as be


@pytest.fixture
def load(tmp_path):
    """A function from netlist text to a loaded netlist."""

    def from_text(content, name="net.yaml"):
        path = tmp_path / name
        path.write_text(content)
        return be.load(path)

    return from_text
