"""The losses and accuracies of both models, epoch by epoch, as a picture (SVG) or as data (JSON)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import floor
from pathlib import Path

from buda_emu.report.pictures.grid_svg import number, text

WIDTH = 400
HEIGHT = 250  # of one panel
LEFT = 52
RIGHT = 16
TOP = 34
BOTTOM = 42  # its margins
STYLE = """
.lc{--ink:#1b1f24;--soft:#59616b;--line:#d5d9de;--page:#fff;--numpy:#e69f00;--device:#0072b2;
font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;background:var(--page)}
.lc text{fill:var(--ink)}.lc .soft{fill:var(--soft)}.lc path{fill:none}.lc .grid{stroke:var(--line)}
.lc .numpy{stroke:var(--numpy);stroke-width:5;stroke-linecap:round;stroke-linejoin:round}
.lc .device{stroke:var(--device);stroke-width:1.5}.lc circle{fill:var(--device)}
@media (prefers-color-scheme:dark){.lc{--ink:#e6e9ed;--soft:#a3acb7;--line:#3a414a;--page:#12151a;
--numpy:#b07800;--device:#6cb8f0}}
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One epoch: the mean loss of its training samples, the accuracy on held-out ones after it."""

    epoch: int
    device_loss: float
    numpy_loss: float
    device_accuracy: float
    numpy_accuracy: float


def write_curve(path: Path, points: Sequence[Point], title: str) -> None:
    """Write the picture or the data, by the ending of the name: .svg or .json."""
    if path.suffix == ".json":
        content = json.dumps({"title": title, "epochs": [asdict(point) for point in points]}, indent=2) + "\n"
    else:
        content = curve_svg(points, title)
    path.write_text(content, encoding="utf-8")


def curve_svg(points: Sequence[Point], title: str) -> str:
    """Return both panels as one SVG that needs no other file."""
    size = f'width="{2 * WIDTH}" height="{HEIGHT}" viewBox="0 0 {2 * WIDTH} {HEIGHT}"'
    largest = max(max(point.device_loss, point.numpy_loss) for point in points)
    losses = [0.5 * i for i in range(floor(2 * largest) + 2)]
    smallest = min(min(point.device_accuracy, point.numpy_accuracy) for point in points)
    accuracies = [i / 10 for i in range(min(floor(10 * smallest), 9), 11)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="lc" role="img" {size}>',
            f"<title>{title}</title>",
            f"<style>{STYLE}</style>",
            _panel(0, "training loss", points, losses, "{:.1f}", lambda p: p.numpy_loss, lambda p: p.device_loss),
            _panel(
                WIDTH,
                "accuracy on held-out digits",
                points,
                accuracies,
                "{:.0%}",
                lambda p: p.numpy_accuracy,
                lambda p: p.device_accuracy,
            ),
            _legend(),
            "</svg>\n",
        ]
    )


def _panel(
    left: float,
    name: str,
    points: Sequence[Point],
    ticks: Sequence[float],
    form: str,
    numpy: Callable[[Point], float],
    device: Callable[[Point], float],
) -> str:
    """Both lines over the epochs, numpy's broad below and the device's thin above: they hardly differ."""
    low = ticks[0]
    high = ticks[-1]
    last = max(points[-1].epoch, 2)

    def x(epoch: float) -> float:
        return left + LEFT + (epoch - 1) / (last - 1) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def line(css: str, value: Callable[[Point], float]) -> str:
        places = "L".join(f"{number(x(point.epoch))} {number(y(value(point)))}" for point in points)
        return f'<path class="{css}" d="M{places}"/>'

    parts = [text(left + LEFT, 20, name, 12)]
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{number(x(1))} {number(y(tick))}H{number(x(last))}"/>')
        parts.append(text(left + LEFT - 8, y(tick) + 4, form.format(tick), 10, "soft", "end"))
    step = max(1, round(last / 6))
    for epoch in range(1, last + 1, step):
        parts.append(text(x(epoch), HEIGHT - BOTTOM + 16, str(epoch), 10, "soft", "middle"))
    parts += [line("numpy", numpy), line("device", device)]
    for point in points:
        tip = f"epoch {point.epoch}: device {device(point):.4f}, numpy {numpy(point):.4f}"
        place = f'cx="{number(x(point.epoch))}" cy="{number(y(device(point)))}"'
        parts.append(f'<circle {place} r="2.5"><title>{tip}</title></circle>')
    return "\n".join(parts)


def _legend() -> str:
    y = HEIGHT - 9
    return "\n".join(
        [
            text(LEFT, y, "epoch", 10, "soft"),
            f'<path class="device" d="M{WIDTH - 150} {y - 4}h24"/><circle cx="{WIDTH - 138}" cy="{y - 4}" r="2.5"/>',
            text(WIDTH - 120, y, "emulated device", 10),
            f'<path class="numpy" d="M{WIDTH + 10} {y - 4}h20"/>',
            text(WIDTH + 36, y, "numpy, float32", 10),
        ]
    )
