"""Steps of the chip's arithmetic as the public simulator ttsim computed them: the shared folder `device_vectors`.

Without the folder the tests that need it are skipped, visibly.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shared_files import SHARED

FOLDER = SHARED / "device_vectors"
needs_vectors = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no vectors at {FOLDER} (set BUDA_EMU_SHARED)")

CORES = {"wh": "wormhole_b0", "bh": "blackhole"}
"""Core by the suffix of an array's name."""
FAMILIES = {1: "a", 4: "b", 5: "b"}
REGISTERS = {1: "Float16", 4: "Tf32", 5: "Float16_b"}
MODES = {0: "bf16", 1: "fp16", 2: "fp32"}
"""By the codes in an array `meta`."""


def vectors(name: str) -> dict[str, NDArray[Any]]:
    """The arrays of one file."""
    with np.load(FOLDER / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def mismatches(x: NDArray[Any], y: NDArray[Any]) -> int:
    """How many elements differ; shapes must agree."""
    assert x.shape == y.shape
    return int(np.count_nonzero(x != y))
