"""`buda-emu cache`: what is kept between runs."""

import argparse
import re
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from buda_emu.app.api.examples import example_paths
from buda_emu.app.cli.output import Progress, complain, say
from buda_emu.emulator.memory.host import size_text
from buda_emu.netlist.cache import MOST_BYTES
from buda_emu.netlist.load import load
from buda_emu.report.terminal.text import table
from buda_emu.spec.precision import PRECISIONS
from buda_emu.support.caches import is_private, own_caches
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import BudaError, HostError

EXAMPLE = "buda-emu cache info"
_OURS = re.compile(r"(kernels)-(.+)-[0-9a-f]{16}|(netlists|verdicts|sources|tables|last-time|last-failed)")
_STALE = "stale: of another version, or other sources"


@dataclass(frozen=True, slots=True)
class Kept:
    """One folder of what this package keeps: "kernels" of one version, "netlists", "verdicts", ..."""

    path: Path
    kind: str
    version: str  # "" where files of all versions lie together
    files: int
    bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    parser.set_defaults(action=_info)
    info = actions.add_parser(
        "info", help="list the caches, their folders, and what is stale (the default)", example=EXAMPLE
    )
    info.set_defaults(action=_info)
    warm = actions.add_parser("warm", help="compile the kernels that netlists need", example="buda-emu cache warm")
    warm.add_argument("file", nargs="*", metavar="FILE", help="netlists; default: the examples that come along")
    warm.set_defaults(action=_warm)
    clear = actions.add_parser(
        "clear", help="delete the caches; other programs' files stay", example="buda-emu cache clear --stale"
    )
    clear.add_argument("--stale", action="store_true", help="only files that no run of this version will use")
    clear.set_defaults(action=_clear)


def main(args: argparse.Namespace) -> int:
    """Do it. Exit code 0; failures are raised, but `warm` goes on to the next netlist."""
    return args.action(args)


def _info(_: argparse.Namespace) -> int:
    found = _kept()
    in_use = {
        "netlists": f"in use, {size_text(MOST_BYTES)} at most",
        "verdicts": "in use (buda-emu test)",
        "last-time": "in use (buda-emu test --lf)",
    }
    rows = [
        (
            item.kind,
            item.version or "-",
            str(item.files),
            size_text(item.bytes),
            _STALE if _is_stale(item) else in_use.get(item.kind, "in use"),
        )
        for item in found
    ]
    say(f"{_folder()}\n")
    headers = ("what", "version", "files", "size", "state")
    say(table(headers, rows, right=(2, 3), prose=(4,)) if rows else "nothing is kept")
    stale = [item for item in found if _is_stale(item)]
    if stale:
        say(f"\n`buda-emu cache clear --stale` frees {size_text(sum(item.bytes for item in stale))}")
    return 0


def _clear(args: argparse.Namespace) -> int:
    gone = [item for item in _kept() if not args.stale or _is_stale(item)]
    for item in gone:
        _remove(item)
    count = sum(item.files for item in gone)
    say(f"{plural(count, 'file')}, {size_text(sum(item.bytes for item in gone))} deleted")
    return 0


def _warm(args: argparse.Namespace) -> int:
    from buda_emu.arithmetic.jit.kernel import cache_folder, compilations

    if cache_folder() is None:
        raise HostError(f"{_folder()} keeps no kernels: it cannot be written, or others can write there, too")
    files = args.file or [str(path) for name, path in example_paths().items() if "/" not in name]
    progress = Progress()
    code = 0
    start = time.perf_counter()
    with compilations(lambda name: progress.show(f"compiling {name}")) as compiled:
        for number, file in enumerate(files):
            progress.bar(number, len(files), time.perf_counter() - start, "netlists")
            before = len(compiled)
            try:
                _run(file)
            except BudaError as error:
                complain(f"buda-emu: {file}: {error}")
                code = code or error.exit_code
            progress.clear()
            own = compiled[before:]
            kernels = f"{plural(len(own), 'kernel')} compiled"
            say(f"{file}: {kernels}, {sum(item.seconds for item in own):.1f} s")
    return code


def _run(file: str) -> None:
    """Run a netlist in every precision, the device's last: kernels are compiled when they are first needed."""
    from buda_emu.app.api.run_netlist import run_netlist

    netlist = load(file)
    for precision in PRECISIONS:
        run_netlist(netlist, precision=precision)


def _folder() -> Path:
    try:
        return Path(own_caches())
    except RuntimeError as error:
        raise HostError(f"nothing is kept between runs: {error}") from None


def _kept() -> list[Kept]:
    """All that there is, by kind and version. Other files, and links, are not ours."""
    folder = _folder()
    found: list[Kept] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = _OURS.fullmatch(path.name)
        if name is not None and is_private(path):
            sizes = list(_sizes(path))
            found.append(
                Kept(path=path, kind=name[1] or name[3], version=name[2] or "", files=len(sizes), bytes=sum(sizes))
            )
    return found


def _sizes(folder: Path) -> Iterator[int]:
    """Bytes of every file below; one that vanishes meanwhile is not counted."""
    for path in folder.rglob("*"):
        try:
            found = path.lstat()
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield found.st_size


def _remove(folder: Kept) -> None:
    """Delete it with all files. Processes that use it go on without. Raises OSError."""
    try:
        shutil.rmtree(folder.path)
    except FileNotFoundError:  # another process deletes, too
        shutil.rmtree(folder.path, ignore_errors=True)


def _is_stale(item: Kept) -> bool:
    """Kernels of another version or of sources that are no more; what an earlier version knew of the last test.
    Netlists and verdicts are found by what they depend on, and the oldest make room for others."""
    if item.kind != "kernels":
        return item.kind == "last-failed"
    from buda_emu.arithmetic.jit.kernel import cache_folder

    return item.path != cache_folder()
