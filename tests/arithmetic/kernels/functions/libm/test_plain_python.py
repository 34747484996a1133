"""Without compilation the functions of tanh and exp give the same bits, and no warnings."""

import os
import subprocess
import sys

import numpy as np

from buda_emu.arithmetic.kernels.functions.libm.exp import exp
from buda_emu.arithmetic.kernels.functions.libm.tanh import tanh
from buda_emu.arithmetic.kernels.functions.libm.tanhf import tanhf

FINITE = [0.0, -0.0, 1e-20, 0.1, -0.3, 0.7, 1.0, -1.7, 3.1, -9.3, 15.2, 21.9, 30.5, -400.0, 700.5, -740.25]
ARGUMENTS = [*FINITE, float("inf"), float("-inf"), float("nan")]

PROGRAM = """
import sys
import numpy as np
from buda_emu.arithmetic.kernels.functions.libm.exp import exp
from buda_emu.arithmetic.kernels.functions.libm.tanh import tanh
from buda_emu.arithmetic.kernels.functions.libm.tanhf import tanhf

assert type(exp).__name__ == "function"
for word in sys.argv[1:]:
    x = float(word)
    single = np.float32(x)
    print(float(tanhf(single)).hex(), *(float(f(np.float64(x))).hex() for f in (tanh, exp)))
"""


def test_same_bits():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *map(repr, ARGUMENTS)]
    plain = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert plain.stderr == ""
    compiled = [
        " ".join([float(tanhf(np.float32(x))).hex(), *(float(f(np.float64(x))).hex() for f in (tanh, exp))])
        for x in ARGUMENTS
    ]
    assert plain.stdout.splitlines() == compiled
