"""The compiler as one list of passes, from the model as it was imported to ops on cores (docs/compile/pipeline.md)."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from buda_emu.arithmetic.jit.reporting import reported_work
from buda_emu.compiler.fuse.chains import fuse_chains, fuse_stores
from buda_emu.compiler.fuse.columns import fuse_half_tiles, fuse_spreads
from buda_emu.compiler.fuse.epilogues import fuse_activation, fuse_bias, fuse_relu, use_integers
from buda_emu.compiler.fuse.rows import fuse_products, fuse_rows
from buda_emu.compiler.graph.graph import Graph, OwnMemory
from buda_emu.compiler.graph.spec import CORE, FRONT, check_graph
from buda_emu.compiler.ir.text import PLACED, TILE, Ir, IrFile, print_ir
from buda_emu.compiler.ir.verify import problems
from buda_emu.compiler.lower.layout import TILE as TILE_WIDTH
from buda_emu.compiler.lower.lower import lower
from buda_emu.compiler.lower.tiles import TileGraph, TileOp
from buda_emu.compiler.memory_watch import MemoryWatch
from buda_emu.compiler.mixed import (
    Rule,
    assign,
    idle_rules,
    keep_apart,
    keep_from_padding,
    large_values,
    mixed_with_padding,
    precision_of,
    tell_readers,
    widen,
    without_blocks,
)
from buda_emu.compiler.passes.clean import cse, dce, decompose, neutral
from buda_emu.compiler.passes.factors import factors, late_factors
from buda_emu.compiler.passes.folding import fold_pads, fold_scale_bias, fuse_quantize_dequantize, gelu
from buda_emu.compiler.passes.host_windows import host_windows
from buda_emu.compiler.passes.slices import slice_products, split_concats
from buda_emu.compiler.place.blocks import TargetOf
from buda_emu.compiler.place.operand_room import enlarge_operand_buffers
from buda_emu.compiler.place.rows import stack_row_sums, stream_rows
from buda_emu.compiler.search.placer import place_best
from buda_emu.compiler.search_record import SearchRecord
from buda_emu.compiler.target import ONE_BY_ONE, Objective, Precision, Target
from buda_emu.spec.formats import FORMATS
from buda_emu.support.checker.suggest import near
from buda_emu.support.errors import HostError, HostWarning, InternalError
from buda_emu.support.progress import Activity, Report, do_nothing
from buda_emu.support.warned import warn_caller

IMPORT: Final = "import"
"""Name of the stage before the first pass."""
DEFAULT: Final = Target.from_names("wormhole_b0", "Float16_b", "HiFi3")
VERIFY_EACH = False
"""Default of `Observer.verify`; the tests set it."""


@dataclass(frozen=True, slots=True)
class Context:
    """The settings that all passes read: the target, the objective of the search, formats by name, whether ops are
    fused, the number of input rounds that queues hold (`entries`), and the memory that passes may take."""

    target: Target = DEFAULT
    objective: Objective = ONE_BY_ONE
    rules: tuple[Rule, ...] = ()
    fuse: bool = True
    entries: int = 2
    memory: MemoryWatch = field(default_factory=lambda: MemoryWatch.of(None))

    def targets(self, tiles: TileGraph) -> TargetOf:
        """Return a function that gives each op its target, with the formats that the op and its operands are going to
        have: those of rules, and 16 bits for values that hold masks."""

        @cache
        def large() -> set[str]:
            """Return the names of values that may hold numbers as large as masks; none unless the format is a block
            format."""
            return large_values(tiles, self.target)

        @cache
        def padded_ops() -> set[str]:
            """Return the names of ops whose results mix elements with padding other than 0."""
            return mixed_with_padding(tiles)

        def precision(op: TileOp) -> Precision:
            """Return the formats of an op by the caller's rules; no block format beside padding, and the wide output
            format for large values unless a rule says otherwise."""
            op_precision = precision_of(op, self.rules)
            if op.name in padded_ops():
                return without_blocks(op_precision, self.target)
            if not op_precision.df and op.name in large():
                return replace(op_precision, df=self.target.output_df)
            return op_precision

        def target_of(op: TileOp) -> Target:
            """Return the target of an op: its formats, and those in which it reads its operands."""
            op_precision = precision(op)
            sources = (tiles.ops.get(use.source) for use in op.uses)
            read = (self.target.of(precision(source) if source is not None else op_precision) for source in sources)
            return self.target.of(replace(op_precision, reads=tuple(target.activation_df for target in read)))

        return target_of


Run = Callable[[Sequence[Ir], Context], list[Ir]]


@dataclass(frozen=True, slots=True)
class Pass:
    """One step of the compiler. `before` and `after` are the levels of its IR. `run` takes all forms of the model that
    the search has yet to choose from; most passes treat each form by itself. `wanted` returns whether the pass does
    anything for a context."""

    name: str
    before: str
    after: str
    doc: str
    run: Run
    wanted: Callable[[Context], bool] = lambda _: True


# ------------------------------------------------------------------------------------------ functions as passes
def _on_each_graph(function: Callable[[Graph], Graph], level_after: str) -> Run:
    """Return the run of a pass that is a function on graphs; `level_after` is that of its results."""
    return lambda forms, _: [Ir(level_after, function(form.graph)) for form in forms]


def _assign_rules(forms: Sequence[Ir], context: Context) -> list[Ir]:
    """Give ops the formats of the caller's rules, in the tile graphs themselves, and issue a HostWarning for each rule
    that fits none."""
    results = _on_each_tile_graph(lambda tiles, _: assign(tiles, context.rules))(forms, context)
    graphs = [form.tiles for form in results if form.tiles is not None]
    for sentence in idle_rules(graphs, context.rules):
        warn_caller(f"compile: {sentence}", HostWarning)
    return results


def _on_each_tile_graph(function: Callable[[TileGraph, Context], TileGraph | None]) -> Run:
    """Return the run of a pass that is a function on tile graphs: it changes the graph that it is called with and
    returns None, or returns a new one."""

    def run(forms: Sequence[Ir], context: Context) -> list[Ir]:
        """Return the forms with the function applied to their tile graphs; if it returns None it has changed the graph
        in place."""
        results: list[Ir] = []
        for form in forms:
            tiles = form.tiles
            assert tiles is not None, "a form of level tile has tiles"
            new_tiles = function(tiles, context)
            results.append(replace(form, tiles=tiles if new_tiles is None else new_tiles))
        return results

    return run


def _lay_out_windows(forms: Sequence[Ir], context: Context) -> list[Ir]:
    """Let the host lay out the windows of each model's first convolution: return a form for each layout that
    `host_windows` offers, the quickest for the convolution alone first; with low effort only that one."""
    graphs = [Ir(CORE, graph) for form in forms for graph in host_windows(form.graph, context.target)]
    if context.objective.effort == "low":
        return graphs[:1]
    return graphs


def _waits_for_one(form: Ir, context: Context) -> bool:
    """Return whether only one input is in flight, as in programs with caches, so that the longest path through the ops
    counts."""
    return context.objective.microbatch == 1 or form.graph.one_by_one


def _has_one_chip(form: Ir, context: Context) -> bool:
    """Return whether only one input is in flight, on one chip. On several chips, products and the ops between them are
    cut over the chips."""
    return context.objective.chips == 1 and _waits_for_one(form, context)


def _longest_fused_row(form: Ir, context: Context) -> int:
    """Return the length of the longest row, in elements, whose softmax one op computes; 0 if rows are not fused."""
    if context.fuse and _has_one_chip(form, context):
        return TILE_WIDTH * context.target.dest_tiles
    return 0


def _run_factors(forms: Sequence[Ir], context: Context) -> list[Ir]:
    """Run the pass that moves factors on the graph of each form."""
    return [Ir(CORE, factors(form.graph, _longest_fused_row(form, context))) for form in forms]


def _run_late_factors(forms: Sequence[Ir], context: Context) -> list[Ir]:
    """Run the pass that moves factors behind products on the graph of each form with only one input in flight."""
    return [
        Ir(CORE, late_factors(form.graph, _longest_fused_row(form, context))) if _waits_for_one(form, context) else form
        for form in forms
    ]


def _for_one(step: Run) -> Run:
    """Return the run of a pass that treats only forms with one input in flight, on one chip, and leaves other forms
    unchanged."""

    def run(forms: Sequence[Ir], context: Context) -> list[Ir]:
        """Apply the step to the forms with only one input in flight, on one chip, and leave the others unchanged."""
        results: list[Ir] = []
        for form in forms:
            results += step([form], context) if _has_one_chip(form, context) else [form]
        return results

    return run


def _lower(forms: Sequence[Ir], context: Context) -> list[Ir]:
    """Lower each graph to a tile graph."""
    memory = OwnMemory()
    return [Ir(TILE, form.graph, lower(form.graph, context.target, memory)) for form in forms]


def _search(forms: Sequence[Ir], context: Context) -> list[Ir]:
    """Place all forms and return only the one whose placement is best."""
    tiles = [form.tiles for form in forms if form.tiles is not None]
    number, placement = place_best(tiles, context.target, context.objective, entries=context.entries)
    return [Ir(PLACED, forms[number].graph, placement.tiles, placement)]


def _make_fork_room(forms: Sequence[Ir], _: Context) -> list[Ir]:
    """Enlarge operand buffers of short branches beside long ones in each placement, in place."""
    for form in forms:
        if form.placement is not None:
            enlarge_operand_buffers(form.placement)
    return list(forms)


def _has_int8(context: Context) -> bool:
    """Return whether the device computes with int8."""
    return context.target.has_int8


def _is_wide(context: Context) -> bool:
    """Return whether sums of products may grow, because the format's exponent has more than 5 bits."""
    return FORMATS[context.target.activation_df].family != "a"


def _wants_fusion(context: Context) -> bool:
    """Return whether the caller wants ops to be fused."""
    return context.fuse


PASSES: Final[tuple[Pass, ...]] = (
    Pass(
        name="gelu",
        before=FRONT,
        after=FRONT,
        doc="erf and products of exporters become gelu",
        run=_on_each_graph(gelu, FRONT),
    ),
    Pass(
        name="fuse_quantize_dequantize",
        before=FRONT,
        after=FRONT,
        doc="rounding to 8 bits and back becomes the chip's two ops for it",
        run=_on_each_graph(fuse_quantize_dequantize, FRONT),
        wanted=_has_int8,
    ),
    Pass(
        name="decompose",
        before=FRONT,
        after=CORE,
        doc="every op becomes core ops; what depends only on constants is computed",
        run=_on_each_graph(decompose, CORE),
    ),
    Pass(
        name="neutral",
        before=CORE,
        after=CORE,
        doc="added zeros and multiplied ones are removed",
        run=_on_each_graph(neutral, CORE),
    ),
    Pass(
        name="fold_pads",
        before=CORE,
        after=CORE,
        doc="zeros around a convolution's operand become its own padding",
        run=_on_each_graph(fold_pads, CORE),
    ),
    Pass(
        name="fold_scale_bias",
        before=CORE,
        after=CORE,
        doc="factors and terms of channels go into weights and one bias",
        run=_on_each_graph(fold_scale_bias, CORE),
    ),
    Pass(
        name="slice_products",
        before=CORE,
        after=CORE,
        doc="columns that are taken of a product become a product by those columns",
        run=_on_each_graph(slice_products, CORE),
    ),
    Pass(
        name="factors",
        before=CORE,
        after=CORE,
        doc="attention is divided by its sums, and scaled, where there are the fewest elements",
        run=_run_factors,
        wanted=_is_wide,
    ),
    Pass(
        name="late_factors",
        before=CORE,
        after=CORE,
        doc="what multiplies rows, as a norm does, comes after products that read them",
        run=_run_late_factors,
        wanted=_is_wide,
    ),
    Pass(
        name="split_concats",
        before=CORE,
        after=CORE,
        doc="what reads channels or cache entries side by side reads the parts and adds up",
        run=_on_each_graph(split_concats, CORE),
    ),
    Pass(
        name="windows",
        before=CORE,
        after=CORE,
        doc="the host lays out the input of the first convolution; the search chooses a layout",
        run=_lay_out_windows,
    ),
    Pass(name="cse", before=CORE, after=CORE, doc="equal nodes become one", run=_on_each_graph(cse, CORE)),
    Pass(
        name="dce",
        before=CORE,
        after=CORE,
        doc="nodes that no output depends on are removed",
        run=_on_each_graph(dce, CORE),
    ),
    Pass(name="lower", before=CORE, after=TILE, doc="core ops become netlist ops on tiles", run=_lower),
    Pass(
        name="integer_products",
        before=TILE,
        after=TILE,
        doc="products of 8-bit integers instead of the values that they represent",
        run=_on_each_tile_graph(lambda tiles, _: use_integers(tiles)),
    ),
    Pass(
        name="fuse_bias",
        before=TILE,
        after=TILE,
        doc="a row that is added becomes the product's operand",
        run=_on_each_tile_graph(lambda tiles, _: fuse_bias(tiles)),
        wanted=_wants_fusion,
    ),
    Pass(
        name="fuse_activation",
        before=TILE,
        after=TILE,
        doc="gelu goes into the product before it",
        run=_on_each_tile_graph(lambda tiles, _: fuse_activation(tiles)),
        wanted=_wants_fusion,
    ),
    Pass(
        name="fuse_relu",
        before=TILE,
        after=TILE,
        doc="a clamp becomes the packer's of the op before it",
        run=_on_each_tile_graph(lambda tiles, _: fuse_relu(tiles)),
        wanted=_wants_fusion,
    ),
    Pass(
        name="fuse_rows",
        before=TILE,
        after=TILE,
        doc="a softmax, or what a norm divides by, becomes one op with the sums of its rows",
        run=_for_one(_on_each_tile_graph(lambda tiles, context: fuse_rows(tiles, context.targets(tiles)))),
        wanted=_wants_fusion,
    ),
    Pass(
        name="fuse_chains",
        before=TILE,
        after=TILE,
        doc="element-wise ops that follow each other become one op",
        run=_on_each_tile_graph(lambda tiles, context: fuse_chains(tiles, context.target)),
        wanted=_wants_fusion,
    ),
    Pass(
        name="fuse_spreads",
        before=TILE,
        after=TILE,
        doc="readers of a maximum spread its one column over the tile themselves",
        run=_on_each_tile_graph(lambda tiles, _: fuse_spreads(tiles)),
        wanted=_wants_fusion,
    ),
    Pass(
        name="fuse_half_tiles",
        before=TILE,
        after=TILE,
        doc="what is one number for each row is computed on half of each tile",
        run=_on_each_tile_graph(lambda tiles, _: fuse_half_tiles(tiles)),
        wanted=_wants_fusion,
    ),
    Pass(
        name="fuse_products",
        before=TILE,
        after=TILE,
        doc="products go into the op that adds something to them, or multiplies them",
        run=_for_one(_on_each_tile_graph(lambda tiles, context: fuse_products(tiles, context.targets(tiles)))),
        wanted=_wants_fusion,
    ),
    Pass(
        name="stack_rows",
        before=TILE,
        after=TILE,
        doc="ops that sum rows have their slices below each other, for several cores",
        run=_on_each_tile_graph(lambda tiles, context: stack_row_sums(tiles, context.targets(tiles))),
        wanted=_wants_fusion,
    ),
    Pass(
        name="fuse_stores",
        before=TILE,
        after=TILE,
        doc="the op that makes the value of a cache slot writes it",
        run=_on_each_tile_graph(lambda tiles, _: fuse_stores(tiles)),
        wanted=_wants_fusion,
    ),
    Pass(
        name="mixed_formats",
        before=TILE,
        after=TILE,
        doc="ops get the formats that --mixed names",
        run=_assign_rules,
    ),
    Pass(
        name="masks",
        before=TILE,
        after=TILE,
        doc="values with both masks and numbers get 16 bits",
        run=_on_each_tile_graph(lambda tiles, context: keep_apart(tiles, context.target)),
    ),
    Pass(
        name="padding",
        before=TILE,
        after=TILE,
        doc="values beside padding that is not 0 get 16 bits instead of a block format",
        run=_on_each_tile_graph(lambda tiles, context: keep_from_padding(tiles, context.target)),
    ),
    Pass(
        name="state_formats",
        before=TILE,
        after=TILE,
        doc="ops that write a state have its format",
        run=_on_each_tile_graph(lambda tiles, _: widen(tiles)),
    ),
    Pass(
        name="operand_formats",
        before=TILE,
        after=TILE,
        doc="ops know the formats of what they read",
        run=_on_each_tile_graph(lambda tiles, context: tell_readers(tiles, context.target)),
    ),
    Pass(
        name="stream_rows",
        before=TILE,
        after=TILE,
        doc="ops that fit no grid run in slices of their rows",
        run=_on_each_tile_graph(lambda tiles, context: stream_rows(tiles, context.target)),
    ),
    Pass(
        name="search", before=TILE, after=PLACED, doc="blocks, cores, epochs, chips, queues and addresses", run=_search
    ),
    Pass(
        name="fork_room",
        before=PLACED,
        after=PLACED,
        doc="short branches parallel to long ones get room",
        run=_make_fork_room,
    ),
)
"""All passes in the order in which they run."""
NAMES: Final = (IMPORT, *(step.name for step in PASSES))
LAST_ON_GRAPHS: Final = "dce"


def require_pass_name(name: str, option: str) -> str:
    """Return the name of a pass unchanged. Raises HostError, naming `option` and all passes, for a name that no pass
    has."""
    if name not in NAMES:
        hint = near(name, NAMES)
        names = f"passes are {', '.join(NAMES)}"
        raise HostError(f"{option} {name}: {hint} {names}" if hint else f"{option} {name}: {names}")
    return name


@dataclass(slots=True)
class Observer:
    """Callbacks and measurements of a compilation. `show` gets the text of the IR after each pass in `printed`, `dump`
    gets the name of each pass of levels front and core, and the graph after it; while the search has yet to choose
    between forms, both wait for its choice. `foreseen` gets, before the first pass, a sentence about the memory that
    the passes will need. `verify`: whether the IR is verified after each pass; `seconds`: processor time of each pass.
    `tell` gets the progress of the search, `work` is what the search has done. `progress` gets an Activity for each
    pass and each epoch of the search; its exception ends the compilation."""

    show: Callable[[str], None] | None = None
    foreseen: Callable[[str], None] | None = None
    printed: frozenset[str] = frozenset()
    dump: Callable[[str, Graph], None] | None = None
    verify: bool = field(default_factory=lambda: VERIFY_EACH)
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    tell: Callable[[str], None] | None = None
    progress: Report | None = None
    work: SearchRecord | None = None
    _waiting: dict[int, list[Callable[[], None]]] = field(default_factory=dict[int, list[Callable[[], None]]])

    def look(self, name: str, forms: Sequence[Ir], arch: str) -> None:
        """Verify, dump and print, as far as the caller asked for it, the forms that the pass `name` has just returned.
        While there are several forms, what would be dumped and printed waits for `choose`. Raises InternalError for an
        IR that breaks a rule of its level."""
        for number, form in enumerate(forms):
            if self.verify:
                for problem in problems(form, arch):
                    raise InternalError(f"after {name}: {problem}")
            if self.dump is not None and form.level in (FRONT, CORE):
                self._defer(number, _bind(self.dump, name, form.graph))
            if self.show is not None and name in self.printed:
                self._defer(number, _bind(self.show, f"# after {name}\n{print_ir(form)}"))
        if len(forms) == 1:
            self.choose(0)

    def _defer(self, number: int, report: Callable[[], None]) -> None:
        """Keep a call that reports form `number` until that form is chosen."""
        self._waiting.setdefault(number, []).append(report)

    def choose(self, number: int) -> None:
        """Report what waited for the choice of this form, and forget the other forms."""
        reports = self._waiting.get(number, [])
        self._waiting = {}
        for report in reports:
            report()


def _bind(function: Callable[..., None], *arguments: object) -> Callable[[], None]:
    """Return a function without parameters that calls `function` with these arguments, for a report that has to
    wait."""
    return lambda: function(*arguments)


def run(
    forms: Sequence[Ir], context: Context, observer: Observer | None = None, *, after: str = IMPORT, stop: str = ""
) -> list[Ir]:
    """Run the passes between `after` and `stop` ("" runs all) on the forms that pass `after` returned. Raises
    UnsupportedError for what the device cannot do and if memory does not suffice, InternalError if a pass breaks a
    rule."""
    observer = observer or Observer()
    steps = list(between(after, stop))
    record = context.objective.record
    if after == IMPORT:
        _check_graphs(IMPORT, forms)
        observer.look(IMPORT, forms, context.target.arch.name)
        words = context.memory.before_passes(forms[0].graph)
        if observer.foreseen is not None:
            observer.foreseen(words)
    with reported_work(observer.progress) as report:
        record.report = report
        try:
            if record.pool is not None and any(step.name == "search" for step in steps):
                record.pool.start()  # ready when the search begins
            return _run_passes(steps, forms, context, observer)
        finally:
            record.report = None
            observer.choose(0)
            if record.pool is not None:
                record.pool.close()


def _run_passes(steps: Sequence[Pass], forms: Sequence[Ir], context: Context, observer: Observer) -> list[Ir]:
    """Run those of the passes that the context wants, and report each."""
    report = context.objective.record.report or do_nothing
    current = list(forms)
    for number, step in enumerate(steps):
        if step.wanted(context):
            report(Activity(f"pass {step.name}", "passes", number, len(steps)))
            current = _run_pass(step, current, context, observer)
    return current


def _run_pass(step: Pass, forms: Sequence[Ir], context: Context, observer: Observer) -> list[Ir]:
    """Run one pass, measure it and check its result. Raises HostError for forms of another level than it takes."""
    if any(form.level != step.before for form in forms):
        raise HostError(f"{step.name} takes IR of level {step.before}, not {forms[0].level}")
    start = time.process_time()
    with context.memory.counting():
        results = step.run(forms, context)
    observer.seconds[step.name] = time.process_time() - start
    context.memory.after(step.name)
    _check_graphs(step.name, results)
    if step.name == "search":
        observer.choose(next(number for number, form in enumerate(forms) if form.graph is results[0].graph))
    observer.look(step.name, results, context.target.arch.name)
    return results


def _check_graphs(name: str, forms: Sequence[Ir]) -> None:
    """Check the graphs of levels front and core against the rules of their level, which is cheap enough to do after
    every pass. Raises InternalError naming the pass `name`."""
    for form in forms:
        if form.level in (FRONT, CORE):
            check_graph(form.graph, form.level, name)


def between(after: str, stop: str = "") -> Iterable[Pass]:
    """Return the passes behind `after`, up to and including `stop`, "" for the last. Raises HostError if `stop` is
    before `after`."""
    first = NAMES.index(after)
    if stop:
        last = NAMES.index(stop)
    else:
        last = len(PASSES)
    if last < first:
        raise HostError(f"pass {stop} is done already: the IR is that after {after}")
    return PASSES[first:last]


def core_graph(graph: Graph, target: Target = DEFAULT) -> Graph:
    """Return a front-end graph after all passes on graphs. Layouts of windows are not searched: each convolution gets
    the one that is quickest for it alone."""
    return run([Ir(FRONT, graph)], Context(target), stop=LAST_ON_GRAPHS)[0].graph


def file_of(after: str, forms: Sequence[Ir], context: Context) -> IrFile:
    """Return the forms that the pass `after` returned as the content of an IR file, from which `compile_from` can go
    on; forms on tiles come with the target. Nothing is written."""
    return IrFile(after, tuple(forms), context.target if forms[0].level in (TILE, PLACED) else None)
