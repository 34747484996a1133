"""`buda-emu darwinn verify`: does a package hold a model."""

import argparse
from dataclasses import asdict

from buda_emu.app.cli.output import say, say_json
from buda_emu.foreign import darwinn
from buda_emu.support.errors import Exit


def main(args: argparse.Namespace) -> int:
    """Compare. Exit code 0 when the package holds the model, 1 when not."""
    found = darwinn.verify(darwinn.load(args.file), args.source)
    if args.json:
        say_json({"path": args.file, "source": args.source, "matches": found.matches, **asdict(found)})
        return Exit.OK if found.matches else Exit.DIFFERS
    say(f"layers   {'agree' if found.layers else 'do not agree'}")
    for line in found.differences:
        say(f"         {line}")
    say(f"weights  {found.weights - found.weights_missing:,} of {found.weights:,} bytes are there")
    say(f"biases   {found.biases_found} of {found.biases} found")
    say(f"{args.file} {'holds' if found.matches else 'does not hold'} {args.source}")
    return Exit.OK if found.matches else Exit.DIFFERS
