"""Every constant and operator of the comparison and its figures is held by a test (tools/mutate.py)."""

import os
import re
import subprocess
import sys

import pytest

MEMORY = "how much is looked at together changes memory, not verdicts"
EXPLAINED = {
    "verify/comparison/allclose": {},
    "verify/comparison/figures": {},
    "verify/comparison/moments": {},
    "verify/comparison/pcc": {
        "ratio >= 1 -> ratio > 1: rounding = (difference < 0) & (ratio >= 1) & (ratio <= LIMIT)": (
            "a product of means above the mean of products is above it by a step at least, which the quotient keeps: "
            "it is never 1"
        ),
    },
    "numerics/ulp": {
        "-1 -> -0: blocks = exponent.reshape(*tiles.shape[:-1], -1, BLOCK_DATUMS)": (
            "shape[:0] leaves the one unknown dimension alone, and the result takes the shape of the tiles again"
        ),
        "0 -> 1: bias = spec.bias or 0": "formats without a bias do not come here; it is for the type checker",
    },
    "verify/comparison/compare": {
        "1 -> 2: _BLOCK: Final = 1 << 20  # elements that are looked at together": MEMORY,
        "20 -> 21: _BLOCK: Final = 1 << 20  # elements that are looked at together": MEMORY,
        "_BLOCK // SLICE -> _BLOCK * SLICE: step = _BLOCK // SLICE * SLICE": MEMORY,
        "0 -> 1: if not clean[0].shape[1]:  # a range of one row or column: the vendor's sums stay 0": (
            "both sides have one shape"
        ),
        "1 -> 2: clean[0] = clean[1] = np.zeros((len(a), 1))": "two zeros have the sums of one",
    },
}
"""File -> {mutant: why no test can notice it}."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants run in forked processes")
@pytest.mark.parametrize("name", EXPLAINED)
def test_no_mutant_survives_but_the_explained_ones(name, root, child_environment):
    room, _, file = name.rpartition("/")
    command = [sys.executable, "tools/mutate.py", f"buda_emu/{name}.py", f"tests/{room}/test_{file}.py"]
    done = subprocess.run(command, cwd=root, env=child_environment, capture_output=True, text=True, check=False)
    *lines, summary = done.stdout.splitlines() or [""]
    assert summary == f"{len(lines)} survived", done.stderr
    assert sorted(re.sub(r"^\S+?:\d+: ", "", line) for line in lines) == sorted(EXPLAINED[name])


def test_a_test_that_looks_at_little_lets_mutants_live(tmp_path, root, child_environment):
    """The tool itself: what it changes, and that it sees what lives."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    (tmp_path / "thing.py").write_text("LIMIT = 3\n\n\ndef few(n: int) -> bool:\n    return not n > LIMIT\n")
    (tmp_path / "test_thing.py").write_text("from thing import few\n\n\ndef test_few():\n    assert not few(5)\n")
    command = [sys.executable, str(root / "tools" / "mutate.py"), "thing.py", "test_thing.py"]
    done = subprocess.run(command, cwd=tmp_path, env=child_environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "thing.py:1: 3 -> 4: LIMIT = 3",
        "thing.py:5: n > LIMIT -> n >= LIMIT: return not n > LIMIT",
        "2 survived",
    ], done.stderr
    (tmp_path / "test_thing.py").write_text(
        "from thing import few\n\n\ndef test_few():\n    assert few(3)\n    assert not few(4)\n"
    )
    done = subprocess.run(command, cwd=tmp_path, env=child_environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0 survived\n"), done.stderr
