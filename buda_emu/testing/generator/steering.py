"""Generation of netlists with the features that a coverage lacks (docs/stress/generate-netlists.md)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from random import Random
from typing import Final

from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.spec.formats import FORMATS, is_integer, is_raw
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import HostError
from buda_emu.support.records import dataclass
from buda_emu.testing.coverage.features import features, lists
from buda_emu.testing.coverage.report import Coverage
from buda_emu.testing.generator.draft import Draw, parts
from buda_emu.testing.generator.netlist import GENERATED, Budget, Generated, generate
from buda_emu.testing.verify.runs.collect import Case, Settings
from buda_emu.testing.verify.runs.run_case import run_case

EVERY: Final = (DEFAULT_ARCH, *(name for name, arch in ARCHS.items() if arch.documented and name != DEFAULT_ARCH))
_TINY: Final = Budget(ops=2, graphs=1, tiles=6, inputs=2)
_STRIDE: Final = 101
"""Distance in the list of two names that follow each other, so that neighbours do not: a prime number, which does not
divide the number of names."""
_ALIKE: Final = ("relu_threshold", "relu_mode", "sfpu_execution_thread")
"""Attributes with the same meaning on every op type: other draws bring them."""
_OF_RUNS: Final = ("queues and rams", "device steps")
"""Lists of events of a run: netlists are drawn that may have them, and run as `buda-emu test` does."""
_HINTS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "add onto Dst": (("add", "subtract"), ("gradient op",)),
    "multiply onto Dst": (("multiply",), ("gradient op",)),
    "pick lines": (("matmul",), ("identity", "sparse", "b")),
    "pick lines into L1": (("matmul",), ("identity", "sparse", "l1_acc", "b", "Float16_b")),
    "add in L1": (("matmul",), ("l1_acc",)),
    "pool r": (("reduce",), ()),
    "pool c": (("reduce",), ()),
    "recode": (("nop",), ("Float16_b", "b")),
    "integer copy to Dst": (("nop",), ("integers",)),
    "integer subtract": (("subtract",), ("integers",)),
    "integer multiply": (("multiply",), ("integers",)),
    "integer matmul": (("matmul",), ("requant",)),
    "function cast_to_fp16": (("fused_op",), ("a", "Float32", "dest")),
    "function relu_min": (("fused_op",), ("dest", "min")),
    "function relu_max": (("fused_op",), ("dest", "max")),
    "function integer_add": (("add",), ("integers",)),
    "function integer_maximum": (("maximum",), ("integers",)),
    "ram: read and written by one input": (GENERATED, ("in place",)),
}
"""Op types and words that bring an event of a run, where its name does not contain them."""
_OF_DST: Final[Mapping[str, tuple[str, ...]]] = {
    "bf16": ("b", "Float16_b", "other family"), "fp16": ("a", "Float16", "other family"), "fp32": ("Float32",),
    "int32": ("Int32",),
}  # fmt: skip
"""Words that bring a mode of Dst."""


@dataclass(slots=True)
class Steering:
    """The search for netlists that a coverage lacks: each missing name, of the language and of runs, is tried a number
    of times, on each architecture."""

    coverage: Coverage
    archs: Sequence[str] = EVERY
    seed: int = 0
    tries: int = 150
    budget: Budget | None = None
    unreached: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names, as `list: name`, that no try brought, with the rules that refused the tries that had them."""

    def netlists(self) -> Iterator[Generated]:
        """Yield valid netlists, each with a feature or an event that the coverage lacked until then; each is added to
        the coverage. What cannot be reached goes into `unreached`."""
        for subject in (*lists(), *_OF_RUNS):
            for name in self.coverage.missing(subject):
                if name not in self.coverage.counts[subject]:
                    yield from self._search_for(subject, name)

    def _search_for(self, subject: str, name: str) -> Iterator[Generated]:
        """Draw netlists until one has the name, add it to the coverage, and yield it. If no try has it, record that
        with the rules that refused it."""
        types, preferred = _wish_for(subject, name)
        rules: set[str] = set()
        for number in range(self.tries * len(self.archs)):
            arch = self.archs[number % len(self.archs) if subject in _OF_RUNS else number // self.tries]
            try:
                generated = generate(
                    self.seed + number, arch=arch, budget=self.budget, op_types=types, wanted=preferred
                )
            except HostError:  # ops that this architecture does not have
                continue
            exercised: Mapping[str, Collection[str]] = features(generated.netlist)
            if subject in _OF_RUNS or name in exercised[subject]:
                exercised = {**exercised, **self._run_for_events(generated)}
                if name in exercised[subject]:
                    self.coverage.count(exercised)
                    yield generated
                    return
            for refusal in generated.refused:
                if refusal.startswith(f"{name}: "):
                    rules.update(_rule_ids(refusal))
        self.unreached[f"{subject}: {name}"] = tuple(sorted(rules))

    def _run_for_events(self, generated: Generated) -> Mapping[str, Collection[str]]:
        """Run a netlist and return its events by list, as `test --coverage` counts them; {}, without a run, if the
        coverage lacks no events."""
        if not any(self.coverage.missing(subject) for subject in _OF_RUNS):
            return {}
        settings = Settings(coverage=True, cache=False)
        case = Case("generated.yaml", "generated.yaml", generated.text.encode(), settings=settings)
        return {**dict.fromkeys(_OF_RUNS, ()), **run_case(case).exercised}


def evenly(number: int, *, seed: int = 0, archs: Sequence[str] = EVERY, budget: Budget = _TINY) -> Generated:
    """Generate netlist `number` of a series of tiny ones, in which every op type, fidelity and attribute that changes
    numbers has its turn, on one architecture after the other, each with a drawn format, TM and further attribute.
    Netlists without such turns would leave rare words out for long."""
    wishes = _wishes()
    turn, place = divmod(number, len(wishes))
    name, types = wishes[(place * _STRIDE + 7 * turn) % len(wishes)]
    arch = archs[(number + turn) % len(archs)]
    draw = Draw(Random(f"{seed} {number}"))
    df = draw.pick(lists()["operands in a format"])
    attribute = draw.pick([*OP_TYPES[types[0]].attributes, ""])
    structure = draw.pick(lists()["structure"])
    preferred = _words(name) | _words(draw.pick(lists()["TMs"])) | {attribute, df, FORMATS[df].family or "", structure}
    try:
        return generate(draw.random, arch=arch, budget=budget, op_types=types, wanted=preferred)
    except HostError:  # an op that this architecture does not have
        return generate(draw.random, arch=arch, budget=budget)


def _wish_for(subject: str, name: str) -> tuple[Sequence[str], frozenset[str]]:
    """Return op types to draw from and words to prefer, so that a netlist gets the feature or event `name` of a
    list."""
    preferred = _words(name)
    if name in _HINTS:
        types, hints = _HINTS[name]
        return types, preferred.union(hints)
    if name.startswith("pack "):
        _, mode, _, df = name.split()
        return ("nop", "exp"), preferred.union(_OF_DST[mode], (_copy_word(df, mode),))
    if name.startswith("unpack "):
        _, df, _, register = name.split()
        return ("nop", "exp", "add"), preferred | {
            FORMATS[df].family or "a",
            "Float32" * (register == "Tf32"),
            _copy_word(df),
        }
    if subject == "op types in fused ops":
        return ["fused_op"], preferred
    types = [word for word in preferred if word in GENERATED and subject in ("op types", "attributes", "fidelities")]
    return types or GENERATED, preferred


def _copy_word(df: str, mode: str = "") -> str:
    """Return the word that makes the generator draw a copy to or from a format that only copies handle ("conversion" or
    "integers"); "" for other formats."""
    if mode in ("fp32", "int32") or (mode and is_raw(df)):
        return "conversion"
    if is_raw(df) or is_integer(df):
        return "integers"
    return ""


@cache
def _wishes() -> list[tuple[str, tuple[str, ...]]]:
    """Return the names of coverage that `evenly` goes through, each with the op types that have it; names of op types
    occur three times."""
    wishes: list[tuple[str, tuple[str, ...]]] = [(name, ("fused_op",)) for name in lists()["op types in fused ops"]]
    for subject in (*["op types"] * 3, "fidelities", "attributes"):
        for name in lists()[subject]:
            op_type, attribute, _ = parts(name)
            if not attribute.startswith(_ALIKE):
                wishes.append((name, (op_type,)))
    return wishes


def _rule_ids(refused: str) -> list[str]:
    """Return the ids of the rules in a text `name: rules`."""
    return refused.rpartition(": ")[2].split(", ")


def _words(name: str) -> frozenset[str]:
    """Return the words of a name of coverage, which the generator is to prefer where it has the choice."""
    return frozenset([name, *name.replace("=", " ").split()])
