import numpy as np
import pytest

from buda_emu.arithmetic.tensix.products import mvmul
from device_vectors import CORES, FAMILIES, MODES, mismatches, needs_vectors, vectors


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors(suffix):
    v = vectors("mvmul")
    out = np.empty_like(v["dst_in"])
    for n, (srca, _, mode, phase) in enumerate(v["meta"].tolist()):
        out[n] = mvmul(v["dst_in"][n], v["srcb"][n], v["srca"][n], phase, FAMILIES[srca], MODES[mode], CORES[suffix])
    assert mismatches(out, v[f"dst_out_{suffix}"]) == 0
