"""`buda-emu gemini exec`: run a schedule on real bytes."""

import argparse
from typing import Final

from buda_emu.app.cli.output import say, say_json
from buda_emu.foreign import gemini
from buda_emu.foreign.gemini.execution import Execution, Mismatch
from buda_emu.support.checker.text import plural
from buda_emu.support.columns import Column, Columns
from buda_emu.support.errors import Exit

_SHOWN = 20
EXECUTED: Final = Columns[tuple[int, Execution]](
    Column("ok", bool, lambda executed: executed[1].ok),
    Column("seed", int, lambda executed: executed[0]),
    Column("seeded_weights", list[str], lambda executed: executed[1].seeded),
    Column("digests", dict[str, str], lambda executed: executed[1].digests),
    Column("mismatches", list[Mismatch], lambda executed: executed[1].mismatches),
)
"""What `gemini exec --json` prints: the seed, and the run."""


def main(args: argparse.Namespace) -> int:
    """Run a schedule on real bytes and compare it with the un-tiled run of its network. Exit code 1 where a
    workload or an output differs."""
    run = gemini.execute(gemini.load(args.file), args.frontend, seed=args.seed)
    if args.json:
        say_json(EXECUTED.as_json((args.seed, run)))
        return Exit.OK if run.ok else Exit.DIFFERS
    for mismatch in run.mismatches[:_SHOWN]:
        say(f"mismatch: {mismatch}")
    if len(run.mismatches) > _SHOWN:
        say(f"and {len(run.mismatches) - _SHOWN} more")
    for name, digest in run.digests.items():
        say(f"{name}: sha256 {digest}")
    if run.seeded:
        say(f"weights of {plural(len(run.seeded), 'layer')} are seeded (seed {args.seed}): none were published")
    if not run.digests:
        say("DOUBTFUL: no output of the network reaches DRAM, so none was compared")
    say("every workload and output equals the un-tiled run" if run.ok else plural(len(run.mismatches), "mismatch"))
    return Exit.OK if run.ok else Exit.DIFFERS
