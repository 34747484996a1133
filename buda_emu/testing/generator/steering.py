"""Netlists that have what coverage lacks (docs/generate-netlists.md)."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cache
from random import Random
from typing import Final

from buda_emu.coverage.features import features
from buda_emu.coverage.lists import lists
from buda_emu.coverage.report import Coverage
from buda_emu.errors import HostError
from buda_emu.records import dataclass
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.spec.formats import FORMATS
from buda_emu.spec.ops import OP_TYPES
from buda_emu.testing.generator.attributes import parts
from buda_emu.testing.generator.draw import Draw
from buda_emu.testing.generator.netlist import GENERATED, Budget, Generated, generate

EVERY: Final = (DEFAULT_ARCH, *(name for name, arch in ARCHS.items() if arch.documented and name != DEFAULT_ARCH))
_TINY: Final = Budget(ops=2, graphs=1, tiles=6, inputs=2)
_STRIDE: Final = 101
"""Neighbours in a list do not follow each other: a prime number, which does not divide that of the names."""
_ALIKE: Final = ("relu_threshold", "relu_mode", "sfpu_execution_thread")
"""Attributes that say the same on every op type: other draws bring them."""


@dataclass(slots=True)
class Steering:
    """What is drawn for a coverage: each name that it lacks is tried a number of times, on each architecture."""

    coverage: Coverage
    archs: Sequence[str] = EVERY
    seed: int = 0
    tries: int = 150
    budget: Budget | None = None
    unreached: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """`list: name` that no try brought, with the rules that refused those that had it."""

    def netlists(self) -> Iterator[Generated]:
        """Valid netlists, each of which has at least one name that no netlist of the coverage had; it is added."""
        for subject in lists():
            for name in self.coverage.missing(subject):
                if name not in self.coverage.counts[subject]:
                    yield from self._for(subject, name)

    def _for(self, subject: str, name: str) -> Iterator[Generated]:
        """The first netlist with the name. Where it is an attribute, whoever refuses it is kept."""
        wanted = _words(name)
        types = [word for word in wanted if word in GENERATED and subject in ("op types", "attributes", "fidelities")]
        types = ["fused_op"] if subject == "op types in fused ops" else types
        rules: set[str] = set()
        for number in range(self.tries * len(self.archs)):
            arch = self.archs[number // self.tries]
            made = generate(
                self.seed + number, arch=arch, budget=self.budget, op_types=types or GENERATED, wanted=wanted
            )
            if name in features(made.netlist)[subject]:
                self.coverage.add(made.netlist)
                yield made
                return
            rules |= {rule for item in made.refused if item.startswith(f"{name}: ") for rule in _rules(item)}
        self.unreached[f"{subject}: {name}"] = tuple(sorted(rules))


def evenly(number: int, *, seed: int = 0, archs: Sequence[str] = EVERY, budget: Budget = _TINY) -> Generated:
    """Netlist `number` of a series of tiny ones, in which every op type, fidelity and attribute that changes numbers
    has its turn, each together with a format, a TM and another attribute, on one architecture after the other: as many
    that are drawn at will leave rare ones out for long."""
    wishes = _wishes()
    turn, place = divmod(number, len(wishes))
    name, types = wishes[(place * _STRIDE + 7 * turn) % len(wishes)]
    arch, draw = archs[(number + turn) % len(archs)], Draw(Random(f"{seed} {number}"))
    df = draw.pick(lists()["operands in a format"])
    own = draw.pick([*OP_TYPES[types[0]].attributes, ""])
    more = {own, df, FORMATS[df].family or "", draw.pick(lists()["structure"]), *_words(draw.pick(lists()["TMs"]))}
    wanted = _words(name) | more
    try:
        return generate(draw.random, arch=arch, budget=budget, op_types=types, wanted=wanted)
    except HostError:  # an op that this architecture does not have
        return generate(draw.random, arch=arch, budget=budget)


@cache
def _wishes() -> list[tuple[str, tuple[str, ...]]]:
    """Names, and the op types that have them."""
    found: list[tuple[str, tuple[str, ...]]] = [(name, ("fused_op",)) for name in lists()["op types in fused ops"]]
    for subject in (*["op types"] * 3, "fidelities", "attributes"):
        for name in lists()[subject]:
            op_type, attribute, _ = parts(name)
            if not attribute.startswith(_ALIKE):
                found.append((name, (op_type,)))
    return found


def _rules(refused: str) -> list[str]:
    return refused.rpartition(": ")[2].split(", ")


def _words(name: str) -> frozenset[str]:
    """What the generator is to prefer, wherever it has the choice."""
    return frozenset([name, *name.replace("=", " ").split()])
