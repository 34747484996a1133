"""`buda-emu pack`: write a device image."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from numpy.typing import NDArray

from buda_emu.app.cli.output import say, write_output
from buda_emu.emulator.image.pack import Contents, write_image
from buda_emu.emulator.inputs.numpy_files import map_npy, npz_of
from buda_emu.netlist.load import load
from buda_emu.support.checker.text import plural
from buda_emu.support.errors import HostError
from buda_emu.support.files import change_guard
from buda_emu.support.version import __version__

_SUFFIXES: Final = (".npy", ".npz")


def main(args: argparse.Namespace) -> int:
    """Pack a netlist and its tensors. Exit code 0; failures are raised, and leave no file."""
    if args.output.suffix.lower() != ".tti" and str(args.output) != "-":
        raise HostError(f"pack: {args.output} does not end in .tti, by which images are known")
    netlist = load(args.file, arch=args.arch)

    tensors, checks = _read_tensors(args.tensors)
    contents = Contents(
        netlist=netlist,
        netlist_text=Path(args.file).read_bytes(),
        tensors=tensors,
        name=args.name or (args.output.stem if args.output.suffix else Path(args.file).stem),
        version=args.pybuda_version or f"buda-emu {__version__}",
        form="BACKEND_TILIZED" if args.tilized else "BACKEND",
    )

    def write(stream: IO[bytes]) -> None:
        """Write the image to the stream, then check that none of its sources has changed meanwhile."""
        write_image(stream, contents, "zip" if args.zip else "tar")
        for check in checks:
            check()

    size = write_output(args.output, write)
    if not args.quiet:
        count = len(contents.tensors)
        tensors = plural(count, "tensor")
        say(f"{args.output}: {netlist.arch_name}, {tensors}, {contents.form}, {size} bytes")
    return 0


def _read_tensors(directory: Path) -> tuple[dict[str, NDArray[Any]], list[Callable[[], None]]]:
    """Return the arrays of a folder by the names of their queues, and functions that raise HostError if a file has been
    written to since. Raises HostError for a file without arrays, a suffix in capital letters, or a queue that occurs
    twice."""
    if not directory.is_dir():
        raise HostError(f"pack: {directory} is not a directory")
    tensors: dict[str, NDArray[Any]] = {}
    checks: list[Callable[[], None]] = []
    for path in sorted(path for path in directory.iterdir() if path.suffix.lower() in _SUFFIXES):
        if path.suffix not in _SUFFIXES:
            raise HostError(f"pack: {path}: the suffix has capital letters: rename it to {path.suffix.lower()}")
        arrays = _read_arrays(path)
        twice = sorted(tensors.keys() & arrays.keys())
        if twice:
            raise HostError(f"pack: {path} holds {twice[0]}, which another file of {directory} holds too")
        tensors |= arrays
        checks.append(change_guard(path))
    if not tensors:
        raise HostError(f"pack: no .npy or .npz file in {directory}")
    return tensors, checks


def _read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a .npz file, or the single one of a .npy file. Raises HostError."""
    if path.suffix == ".npz":
        return npz_of(str(path), path)
    return {path.name.removesuffix(".npy"): map_npy(path)}
