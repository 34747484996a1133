"""`buda-emu darwinn run`: requests replayed, and with a reference computed."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from buda_emu.app.cli.output import say, say_json, say_lines, write_json, write_output, write_picture
from buda_emu.emulator.inputs.numpy_files import read_npy
from buda_emu.foreign import darwinn
from buda_emu.foreign.darwinn.assumptions import SRAM_BYTES
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.picture import replay_picture
from buda_emu.foreign.darwinn.report import replay_json, replay_lines
from buda_emu.support.checker.text import short_line
from buda_emu.support.errors import HostError

_LONGEST_STEM = 100  # of file names


def main(args: argparse.Namespace) -> int:
    """Replay, report, compute. Exit code 2 where the driver fails a request."""
    packages = [darwinn.load(name) for name in args.file]
    outputs: list[dict[str, Any]] = []
    if args.reference is not None:
        outputs = _compute(args, packages[0])
        if args.requests is None:
            if args.json:
                say_json({"outputs": outputs})
            return 0
    elif args.input or args.whole or args.output:
        raise HostError(
            "outputs need a --reference, the uncompiled .tflite: the Edge TPU's instructions are not public, and no "
            "outputs are invented"
        )
    found = darwinn.replay(
        packages,
        _requests(args.requests, len(packages)),
        transport=args.transport,
        overlap=not args.no_overlap,
        link=_word_or_number(args.link),
        frequency_hz=_word_or_number(args.clock),
        sram_bytes=SRAM_BYTES if args.sram is None else args.sram,
    )
    if args.json:
        say_json({**replay_json(found), "outputs": outputs})
    else:
        say_lines(replay_lines(found))
    for path in _pictures(args):
        write_picture(path, replay_picture(found))
    if args.report is not None:
        write_json(args.report / "replay.json", replay_json(found))
        if not args.json:
            say(f"report: {args.report / 'replay.html'}")
    return 0


def _pictures(args: argparse.Namespace) -> list[Path]:
    """Where the timeline is written to; makes the report's folder."""
    found = [args.trace] if args.trace is not None else []
    if args.report is not None:
        args.report.mkdir(parents=True, exist_ok=True)
        found += [args.report / "replay.html", args.report / "trace.json"]
    return found


def _requests(text: str | None, count: int) -> list[int]:
    if text is None:
        return list(range(count))
    try:
        return [int(item) for item in text.split(",")]
    except ValueError:
        raise HostError(f"--requests {text}: expected numbers of files such as 0,1,0") from None


def _word_or_number(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _compute(args: argparse.Namespace, package: Package) -> list[dict[str, Any]]:
    """Outputs by the reference, written and named."""
    twin = darwinn.Twin(args.reference)
    feeds: dict[str, Any] = {}
    found: list[dict[str, Any]] = []
    stems: set[str] = set()
    for text in args.input:
        name, equals, file = text.rpartition("=")
        if not equals:
            raise HostError(f"--input {text}: expected NAME=FILE.npy")
        feeds[name] = read_npy(Path(file))
    for name, array in darwinn.run(package, feeds, reference=twin, whole=args.whole).items():
        path = None
        if args.output is not None:
            args.output.mkdir(parents=True, exist_ok=True)
            stem = "".join(c if c.isalnum() else "_" for c in name)[:_LONGEST_STEM]
            path = args.output / (f"{stem}.npy" if stem not in stems else f"{stem}_{len(stems)}.npy")
            stems.add(stem)
            write_output(path, lambda stream, array=array: np.save(stream, array))
        found.append(
            {
                "name": name,
                "dtype": str(array.dtype),
                "shape": list(array.shape),
                "computed_by": "reference",
                "path": None if path is None else str(path),
            }
        )
        if not args.json:
            where = "" if path is None else f": {path}"
            what = f"{array.dtype} {list(array.shape)}, computed by the reference, not by a device"
            say(f"{short_line(name)}: {what}{where}")
    return found
