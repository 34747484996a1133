"""Verbs of `buda-emu darwinn` on what a device does: `run` replays requests, and computes outputs where a reference
model is given; `relayout` turns an output's bytes on the device into an array."""

import argparse
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

import numpy as np

from buda_emu.app.cli.output import say, say_json, say_lines, write_json, write_output, write_picture
from buda_emu.emulator.inputs.numpy_files import read_npy
from buda_emu.foreign import darwinn
from buda_emu.foreign.darwinn.assumptions import SRAM_BYTES, Assumptions
from buda_emu.foreign.darwinn.model import Package
from buda_emu.foreign.darwinn.picture import replay_picture
from buda_emu.foreign.darwinn.replaying import Event, Eviction, Replay
from buda_emu.foreign.darwinn.report import hazards_of, replay_lines
from buda_emu.performance.timeline.order import Hazard
from buda_emu.support.checker.suggest import near
from buda_emu.support.checker.text import short_line
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_whole
from buda_emu.support.output_places import make_folder

_LONGEST_STEM = 100  # of file names
REPLAY: Final = Columns[Replay](
    Column("assumptions", Columns[Assumptions](Assumptions), lambda replay: replay.assumptions),
    Column("packages", list[str], lambda replay: replay.packages),
    Column("requests", list[int], lambda replay: replay.requests),
    Column("events", list[Event], lambda replay: replay.events),
    Column("evictions", list[Eviction], lambda replay: replay.evictions),
    Column("resets", list[int], lambda replay: replay.resets),
    Column("tokens", list[int], lambda replay: [outcome.token for outcome in replay.outcomes]),
    Column("resident", list[int], lambda replay: [outcome.resident for outcome in replay.outcomes]),
    Column("bytes", dict[str, int], lambda replay: replay.bytes),
    Column("request_end_ns", list[int], lambda replay: [outcome.end for outcome in replay.outcomes]),
    Column("unknown_compute", int, lambda replay: replay.unknown_compute),
    Column("warnings", list[str], lambda replay: replay.warnings),
    Column("hazards", list[Hazard] | None, hazards_of),
)
"""A replay in JSON, with everything but single DMAs."""


class Output(TypedDict):
    """An output that the reference model computed, and the file that it was written to."""

    dtype: str
    shape: list[int]
    name: str
    computed_by: Literal["reference"]
    path: str | None


def run_verb(args: argparse.Namespace) -> int:
    """Replay the requests, print and write the report, compute outputs by the reference. Exit code 2 where the driver
    fails a request."""
    packages = [darwinn.load(name) for name in args.file]
    outputs = _compute_outputs(args, packages[0])
    if args.reference is not None and args.requests is None:
        if args.json:
            say_json({"outputs": outputs})
        return 0
    replay = darwinn.replay(
        packages,
        _requests(args.requests, len(packages)),
        transport=args.transport,
        overlap=not args.no_overlap,
        link=_word_or_number(args.link),
        frequency_hz=_word_or_number(args.clock),
        sram_bytes=SRAM_BYTES if args.sram is None else args.sram,
    )
    if args.json:
        say_json({**REPLAY.as_json(replay), "outputs": outputs})
    else:
        say_lines(replay_lines(replay))
    for path in _picture_paths(args):
        write_picture(path, replay_picture(replay))
    if args.report is not None:
        write_json(args.report / "replay.json", REPLAY.document(replay))
        if not args.json:
            say(f"report: {args.report / 'replay.html'}")
    return 0


def _compute_outputs(args: argparse.Namespace, package: Package) -> list[Output]:
    """Return the outputs that the reference computes for a package, none without one. Raises HostError for arguments
    that need a reference."""
    if args.reference is not None:
        return _compute(args, package)
    if args.input or args.whole or args.output:
        raise HostError(
            "outputs need a --reference, the uncompiled .tflite: the Edge TPU's instructions are not public, and no "
            "outputs are invented"
        )
    return []


def _picture_paths(args: argparse.Namespace) -> list[Path]:
    """Return the files that the timeline is written to. Creates the report's folder."""
    paths = [args.trace] if args.trace is not None else []
    if args.report is not None:
        make_folder(args.report)
        paths += [args.report / "replay.html", args.report / "trace.json"]
    return paths


def _requests(text: str | None, count: int) -> list[int]:
    """Parse `--requests N,N,...` into numbers of packages; without it, each of the `count` packages is requested
    once. Raises HostError for another text."""
    if text is None:
        return list(range(count))
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise HostError(f"--requests {text}: expected numbers of files such as 0,1,0") from None


def _word_or_number(text: str | None) -> str | int | None:
    """Return the number of a decimal text, such as bytes per second; a name and None are returned unchanged."""
    if text is not None and text.isdecimal():
        return int(text)
    return text


def _compute(args: argparse.Namespace, package: Package) -> list[Output]:
    """Compute the outputs by the reference model, write them where a folder is given, and return their JSON rows.
    Raises HostError for an `--input` that is not NAME=FILE.npy."""
    twin = darwinn.Twin(args.reference)
    feeds: dict[str, Any] = {}
    rows: list[Output] = []
    stems: set[str] = set()
    for text in args.input:
        name, equals, file = text.rpartition("=")
        if not equals:
            raise HostError(f"--input {text}: expected NAME=FILE.npy")
        feeds[name] = read_npy(Path(file))
    for name, array in darwinn.run(package, feeds, reference=twin, whole=args.whole).items():
        path = None
        if args.output is not None:
            path = _write_array(args.output, name, array, stems)
        rows.append(
            {
                "name": name,
                "dtype": str(array.dtype),
                "shape": list(array.shape),
                "computed_by": "reference",
                "path": None if path is None else str(path),
            }
        )
        if not args.json:
            origin = f"{array.dtype} {list(array.shape)}, computed by the reference, not by a device"
            suffix = "" if path is None else f": {path}"
            say(f"{short_line(name)}: {origin}{suffix}")
    return rows


def _write_array(folder: Path, name: str, array: np.ndarray, stems: set[str]) -> Path:
    """Write an array to a file named after it and return the path. `stems` holds the names in use and grows by one."""
    make_folder(folder)
    stem = "".join(c if c.isalnum() else "_" for c in name)[:_LONGEST_STEM]
    path = folder / (f"{stem}.npy" if stem not in stems else f"{stem}_{len(stems)}.npy")
    stems.add(stem)
    write_output(path, lambda stream: np.save(stream, array))
    return path


class Relayouted(TypedDict):
    """The JSON document that `darwinn relayout --json` prints."""

    path: str
    layer: str
    dtype: str
    shape: list[int]


def relayout_verb(args: argparse.Namespace) -> int:
    """Convert the bytes of an output to an array in its natural order and write it as `.npy`."""
    outputs = darwinn.load(args.file).main.outputs
    layer = next((output for output in outputs if output.name == args.layer), None)
    if layer is None:
        names = [output.name or "" for output in outputs]
        raise HostError(f"no output {args.layer!r} {near(args.layer, names) or 'among ' + ', '.join(names)}")
    array = darwinn.relayout(layer, read_whole(args.raw))
    if args.real:
        array = darwinn.dequantize(layer, array)
    write_output(args.output, lambda stream: np.save(stream, array))
    if args.json:
        content: Relayouted = {
            "path": args.file,
            "layer": args.layer,
            "dtype": str(array.dtype),
            "shape": list(array.shape),
        }
        say_json(content)
    else:
        say(f"{args.output}: {array.dtype} {list(array.shape)}")
    return 0
