"""One compilation: its options, resolved and checked against the model, with example inputs where the caller gives
none.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from os import PathLike, fspath
from typing import Any, TypedDict

import numpy as np

from buda_emu.compiler.graph.graph import Array, Graph, Node, host_shape
from buda_emu.compiler.graph.spec import CORE, FRONT
from buda_emu.compiler.ir.text import Ir, IrFile
from buda_emu.compiler.ir.values import IrError
from buda_emu.compiler.ir.verify import problems
from buda_emu.compiler.memory_watch import MemoryWatch
from buda_emu.compiler.mixed import Mixed, Rule, read_rules
from buda_emu.compiler.pipeline import LAST_ON_GRAPHS, Context, Observer, file_of, known, run
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.speculative import JOB
from buda_emu.compiler.target import Objective, Target
from buda_emu.emulator.image.model_io import made_up as values
from buda_emu.spec.archs import DEFAULT_ARCH
from buda_emu.spec.boards import Board, Cluster, agreed_arch, board, read_cluster
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, InternalError, UnsupportedError
from buda_emu.support.workers.job import Workers
from buda_emu.support.workers.spread import JobPool


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of `compile`, `compile_training`, `compile_programs` and `compile_in_parts`. Each may be given as a
    keyword of these functions, too: `compile(model, arch="grayskull")` is
    `compile(model, options=CompileOptions(arch="grayskull"))`.

    A value that does not exist is refused when a model is compiled: HostError, naming those that do.
    """

    arch: str = ""
    """Architecture: "grayskull", "wormhole_b0" or "blackhole"; "" takes the board's, without one wormhole_b0."""
    board: str = ""
    """Board (`buda-emu compile --list-boards`), such as "n150" or "n300x2": the cores, clock and memory of its chips,
    and how many there are; "" takes a chip without harvested rows."""
    df: str = "Float16_b"
    """Format of activations and parameters, as in netlists: Float32, Float16, Float16_b, Bfp8 or Bfp8_b."""
    fidelity: str = "HiFi3"
    """Math fidelity of products, as in netlists: LoFi, HiFi2, HiFi3 or HiFi4."""
    acc_df: str = ""
    """Format that products are summed in: Float32, Float16 or Float16_b; "" chooses by `df`, for a training Float32
    where the chip has it beside `df`."""
    mixed: Mixed = None
    """Other formats for some ops: maps {match: pattern of names, df, acc_df, fidelity}, or the path of a YAML file of
    them. The last one that matches an op holds."""
    fuse: bool = True
    """Whether biases, activations and chains of element-wise ops become one netlist op where the rules allow."""
    effort: str = "default"
    """How long the search for a placement takes: "low" (the first legal one), "default" or "high"."""
    objective: str = "throughput"
    """What the search is for: "throughput" (inputs per second), "latency" (of one input) or "cores" (the fewest)."""
    chips: int | str | PathLike[str] | None = None
    """Number of chips that the model is cut over or copied to, or the path of a cluster's file; None takes all chips of
    the board, without one 1. What keeps states from
    input to input (a training, caches) takes one."""
    microbatch: int | None = None
    """Inputs that go through an epoch before the next begins. None: 64, or 1 for latency; fewer where memory is full.
    Programs with caches take one input at a time, a training the microbatches of a step where it can
    (docs/compile/placing.md)."""
    workers: Workers | None = None
    """Processes, or a Dask cluster, that share the search for a placement (docs/run/workers.md); they never change
    it."""
    sizes: Mapping[str, int] | None = None
    """Sizes that an ONNX model or an ExportedProgram leaves open, by name ("batch"), or by input and place of dimension
    ("x.0", the first one of the input x). Example inputs say the same."""
    memory_limit: int | None = None
    """Bytes of memory that this process may have while it compiles, pages of files left out (docs/run/memory.md). None:
    what it has, and three quarters of what is available when it begins."""
    name: str = ""
    """Name of the model in its netlist; "" leaves the name that the model has."""
    dump: "Callable[[str, Graph], None] | None" = None
    """Called after each pass on graphs, with the name of the pass and the graph."""
    observer: "Observer | None" = None
    """Called after every pass (docs/compile/pipeline.md), instead of `dump`."""


class OptionWords(TypedDict, total=False):
    """The fields of CompileOptions as keywords."""

    arch: str
    board: str
    df: str
    fidelity: str
    acc_df: str
    mixed: Mixed
    fuse: bool
    effort: str
    objective: str
    chips: int | str | PathLike[str] | None
    microbatch: int | None
    workers: Workers | None
    sizes: Mapping[str, int] | None
    memory_limit: int | None
    name: str
    dump: "Callable[[str, Graph], None] | None"
    observer: "Observer | None"


FIELDS = tuple(field.name for field in fields(CompileOptions))


def without_sizes(options: CompileOptions, function: str) -> CompileOptions:
    """For what is compiled from modules alone. Raises HostError where sizes are given."""
    if options.sizes:
        raise HostError(f"{function}: sizes: example inputs say them: nothing of a module is left open")
    return options


def with_words(options: CompileOptions | None, words: Mapping[str, Any], function: str = "compile") -> CompileOptions:
    """Options with the keywords that a function was given in place of their fields. Raises TypeError for a keyword that
    is not an option."""
    for name in words:
        if name not in FIELDS:
            raise TypeError(f"{function}() has no option {name!r}; {near(name, FIELDS)}".removesuffix("; "))
    return replace(options or CompileOptions(), **words)


STEPS = 200_000
"""Chips that are tried at most on the way through a cluster."""


@dataclass(frozen=True, slots=True)
class Chips:
    """`ids` of the chips in the order of the pipeline; `harvested`: rows that the chip with the fewest lacks;
    `cluster`: all that the file says."""

    ids: tuple[int, ...]
    harvested: int = 0
    cluster: Cluster | None = field(default=None, compare=False)


def chips_of(chips: int | str | PathLike[str], arch: str) -> int | Chips:
    """A number as it is, or what a file says. Raises HostError."""
    if isinstance(chips, int) and not isinstance(chips, bool):
        return chips
    if isinstance(chips, str) and chips.lstrip("-").isdigit():
        return int(chips)
    if not isinstance(chips, (str, PathLike)):
        raise HostError(f"compile: chips {chips!r} is neither a number nor the file of a cluster")
    try:
        found = read_cluster(chips)
    except HostError as error:
        raise HostError(f"compile: chips takes a number or a file: {error}") from None
    return _in_a_row(fspath(chips), found, arch)


def _in_a_row(path: str, cluster: Cluster, arch: str) -> Chips:
    others = sorted({word.lower() for word in cluster.archs.values()} - {arch})
    if others:
        raise HostError(f"{path}: chips of {', '.join(others)}, the model is compiled for {arch}")
    ids = tuple(cluster.places)
    near: dict[int, set[int]] = {chip: set() for chip in ids}
    for (a, _), (b, _) in cluster.links:
        near[a].add(b)
        near[b].add(a)
    order = _way(ids, cluster.mmio or ids, near)
    if len(order) < len(ids):
        raise HostError(
            f"{path}: no way from the host through all {len(ids)} chips on which each is connected with the next; the "
            f"longest one found has {len(order)}: {order}"
        )
    lacks = max((mask.bit_count() for chip, mask in cluster.masks.items() if chip in near), default=0)
    return Chips(tuple(order), lacks, cluster)


def _way(ids: Sequence[int], first: Sequence[int], near: Mapping[int, set[int]]) -> list[int]:
    """The longest way through connected chips, each once, that is found in `STEPS`: those with the fewest ways on
    first, so that none is left alone."""
    best: list[int] = []
    steps = 0
    for start in sorted(first):
        way = [start]
        taken = {start}
        open_: list[list[int]] = [_onward(start, near, taken)]
        while open_ and steps < STEPS and len(best) < len(ids):
            steps += 1
            if len(way) > len(best):
                best = list(way)
            if open_[-1]:
                chip = open_[-1].pop(0)
                way.append(chip)
                taken.add(chip)
                open_.append(_onward(chip, near, taken))
            else:
                open_.pop()
                taken.discard(way.pop())
    return best


def _onward(chip: int, near: Mapping[int, set[int]], taken: set[int]) -> list[int]:
    """Neighbours that are left, those with the fewest of their own first."""
    return sorted(near[chip] - taken, key=lambda other: (len(near[other] - taken), other))


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
        rules = tuple(read_rules(options.mixed, device))
        memory = MemoryWatch.of(options.memory_limit)
        observer.work, objective.work.tell = objective.work, observer.tell
        return Compilation(
            device=device,
            objective=objective,
            rules=rules,
            fuse=options.fuse,
            name=options.name,
            observer=observer,
            memory=memory,
        )

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
        return Context(
            target=self.device,
            objective=self.objective,
            rules=self.rules,
            fuse=self.fuse,
            entries=entries,
            memory=self.memory,
        )

    def _finished(self, forms: list[Ir]) -> tuple[Graph, Placement, str]:
        graph = forms[0].graph
        placement = forms[0].placement
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


def made_up(graph: Graph, seed: int = 0) -> tuple[Array, ...]:
    """One for each input, in order: normal numbers for floats, indices that their tables have, else zeros and ones."""
    rng = np.random.default_rng(seed)
    nodes = [graph[name] for name in graph.inputs]
    return tuple(values(rng, host_shape(node), node.dtype, below(graph, node)) for node in nodes)


def below(graph: Graph, node: Node) -> int:
    """The exclusive upper bound of an input's integers: the rows of the smallest table that it indexes, else 2."""
    return min((_rows(graph, name) for name in _reached(graph, node.name)), default=2)


def _reached(graph: Graph, start: str) -> list[str]:
    """Embeddings whose indices are picked of an input."""
    found: list[str] = []
    known = {start}
    for node in graph:
        if known.isdisjoint(node.inputs):
            continue
        if node.op == "embedding" and node.inputs[1] in known:
            found.append(node.name)
        elif len(node.inputs) == 1:
            known.add(node.name)
    return found


def _rows(graph: Graph, name: str) -> int:
    return graph[graph[name].inputs[0]].shape[0]
