"""Netlists that have what coverage lacks (docs/generate-netlists.md)."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from buda_emu.coverage.features import features
from buda_emu.coverage.lists import lists
from buda_emu.coverage.report import Coverage
from buda_emu.records import dataclass
from buda_emu.spec.archs import ARCHS, DEFAULT_ARCH
from buda_emu.testing.generator.netlist import GENERATED, Budget, Generated, generate

EVERY: Final = (DEFAULT_ARCH, *(name for name, arch in ARCHS.items() if arch.documented and name != DEFAULT_ARCH))


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


def _rules(refused: str) -> list[str]:
    return refused.rpartition(": ")[2].split(", ")


def _words(name: str) -> frozenset[str]:
    """What the generator is to prefer, wherever it has the choice."""
    return frozenset([name, *name.replace("=", " ").split()])
