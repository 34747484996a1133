"""Results are not written over the documents that they come from."""

import pytest

from buda_emu.app.cli.main import main
from shared_files import ROOT


@pytest.mark.parametrize(
    "words",
    [
        ["graph", "FILE", "--format", "svg", "-o", "FILE"],
        ["faults", "FILE", "-q", "--count", "2", "--write-sites", "FILE"],
        ["run", "FILE", "-q", "--json", "FILE"],
        ["perf", "FILE", "-q", "--csv", "FILE"],
    ],
    ids=lambda words: words[0],
)
def test_a_document_is_not_replaced(tmp_path, capsys, words):
    file = tmp_path / "net.yaml"
    file.write_bytes((ROOT / "netlists" / "matmul.yaml").read_bytes())
    before = file.read_bytes()
    assert main([str(file) if word == "FILE" else word for word in words]) == 2
    assert file.read_bytes() == before
    assert "is a document, which results are not written over" in capsys.readouterr().err
