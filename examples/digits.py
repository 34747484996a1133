"""Pictures of the digits 0..9, drawn by code: each of 8 x 8 pixels, shifted, sheared, stretched and noisy at random."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

SIDE = 8
CLASSES = 10
NOISE = 0.15  # standard deviation of what is added to each pixel; ink is 1, paper 0 ...
MEAN = 0.4  # ... less this: networks learn faster from pixels around 0

# Three columns, five rows; digit 0 first.
FONT = """
### .#. ### ### #.# ### ### ### ### ###
#.# ##. ..# ..# #.# #.. #.. ..# #.# #.#
#.# .#. ### .## ### ### ### .#. ### ###
#.# .#. #.. ..# ..# ..# #.# .#. #.# ..#
### ### ### ### ..# ### ### .#. ### ###
"""


def glyphs() -> Floats:
    """The font: [digit, row, column], 1 for ink."""
    rows = [row.split() for row in FONT.split("\n") if row]
    return np.array([[[mark == "#" for mark in row[digit]] for row in rows] for digit in range(CLASSES)], np.float32)


def draw(count: int, seed: int) -> tuple[Floats, Integers]:
    """`count` pictures as rows of 64 pixels, and the digits that they show."""
    stream = np.random.default_rng(seed)
    labels = stream.integers(0, CLASSES, count)
    font: Floats = np.pad(glyphs(), ((0, 0), (1, 1), (1, 1)))  # paper all around

    # Where each pixel of the picture lies on the paper of the glyph: size, shear and place are random.
    y, x = np.meshgrid(np.arange(SIDE) - 3.5, np.arange(SIDE) - 3.5, indexing="ij")
    size, shear, down, right = (
        stream.uniform(low, high, (count, 1, 1)) for low, high in ((0.7, 0.9), (-0.15, 0.15), (-0.5, 0.5), (-0.5, 0.5))
    )
    row = np.clip((font.shape[1] - 1) / 2 + size * y + down, 0, font.shape[1] - 1)
    column = np.clip((font.shape[2] - 1) / 2 + 0.7 * size * x + shear * y + right, 0, font.shape[2] - 1)

    # Ink between the four nearest points of the glyph.
    top = np.floor(row).astype(int)
    left = np.floor(column).astype(int)
    bottom = np.minimum(top + 1, font.shape[1] - 1)
    beside = np.minimum(left + 1, font.shape[2] - 1)
    below = row - top
    aside = column - left
    digit = labels[:, None, None]
    upper = font[digit, top, left] * (1 - aside) + font[digit, top, beside] * aside
    lower = font[digit, bottom, left] * (1 - aside) + font[digit, bottom, beside] * aside
    ink: NDArray[np.float64] = upper * (1 - below) + lower * below

    pixels = ink - MEAN + NOISE * stream.standard_normal(ink.shape)
    return pixels.reshape(count, SIDE * SIDE).astype(np.float32), labels
