"""The commented netlists that come with the package (`buda-emu example`)."""

import os
from pathlib import Path

from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError


def example_paths() -> dict[str, Path]:
    """Return the file of each example by its name, `attention` or `recipes/mlp`; those of the first folder come first.

    They lie in the package, or beside it in a checkout. Raises HostError where neither has any.
    """
    package = Path(__file__).parents[2]
    for folder in (package / "netlists", package.parent / "netlists"):
        paths = [*sorted(folder.glob("*.yaml")), *sorted(folder.glob("*/*.yaml"))]
        if paths:
            return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}
    raise HostError("the examples did not come along: this installation has no folder netlists")


def example_path(name: str) -> Path:
    """Return the file of an example; its name may end in `.yaml`. Raises HostError for a name that no example has."""
    paths = example_paths()
    path = paths.get(name.removesuffix(".yaml").replace(os.sep, "/"))
    if path is None:
        hint = near(name, paths)
        raise HostError(f"no example {name!r}{f' ({hint})' if hint else ''}; there are: {', '.join(paths)}")
    return path


def subject(path: Path) -> str:
    """Return the first sentence of the comment at the top of a netlist, as far as it stands on the first line."""
    first = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("#").strip()
    return first.partition(". ")[0].rstrip(".:")
