"""The options of a compilation: for inference, for a training, for programs with caches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict

from buda_emu.checker.suggest import near
from buda_emu.compiler.mixed import Mixed
from buda_emu.errors import HostError
from buda_emu.workers.job import Workers

if TYPE_CHECKING:
    from buda_emu.compiler.graph.graph import Graph
    from buda_emu.compiler.pipeline import Observer


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
