"""`buda-emu generate`: write random valid netlists, for tests of backends, kernels and compilers."""

import argparse
import shlex
import time
from pathlib import Path

from buda_emu.app.cli.output import Progress, say, write_text
from buda_emu.emulator.inputs.feed import seed_of
from buda_emu.spec.archs import DEFAULT_ARCH
from buda_emu.support.output_places import make_folder
from buda_emu.testing.coverage.report import Coverage, read
from buda_emu.testing.generator.netlist import GENERATED, Budget, generate
from buda_emu.testing.generator.steering import EVERY, Steering
from buda_emu.testing.mutants import broken


def main(args: argparse.Namespace) -> int:
    """Generate netlists. Exit code 0; failures are raised."""
    budget = Budget(args.ops, args.graphs, args.tiles, args.microbatch)
    make_folder(args.output)
    if args.rule is not None:
        return _generate_mutants(args)
    if args.for_coverage is not None:
        return _generate_for_coverage(args, budget)
    types = GENERATED
    if args.types:
        types = tuple(args.types.split(","))
    start = time.perf_counter()
    arch = args.arch or DEFAULT_ARCH
    ops = 0
    with Progress(args.quiet) as progress:
        for number in range(args.first, args.first + args.count):
            generated = generate(seed_of(args.seed, number), arch=arch, budget=budget, op_types=types)
            write_text(args.output / f"generated_{args.seed}_{number}.yaml", generated.text)
            ops += len(generated.netlist.ops)
            progress.bar(number - args.first + 1, args.count, time.perf_counter() - start, "netlists")
    if not args.quiet:
        say(f"{args.output}: {args.count} netlists with {ops} ops")
        _print_comparison_hint(args.output)
    return 0


def _print_comparison_hint(folder: Path) -> None:
    """Print which comparisons suit the random netlists in a folder."""
    say(
        "most of them fail a comparison with float32, as `buda-emu test` makes it: their formats are drawn without "
        "regard to accuracy"
    )
    name = shlex.quote(str(folder))
    say(f"compare with a backend's tensors: buda-emu test {name} --precision format --reference DIR")
    say(f"or with an earlier run: buda-emu test {name} --baseline FILE")


def _generate_mutants(args: argparse.Namespace) -> int:
    """Write pairs of a valid netlist and a mutant of it that breaks the rule of --break. Returns exit code 0."""
    for number in range(args.first, args.first + args.count):
        mutant = broken(args.rule, seed=seed_of(args.seed, number))
        name = f"generated_{args.seed}_{number}"
        write_text(args.output / f"{name}.yaml", mutant.valid)
        write_text(args.output / f"{name}.{args.rule}.yaml", mutant.text)
    if not args.quiet:
        say(f"{args.output}: {args.count} netlists, and as many that break {args.rule}")
    return 0


def _generate_for_coverage(args: argparse.Namespace, budget: Budget) -> int:
    """Write netlists that each exercise a feature which the coverage file lacks, until all that can be reached are
    covered; print those that cannot. Returns exit code 0."""
    coverage = Coverage()
    if args.for_coverage.exists():
        coverage = read(args.for_coverage)
    before = coverage.percent
    start = coverage.netlists
    archs = (args.arch,) if args.arch else EVERY
    steering = Steering(coverage, archs, seed_of(args.seed, args.first), budget=budget)
    with Progress(args.quiet) as progress:
        for generated in steering.netlists():
            write_text(args.output / f"steered_{args.seed}_{coverage.netlists - start}.yaml", generated.text)
            progress.show(f"{coverage.percent:.1f} % of the language")
    if not args.quiet:
        count = coverage.netlists - start
        say(f"{args.output}: {count} netlists, with them {coverage.percent:.1f} % of the language, {before:.1f} before")
        for name, rules in steering.unreached.items():
            refusal = f", refused by {', '.join(rules)}" if rules else ""
            say(f"  not reached: {name}{refusal}")
    return 0
