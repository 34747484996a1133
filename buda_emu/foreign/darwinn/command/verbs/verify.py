"""`buda-emu darwinn verify`: compares a package with the model that it was compiled from."""

import argparse
from dataclasses import asdict

from buda_emu.app.cli.output import say, say_json
from buda_emu.foreign import darwinn
from buda_emu.support.errors import Exit


def main(args: argparse.Namespace) -> int:
    """Compare a package with an uncompiled model and print how they agree. Exit code 0 when the package holds the
    model, 1 when it does not."""
    verification = darwinn.verify(darwinn.load(args.file), args.source)
    if args.json:
        say_json({"path": args.file, "source": args.source, "matches": verification.matches, **asdict(verification)})
        if verification.matches:
            return Exit.OK
        return Exit.DIFFERS
    say(f"layers   {'agree' if verification.layers else 'do not agree'}")
    for line in verification.differences:
        say(f"         {line}")
    say(f"weights  {verification.weights - verification.weights_missing:,} of {verification.weights:,} bytes are there")
    say(f"biases   {verification.biases_found} of {verification.biases} found")
    say(f"{args.file} {'holds' if verification.matches else 'does not hold'} {args.source}")
    if verification.matches:
        return Exit.OK
    return Exit.DIFFERS
