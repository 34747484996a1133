"""Runs the programs of one machine, one at a time, in the order in which they were asked for."""

import threading
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final

import numpy as np

from buda_emu.arithmetic.formats.float_state import exact_floats
from buda_emu.emulator.options import parameter_texts
from buda_emu.emulator.runtime.graph.epochs import Epochs
from buda_emu.emulator.runtime.machine.gate import Gate
from buda_emu.emulator.runtime.machine.listeners import Journal
from buda_emu.emulator.runtime.machine.memory import Memory, Watchers
from buda_emu.emulator.runtime.machine.running import ProgressCallback, Run
from buda_emu.netlist.model import Instruction, Netlist
from buda_emu.netlist.program.interpreter import Interpreter, Standing, StepBudget
from buda_emu.netlist.program.parameters import no_program, with_declared_names
from buda_emu.netlist.program.settings import Place, Variables, VariableValues
from buda_emu.spec.varinst import wrap32
from buda_emu.support.errors import HostError, ProgramError

_ring_pointers: Final = attrgetter("rd", "wr", "local", "local_base")
_ram_pointers: Final = attrgetter("rd", "wr")


class RunStart:
    """Pointers, allocations, variables and journal as they are before a program runs, to which the machine goes back
    when the program fails. Contents of queues and rams are not stored: what a program writes to a ram stays, and after
    it has overwritten an entry that a queue held before it, there is no way back."""

    __slots__ = (
        "_allocated",
        "_epochs",
        "_host_moves",
        "_journal",
        "_memory",
        "_rams",
        "_rings",
        "_state",
        "_traffic",
        "_values",
        "_variables",
    )

    def __init__(self, memory: Memory, epochs: Epochs, variables: Variables, journal: Journal) -> None:
        """Record the state of this moment, before a program runs; `variables` are those of the program."""
        self._memory = memory
        self._epochs = epochs
        self._variables = variables
        self._journal = journal
        self._host_moves = memory.host_moves
        memory.held_entries.begin(memory.channels.values())
        self._rings = list(map(_ring_pointers, memory.rings))
        self._rams = list(map(_ram_pointers, memory.rams))
        self._allocated = memory.allocated
        self._state = epochs.state()
        self._values = variables.state()
        self._traffic = journal.state()

    def go_back(self) -> None:
        """Restore the pointers, allocations, variables and journal of the beginning. Does nothing if the host has moved
        a queue since, or the program has overwritten an entry that a queue held: neither can be undone, and the
        completed work stays."""
        memory = self._memory
        if memory.host_moves != self._host_moves or memory.held_entries.lost:
            return
        for ring, pointers in zip(memory.rings, self._rings, strict=True):
            ring.rd, ring.wr, ring.local, ring.local_base = pointers
        for ram, pointers in zip(memory.rams, self._rams, strict=True):
            ram.rd, ram.wr = pointers
        memory.replace_allocations(self._allocated)
        self._epochs.set_state(self._state)
        self._variables.set_state(*self._values)
        self._journal.replace(*self._traffic)


class Programs:
    """The interpreters, each with the variables of its program, and the threads of `run_async`."""

    def __init__(
        self,
        netlist: Netlist,
        memory: Memory,
        epochs: Epochs,
        steps: StepBudget,
        gate: Gate,
        watched: Watchers,
        undo: Callable[[], None],
        free: Callable[[], None],
    ) -> None:
        """Prepare the programs of a machine. `undo` is called after a program that failed, to move the pointers back
        over inputs that did not run, and `free` after one that a closed gate ended."""
        self._netlist = netlist
        self._memory = memory
        self._epochs = epochs
        self.steps = steps
        self._gate = gate
        self._watched = watched
        self._undo = undo
        self._free = free
        self._interpreters: dict[str, Interpreter] = {}
        self._threads: set[threading.Thread] = set()
        self.last_failure: tuple[str, BaseException] | None = None
        """The program that ended last and its error; None where it ended well, or none has ended."""

    def interpreter(self, program: str) -> Interpreter:
        """Return the interpreter of a program, made at the first request. Raises HostError for an unknown name."""
        interpreter = self._interpreters.get(program)
        if interpreter is None:
            body = self._netlist.programs.get(program)
            if body is None:
                raise no_program(self._netlist, program)
            interpreter = Interpreter(body, self._epochs, self.steps, self._observe)
            self._interpreters[program] = interpreter
        return interpreter

    @property
    def known(self) -> list[str]:
        """Names of the programs that have run, or were asked for and did not start."""
        return list(self._interpreters)

    def forget(self) -> None:
        """Forget the variables of all programs."""
        self._interpreters.clear()

    def run(
        self, program: str, params: Mapping[str, object] | None, wait: float, progress: ProgressCallback | None = None
    ) -> None:
        """Run a program on the calling thread, after those asked for before it; arguments and errors are those of
        `Emulator.run`."""
        texts = self._parameters(params)
        run = self._new_run(program, wait, progress)
        self._gate.enlist(run)
        self._carry_out(run, texts)

    def start(
        self, program: str, params: Mapping[str, object] | None, wait: float, progress: ProgressCallback | None
    ) -> Run:
        """Run a program on a thread of its own, and return its run at once; arguments and errors are those of
        `Emulator.run_async`."""
        texts = self._parameters(params)
        run = self._new_run(program, wait, progress).with_end()
        thread = threading.Thread(
            target=self._run_on_thread, args=(run, texts), name=f"buda-emu run {program}", daemon=True
        )
        self._gate.enlist(run)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError as error:
            self._threads.discard(thread)
            self._gate.withdraw(run)
            raise HostError(f"no thread for program {program}: {error}") from None
        return run

    def join(self) -> None:
        """Wait for the threads of `run_async` to end, except for the calling thread."""
        for thread in tuple(self._threads):
            if thread is not threading.current_thread():
                thread.join()

    def _new_run(self, program: str, wait: float, progress: ProgressCallback | None) -> Run:
        """Return a run that is not enlisted yet. Whoever enlists it must carry it out or withdraw it, or the machine
        could never be closed. Raises HostError for a negative `wait` or an unknown program."""
        if not wait >= 0:
            raise HostError(f"wait must be 0 or more seconds, not {wait}")
        self.interpreter(program)
        return Run(program, wait, progress, self._gate.wake)

    def _parameters(self, params: object) -> dict[str, str]:
        """Return the caller's parameters as texts, under the names that programs declare. Raises HostError for a value
        that is no mapping of names to integers, and for a name that no program of the netlist takes."""
        return with_declared_names(self._netlist.programs.values(), parameter_texts(params))

    def _run_on_thread(self, run: Run, params: Mapping[str, str]) -> None:
        """Carry out a run as the body of its own thread, and record its end, so that `Run.result` raises its error."""
        error: BaseException | None = None
        try:
            self._carry_out(run, params)
        except BaseException as raised:  # noqa: BLE001 - it comes out of Run.result
            error = raised
        self._threads.discard(threading.current_thread())
        run.end(error)

    def _carry_out(self, run: Run, params: Mapping[str, str], standing: Standing | None = None) -> None:
        """Wait for the turn of an enlisted run and run its program, or the rest of one from `standing` on. However it
        ends, the run leaves the queue. A program that fails leaves pointers and variables as before it
        (`RunStart.go_back`), except with a stepper, which looks at the failed state and goes back by itself. Raises
        what the program raises."""
        self._gate.begin(run)
        start: RunStart | None = None
        try:
            self._run = run
            if standing is None and self._watched.stepper is None:
                variables = self.interpreter(run.program).variables
                start = RunStart(self._memory, self._epochs, variables, self._watched.journal)
            self._execute(params, standing)
        except BaseException as error:
            if isinstance(error, ProgramError):
                self._end_failed_program(error, start)
            self.last_failure = (run.program, error)
            raise
        else:
            self.last_failure = None
        finally:
            self._gate.end(run)
            if self._gate.closed:
                self._free()

    def _end_failed_program(self, error: ProgramError, start: RunStart | None) -> None:
        """Add to a program's error where it stopped and why, then go back to its `start`; with None the state stays as
        it is."""
        place = self._interpreter.failed_at
        if place is not None:
            from buda_emu.emulator.runtime.stop import describe_stop  # a run that ends well need not wait for it

            channels = self._memory.channels
            error.stopped = describe_stop(error, place, self._netlist, channels, self._watched.journal)
        if start is not None:
            self._undo()
            start.go_back()

    @exact_floats
    def _execute(self, params: Mapping[str, str], standing: Standing | None) -> None:
        """Interpret the program of the current run from its beginning, or from `standing` on. Raises ProgramError."""
        self._interpreter = interpreter = self.interpreter(self._run.program)
        self._watched.journal.find = self._place_finder
        if standing is None:
            self._epochs.begin_run()
            self.steps.begin_run()
        with np.errstate(all="ignore"):  # inf and NaN are values here
            if standing is None:
                interpreter.run(params)
            else:
                interpreter.resume(standing)

    @property
    def place(self) -> Place:
        """The instruction that runs now, with its loops and variables."""
        return self._interpreter.place(*self._now)

    def _place_finder(self) -> Callable[[], Place]:
        """Return a function that finds the place of the instruction that runs now; it may be called later."""
        return self._interpreter.moment(*self._now)

    def resume(self, standing: Standing) -> None:
        """Run the rest of a program from the instruction of `standing` on, on the calling thread, with the variables as
        they are. Raises as `Emulator.run`."""
        run = self._new_run(standing.program, 0.0, None)
        self._gate.enlist(run)
        self._carry_out(run, {}, standing)

    def set_variable(self, name: str, value: int) -> None:
        """Give a variable of the running program a value, as a varinst would, and update queue settings that name it.
        The value wraps to 32 bits. Raises ProgramError for an unknown name, and for a pointer out of range."""
        variables = self._interpreter.variables
        variables.value(name)
        variables.assign(name, wrap32(value))
        self._epochs.follow_variable(name, variables)

    @property
    def standing(self) -> Standing:
        """The position of the running program, at the instruction that is about to run, from which `resume` goes on."""
        index, _ = self._now
        return self._interpreter.standing(index)

    def _observe(self, index: int, instruction: Instruction, variables: Variables) -> None:
        """Let host threads go first, then count the instruction at `index` and report it to listeners and stepper.
        Raises RunCancelledError."""
        self._gate.stand_aside()
        self._run.instruction()
        self._watched.journal.next_instruction()
        self._now = index, instruction
        for listener in self._watched.listeners:
            listener.instruction(self._interpreter.program.name, index, instruction, VariableValues(variables))
        if self._watched.stepper is not None:
            self._watched.stepper.instruction(self._interpreter.program.name, index, instruction, variables)
