"""Every constant and operator of the comparison is held by a test (tools/mutate.py)."""

import os
from pathlib import Path

import pytest

from mutate import survivors

# file -> {change: why no test can notice it}
EXPLAINED = {
    "allclose.py": {},
    "pcc.py": {
        "np.abs(value) <= LIMIT -> np.abs(value) < LIMIT": "no data is known whose coefficient is exactly 1.0000001",
        "ratio >= 1 -> ratio > 1": "where the difference is negative the ratio is more than 1",
    },
    "comparison.py": {},
}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants run in forked processes")
@pytest.mark.parametrize("name", EXPLAINED)
def test_no_mutant_survives_but_the_explained_ones(name, root, monkeypatch):
    monkeypatch.chdir(root)
    tests = [f"tests/verify/test_{name}"] + (["tests/verify/test_pcc.py"] if name == "comparison.py" else [])
    left = survivors(Path("buda_emu/verify") / name, tests)
    assert [str(mutant) for mutant in left if mutant.change not in EXPLAINED[name]] == []
