"""Plain text for people: tables and figures."""

from collections.abc import Iterable, Sequence

from buda_emu.support.screen import current

_ENORMOUS = 1e12
_LITTLE = 0.05  # per cent: with one digit it would be 0.0


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Iterable[int] = (),
    *,
    prose: Iterable[int] = (),
    whole: Iterable[int] = (),
    marked: Iterable[int] = (),
) -> str:
    """Columns two blanks apart, on a terminal so that they fit (`screen`).

    Numbers of columns: those in `right` are figures and stand to the right, `prose` goes on on a further line, `whole`
    is never cut; any other is cut in the middle. Numbers of rows: those `marked` are brought out in colour.
    """
    from buda_emu.report.terminal.plain_table import plain

    cells = [tuple(row) for row in rows]
    if any(len(row) != len(headers) for row in cells):
        raise ValueError(f"a row has not the {len(headers)} cells of the table's headings")
    sets = [frozenset(numbers) for numbers in (right, prose, whole, marked)]
    found = plain(headers, cells, sets[0], sets[3], current())
    if found is not None:
        return found
    from buda_emu.report.terminal.drawn_table import drawn  # rich is imported with the first table that needs it

    return drawn(headers, cells, *sets, screen=current())


def wrapped(text: str, indent: str = "  ") -> str:
    """A sentence over as many lines as it takes on a terminal, further ones indented; one line elsewhere."""
    columns = current().columns
    if columns is None or len(text) <= columns:
        return text
    import textwrap

    return textwrap.fill(text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def number(value: float | None, digits: int = 4) -> str:
    """A figure, "-" where there is none: thousands apart by commas, a power of ten where it is tiny or enormous."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if 10**digits <= abs(value) < _ENORMOUS else f"{value:,.{digits}g}"


def whole(value: float | None) -> str:
    """A count or cycles, rounded: 12,345. "-" where there is none."""
    return "-" if value is None else f"{value:,.0f}"


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


def relative(before: float, after: float) -> str:
    """What changed in per cent, with its sign: +12.3, -0.04 where it is little, 0 where nothing is; "-" of nothing."""
    if not before:
        return "-"
    change = 100 * (after - before) / before
    return "0" if change == 0 else f"{change:+.1f}" if abs(change) >= _LITTLE else f"{change:+.1g}"


def shape(dims: Iterable[int]) -> str:
    """4x1x64x128."""
    return "x".join(map(str, dims))
