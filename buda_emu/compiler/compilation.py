"""One compilation: its options, resolved and checked against the model, with example inputs where the caller gives
none.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from os import PathLike, fspath
from typing import Any, TypedDict, cast

import numpy as np

from buda_emu.arithmetic.jit.kernel import announce
from buda_emu.compiler.graph.graph import Array, Graph, Node, host_shape, rules_of
from buda_emu.compiler.graph.spec import CORE, FRONT
from buda_emu.compiler.ir.text import Ir, IrFile
from buda_emu.compiler.ir.values import IrError
from buda_emu.compiler.ir.verify import problems
from buda_emu.compiler.memory_watch import MemoryWatch
from buda_emu.compiler.mixed import Mixed, Rule, read_rules
from buda_emu.compiler.pipeline import LAST_ON_GRAPHS, Context, Observer, file_of, require_pass_name, run
from buda_emu.compiler.place.placement import Placement
from buda_emu.compiler.search.speculative import JOB
from buda_emu.compiler.target import Objective, Target
from buda_emu.emulator.image.model_io import made_up as values
from buda_emu.emulator.image.shape_rules import fill_by_rules
from buda_emu.spec.archs import DEFAULT_ARCH
from buda_emu.spec.boards import Board, Cluster, agreed_arch, board, read_cluster
from buda_emu.support.checker.suggest import near, nearest
from buda_emu.support.errors import HostError, InternalError, UnsupportedError
from buda_emu.support.progress import Activity, Report, reported_activities
from buda_emu.support.workers.job import Workers
from buda_emu.support.workers.spread import JobPool


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of `compile`, `compile_training`, `compile_programs` and `compile_in_parts`. These functions also take
    each field as a keyword: `compile(model, arch="grayskull")` is `compile(model,
    options=CompileOptions(arch="grayskull"))`.

    An option with an invalid value is refused when a model is compiled: HostError, naming the valid ones.
    """

    arch: str = ""
    """Architecture: "grayskull", "wormhole_b0" or "blackhole"; "" takes the board's, or wormhole_b0 if there is no
    board."""
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
    them. The last map that matches an op applies."""
    fuse: bool = True
    """Whether biases, activations and chains of element-wise ops become one netlist op where the rules allow."""
    effort: str = "default"
    """Duration of the search for a placement: "low" (the first legal one, which took up to 30 times the cycles of
    "default" in small models: docs/compile/placing.md), "default" or "high"."""
    objective: str = "throughput"
    """Goal of the search: "throughput" (inputs per second), "latency" (of one input) or "cores" (the fewest)."""
    chips: int | str | PathLike[str] | None = None
    """Number of chips that the model is cut over or copied to, or the path of a cluster's file; None takes all chips of
    the board, or one if there is no board. Models that keep states from input to input (a training, caches) take one
    chip."""
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
    """Bytes of memory that this process may have while it compiles, without pages of files (docs/run/memory.md). None:
    what it has when the compilation begins, and three quarters of what is available then."""
    name: str = ""
    """Name of the model in its netlist; "" takes the model's own name."""
    dump: "Callable[[str, Graph], None] | None" = None
    """Called after each pass on graphs, with the name of the pass and the graph."""
    observer: "Observer | None" = None
    """Called after every pass (docs/compile/pipeline.md), instead of `dump`."""
    progress: Report | None = None
    """Called with an Activity for each pass and each epoch of the search (docs/python/embedding.md). Its exception ends
    the compilation."""


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
    progress: Report | None


FIELDS = tuple(field.name for field in fields(CompileOptions))


def without_sizes(options: CompileOptions, function: str) -> CompileOptions:
    """Return the options unchanged for a function that compiles torch modules only. Raises HostError if they have
    sizes."""
    if options.sizes:
        raise HostError(f"{function}: sizes: example inputs say them: nothing of a module is left open")
    return options


_ELSEWHERE = {
    "precision": "precision is chosen in a call of the model: model(x, precision=...)",
    "on_host": "compile_in_parts has on_host",
    "lr": "did you mean 'learning_rate'?",
    "inputs": "example inputs follow the model, compile(model, inputs)",
}
"""What callers mean by words that are no options, by the word."""


def require_words(words: Iterable[str], function: str, also: Sequence[str] = ()) -> None:
    """Raise TypeError for the first of some keywords of a function that is neither an option nor in `also`; the message
    names the option that was probably meant."""
    names = (*FIELDS, *also)
    elsewhere = {name: text for name, text in _ELSEWHERE.items() if name not in also}
    for name in words:
        if name not in names:
            meant = nearest(name, (*names, *elsewhere))
            hint = elsewhere.get(meant) or near(name, names)
            raise TypeError(f"{function}() has no option {name!r}; {hint}".removesuffix("; "))


def with_words(options: CompileOptions | None, words: Mapping[str, Any], function: str = "compile") -> CompileOptions:
    """Return options in which the keywords of a call replace the fields of the same names. Raises TypeError for a
    keyword that is not an option, HostError for options of another type."""
    require_words(words, function)
    unchecked = cast("object", options)  # callers need not check types
    if unchecked is not None and not isinstance(unchecked, CompileOptions):
        raise HostError(
            f"{function}: options is a {type(unchecked).__name__}, not CompileOptions: give its fields as keywords"
        )
    return replace(options or CompileOptions(), **words)


STEPS = 200_000
"""Limit of the search for a chain of chips through a cluster, in steps. The number of chains grows exponentially with
the chips; with fewer steps a chain that exists may not be found."""


@dataclass(frozen=True, slots=True)
class Chips:
    """Chips of a cluster. `ids` in the order of the pipeline; `harvested`: rows that the chip with the fewest rows
    lacks; `cluster`: the content of the cluster's file."""

    ids: tuple[int, ...]
    harvested: int = 0
    cluster: Cluster | None = field(default=None, compare=False)


def chips_of(chips: int | str | PathLike[str], arch: str) -> int | Chips:
    """Return a number of chips, also one given as text, or read the chips of a cluster's file. Raises HostError for a
    value of another type, a file that cannot be read, chips of another architecture than `arch`, and chips that no
    chain connects."""
    if isinstance(chips, int) and not isinstance(chips, bool):
        return chips
    if isinstance(chips, str) and chips.lstrip("-").isdigit():
        return int(chips)
    if not isinstance(chips, (str, PathLike)):
        raise HostError(f"compile: chips {chips!r} is neither a number nor the file of a cluster")
    try:
        cluster = read_cluster(chips)
    except HostError as error:
        raise HostError(f"compile: chips takes a number or a file: {error}") from None
    return _chain_chips(fspath(chips), cluster, arch)


def _chain_chips(path: str, cluster: Cluster, arch: str) -> Chips:
    """Arrange the chips of a cluster in a chain from the host on. Raises HostError if they are of another architecture
    or if no chain connects all of them."""
    others = sorted({word.lower() for word in cluster.archs.values()} - {arch})
    if others:
        raise HostError(f"{path}: chips of {', '.join(others)}, the model is compiled for {arch}")
    ids = tuple(cluster.places)
    near: dict[int, set[int]] = {chip: set() for chip in ids}
    for (a, _), (b, _) in cluster.links:
        near[a].add(b)
        near[b].add(a)
    order = _longest_chain(ids, cluster.mmio or ids, near)
    if len(order) < len(ids):
        raise HostError(
            f"{path}: no way from the host through all {len(ids)} chips on which each is connected with the next; the "
            f"longest one found has {len(order)}: {order}"
        )
    lacks = max((mask.bit_count() for chip, mask in cluster.masks.items() if chip in near), default=0)
    return Chips(tuple(order), lacks, cluster)


def _longest_chain(ids: Sequence[int], first: Sequence[int], near: Mapping[int, set[int]]) -> list[int]:
    """Return the longest chain through connected chips of `ids`, each used once, that begins with one of `first` and is
    found within `STEPS`; `near` has the chips that each is connected to. Neighbours with the fewest free neighbours are
    tried first, so that no chip is left unconnected."""
    best: list[int] = []
    steps = 0
    for start in sorted(first):
        chain = [start]
        in_chain = {start}
        alternatives: list[list[int]] = [_free_neighbours(start, near, in_chain)]
        while alternatives and steps < STEPS and len(best) < len(ids):
            steps += 1
            if len(chain) > len(best):
                best = list(chain)
            if alternatives[-1]:
                chip = alternatives[-1].pop(0)
                chain.append(chip)
                in_chain.add(chip)
                alternatives.append(_free_neighbours(chip, near, in_chain))
            else:
                alternatives.pop()
                in_chain.discard(chain.pop())
    return best


def _free_neighbours(chip: int, near: Mapping[int, set[int]], in_chain: set[int]) -> list[int]:
    """Return the chips connected to a chip (`near`) that are not in the chain yet, ordered by the number of their own
    free neighbours."""
    return sorted(near[chip] - in_chain, key=lambda neighbour: (len(near[neighbour] - in_chain), neighbour))


@contextmanager
def within_memory() -> Generator[None]:
    """Turn a MemoryError of the block into an UnsupportedError."""
    try:
        yield
    except MemoryError as error:
        raise UnsupportedError(f"compile: not enough memory for the model{f': {error}' * bool(str(error))}") from error


@dataclass(frozen=True, slots=True)
class Compilation:
    """The resolved options of a compilation, and the methods that run its passes; `observer` is notified after each
    pass."""

    device: Target
    objective: Objective
    rules: tuple[Rule, ...]
    fuse: bool
    name: str
    observer: Observer = field(default_factory=Observer)
    memory: MemoryWatch = field(default_factory=lambda: MemoryWatch.of(None))

    @staticmethod
    def of(options: CompileOptions) -> "Compilation":
        """Resolve options. Raises HostError for an option with an invalid value, or for options that contradict each
        other."""
        arch = agreed_arch(options.board, options.arch) or DEFAULT_ARCH
        device = Target.from_names(arch, options.df, options.fidelity, options.acc_df)
        on_board = None
        if options.board:
            device = device.on_board(options.board)
            on_board = board(options.board)
        chips = _chips_from_options(options, arch, on_board)
        if isinstance(chips, Chips):
            objective = Objective.from_options(
                options.effort, options.objective, len(chips.ids), options.microbatch, chips.ids, chips.cluster
            )
            device = device.with_harvested_rows(chips.harvested)
        else:
            objective = Objective.from_options(options.effort, options.objective, chips, options.microbatch)
        if options.workers is not None and not options.workers.alone:
            helpers = replace(options.workers, count=max(1, options.workers.count - 1))  # this process works, too
            objective.record.pool = JobPool(JOB, helpers, isolated=True, on_report=lambda _, kernel: announce(*kernel))
        observer = options.observer or Observer(dump=options.dump)
        observer.progress = options.progress or observer.progress
        rules = tuple(read_rules(options.mixed, device))
        memory = MemoryWatch.of(options.memory_limit)
        observer.work = objective.record
        objective.record.tell = observer.tell
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
        """Guard the reading of a model: check that its file fits into memory, and start the workers that will share the
        search, which a failure of the block stops. Raises UnsupportedError for a file that is too large for memory."""
        searches = self.objective.effort != "low"
        if searches:
            pool = self.objective.record.pool
        else:
            pool = None
        try:
            if pool is not None:
                pool.start()
            with self.loading(source):
                yield
        except BaseException:
            if pool is not None:
                pool.close()
            raise

    @contextmanager
    def loading(self, source: object = None) -> Generator[None]:
        """Guard the reading of a model without workers, and report it. Raises UnsupportedError for a file that is too
        large for memory."""
        with reported_activities(self.observer.progress) as report, self.memory.reading(source):
            report(Activity("reading the model", "preparing"))
            yield

    def place(self, graph: Graph, *, entries: int = 2) -> tuple[Graph, Placement, str]:
        """Run all passes and return the graph, its placed netlist ops and a title. Queues hold `entries` rounds of
        inputs. Of several window layouts the search takes the one with which the whole model is quickest. Raises
        UnsupportedError for what the device cannot do."""
        graph.name = self.name or graph.name
        return self._placement_of(run([Ir(FRONT, graph)], self._pass_context(entries), self.observer))

    def prepare(self, graph: Graph) -> Graph:
        """Run all passes on graphs and return the graph. Of several window layouts it takes the one with the fewest
        cycles for the convolution alone."""
        graph.name = self.name or graph.name
        return run([Ir(FRONT, graph)], self._pass_context(), self.observer, stop=LAST_ON_GRAPHS)[0].graph

    def place_core_graph(self, graph: Graph, *, entries: int = 2) -> tuple[Graph, Placement, str]:
        """Run the passes after those on graphs, for a graph that `prepare` returned, and return the graph, its placed
        netlist ops and a title. Queues hold `entries` rounds of inputs. Raises UnsupportedError for what the device
        cannot do."""
        forms = run([Ir(CORE, graph)], self._pass_context(entries), self.observer, after=LAST_ON_GRAPHS)
        return self._placement_of(forms)

    def run_until(self, graph: Graph, after: str) -> IrFile:
        """Run the passes up to and including `after`, and return their IR as the content of an IR file. Raises
        HostError for a pass that does not exist."""
        graph.name = self.name or graph.name
        return file_of(
            after, run([Ir(FRONT, graph)], self._pass_context(), self.observer, stop=after), self._pass_context()
        )

    def resume(self, file: IrFile) -> tuple[Graph, Placement, str]:
        """Run the passes after the one that a file was written after, and return the graph, its placed netlist ops and
        a title. A file of ops on tiles states its own target. Raises IrError for IR that breaks a rule of its level,
        HostError for a pass that does not exist or takes another level."""
        require_pass_name(file.after, "after")
        if file.target is None:
            compilation = self
        else:
            compilation = replace(self, device=file.target)
        for form in file.forms:
            for problem in problems(form, compilation.device.arch.name):
                raise IrError(f"{form.locate(problem, file.path)} (after {file.after}, level {form.level})")
        return compilation._placement_of(
            run(file.forms, compilation._pass_context(), compilation.observer, after=file.after)
        )

    def _pass_context(self, entries: int = 2) -> Context:
        """Return the options as the settings that passes read. `entries`: rounds of inputs that the queues of inputs
        and outputs hold."""
        return Context(
            target=self.device,
            objective=self.objective,
            rules=self.rules,
            fuse=self.fuse,
            entries=entries,
            memory=self.memory,
        )

    def _placement_of(self, forms: list[Ir]) -> tuple[Graph, Placement, str]:
        """Return the graph, placement and title of the forms that the last pass returned. Raises InternalError if it
        left no placement."""
        graph = forms[0].graph
        placement = forms[0].placement
        if placement is None:
            raise InternalError("the last pass left no placement")
        return graph, placement, _netlist_comment(graph, self.device)


def _chips_from_options(options: CompileOptions, arch: str, on_board: Board | None) -> int | Chips:
    """Return the chips that the options ask for: their number, or those of a cluster's file. Raises HostError for more
    than the board has, for a board together with a cluster's file, and for a file that is no cluster for the
    architecture."""
    if on_board is None:
        return chips_of(1 if options.chips is None else options.chips, arch)
    if options.chips is None:
        return on_board.chips
    chips = chips_of(options.chips, arch)
    if isinstance(chips, Chips):
        raise HostError(
            f"compile: board {on_board.name} says what its chips are: leave out it or the file {options.chips}"
        )
    if chips > on_board.chips:
        raise HostError(f"compile: {chips} chips are more than the {on_board.chips} of board {on_board.name}")
    return chips


def _netlist_comment(graph: Graph, target: Target) -> str:
    """Return the comment at the head of the netlist: model, device, number formats and fidelity."""
    formats = f"{target.activation_df}, sums in {target.acc_df}, {target.fidelity}"
    return f"Model {graph.name} by buda-emu compile: {target.title}, {formats}. Names are the model's own."


def made_up(graph: Graph, seed: int = 0) -> tuple[Array, ...]:
    """Return one random array for each input, in order: normal numbers for floats, indices within their tables,
    otherwise zeros and ones. An input that decides shapes gets values that mean the shapes for which the graph was
    imported."""
    rng = np.random.default_rng(seed)
    nodes = [graph[name] for name in graph.inputs]
    rules = rules_of(graph)

    def draw(node: Node) -> Array:
        """Return a random array for an input that means the shapes that the graph has."""
        return fill_by_rules(rules, node.attrs["label"], values(rng, host_shape(node), node.dtype, below(graph, node)))

    return tuple(map(draw, nodes))


def below(graph: Graph, node: Node) -> int:
    """Return the exclusive upper bound of an integer input: the rows of the smallest table that it indexes, or 2; less
    where the host checks that indices lie in a smaller dimension."""
    upper_bound = min((_table_rows(graph, name) for name in _embeddings_indexed_by(graph, node.name)), default=2)
    dimensions = [index_range.rows for index_range in node.attrs.get("ranges", ()) if index_range.rows]
    return min(upper_bound, *dimensions) if dimensions else upper_bound


def _embeddings_indexed_by(graph: Graph, start: str) -> list[str]:
    """Return the names of the embeddings whose indices derive from the input `start` by ops with a single operand."""
    embeddings: list[str] = []
    derived = {start}
    for node in graph:
        if derived.isdisjoint(node.inputs):
            continue
        if node.op == "embedding" and node.inputs[1] in derived:
            embeddings.append(node.name)
        elif len(node.inputs) == 1:
            derived.add(node.name)
    return embeddings


def _table_rows(graph: Graph, name: str) -> int:
    """Return the number of rows of the table that the embedding `name` reads."""
    return graph[graph[name].inputs[0]].shape[0]
