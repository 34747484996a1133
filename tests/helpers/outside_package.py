"""Packages that add to buda-emu by entry points, found as installed ones are but without being installed."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path


def environment_with(package: Path, folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of processes that find a package, a folder with its pyproject.toml, by its entry points.
    What pip would write of it stands in `folder`, and so do the caches."""
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name = project["name"]
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n", encoding="utf-8")
    sections = (
        f"[{group}]\n" + "".join(f"{point} = {place}\n" for point, place in points.items())
        for group, points in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text("".join(sections), encoding="utf-8")
    path = os.pathsep.join((str(folder), str(package), environment["PYTHONPATH"]))
    return {**environment, "PYTHONPATH": path, "XDG_CACHE_HOME": str(folder)}
