"""Which epochs the programs of a netlist run, how often, and with which settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from buda_emu.netlist.model import Execute, Netlist, Program, TemporalGraph
from buda_emu.program.epochs import GatheredExecutes
from buda_emu.program.interpreter import Interpreter
from buda_emu.program.steps import StepBudget
from buda_emu.program.values import Variables
from buda_emu.spec.limits import DEFAULT_STEP_LIMIT


@dataclass(slots=True)
class Epoch:
    """A temporal graph as one program runs it. `executes`: the first execute of each of its graphs."""

    program: str
    temporal: TemporalGraph
    executes: Mapping[str, Execute]
    runs: int = 0


def epochs(netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str]) -> list[Epoch]:
    """The epochs of the programs in the order of their first run. The programs are walked with their variables,
    without data. Raises ProgramError as the run would."""
    found: list[Epoch] = []
    for program in programs:
        walk = _Walk(program.name, GatheredExecutes(netlist))
        steps = StepBudget(DEFAULT_STEP_LIMIT)
        steps.begin_run()
        Interpreter(program, walk, steps, looks_ahead=True).run(parameters)
        found += walk.found.values()
    return found


@dataclass(slots=True)
class _Walk:
    """A `program.interpreter.Machine` that only counts executes."""

    program: str
    gathered: GatheredExecutes
    found: dict[int, Epoch] = field(default_factory=dict[int, Epoch])

    def execute(self, instruction: Execute, variables: Variables) -> None:
        """An epoch runs when all its graphs have been executed (NETLIST 4.3)."""
        epoch = self.gathered.add(instruction, variables)
        if epoch is not None:
            temporal = epoch.temporal
            self.found.setdefault(temporal.id, Epoch(self.program, temporal, epoch.executes)).runs += 1

    def variable_written(self, text: str, variables: Variables) -> None:
        """Pointers do not matter."""

    def allocate(self, queue: str) -> None:
        """Takes no time."""

    def deallocate(self, queue: str) -> None:
        """Takes no time."""
