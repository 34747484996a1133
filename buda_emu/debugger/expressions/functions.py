"""Functions of tensors and pointers in expressions."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]

OF_TENSOR: Final[Mapping[str, tuple[str, Callable[[Values], float]]]] = MappingProxyType(
    {
        "nan": ("how many elements are NaN", lambda a: float(np.isnan(a).sum())),
        "inf": ("how many elements are infinite", lambda a: float(np.isinf(a).sum())),
        "zeros": ("how many elements are zero", lambda a: float((a == 0).sum())),
        "absmax": ("the largest magnitude", lambda a: float(np.abs(a).max())),
        "max": ("the largest element", lambda a: float(a.max())),
        "min": ("the smallest element", lambda a: float(a.min())),
        "mean": ("the mean", lambda a: float(a.mean(dtype=np.float64))),
        "rms": ("the root of the mean square", lambda a: float(np.sqrt(np.square(a.astype(np.float64)).mean()))),
    }
)


def _pcc(a: Values, b: Values) -> float:
    from buda_emu.verify.comparison.pcc import cleaned, pcc

    rows = [cleaned(item.reshape(1, -1).astype(np.float64), nan_is_zero=True) for item in (a, b)]
    return float(pcc(rows[0], rows[1], rows[0].size)[0][0])


OF_TWO: Final[Mapping[str, tuple[str, Callable[[Values, Values], float]]]] = MappingProxyType(
    {
        "pcc": ("the correlation of two tensors, as tests measure it", _pcc),
        "maxdiff": ("the largest difference of two tensors", lambda a, b: float(np.abs(a - b).max())),
    }
)

OF_POINTERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rd": "rd_ptr_global of a queue or ram",
        "wr": "wr_ptr_global of a queue or ram",
        "local": "rd_ptr_local of a queue",
        "occupancy": "how many entries a queue holds",
    }
)

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "input": "which input of the epoch it is, from 1",
        "inputs": "how many inputs the epoch has",
        "instruction": "how many instructions have begun",
    }
)
