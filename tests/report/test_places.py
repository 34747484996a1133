"""Where things are drawn, as they are: boxes of netlists, slices of a modelled run.

`python tests/report/test_places.py` writes them anew, after a change that is meant.
"""

from collections.abc import Iterator
from pathlib import Path

import buda_emu as be
from buda_emu.report.pictures.epoch_picture import run_picture
from buda_emu.report.pictures.floorplan import panels

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = Path(__file__).with_name("places.txt")
MOST = 120  # slices of a run


def places() -> Iterator[str]:
    """Rounded to a tenth."""
    for path in sorted((ROOT / "netlists").glob("*.yaml")):
        for panel in panels(be.load(path)):
            yield f"{path.stem}: {' '.join(f'{side:.1f}' for side in panel.size)}"
            for kind, boxes in (("op", panel.ops), ("queue", panel.queues), ("elsewhere", panel.elsewhere)):
                for name, box in boxes.items():
                    yield f"{path.stem} {kind} {name}: {box.x:.1f} {box.y:.1f} {box.width:.1f} {box.height:.1f}"
    picture = run_picture(be.perf(str(ROOT / "netlists/matmul.yaml")).run)
    for item in picture.slices[:MOST]:
        yield f"{picture.lanes[item.lane].name} {item.category}: {item.start:.1f} {item.end:.1f}"
    for counter in picture.counters:
        values = " ".join(f"{time:.0f}:{value:g}" for time, value in zip(counter.times, counter.values, strict=True))
        yield f"{counter.name} in {counter.unit}: {values[:400]}"


def test_places_equal_the_stored_ones() -> None:
    assert list(places()) == KEPT.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    KEPT.write_text("\n".join(places()) + "\n", encoding="utf-8")
