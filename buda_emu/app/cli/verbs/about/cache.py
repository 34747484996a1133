"""`buda-emu cache`: show, fill and clear the caches that are kept between runs."""

import argparse
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from buda_emu.app.cli.output import Progress, complain, say
from buda_emu.app.cli.verbs.about.example import example_paths
from buda_emu.emulator.memory.host import size_text
from buda_emu.netlist.cache import MOST_BYTES
from buda_emu.netlist.load import load
from buda_emu.report.terminal.text import table
from buda_emu.spec.precision import PRECISIONS
from buda_emu.support.caches import is_private, own_caches
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import BudaError, HostError

if TYPE_CHECKING:
    from buda_emu.arithmetic.jit.kernel import Compilation

EXAMPLE = "buda-emu cache info"
_FOLDER_NAME = re.compile(r"(kernels)-(.+)-[0-9a-f]{16}|(netlists|verdicts|sources|tables|last-time|last-failed)")
_STALE = "stale: of another version, or other sources"


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """A folder of the cache. `kind` is "kernels", "netlists", "verdicts", ...; `bytes` is the size of all its files."""

    path: Path
    kind: str
    version: str  # "" if files of all versions lie together
    files: int
    bytes: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `cache`, info, warm and clear, with their arguments."""
    actions = parser.add_subparsers(metavar="ACTION", title="actions")
    parser.set_defaults(action=_print_info)
    info = actions.add_parser(
        "info", help="list the caches, their folders, and what is stale (the default)", example=EXAMPLE
    )
    info.set_defaults(action=_print_info)
    warm = actions.add_parser("warm", help="compile the kernels that netlists need", example="buda-emu cache warm")
    warm.add_argument("file", nargs="*", metavar="FILE", help="netlists; default: the examples that come along")
    warm.set_defaults(action=_warm)
    clear = actions.add_parser(
        "clear", help="delete the caches; other programs' files stay", example="buda-emu cache clear --stale"
    )
    clear.add_argument("--stale", action="store_true", help="only files that no run of this version will use")
    clear.set_defaults(action=_clear)


def main(args: argparse.Namespace) -> int:
    """Run an action. Exit code 0; failures are raised, but `warm` continues with the next netlist and returns the first
    code."""
    return args.action(args)


def _print_info(_: argparse.Namespace) -> int:
    """Print the folders of the cache with their sizes, and which of them are stale. Returns exit code 0."""
    folders = _list_folders()
    rows = [
        (folder.kind, folder.version or "-", str(folder.files), size_text(folder.bytes), _describe_state(folder))
        for folder in folders
    ]
    say(f"{_caches_folder()}\n")
    headers = ("what", "version", "files", "size", "state")
    if rows:
        say(table(headers, rows, right=(2, 3), prose=(4,)))
    else:
        say("nothing is kept")
    stale = [folder for folder in folders if _is_stale(folder)]
    if stale:
        say(f"\n`buda-emu cache clear --stale` frees {size_text(sum(folder.bytes for folder in stale))}")
    return 0


def _describe_state(folder: CacheFolder) -> str:
    """Return for a table what a folder is in use for, or that it is stale."""
    if _is_stale(folder):
        return _STALE
    states = {
        "netlists": f"in use, {size_text(MOST_BYTES)} at most",
        "verdicts": "in use (buda-emu test)",
        "last-time": "in use (buda-emu test --lf)",
    }
    return states.get(folder.kind, "in use")


def _clear(args: argparse.Namespace) -> int:
    """Delete the folders of the cache, with --stale only the stale ones, and print how much that was. Returns exit code
    0."""
    deleted = [folder for folder in _list_folders() if not args.stale or _is_stale(folder)]
    for folder in deleted:
        _remove(folder)
    count = sum(folder.files for folder in deleted)
    say(f"{plural(count, 'file')}, {size_text(sum(folder.bytes for folder in deleted))} deleted")
    return 0


def _warm(args: argparse.Namespace) -> int:
    """Compile the kernels that the given netlists need, by default those of the examples and of the compiler's search.
    Returns the exit code of the first netlist that failed, else 0. Raises HostError where no kernels can be kept."""
    from buda_emu.arithmetic.jit.kernel import cache_folder

    if cache_folder() is None:
        raise HostError(f"{_caches_folder()} keeps no kernels: it cannot be written, or others can write there, too")
    if args.file:
        return _warm_netlists(args.file)
    examples = [str(path) for name, path in example_paths().items() if "/" not in name]
    code = _warm_netlists(examples)
    from buda_emu.app.cli.search_kernels import compile_search_kernels

    with Progress() as progress:
        compiled = compile_search_kernels(progress.report)
    complain(f"compile: {_compiled_text(compiled)}")
    return code


def _warm_netlists(files: Sequence[str]) -> int:
    """Run netlists, print how many kernels were compiled for each, and return the exit code of the first that failed,
    else 0."""
    from buda_emu.arithmetic.jit.reporting import reported_kernels

    code = 0
    start = time.perf_counter()
    with Progress() as progress, reported_kernels(progress.report) as (_, compiled):
        for number, file in enumerate(files):
            progress.bar(number, len(files), time.perf_counter() - start, "netlists")
            before = len(compiled)
            try:
                _run_in_every_precision(file)
            except BudaError as error:
                complain(f"buda-emu: {file}: {error}")
                code = code or error.exit_code
            progress.clear()
            say(f"{file}: {_compiled_text(compiled[before:])}")
    return code


def _compiled_text(compiled: "Sequence[Compilation]") -> str:
    """Return how many kernels were compiled, and how long they took."""
    seconds = sum(compilation.seconds for compilation in compiled)
    return f"{plural(len(compiled), 'kernel')} compiled, {seconds:.1f} s"


def _run_in_every_precision(file: str) -> None:
    """Run a netlist in every precision, and model its cycles, so that all kernels that it needs are compiled."""
    from buda_emu.app.api.perf import perf
    from buda_emu.app.api.run_netlist import run_netlist

    netlist = load(file)
    for precision in PRECISIONS:
        run_netlist(netlist, precision=precision, origins=False)
    perf(netlist)


def _caches_folder() -> Path:
    """Return the folder that holds all caches; it may not exist. Raises HostError if this user has none."""
    try:
        return Path(own_caches())
    except RuntimeError as error:
        raise HostError(f"nothing is kept between runs: {error}") from None


def _list_folders() -> list[CacheFolder]:
    """Return the folders of the cache. Links, and folders of other programs or users, are left out."""
    folder = _caches_folder()
    folders: list[CacheFolder] = []
    if not folder.is_dir():
        return []
    for path in sorted(folder.iterdir()):
        name = _FOLDER_NAME.fullmatch(path.name)
        if name is not None and is_private(path):
            sizes = list(_file_sizes(path))
            folders.append(
                CacheFolder(
                    path=path, kind=name[1] or name[3], version=name[2] or "", files=len(sizes), bytes=sum(sizes)
                )
            )
    return folders


def _file_sizes(folder: Path) -> Iterator[int]:
    """Yield the size of every file below a folder in bytes, except for files that vanish meanwhile."""
    for path in folder.rglob("*"):
        try:
            status = path.lstat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            yield status.st_size


def _remove(folder: CacheFolder) -> None:
    """Delete a folder with all its files; processes that use it go on without. Raises OSError."""
    try:
        shutil.rmtree(folder.path)
    except FileNotFoundError:  # another process deletes, too
        shutil.rmtree(folder.path, ignore_errors=True)


def _is_stale(folder: CacheFolder) -> bool:
    """Return whether no run of this version will use a folder: kernels of another version or of changed sources, and
    what an earlier version remembered of the last test. Netlists and verdicts never are: they are found by their
    content, and the oldest make room."""
    if folder.kind != "kernels":
        return folder.kind == "last-failed"
    from buda_emu.arithmetic.jit.kernel import cache_folder

    return folder.path != cache_folder()
