#!/usr/bin/env python3
"""Draw the pictures of docs/reference/numbers-on-the-chip.md from the arithmetic itself, with seeded data.

python tools/draw_numerics.py           write docs/pictures/numbers-*.svg
python tools/draw_numerics.py --check   fail if one differs from what the arithmetic gives
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import erf, exp, isfinite, log10, sqrt, tanh
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from buda_emu.arithmetic.formats.bits import from_bits, to_bits  # noqa: E402
from buda_emu.arithmetic.formats.codecs import quantise  # noqa: E402
from buda_emu.arithmetic.kernels.tensix.products.accumulate import Extent, Product, RegisterOperand  # noqa: E402
from buda_emu.arithmetic.kernels.tensix.products.tile_matmul import matmul_tiles  # noqa: E402 - found through the path above
from buda_emu.arithmetic.tensix.conversions.pack import decode, pack  # noqa: E402
from buda_emu.arithmetic.tensix.conversions.unpack import unpack  # noqa: E402
from buda_emu.arithmetic.tensix.functions.table import bind, reference  # noqa: E402
from buda_emu.arithmetic.tensix.products import phase_mask  # noqa: E402
from buda_emu.arithmetic.tensix.registers import kernel_setting, to_word  # noqa: E402
from buda_emu.report.pictures.grid_svg import number, text  # noqa: E402

F64 = NDArray[np.float64]
FOLDER = ROOT / "docs" / "pictures"
INNER = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
OUTER = 2  # tiles along rows and columns of a measured product: 4096 elements
FAMILY = {"fp32": "b", "bf16": "b", "fp16": "a"}
SOURCE = {"fp32": "Float16_b", "bf16": "Float16_b", "fp16": "Float16"}

WIDTH = 410
HEIGHT = 270  # of one panel
LEFT = 58
RIGHT = 14
TOP = 34
BOTTOM = 66  # its margins
STYLE = """
.nc{--ink:#1b1f24;--soft:#59616b;--line:#d5d9de;--page:#fff;--a:#0072b2;--b:#d55e00;--c:#009e73;--d:#b0508a;--e:#8a6d00;
font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;background:var(--page)}
.nc text{fill:var(--ink)}.nc .soft{fill:var(--soft)}.nc path{fill:none;stroke-width:1.8;stroke-linejoin:round}
.nc .grid{stroke:var(--line);stroke-width:1}.nc .a{stroke:var(--a)}.nc .b{stroke:var(--b)}.nc .c{stroke:var(--c)}
.nc .d{stroke:var(--d)}.nc .e{stroke:var(--e)}.nc .dash{stroke-dasharray:6 4}
@media (prefers-color-scheme:dark){.nc{--ink:#e6e9ed;--soft:#a3acb7;--line:#3a414a;--page:#12151a;
--a:#6cb8f0;--b:#ff9a57;--c:#3fcf9f;--d:#e58cc0;--e:#d8b63f}}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve with its legend, its css classes and its points."""

    name: str
    css: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from the first to the last of `ticks`, whose labels are `labels`; logarithmic or not."""

    name: str
    ticks: Sequence[float]
    labels: Sequence[str]
    logarithmic: bool = False

    def part(self, value: float) -> float:
        """Return the place of a value on the axis: 0 at the first tick, 1 at the last."""
        low = self.ticks[0]
        high = self.ticks[-1]
        if self.logarithmic:
            return log10(value / low) / log10(high / low)
        return (value - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart with its title, both axes and its lines."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]


def picture(title: str, panels: Sequence[Panel]) -> str:
    """Return panels side by side, as an SVG that needs no other file."""
    size = f'width="{len(panels) * WIDTH}" height="{HEIGHT}" viewBox="0 0 {len(panels) * WIDTH} {HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="nc" role="img" {size}>\n<title>{title}</title>'
    drawn = [_panel(WIDTH * at, panel) for at, panel in enumerate(panels)]
    return "\n".join([head, f"<style>{STYLE}</style>", *drawn, "</svg>\n"])


def _panel(left: float, panel: Panel) -> str:
    """Return one panel whose left edge is at `left`."""

    def x(value: float) -> str:
        return number(left + LEFT + panel.x.part(value) * (WIDTH - LEFT - RIGHT))

    def y(value: float) -> str:
        return number(TOP + (1 - panel.y.part(value)) * (HEIGHT - TOP - BOTTOM))

    first = panel.x.ticks[0]
    last = panel.x.ticks[-1]
    bottom = HEIGHT - BOTTOM
    parts = [text(left + LEFT, 14, panel.title, 12), text(left + LEFT, 28, panel.y.name, 10, "soft")]
    for tick, label in zip(panel.y.ticks, panel.y.labels, strict=True):
        parts.append(f'<path class="grid" d="M{x(first)} {y(tick)}H{x(last)}"/>')
        parts.append(text(left + LEFT - 6, float(y(tick)) + 4, label, 10, "soft", "end"))
    for tick, label in zip(panel.x.ticks, panel.x.labels, strict=True):
        parts.append(text(float(x(tick)), bottom + 15, label, 10, "soft", "middle"))
    parts.append(text(left + WIDTH - RIGHT, bottom + 30, panel.x.name, 10, "soft", "end"))
    for line in panel.lines:
        places = "L".join(f"{x(a)} {y(b)}" for a, b in zip(line.x, line.y, strict=True) if isfinite(b))
        parts.append(f'<path class="{line.css}" d="M{places}"><title>{line.name}</title></path>')
    parts += _legend(left + LEFT, bottom + 30, panel.lines)
    return "\n".join(parts)


def _legend(left: float, top: float, lines: Sequence[Line]) -> list[str]:
    """Return the legend: three rows at most, column by column."""
    parts: list[str] = []
    for at, line in enumerate(lines):
        x = left + 130 * (at // 3)
        y = top + 14 * (at % 3)
        parts.append(f'<path class="{line.css}" d="M{number(x)} {number(y - 4)}h22"/>')
        parts.append(text(x + 28, y, line.name, 10))
    return parts


# ------------------------------------------------------------------------------------------------------------ matmul
def matmul_error(inner: int, fidelity: str, dst: str, tf32: bool = False) -> float:
    """Return the rms error of a product of seeded normal data over an inner dimension, as a share of the result's rms
    value.

    The operands are register words, so the error is the matrix unit's alone. `dst`: fp32, bf16 or fp16.
    """
    in0 = _words(inner, dst, tf32, 1)
    in1 = _words(inner, dst, tf32, 2)
    exact = _values(in0, dst) @ np.swapaxes(_values(in1, dst), 0, 1)
    tiles = max(inner // 32, 1)
    faces = min(inner // 16, 2)
    out = np.zeros((1, OUTER * OUTER, 1024), np.uint32)
    operands: list[Any] = []
    # A row of `in0` and of `in1` is a row and a column of the product; tiles of input 1 stand the other way.
    for words, transposed in ((in0, False), (in1, True)):
        wide = np.zeros((OUTER * 32, tiles * 32), np.uint32)
        wide[:, :inner] = words
        cut = wide.reshape(OUTER, 32, tiles, 32)
        cut = cut.transpose(2, 0, 3, 1) if transposed else cut.transpose(0, 2, 1, 3)
        index = np.arange(OUTER * tiles, dtype=np.int32)
        operands.append(RegisterOperand(np.ascontiguousarray(cut).reshape(1, -1, 1024), index, np.uint32(0)))
    extent = Extent(t=1, rows=OUTER, inner=tiles, cols=OUTER, first=0, last=tiles, faces=faces)
    setting = kernel_setting(FAMILY[dst], dst, "wormhole_b0")  # pyright: ignore[reportArgumentType]
    matmul_tiles(
        0,
        OUTER * OUTER,
        out,
        Product(*operands, extent=extent, phases=phase_mask(fidelity), faces_first=False, setting=setting),
    )
    words = to_word(out, dst).reshape(OUTER, OUTER, 32, 32).transpose(0, 2, 1, 3)  # pyright: ignore[reportArgumentType]
    error = _values(words.reshape(OUTER * 32, OUTER * 32), dst) - exact
    return sqrt(float(np.mean(error**2)) / float(np.mean(exact**2)))


def _words(inner: int, dst: str, tf32: bool, seed: int) -> NDArray[np.uint32]:
    """Return register words [rows, inner] of normal data in the operands' format."""
    values = np.random.default_rng((seed, inner)).standard_normal((OUTER * 32, inner)).astype(np.float32)
    if dst == "fp16":
        return unpack(to_bits(values), "Float32", "Float16", "wormhole_b0")
    return unpack(to_bits(values), "Float32", "Tf32" if tf32 else "Float16_b", "wormhole_b0")


def _values(words: NDArray[np.uint32], dst: str) -> F64:
    """Return the values of register words; words of family A have the 5-bit exponent, not re-biased."""
    rebias = 112 << 23 if dst == "fp16" else 0
    wide = np.where(words & np.uint32(0x7F800000) == 0, np.uint32(0), words + np.uint32(rebias))
    return from_bits(wide).astype(np.float64)


def matmul_table() -> str:
    """Return the table of the page: rms errors at K = 64, where the rms value of the result is 8."""
    kinds = (("fp32", False, "fp32, bf16"), ("fp32", True, "fp32, Tf32"), ("fp16", False, "fp16, Float16"))
    fidelities = ("LoFi", "HiFi2", "HiFi2_B", "HiFi3", "HiFi4")
    rows = [f"| dest, operands | {' | '.join(fidelities)} |", "|---" + "|---:" * len(fidelities) + "|"]
    for dst, tf32, name in (*kinds, ("bf16", False, "bf16, bf16")):
        errors = (f"{8 * matmul_error(64, fidelity, dst, tf32):.4f}" for fidelity in fidelities)
        rows.append(f"| {name} | {' | '.join(errors)} |")
    return "\n".join(rows)


def matmul_picture() -> str:
    """Return the picture of errors by the inner dimension, for each fidelity and each width of Dst."""
    x = Axis("K", INNER, [str(k) for k in INNER], True)
    y = Axis("rms error / rms value", (1e-4, 1e-3, 1e-2, 1e-1, 1), ("0.01%", "0.1%", "1%", "10%", "100%"), True)

    def line(fidelity: str, dst: str, css: str, name: str, tf32: bool = False) -> Line:
        return Line(name, css, INNER, [matmul_error(k, fidelity, dst, tf32) for k in INNER])

    fp32 = [
        line("LoFi", "fp32", "b", "LoFi"),
        line("HiFi2_B", "fp32", "e", "HiFi2_B"),
        line("HiFi2", "fp32", "c", "HiFi2"),
        line("HiFi3", "fp32", "a", "HiFi3 = HiFi4"),
        line("HiFi4", "fp32", "d dash", "HiFi4, Tf32", True),
    ]
    narrow = [
        line("LoFi", "bf16", "b", "bf16, LoFi"),
        line("HiFi2", "bf16", "c", "bf16, HiFi2"),
        line("HiFi4", "bf16", "a dash", "bf16, HiFi4"),
        line("LoFi", "fp16", "e", "fp16, LoFi"),
        line("HiFi4", "fp16", "d", "fp16, HiFi4"),
    ]
    panels = [Panel("32-bit dest, bf16 operands", x, y, fp32), Panel("16-bit dest", x, y, narrow)]
    return picture("Error of a matmul by its inner dimension K", panels)


# ------------------------------------------------------------------------------------------------- vector unit
def function_error(
    name: str, exact: Callable[[float], float], ends: tuple[float, float], approximate: bool = False
) -> tuple[list[float], list[float]]:
    """Return arguments between the ends, and the errors of the vector unit there, before the store into a 16-bit
    Dst."""
    x = np.linspace(*ends, 1024, dtype=np.float32)
    bound = bind(name, approximate=approximate)
    y = from_bits(reference(bound, "fp32", to_bits(x.reshape(1, 32, 32)))).reshape(-1)
    return x.tolist(), [float(got) - exact(float(at)) for got, at in zip(y, x, strict=True)]


def gelu(x: float) -> float:
    """Return x times the normal distribution."""
    return x * (1 + erf(x / sqrt(2))) / 2


def functions_picture() -> str:
    """Return the picture of the errors of exp, gelu and tanh over their ranges."""
    lines: list[Line] = []
    for label, css, approximate in (("exact mode", "a", False), ("approximate mode", "b", True)):
        x, off = function_error("exp", exp, (-7.99, 7.99), approximate)
        lines.append(Line(label, css, x, [e / exp(at) for at, e in zip(x, off, strict=True)]))
    share = Axis("relative error", (-0.1, -0.05, 0, 0.05, 0.1), ("-10%", "-5%", "0", "+5%", "+10%"))
    panels = [Panel("exp", _integer_axis((-8, -4, 0, 4, 8)), share, lines)]
    for name, exact, ticks, largest in (
        ("gelu", gelu, (-6, -3, 0, 3, 6), 0.03),
        ("tanh", tanh, (-4, -2, 0, 2, 4), 0.15),
    ):
        x, off = function_error(name, exact, (ticks[0], ticks[-1]))
        steps = tuple(largest * part for part in (-1, -0.5, 0, 0.5, 1))
        y = Axis("absolute error", steps, [f"{step:.3f}" for step in steps])
        panels.append(Panel(name, _integer_axis(ticks), y, [Line("both modes", "a", x, off)]))
    return picture("Errors of exp, gelu and tanh on the vector unit", panels)


def _integer_axis(ticks: Sequence[int]) -> Axis:
    """Return an axis x with integer ticks."""
    return Axis("x", ticks, [str(tick) for tick in ticks])


# ------------------------------------------------------------------------------------------------- packer
def values_in_format(df: str, x: Sequence[float], chip: bool) -> list[float]:
    """Return each x as a block format stores it beside a neighbour of 1.0, by the packer from a 32-bit Dst or by the
    host."""
    values = np.ones((len(x), 16), np.float32)
    values[:, 0] = x
    rounded = decode(df, pack(to_bits(values), "fp32", "Bfp8_b", df)) if chip else quantise(df, values)
    return rounded[:, 0].tolist()


def blocks_picture() -> str:
    """Return the picture of how packer and host round into block formats."""
    x4 = np.linspace(0, 1.75, 701, dtype=np.float32).tolist()
    quarters = (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75)
    axis = [f"{tick:g}" for tick in quarters]
    lines = [
        Line(name, css, x4, values_in_format("Bfp4_b", x4, chip))
        for name, css, chip in (("host: to nearest", "b dash", False), ("packer: truncates", "a", True))
    ]
    panels = [Panel("Bfp4_b, beside a 1.0", Axis("x", quarters, axis), Axis("stored", quarters, axis), lines)]
    x8 = np.linspace(0.5, 0.5625, 641, dtype=np.float32).tolist()
    saws: list[Line] = []
    for name, css, chip in (("host: once", "b dash", False), ("packer: twice", "a", True)):
        rounded = values_in_format("Bfp8_b", x8, chip)
        saws.append(Line(name, css, x8, [64 * (value - at) for value, at in zip(rounded, x8, strict=True)]))
    halves = (-1, -0.5, 0, 0.5, 1)
    x = Axis("x", (0.5, 0.515625, 0.53125, 0.546875, 0.5625), ("32/64", "33/64", "34/64", "35/64", "36/64"))
    y = Axis("error in units of 1/64", halves, [f"{half:g}" for half in halves])
    panels.append(Panel("Bfp8_b, beside a 1.0", x, y, saws))
    return picture("Rounding into block formats", panels)


PICTURES: Mapping[str, Callable[[], str]] = {
    "numbers-matmul.svg": matmul_picture,
    "numbers-functions.svg": functions_picture,
    "numbers-blocks.svg": blocks_picture,
}
"""The function that draws each file."""


def main(arguments: Sequence[str]) -> int:
    """Write the pictures, or check that they are what the arithmetic gives."""
    drawn = {name: draw() for name, draw in PICTURES.items()}
    stale = {n: t for n, t in drawn.items() if not (FOLDER / n).exists() or (FOLDER / n).read_text() != t}
    if "--check" in arguments:
        if stale:
            print(f"stale: {', '.join(stale)}; run tools/draw_numerics.py")
        return 1 if stale else 0
    for name, content in stale.items():
        (FOLDER / name).write_text(content)
    print(f"written: {', '.join(stale) or 'nothing, all pictures are up to date'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
