"""Descriptions of a tensor: its figures, its tiles as numbers and as bits, and the difference of two tensors."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from buda_emu.debugger.answer import Answer, answer
from buda_emu.debugger.expressions.functions import OF_TWO
from buda_emu.debugger.tensors import Found
from buda_emu.errors import HostError
from buda_emu.report.terminal.text import number, shape, table
from buda_emu.screen import lines_of

_ROWS: Final = 8
"""Rows and columns of a tile that are printed without `all`."""
MOST_WORST: Final = 5


def figures(values: NDArray[Any]) -> dict[str, Any]:
    """Of all elements; of those that are finite the extremes and the mean."""
    with np.errstate(all="ignore"):
        plain = values.astype(np.float64) if values.dtype != np.float64 else values
        finite = plain[np.isfinite(plain)]
        return {
            "elements": int(values.size),
            "nan": int(np.isnan(plain).sum()),
            "inf": int(np.isinf(plain).sum()),
            "zeros": int((plain == 0).sum()),
            "min": float(finite.min()) if finite.size else None,
            "max": float(finite.max()) if finite.size else None,
            "mean": float(finite.mean()) if finite.size else None,
            "rms": float(np.sqrt(np.square(finite).mean())) if finite.size else None,
        }


def summary(found: Found) -> str:
    """One line."""
    told = figures(found.values())
    t, rows, columns = found.shape
    bad = "".join(f", {told[what]} {word}" for what, word in (("nan", "NaN"), ("inf", "infinite")) if told[what])
    return (
        f"{found.name}: {found.df}, t {t}, {rows} x {columns} tiles ({shape(found.values().shape)}), "
        f"min {number(told['min'])}, max {number(told['max'])}, mean {number(told['mean'])}, "
        f"rms {number(told['rms'])}, {told['zeros']} of {told['elements']} zero{bad}"
    )


def extremes(found: Found, *, worded: bool = True) -> tuple[str, str]:
    """What a picture has room for: the least and the greatest element, `worded` or bare, or how many are not finite."""
    told = figures(found.values())
    slot = "" if found.slot is None else f"[{found.slot}] "
    bad = [f"{told[what]} {word}" for what, word in (("nan", "NaN"), ("inf", "infinite")) if told[what]]
    if told["min"] is None or bad:
        return f"{slot}{bad[0]}", bad[1] if len(bad) > 1 else f"of {told['elements']}"
    least, greatest = number(told["min"]), number(told["max"])
    return (f"{slot}min {least}", f"max {greatest}") if worded else (f"{slot}{least}", greatest)


def whole(found: Found) -> Answer:
    """Its figures, and the first rows of its first tile."""
    values = found.values()
    lines = [summary(found), *_grid(values[0, :_ROWS, :_ROWS])]
    return answer("tensor", lines, name=found.name, format=found.df, shape=list(values.shape), figures=figures(values))


def tile(found: Found, place: tuple[int, int, int], *, bits: bool, all_of_it: bool) -> Answer:
    """One tile, (t, row, column): the upper left corner, or `all_of_it`."""
    which = found.number(*place)
    height, width = found.tile_dim
    values = found.tiles[which].reshape(32, 32)[:height, :width]
    upto = slice(None) if all_of_it else slice(_ROWS)
    data: dict[str, Any] = {
        "name": found.name,
        "format": found.df,
        "tile": list(place),
        "shape": [height, width],
        "values": [[float(value) for value in row] for row in values],
        "figures": figures(values),
    }
    lines = [f"{found.name} tile {place[0]},{place[1]},{place[2]} of {found.df}"]
    if not bits:
        return answer("tile", [*lines, *_grid(values[upto, upto])], **data, words=None, exponents=None)
    coded = found.coded(which)
    digits = max(2, coded.datums.dtype.itemsize * 2)
    words = coded.datums.reshape(32, 32)[:height, :width]
    lines += ["  ".join(f"{int(word):0{digits}x}" for word in row) for row in words[upto, upto]]
    exponents = None
    if coded.exponents is not None:
        shared = coded.exponents.reshape(32, 2)[:height]
        exponents = shared.tolist()
        lines.append("shared exponents, for each row and 16 columns:")
        lines += ["  ".join(f"{int(one):02x}" for one in row) for row in shared[upto]]
    return answer("tile", lines, **data, words=[[int(word) for word in row] for row in words], exponents=exponents)


def _grid(values: NDArray[Any]) -> list[str]:
    cells = [[f"{value:.5g}" for value in row] for row in values.tolist()]
    width = max((len(cell) for row in cells for cell in row), default=0)
    return ["  ".join(cell.rjust(width) for cell in row) for row in cells]


def difference(first: str, a: NDArray[Any], second: str, b: NDArray[Any]) -> Answer:
    """Two tensors of one size: figures, and where they are furthest apart. Raises HostError for other sizes."""
    if a.size != b.size:
        raise HostError(f"{first} has {a.size} elements ({shape(a.shape)}), {second} {b.size} ({shape(b.shape)})")
    b = b.reshape(a.shape)
    with np.errstate(all="ignore"):
        one, other = a.astype(np.float64), b.astype(np.float64)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        apart = np.where(same, 0.0, np.abs(one - other))
        apart = np.where(np.isnan(apart), np.inf, apart)
        differ = int((~same).sum())
        largest = float(apart.max()) if apart.size else 0.0
        correlation = OF_TWO["pcc"][1](a, b)
    order: list[int] = np.argsort(-apart, axis=None, kind="stable")[:MOST_WORST].tolist()
    worst = [tuple(map(int, np.unravel_index(index, a.shape))) for index in order]
    worst = [place for place in worst if not same[place]]
    told = f"{differ} of {a.size} elements differ" if differ else f"all {a.size} elements are equal"
    lines = [f"{first} and {second}: {told}, largest difference {number(largest)}, PCC {correlation:.6f}"]
    if worst:
        rows = [(",".join(map(str, place)), f"{a[place]:.6g}", f"{b[place]:.6g}") for place in worst]
        lines += lines_of(table(("at", first, second), rows, right=(1, 2)))
    places = [{"at": list(place), "first": float(a[place]), "second": float(b[place])} for place in worst]
    return answer(
        "difference",
        lines,
        first=first,
        second=second,
        elements=int(a.size),
        differ=differ,
        largest=largest,
        pcc=correlation,
        worst=places,
    )
