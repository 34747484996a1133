"""Counts of the entries that a run of programs reads from each input queue, and default parameters of programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from buda_emu.emulator.options import parameter_texts
from buda_emu.emulator.runtime.machine.listeners import Journal
from buda_emu.netlist.model import Execute, Loop, Netlist, Program
from buda_emu.netlist.program.interpreter import GatheredExecutes, Interpreter, StepBudget
from buda_emu.netlist.program.parameters import no_program, parameter_names, with_declared_names
from buda_emu.netlist.program.settings import ALL_SETTINGS, Variables
from buda_emu.spec.precision import DEFAULT_STEP_LIMIT
from buda_emu.spec.test_config import PARAMETER_ARGS, key_of_parameter
from buda_emu.spec.varinst import immediate, stored_name
from buda_emu.support.errors import HostError, ProgramError
from buda_emu.support.options import names_of


def _loops(programs: Sequence[Program]) -> Iterator[Loop]:
    """Yield every loop instruction of the programs."""
    for program in programs:
        for instruction in program.instructions:
            if isinstance(instruction, Loop):
                yield instruction


def select_programs(netlist: Netlist, names: str | Sequence[str]) -> list[Program]:
    """Return the programs of these names, or all in file order where no name is given. Raises HostError for an unknown
    name."""
    bodies: list[Program] = []
    for name in names_of(names) or tuple(dict.fromkeys(netlist.program_order)):
        body = netlist.programs.get(name)
        if body is None:
            raise no_program(netlist, name)
        bodies.append(body)
    return bodies


def check_parameters(programs: Sequence[Program], parameters: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the caller's parameters as texts under the names that the programs declare; the `$` may be left out.
    Raises HostError for a parameter that no program takes, a value that is no integer, and a loop count below 1
    (NETLIST 3.1, 3.4)."""
    declared = with_declared_names(programs, parameter_texts(parameters))
    counts = {stored_name(loop.count): loop for loop in _loops(programs)}
    for name, text in declared.items():
        try:
            value = immediate(text)
        except ProgramError as error:
            raise HostError(f"parameter {name}: {error}") from None
        loop = counts.get(stored_name(name))
        if loop is not None and value < 1:
            raise HostError(f"parameter {name} is {value}: the loop of line {loop.at().line} runs at least once")
    return declared


def default_parameters(programs: Sequence[Program], test_args: Mapping[str, str]) -> dict[str, str]:
    """Return a value for each parameter of these programs, as the vendor's harnesses would give it (NETLIST 3.7): the
    test-arg that belongs to the name, else the harness's default; for a name unknown to the harness 1 where it counts a
    loop and 0 elsewhere."""
    counts = {stored_name(loop.count) for loop in _loops(programs)}
    values: dict[str, str] = {}
    for name in parameter_names(programs):
        bare = stored_name(name)
        _, value = PARAMETER_ARGS.get(bare, ("", "1" if bare in counts else "0"))
        values[name] = test_args.get(key_of_parameter(name), value)
    return values


def entries_read(netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str]) -> dict[str, int]:
    """Return how many entries of each host-fed queue these programs need when run once each in order, at most what the
    queue holds; all of them where it is read with prologue or epilogue (NETLIST 5.4). Queues that are not read are left
    out. Raises ProgramError as the run would."""
    return walk_programs(netlist, programs, parameters).entries


def walk_programs(netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str]) -> "ProgramWalk":
    """Interpret these programs once each in order with their variables, but without data, and return what they would
    do. Raises ProgramError as the run would."""
    reads = ProgramWalk(netlist)
    steps = StepBudget(DEFAULT_STEP_LIMIT)
    interpreters = {program.name: Interpreter(program, reads, steps, looks_ahead=True) for program in programs}
    for program in programs:
        steps.begin_run()
        reads.begin_run()
        try:
            interpreters[program.name].run(parameters)
        except ProgramError as error:
            place = interpreters[program.name].failed_at
            if place is not None:
                from buda_emu.emulator.runtime.stop import describe_stop  # a run that ends well need not wait for it

                error.stopped = describe_stop(error, place, netlist, {}, Journal())
            raise
    return reads


class ProgramWalk:
    """A machine without data on which programs are interpreted to see what they will need: it implements
    `program.interpreter.Machine`, counts how far each queue is read (`entries`, as `entries_read` returns them), and
    the inputs of each graph that runs (`graph_inputs`)."""

    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self._settings = ALL_SETTINGS.of(netlist)
        self._gathered = GatheredExecutes(netlist)
        self._firsts = {temporal.graphs[0] for temporal in netlist.temporal_graphs if temporal.graphs}
        self.entries: dict[str, int] = {}
        self.graph_inputs: dict[str, int] = {}

    @property
    def inputs(self) -> int:
        """Inputs of all epochs. The graphs of a temporal graph run as one, so its first graph counts."""
        return sum(count for graph, count in self.graph_inputs.items() if graph in self._firsts)

    def execute(self, instruction: Execute, variables: Variables) -> None:
        """Count the inputs of the graph, and record how far each host-fed queue of this execute is read or popped.
        Raises ProgramError as the run would."""
        self._gathered.add(instruction, variables)
        graph = self._netlist.graphs.get(instruction.graph)
        inputs = graph.input_count if graph is not None else 1
        self.graph_inputs[instruction.graph] = self.graph_inputs.get(instruction.graph, 0) + inputs
        for prepared in self._settings.of(instruction).prepared:
            queue = self._netlist.queues[prepared.queue]
            if queue.is_ram or not queue.host_fed:
                continue
            settings = prepared.evaluate(variables)
            if settings.prologue or settings.epilogue:
                furthest = queue.entries
            else:
                read = settings.rd_ptr_local + (inputs - 1) * settings.rd_ptr_autoinc + 1
                popped = settings.rd_ptr_global + inputs * settings.global_rdptr_autoinc
                furthest = min(max(read, popped), queue.entries)
            self.entries[prepared.queue] = max(self.entries.get(prepared.queue, 0), furthest)

    def begin_run(self) -> None:
        """Forget which graphs of a temporal graph the program before has executed without completing it."""
        self._gathered.begin_run()

    def follow_variable(self, text: str, variables: Variables) -> None:
        """Do nothing at a write to a variable: pointers are evaluated where they are used."""

    def allocate(self, queue: str) -> None:
        """Do nothing at an allocate_queue, which needs no data."""

    def deallocate(self, queue: str) -> None:
        """Do nothing at a deallocate_queue, which needs no data."""
