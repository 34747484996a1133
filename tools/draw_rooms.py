"""The map of docs/architecture.md, drawn from the code: the layers of the import contracts in pyproject.toml, and the
first paragraph that each room says of itself."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
Layers = Sequence[Sequence[str]]

BOX = 132
GAP = 10
HEIGHT = 26
MARGIN = 12  # pixels


def layers(container: str) -> Layers:
    """Return the parts of a package from top to bottom, layer by layer, as its import contract orders them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    contract = next(
        entry
        for entry in contracts
        if entry["type"] == "layers" and entry["containers"] == [container] and entry.get("exhaustive")
    )
    return [[room.strip("() ") for room in re.split(r"[|:]", layer)] for layer in contract["layers"]]


def about(package: str, room: str) -> str:
    """Return the first paragraph of the docstring of a part. Raises ValueError if it has none."""
    place = ROOT / package.replace(".", "/") / room
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(source.read_text()))
    if not docstring:
        raise ValueError(f"{source.relative_to(ROOT)} does not say what it is: add a docstring")
    return " ".join(docstring.partition("\n\n")[0].split()).rstrip(":")


def rows(container: str) -> Iterator[tuple[str, str, str]]:
    """Yield number of the layer, name and description of each part, from top to bottom."""
    place = ROOT / container.replace(".", "/")
    for number, layer in enumerate(layers(container), 1):
        for room in layer:
            yield f"{number}", f"`{room}{'/' if (place / room).is_dir() else '.py'}`", about(container, room)


def picture(container: str = "buda_emu") -> str:
    """Return the layers as SVG: a row for each, whose parts may import from rows below. Colours suit light and dark
    grounds."""
    order = layers(container)
    width = 2 * MARGIN + max(map(len, order)) * (BOX + GAP)
    height = 2 * MARGIN + 18 + len(order) * (HEIGHT + GAP)
    parts = [f'<text x="{MARGIN}" y="{MARGIN + 8}">a room may import from rows below its own</text>']
    for row, layer in enumerate(order):
        top = MARGIN + 18 + row * (HEIGHT + GAP)
        left = (width - len(layer) * (BOX + GAP) + GAP) / 2
        for column, room in enumerate(layer):
            x = left + column * (BOX + GAP)
            parts.append(
                f'<rect x="{x:g}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="4" fill="#0072b2" fill-opacity="0.15" '
                f'stroke="#0072b2"/><text x="{x + BOX / 2:g}" y="{top + 17}" text-anchor="middle">{escape(room)}</text>'
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        'font-family="sans-serif" font-size="12" fill="#6b7280">'
        f"<title>The rooms of {container} in layers</title>{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    sys.stdout.write(picture())
