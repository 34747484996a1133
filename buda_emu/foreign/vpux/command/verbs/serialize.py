"""`buda-emu vpux serialize`: print the design document's structures as JSON."""

import argparse

from buda_emu.app.cli.output import say_json, write_json
from buda_emu.foreign.vpux import load
from buda_emu.foreign.vpux.serialized import serialize
from buda_emu.support.errors import HostError
from buda_emu.support.files import read_whole
from buda_emu.support.version import RESULT_VERSION


def main(args: argparse.Namespace) -> int:
    """Print a function's kernels, invocations, tasks and runtime as JSON, or write them to a file. Exit code 2 for
    a document that is refused."""
    code: dict[str, bytes] = {}
    for word in args.code:
        name, _, file = word.partition("=")
        if not name or not file:
            raise HostError(f"--code {word}: expected KERNEL=FILE")
        code[name] = read_whole(file)
    content = serialize(load(args.file), args.function, args.split, code, args.arch)
    if args.out is not None:
        write_json(args.out, {"schema_version": RESULT_VERSION, **content})
    else:
        say_json(content)
    return 0
