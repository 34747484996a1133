"""The picture of the README's first screen: what the checker says, the core grid, and what holds a netlist back.

All three are what the package says today about netlists/attention.yaml, so the picture is generated with the docs.
"""

import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path

import buda_emu as be
from buda_emu.netlist.load import check_text
from buda_emu.report.pictures.grid_svg import grid_svg
from buda_emu.support.checker.render import render

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 960
MARGIN = 16
LINE = 18
CHARACTERS = 112
"""The characters that fit a line of text at its size."""
FONT = "ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace"


def picture() -> str:
    """Return the picture as SVG, readable on light and on dark pages."""
    text = (ROOT / "netlists" / "attention.yaml").read_text(encoding="utf-8")
    broken = text.replace("type: exp,", "type: expp,", 1)
    netlist = check_text(text, "attention.yaml").netlist
    assert netlist is not None
    grid = grid_svg(netlist, epochs=[0])
    findings = render(check_text(broken, "attention.yaml").diagnostics).splitlines()
    sentences: list[str] = []
    for epoch in be.perf(netlist).epochs:
        sentences += textwrap.wrap(epoch.bottleneck.sentence, CHARACTERS)
    parts = [
        _terminal("buda-emu check attention.yaml", findings),
        _scale(grid, WIDTH),
        _terminal("buda-emu perf attention.yaml", sentences),
    ]
    bodies: list[str] = []
    below = 0.0
    for body, height in parts:
        bodies.append(f'<g transform="translate(0 {below:.0f})">{body}</g>')
        below += height + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {below - MARGIN:.0f}" width="{WIDTH}" '
        'role="img">'
        "<title>A finding of the checker with its place and the intended word; the ops of attention.yaml on the core "
        f"grid; the bottleneck of each epoch</title>{''.join(bodies)}</svg>\n"
    )


def _terminal(command: str, lines: Sequence[str]) -> tuple[str, float]:
    """Return a command with its output as a terminal, and the height of both."""
    height = LINE * (len(lines) + 1) + 2 * MARGIN - 6
    texts = [_text(0, f"$ {command}", "#9fd3a8")]
    texts += [_text(row, line, "#e6e9ed") for row, line in enumerate(lines, 1)]
    box = f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#1b1f24"/>'
    return f'{box}<g font-family="{FONT}" font-size="13">{"".join(texts)}</g>', height


def _text(row: int, line: str, colour: str) -> str:
    """Return a line of a terminal."""
    y = MARGIN + 10 + LINE * row
    return f'<text x="{MARGIN}" y="{y}" fill="{colour}" xml:space="preserve">{escape(line)}</text>'


def _scale(svg: str, width: int) -> tuple[str, float]:
    """Return a picture scaled to a width inside another, on a ground of its own, and its height."""
    head, _, rest = svg.partition(">")
    size = {name: float(head.partition(f' {name}="')[2].partition('"')[0]) for name in ("width", "height")}
    height = size["height"] * width / size["width"]
    old = f'width="{size["width"]:.0f}" height="{size["height"]:.0f}"'
    head = head.replace(old, f'width="{width}" height="{height:.0f}"')
    ground = '<rect width="100%" height="100%" rx="8" style="fill:var(--bg-page)"/>'
    return f"{head}>{ground}{rest.rstrip()}", height
