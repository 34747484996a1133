"""`buda-emu cache`: what is kept between runs."""

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from buda_emu.cli.output import Progress, complain, say
from buda_emu.device.host_memory import size_text
from buda_emu.errors import BudaError, HostError

if TYPE_CHECKING:
    from buda_emu.caches import Kept

EXAMPLE = "buda-emu cache info"
_STALE = "stale: of another version, or other sources"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    parser.set_defaults(action=_info)
    info = actions.add_parser("info", help="what is kept, where, what of it is stale (the default)", example=EXAMPLE)
    info.set_defaults(action=_info)
    warm = actions.add_parser("warm", help="compile the kernels that netlists need", example="buda-emu cache warm")
    warm.add_argument("file", nargs="*", metavar="FILE", help="netlists; default: the examples that come along")
    warm.set_defaults(action=_warm)
    clear = actions.add_parser(
        "clear", help="delete what is kept; other programs' files stay", example="buda-emu cache clear --stale"
    )
    clear.add_argument("--stale", action="store_true", help="only what no run of this version will use")
    clear.set_defaults(action=_clear)


def main(args: argparse.Namespace) -> int:
    """Do it. Exit code 0; failures are raised, but `warm` goes on to the next netlist."""
    return args.action(args)


def _info(_: argparse.Namespace) -> int:
    from buda_emu.netlist.cache import MOST_BYTES
    from buda_emu.report.text import table

    found = _kept()
    in_use = {"netlists": f"in use, {size_text(MOST_BYTES)} at most", "last-failed": "in use (buda-emu test --lf)"}
    rows = [
        (
            item.kind, item.version or "-", str(item.files), size_text(item.bytes),
            _STALE if _is_stale(item) else in_use.get(item.kind, "in use"),
        )
        for item in found
    ]  # fmt: skip
    say(f"{_folder()}\n")
    say(table(("what", "version", "files", "size", "state"), rows, right=(2, 3)) if rows else "nothing is kept")
    stale = [item for item in found if _is_stale(item)]
    if stale:
        say(f"\n`buda-emu cache clear --stale` frees {size_text(sum(item.bytes for item in stale))}")
    return 0


def _clear(args: argparse.Namespace) -> int:
    from buda_emu.caches import remove

    gone = [item for item in _kept() if not args.stale or _is_stale(item)]
    for item in gone:
        remove(item)
    count = sum(item.files for item in gone)
    say(f"{count} file{'s' * (count != 1)}, {size_text(sum(item.bytes for item in gone))} deleted")
    return 0


def _warm(args: argparse.Namespace) -> int:
    from buda_emu.kernels.jit import cache_folder, compilations

    if cache_folder() is None:
        raise HostError(f"{_folder()} keeps no kernels: it cannot be written, or others can write there, too")
    files = args.file or _examples()
    progress = Progress()
    code, start = 0, time.perf_counter()
    with compilations(lambda name: progress.show(f"compiling {name}")) as compiled:
        for number, file in enumerate(files):
            progress.bar(number, len(files), time.perf_counter() - start, os.path.basename(file))  # noqa: PTH119
            before = len(compiled)
            try:
                _run(file)
            except BudaError as error:
                complain(f"buda-emu: {file}: {error}")
                code = code or error.exit_code
            progress.clear()
            own = compiled[before:]
            kernels = f"{len(own)} kernel{'s' * (len(own) != 1)} compiled"
            say(f"{file}: {kernels}, {sum(item.seconds for item in own):.1f} s")
    return code


def _run(file: str) -> None:
    """Run a netlist in both precisions: kernels are compiled when they are first needed."""
    from buda_emu.api.run_netlist import run_netlist
    from buda_emu.netlist.load import load

    netlist = load(file)
    run_netlist(netlist)
    run_netlist(netlist, precision="ideal")


def _examples() -> list[str]:
    """The netlists that come with the package; in a checkout they lie beside it."""
    package = Path(__file__).parent.parent
    for folder in (package / "netlists", package.parent / "netlists"):
        found = sorted(str(path) for path in folder.glob("*.yaml"))
        if found:
            return found
    raise HostError("the examples did not come along: name the netlists whose kernels are to be compiled")


def _folder() -> Path:
    from buda_emu.caches import own_caches

    try:
        return own_caches()
    except RuntimeError as error:
        raise HostError(f"nothing is kept between runs: {error}") from None


def _kept() -> "list[Kept]":
    from buda_emu.caches import kept

    _folder()
    return kept()


def _is_stale(item: "Kept") -> bool:
    """Kernels of another version or of sources that are no more. Netlists are found by what they depend on, and the
    oldest make room for others."""
    if item.kind != "kernels":
        return False
    from buda_emu.kernels.jit import cache_folder

    return item.path != cache_folder()
