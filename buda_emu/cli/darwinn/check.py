"""`buda-emu darwinn check`: packages against the rules."""

import argparse
from pathlib import Path

from buda_emu.cli.darwinn.arguments import add_json, say_json
from buda_emu.cli.findings import add_choice, told
from buda_emu.cli.output import say
from buda_emu.screen import current

EXAMPLE = "buda-emu darwinn check model_edgetpu.tflite models/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument(
        "file", nargs="+", metavar="FILE", help="compiled .tflite files, bare packages, folders that hold some"
    )
    parser.add_argument("--runtime", type=int, metavar="N", help="judge as a driver of this version does (14)")
    add_choice(parser)
    add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Check every file. Exit code 0 when the verdict of all is ok and nothing was made an error, 2 otherwise."""
    from buda_emu.checker.render import as_json, render, render_one
    from buda_emu.darwinn.checking import check
    from buda_emu.darwinn.reading import RUNTIME
    from buda_emu.errors import HostError

    files = [name for given in args.file for name in _files(given)]
    if not files:
        raise HostError(f"{', '.join(args.file)}: no folder of these holds a package")
    runtime = RUNTIME if args.runtime is None else args.runtime
    reports = [check(name, runtime=runtime) for name in files]
    of_file = [told(report.diagnostics, args) for report in reports]
    found = [item for items in of_file for item in items]
    if args.json:
        verdicts = [{"path": report.path, "verdict": report.verdict} for report in reports]
        say_json({**as_json(found), "runtime": runtime, "files": verdicts})
    else:
        for report, items in zip(reports, of_file, strict=True):
            for item in items:
                say(render_one(item, current()))
            say(f"{report.path}: {report.verdict}")
        if found:
            say(render(found).splitlines()[-1])
    bad = any(item.severity == "error" for item in found)
    return 2 if bad or any(report.verdict != "ok" for report in reports) else 0


def _files(given: str) -> list[str]:
    """A file as it is; of a folder, every file below that holds a package, told by its content."""
    path = Path(given)
    if not path.is_dir():
        return [given]
    return [str(item) for item in sorted(path.rglob("*")) if item.is_file() and _holds_package(item)]


def _holds_package(path: Path) -> bool:
    from buda_emu.darwinn.container import holds_package

    with path.open("rb") as stream:
        return holds_package(stream.read(8), path.read_bytes)
