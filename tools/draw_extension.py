#!/usr/bin/env python3
"""Cut the pictures of the extension's README out of those that its test takes in VS Code (docs/contributing.md).

    python tools/draw_extension.py FOLDER      # writes editors/vscode/pictures/

FOLDER is the one of `pytest --basetemp` with the pictures of the test. It needs Pillow.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from PIL import Image

PICTURES: Final = Path(__file__).resolve().parent.parent / "editors" / "vscode" / "pictures"
CUTS: Final = {
    "fix": ("findings", (350, 36, 1400, 668)),
    "grid": ("grid", (350, 36, 1400, 580)),
    "back": ("debugging", (48, 36, 1400, 668)),
}
"""Of each step of the test: the picture of the README, and its left, upper, right and lower edge in pixels."""
COLOURS: Final = 96


def cut_pictures(folder: Path) -> None:
    """Write the pictures, with few colours, since the extension carries them."""
    PICTURES.mkdir(exist_ok=True)
    for step, (name, edges) in CUTS.items():
        (source,) = [path for path in folder.rglob(f"{step}.png") if not path.parent.is_symlink()]
        picture = Image.open(source).convert("RGB").crop(edges)
        few = picture.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(PICTURES / f"{name}.png", optimize=True)


def main() -> int:
    """Cut the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the test left its pictures")
    cut_pictures(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
