"""Models larger than memory, as `benchmarks/large.py` makes them by shape: here the small one of its list, whole."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="extra zoo")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_decoder_from_sharded_parameters_to_its_logits(tmp_path):
    """Written, compiled from its files, run from its image, held against torch; all within the limit that is given."""
    found = subprocess.run(
        [sys.executable, "benchmarks/large.py", "tiny", str(tmp_path), "all", "--memory-limit", "3G"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = found.stdout
    assert re.search(r"^needs about .* of 3\.0 GiB: .* stay in their files$", said, re.MULTILINE), said
    (ratio,) = re.findall(r"([\d.]+) times the bytes of its formats", said)
    assert 1.0 <= float(ratio) <= 1.1
    assert all(float(peak) < 3.0 for peak in re.findall(r"peak ([\d.]+) GiB", said))
    (pcc,) = re.findall(r"PCC of 131072 logits ([\d.]+)", said)
    assert float(pcc) >= 0.999
