"""`buda-emu generate`: valid netlists at random, for tests of backends, kernels and compilers."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from buda_emu.cli.arguments import add_arch, add_seed, natural, positive
from buda_emu.cli.output import Progress, say, write_text
from buda_emu.spec.archs import DEFAULT_ARCH

if TYPE_CHECKING:
    from buda_emu.testing.generator.netlist import Budget

EXAMPLE = "buda-emu generate -o netlists/ --count 100 --types matmul,exp"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's own arguments."""
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where netlists are written")
    parser.add_argument("--count", type=positive, default=10, metavar="N", help="how many (default 10)")
    add_seed(parser)
    add_arch(parser)
    parser.add_argument("--types", metavar="OP,...", help="op types to draw from; default: all that run")
    parser.add_argument("--ops", type=positive, default=6, metavar="N", help="ops of a netlist, at most (default 6)")
    parser.add_argument("--graphs", type=positive, default=2, metavar="N", help="graphs, at most (default 2)")
    parser.add_argument("--tiles", type=positive, default=12, metavar="N", help="tiles of a result (default 12)")
    parser.add_argument("--microbatch", type=positive, default=3, metavar="N", help="inputs of an execute (default 3)")
    parser.add_argument("--first", type=natural, default=0, metavar="N", help="number of the first one (default 0)")
    parser.add_argument(
        "--for-coverage", type=Path, metavar="FILE",
        help="write netlists that have what this file of `test --coverage` lacks; a file that is not there lacks all",
    )  # fmt: skip
    parser.add_argument(
        "--break", dest="rule", metavar="RULE",
        help="write, beside each valid netlist, one that breaks this rule of the checker and no other",
    )  # fmt: skip
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing")


def main(args: argparse.Namespace) -> int:
    """Generate. Exit code 0; failures are raised."""
    from buda_emu.testing.generator.netlist import GENERATED, Budget, generate
    from buda_emu.verify.inputs.seeds import seed_of

    budget = Budget(args.ops, args.graphs, args.tiles, args.microbatch)
    args.output.mkdir(parents=True, exist_ok=True)
    if args.rule is not None:
        return _that_break(args)
    if args.for_coverage is not None:
        return _for_coverage(args, budget)
    types = tuple(args.types.split(",")) if args.types else GENERATED
    progress, start = Progress(args.quiet), time.perf_counter()
    ops = 0
    for number in range(args.first, args.first + args.count):
        made = generate(seed_of(args.seed, number), arch=args.arch or DEFAULT_ARCH, budget=budget, op_types=types)
        write_text(args.output / f"generated_{args.seed}_{number}.yaml", made.text)
        ops += len(made.netlist.ops)
        progress.bar(number - args.first + 1, args.count, time.perf_counter() - start, "netlists")
    progress.clear()
    if not args.quiet:
        say(f"{args.output}: {args.count} netlists with {ops} ops")
    return 0


def _that_break(args: argparse.Namespace) -> int:
    """Pairs of a valid netlist and a mutant of it."""
    from buda_emu.testing.mutants import broken
    from buda_emu.verify.inputs.seeds import seed_of

    for number in range(args.first, args.first + args.count):
        made = broken(args.rule, seed=seed_of(args.seed, number))
        name = f"generated_{args.seed}_{number}"
        write_text(args.output / f"{name}.yaml", made.valid)
        write_text(args.output / f"{name}.{args.rule}.yaml", made.text)
    if not args.quiet:
        say(f"{args.output}: {args.count} netlists, and as many that break {args.rule}")
    return 0


def _for_coverage(args: argparse.Namespace, budget: "Budget") -> int:
    """One netlist after the other, each with something new, until nothing is lacking that can be reached."""
    from buda_emu.coverage.report import Coverage, read
    from buda_emu.testing.generator.steering import EVERY, Steering
    from buda_emu.verify.inputs.seeds import seed_of

    coverage = read(args.for_coverage) if args.for_coverage.exists() else Coverage()
    before, start = coverage.percent, coverage.netlists
    archs = (args.arch,) if args.arch else EVERY
    steering = Steering(coverage, archs, seed_of(args.seed, args.first), budget=budget)
    progress = Progress(args.quiet)
    for made in steering.netlists():
        write_text(args.output / f"steered_{args.seed}_{coverage.netlists - start}.yaml", made.text)
        progress.show(f"{coverage.percent:.1f} % of the language")
    progress.clear()
    if not args.quiet:
        count = coverage.netlists - start
        say(f"{args.output}: {count} netlists, with them {coverage.percent:.1f} % of the language, {before:.1f} before")
        for name, rules in steering.unreached.items():
            by = f", refused by {', '.join(rules)}" if rules else ""
            say(f"  not reached: {name}{by}")
    return 0
