"""Files of earlier runs and of tensors whose form is right and whose content is not: an error, no traceback."""

import json

from buda_emu.app.cli.main import main
from shared_files import ROOT

NETLIST = str(ROOT / "netlists" / "matmul.yaml")


def test_an_earlier_run_with_errors_that_this_version_does_not_know(tmp_path, capsys):
    earlier = tmp_path / "earlier.json"
    assert main(["perf", NETLIST, "-q", "--json", str(earlier)]) == 0
    content = json.loads(earlier.read_text())
    content["epochs"][0]["parts"][0]["family"] = "no such family"
    earlier.write_text(json.dumps(content))
    assert main(["perf", NETLIST, "-q", "--against", str(earlier)]) == 2
    assert f"{earlier}: it cannot be compared" in capsys.readouterr().err


def test_a_header_of_safetensors_that_is_no_object(tmp_path, capsys):
    (tmp_path / "activations.safetensors").write_bytes(b"\x03\0\0\0\0\0\0\0[1]")
    assert main(["run", NETLIST, "-q", "--inputs", str(tmp_path)]) == 2
    assert "is not a safetensors file" in capsys.readouterr().err
