"""One compilation: its options, resolved and checked against the chip, and the parts of the pipeline that run."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from buda_emu.compiler.cluster import Chips, chips_of
from buda_emu.compiler.graph.graph import Graph
from buda_emu.compiler.graph.spec import CORE, FRONT
from buda_emu.compiler.ir.text import Ir, IrFile
from buda_emu.compiler.ir.tokens import IrError
from buda_emu.compiler.ir.verify import problems
from buda_emu.compiler.memory_watch import MemoryWatch
from buda_emu.compiler.mixed import Rule, read_rules
from buda_emu.compiler.options import CompileOptions
from buda_emu.compiler.pipeline import LAST_ON_GRAPHS, Context, Observer, file_of, known, run
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.speculative import JOB
from buda_emu.compiler.target import Objective, Target
from buda_emu.errors import HostError, InternalError, UnsupportedError
from buda_emu.spec.archs import DEFAULT_ARCH
from buda_emu.spec.boards import Board, agreed_arch, board
from buda_emu.workers.spread import JobPool


@contextmanager
def within_memory() -> Generator[None]:
    """Raises UnsupportedError where this machine has not the memory that a model takes."""
    try:
        yield
    except MemoryError as error:
        raise UnsupportedError(f"compile: not enough memory for the model{f': {error}' * bool(str(error))}") from error


@dataclass(frozen=True, slots=True)
class Compilation:
    """How a graph becomes a placed one; `observer` looks on."""

    device: Target
    objective: Objective
    rules: tuple[Rule, ...]
    fuse: bool
    name: str
    observer: Observer = field(default_factory=Observer)
    memory: MemoryWatch = field(default_factory=lambda: MemoryWatch.of(None))

    @staticmethod
    def of(options: CompileOptions) -> "Compilation":
        """Raises HostError for an option whose value does not exist, or that does not go with the others."""
        arch = agreed_arch(options.board, options.arch) or DEFAULT_ARCH
        device = Target.named(arch, options.df, options.fidelity, options.acc_df)
        device = device.on_board(options.board) if options.board else device
        given = _chips(options, arch, board(options.board) if options.board else None)
        if isinstance(given, Chips):
            own = options.effort, options.objective, len(given.ids), options.microbatch, given.ids
            objective = Objective.named(*own, given.cluster)
            device = device.harvested(given.harvested)
        else:
            objective = Objective.named(options.effort, options.objective, given, options.microbatch)
        if options.workers is not None and not options.workers.alone:
            own = replace(options.workers, count=max(1, options.workers.count - 1))  # beside this process
            objective.work.pool = JobPool(JOB, own, isolated=True)
        observer = options.observer or Observer(dump=options.dump)
        rules, memory = tuple(read_rules(options.mixed, device)), MemoryWatch.of(options.memory_limit)
        observer.work, objective.work.tell = objective.work, observer.tell
        return Compilation(device, objective, rules, options.fuse, options.name, observer, memory)

    @contextmanager
    def reading(self, source: object) -> Generator[None]:
        """While a model is read: its file is weighed first, and workers that will share the search start. Raises
        UnsupportedError for a file that memory has no room for."""
        pool = self.objective.work.pool if self.objective.effort != "low" else None
        try:
            if pool is not None:
                pool.start()
            with self.memory.reading(source):
                yield
        except BaseException:
            if pool is not None:
                pool.close()
            raise

    def placed(self, graph: Graph, *, entries: int = 2) -> tuple[Graph, Placement, str]:
        """The graph after all passes, its netlist ops on cores, and a title. Of several kinds of windows those with
        which the whole model is quickest."""
        graph.name = self.name or graph.name
        return self._finished(run([Ir(FRONT, graph)], self._context(entries), self.observer))

    def prepared(self, graph: Graph) -> Graph:
        """The graph after all passes on graphs, of several kinds of windows with those of the fewest cycles by
        themselves."""
        graph.name = self.name or graph.name
        return run([Ir(FRONT, graph)], self._context(), self.observer, stop=LAST_ON_GRAPHS)[0].graph

    def lowered(self, graph: Graph, *, entries: int = 2) -> tuple[Graph, Placement, str]:
        """The same of a graph after all passes on graphs."""
        forms = run([Ir(CORE, graph)], self._context(entries), self.observer, after=LAST_ON_GRAPHS)
        return self._finished(forms)

    def stopped(self, graph: Graph, after: str) -> IrFile:
        """What stands after a pass."""
        graph.name = self.name or graph.name
        return file_of(after, run([Ir(FRONT, graph)], self._context(), self.observer, stop=after), self._context())

    def resumed(self, file: IrFile) -> tuple[Graph, Placement, str]:
        """As `placed`, from what stands after a pass; a file of ops on tiles says itself what they are for. Raises
        IrError for IR that breaks a rule of its level."""
        known(file.after, "after")
        own = self if file.target is None else replace(self, device=file.target)
        for form in file.forms:
            for problem in problems(form, own.device.arch.name):
                raise IrError(f"{form.locate(problem, file.path)} (after {file.after}, level {form.level})")
        return own._finished(run(file.forms, own._context(), own.observer, after=file.after))

    def _context(self, entries: int = 2) -> Context:
        return Context(self.device, self.objective, self.rules, self.fuse, entries, self.memory)

    def _finished(self, forms: list[Ir]) -> tuple[Graph, Placement, str]:
        graph, placement = forms[0].graph, forms[0].placement
        if placement is None:
            raise InternalError("the last pass left no placement")
        return graph, placement, _title(graph, self.device)


def _chips(options: CompileOptions, arch: str, on: Board | None) -> int | Chips:
    """Chips that are asked for. Raises HostError for more than the board has, and for a cluster's file beside one."""
    if on is None:
        return chips_of(1 if options.chips is None else options.chips, arch)
    if options.chips is None:
        return on.chips
    given = chips_of(options.chips, arch)
    if isinstance(given, Chips):
        raise HostError(f"compile: board {on.name} says what its chips are: leave out it or the file {options.chips}")
    if given > on.chips:
        raise HostError(f"compile: {given} chips are more than the {on.chips} of board {on.name}")
    return given


def _title(graph: Graph, target: Target) -> str:
    formats = f"{target.activation_df}, sums in {target.acc_df}, {target.fidelity}"
    return f"Model {graph.name} by buda-emu compile: {target.title}, {formats}. Names are the model's own."
