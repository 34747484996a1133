"""The messages of verbs about kernels that are compiled for this machine. Importing it imports numpy."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from buda_emu.app.cli.output import Progress
from buda_emu.arithmetic.jit.kernel import cache_folder, compilations
from buda_emu.arithmetic.jit.reporting import reported_kernels
from buda_emu.support.checker.text import plural
from buda_emu.support.progress import Report

if TYPE_CHECKING:
    from pathlib import Path


@contextmanager
def shown_kernels(progress: Progress) -> Generator[Report]:
    """Give the function that shows what is being done. Kernels that are compiled during the block are shown, too, and
    at its end, unless it fails, a line says how many there were."""
    with reported_kernels(progress.report) as (report, compiled):
        yield report
    say_compilations(progress, compiled)


@contextmanager
def counted_kernels(progress: Progress) -> Generator[None]:
    """Say at the end of the block, unless it fails, how many kernels were compiled during it. For functions of the
    library that report kernels themselves."""
    with compilations() as compiled:
        yield
    say_compilations(progress, compiled)


def say_compilations(progress: Progress, compiled: Sequence[tuple[str, float]]) -> None:
    """Print how many kernels were compiled, given the name and the seconds of each, and where they are kept; nothing if
    there were none."""
    if compiled and progress.shown:
        seconds = sum(seconds for _, seconds in compiled)
        progress.say_above(compiled_line([name for name, _ in compiled], seconds, cache_folder()))


def compiled_line(kernels: list[str], seconds: float, folder: "Path | None") -> str:
    """Return the line that a first run prints about the kernels that it compiled: their number, names and seconds, and
    whether they are kept in `folder`, the cache (None without one)."""
    import glob  # a run that compiles nothing needs no paths

    names = ", ".join(dict.fromkeys(kernels))
    count = plural(len(kernels), "kernel")
    are_kept = folder is not None and all(any(folder.rglob(f"{glob.escape(name)}-*.o")) for name in kernels)
    if are_kept:
        outcome = f"kept in {folder}, later runs take them from there; `buda-emu cache warm` does this beforehand"
    else:
        outcome = "they could not be kept"
        if folder is not None:
            outcome += f" in {folder}: is the disk full?"
    return f"buda-emu: compiled {count} for this machine in {seconds:.1f} s ({names}); {outcome}"
