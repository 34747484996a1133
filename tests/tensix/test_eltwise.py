import numpy as np
import pytest

from buda_emu.tensix.eltwise import elwadd, elwmul, elwsub
from device_vectors import CORES, FAMILIES, MODES, mismatches, needs_vectors, vectors


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_vectors(suffix):
    v = vectors("eltwise")
    out = np.empty_like(v["dst_in"])
    for n, (op, srca, _, mode, phase, accumulate) in enumerate(v["meta"].tolist()):
        a, b, dst = v["srca"][n], v["srcb"][n], v["dst_in"][n]
        setting = (FAMILIES[srca], MODES[mode], CORES[suffix])
        if op == 2:
            out[n] = elwmul(dst, a, b, phase, *setting)
        else:
            out[n] = (elwadd, elwsub)[op](dst if accumulate else None, a, b, *setting)
    assert mismatches(out, v[f"dst_out_{suffix}"]) == 0


@needs_vectors
@pytest.mark.parametrize("suffix", CORES)
def test_cancellation_vectors(suffix):
    v = vectors("cancel")
    out = elwmul(v["dst_in"], v["srca"], v["srcb"], 0, "b", "fp32", CORES[suffix])
    assert mismatches(out, v[f"dst_out_{suffix}"]) == 0
