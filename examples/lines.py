"""Curves side by side as a picture (SVG) that needs nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from buda_emu.report.pictures.grid_svg import number, text

WIDTH = 400
HEIGHT = 260  # of one panel
LEFT = 52
RIGHT = 16
TOP = 34
BOTTOM = 58  # its margins
INKS = ("#e69f00", "#0072b2", "#009e73", "#cc79a7")
STYLE = """
.ln{--ink:#1b1f24;--soft:#59616b;--line:#d5d9de;--page:#fff;
font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;background:var(--page)}
.ln text{fill:var(--ink)}.ln .soft{fill:var(--soft)}
.ln path{fill:none;stroke-linejoin:round}.ln .grid{stroke:var(--line)}
@media (prefers-color-scheme:dark){.ln{--ink:#e6e9ed;--soft:#a3acb7;--line:#3a414a;--page:#12151a}}
"""
Panel = tuple[str, Mapping[str, Sequence[float]]]


def write_lines(path: Path, title: str, panels: Sequence[Panel], below: str = "step") -> None:
    """Each panel: its name, and curves by name. The first curve is drawn broad, below the others."""
    size = f'width="{len(panels) * WIDTH}" height="{HEIGHT}" viewBox="0 0 {len(panels) * WIDTH} {HEIGHT}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" class="ln" role="img" {size}>', f"<title>{title}</title>"]
    parts += [f"<style>{STYLE}</style>", '<rect width="100%" height="100%" style="fill:var(--page)"/>']
    for place, (name, curves) in enumerate(panels):
        parts += _panel(place * WIDTH, name, curves, below)
    path.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")


def _panel(left: float, name: str, curves: Mapping[str, Sequence[float]], below: str) -> list[str]:
    low = min(0.0, *(min(values) for values in curves.values()))
    high = max(max(values) for values in curves.values())
    last = max(len(values) for values in curves.values()) - 1

    def x(step: float) -> float:
        return left + LEFT + step / max(last, 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [text(left + LEFT, 20, name, 12)]
    for part in range(5):
        value = low + (high - low) * part / 4
        parts.append(f'<path class="grid" d="M{number(x(0))} {number(y(value))}H{number(x(last))}"/>')
        parts.append(text(left + LEFT - 8, y(value) + 4, f"{value:.2f}", 10, "soft", "end"))
    for part in range(5):
        step = round(last * part / 4)
        parts.append(text(x(step), HEIGHT - BOTTOM + 16, str(step), 10, "soft", "middle"))
    parts.append(text(left + WIDTH - RIGHT, HEIGHT - BOTTOM + 30, below, 10, "soft", "end"))
    for place, (label, values) in enumerate(curves.items()):
        width = 1.4 if place else 5
        line = "L".join(f"{number(x(step))} {number(y(value))}" for step, value in enumerate(values))
        style = f"stroke:{INKS[place]};stroke-width:{width}"
        parts.append(f'<path d="M{line}" style="{style}"/>')
        at = left + LEFT + place * (WIDTH - LEFT) / len(curves)
        parts.append(f'<path d="M{number(at)} {HEIGHT - 14}h18" style="{style}"/>')
        parts.append(text(at + 24, HEIGHT - 10, label, 10))
    return parts
