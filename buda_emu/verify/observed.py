"""Notes on a run in precision `device`: what it refuses, and where it rounds differently from the chip."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager

from buda_emu.errors import StochasticRoundingWarning, UnsupportedError
from buda_emu.spec.precision import Precision


@contextmanager
def refusals(precision: Precision) -> Generator[None, None, None]:
    """An UnsupportedError of a run in that precision says how the netlist may run otherwise."""
    try:
        yield
    except UnsupportedError as error:
        if precision != "device":
            raise
        raise UnsupportedError(
            f"{error}\nprecision device does not run it; --precision format tests what the reference computes instead"
        ) from error


@contextmanager
def rounding_warnings() -> Generator[list[str], None, None]:
    """The list is filled, at the end, with the texts of StochasticRoundingWarnings, each once; other warnings go on."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always", StochasticRoundingWarning)
        yield told
    for item in recorded:
        if not issubclass(item.category, StochasticRoundingWarning):
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
        elif str(item.message) not in told:
            told.append(str(item.message))
