"""Plain text for people: tables and figures."""

from collections.abc import Iterable, Sequence


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Columns two spaces apart under small headers; the columns in `right` are aligned to the right."""
    lines = [tuple(headers), *(tuple(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headers))]
    numeric = frozenset(right)

    def cells(line: Sequence[str]) -> Iterable[str]:
        for i, (text, width) in enumerate(zip(line, widths, strict=True)):
            yield text.rjust(width) if i in numeric else text.ljust(width)

    return "\n".join("  ".join(cells(line)).rstrip() for line in lines)


def number(value: float | None, digits: int = 4) -> str:
    """A figure, "-" where there is none."""
    return "-" if value is None else f"{value:.{digits}g}"


def correlation(value: float | None) -> str:
    """A PCC with as many nines as it has."""
    if value is None:
        return "-"
    return f"{value:.6f}" if value < 1 else "1"


def percent(share: float) -> str:
    """A share, never rounded up to 100 % or down to 0 %."""
    text = f"{100 * share:.2f}"
    if (text == "100.00") != (share == 1):
        text = "99.99"
    if (text == "0.00") != (share == 0):
        text = "0.01"
    return f"{float(text):g} %" if share in (0, 1) else f"{text} %"


def shape(dims: Iterable[int]) -> str:
    """4x1x64x128."""
    return "x".join(map(str, dims))


def plural(count: int, noun: str) -> str:
    """`1 netlist`, `2 netlists`."""
    return f"{count} {noun}{'s' * (count != 1)}"
