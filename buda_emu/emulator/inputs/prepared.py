"""Prepares a run: its programs and parameters, a check for failures that are certain, and a check of the machine's
memory."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from heapq import nlargest
from math import prod
from typing import TYPE_CHECKING

from buda_emu.arithmetic.formats.stored import stored_tile_bytes
from buda_emu.emulator.inputs.entries import (
    ProgramWalk,
    check_parameters,
    default_parameters,
    select_programs,
    walk_programs,
)
from buda_emu.emulator.inputs.of_image import (
    NO_IMAGE_QUEUES,
    ImageQueues,
    host_copies,
    image_args,
    image_queues,
    is_archive_of_inputs,
)
from buda_emu.emulator.memory.host import SHARE, default_memory_limit, size_text
from buda_emu.emulator.options import Machine, memory_of, with_memory
from buda_emu.emulator.runtime.graph.plan import build_plan
from buda_emu.emulator.runtime.graph.steps import topology
from buda_emu.emulator.runtime.host.exchange import PART_BYTES
from buda_emu.emulator.runtime.host.host_io import SHARE_OF_LENT
from buda_emu.netlist.model import Execute, Netlist, Program, Queue
from buda_emu.netlist.test_config import TestConfig, read_test_config
from buda_emu.spec.blocking import TILE_ELEMENTS
from buda_emu.support.checker.diagnostic import Diagnostic
from buda_emu.support.checker.render import render
from buda_emu.support.errors import NetlistError, ProgramError, UnsupportedError
from buda_emu.support.progress import Activity, Report, do_nothing
from buda_emu.support.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from buda_emu.emulator.image.device_image import DeviceImage
    from buda_emu.emulator.inputs.feed import Feed


_ROOM = "V208"  # a queue is too small for the inputs of an execute
_SHAPE = "V179"  # shapes do not fit an op


def require_runnable(netlist: Netlist, programs: Sequence[Program]) -> None:
    """Raise NetlistError when these programs are bound to fail for a reason that the text alone shows."""
    candidates = [diagnostic for diagnostic in netlist.diagnostics if diagnostic.rule in (_ROOM, _SHAPE)]
    if not candidates:
        return
    # Every execute is reached: programs have no branches, and loops run at least once (NETLIST 3.4).
    executed: set[str] = set()
    for program in programs:
        executed.update(step.graph for step in program.instructions if isinstance(step, Execute))
    failures = [
        *_room_failures(netlist, programs, executed, candidates),
        *_plan_failures(netlist, executed, candidates),
    ]
    if failures:
        errors = tuple(replace(diagnostic, severity="error") for diagnostic in dict.fromkeys(failures))
        raise NetlistError(render(errors), errors)


def _room_failures(
    netlist: Netlist, programs: Sequence[Program], executed: set[str], candidates: Sequence[Diagnostic]
) -> Iterator[Diagnostic]:
    """Yield those of the `candidates` which say that a queue is too small for the inputs of an execute, and which are
    about one of the programs or a queue that one of the `executed` graphs fills."""
    owner = {op.name: graph.name for graph in netlist.graphs.values() for op in graph.ops}
    names = {f"queue {queue.name}" for queue in netlist.queues.values() if owner.get(queue.input) in executed}
    names |= {f"program {program.name}" for program in programs}
    yield from (
        diagnostic
        for diagnostic in candidates
        if diagnostic.rule == _ROOM and diagnostic.message.partition(":")[0] in names
    )


def _plan_failures(netlist: Netlist, executed: set[str], candidates: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Plan every temporal graph whose graphs are all among the `executed` ones. Where that fails at an op or queue
    which one of the `candidates` about shapes names, yield all of those about the temporal graph: a run is bound to
    fail by them."""
    shapes = [diagnostic for diagnostic in candidates if diagnostic.rule == _SHAPE]
    labels = {queue.name: queue.df for queue in netlist.queues.values()}
    for temporal in netlist.temporal_graphs if shapes else ():
        if not executed.issuperset(temporal.graphs):
            continue
        try:
            build_plan(netlist, topology(netlist, temporal), labels, quantised=True)
        except ProgramError as error:
            if _diagnostics_about(shapes, {f"op {error.op}", f"queue {error.queue}"}):
                # The plan ends at its first failure: the others of its graphs are as certain.
                yield from _diagnostics_about(shapes, _subjects(netlist, temporal.graphs))
        except UnsupportedError:
            continue  # said when it runs, by name


def _diagnostics_about(diagnostics: Sequence[Diagnostic], subjects: set[str]) -> list[Diagnostic]:
    """Return the diagnostics whose messages begin with one of the subjects, such as "op x" or "queue x"."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.message.partition(":")[0] in subjects]


def _subjects(netlist: Netlist, graphs: Sequence[str]) -> set[str]:
    """Return the ops of graphs and the queues that they fill, as diagnostics name them: "op x", "queue y"."""
    ops = {op.name for name in graphs for op in netlist.graphs[name].ops}
    queues = {f"queue {queue.name}" for queue in netlist.queues.values() if queue.input in ops}
    return queues | {f"op {name}" for name in ops}


_NAMED = 3  # queues that the error names
_ENTRY_COPIES = 5  # of an entry: made up as float64, as float32, as tiles, as the host's element type


def try_walk(netlist: Netlist, programs: Sequence[Program], parameters: Mapping[str, str]) -> ProgramWalk | None:
    """Interpret these programs without data, and return what they would read and run; None when that fails already, as
    the run itself then reports more. Raises ProgramError only where the programs take more instructions than a run may:
    that is reported before the work."""
    try:
        return walk_programs(netlist, programs, parameters)
    except ProgramError as error:
        if error.kind == "limit":
            raise
        return None


def require_memory(
    netlist: Netlist,
    steps: ProgramWalk | None,
    limit: int | None,
    *,
    machines: int = 1,
    rams: bool = True,
    as_bits: bool = False,
    beside: int = 0,
    queues: ImageQueues = NO_IMAGE_QUEUES,
    tell: Callable[[str], object] = lambda _: None,
) -> int:
    """Return the memory limit in bytes for each of `machines` that run at once. `limit` is for all, None: a share of
    the memory that is available now.

    Raises UnsupportedError when queues, rams and copies need more: what cannot run to its end does not start. `steps`:
    what the programs do, None if unknown. `rams`: host-fed rams are filled. `as_bits`: queues hold the bits of their
    formats (precision "device"). `beside`: bytes of host copies of input files. `queues` are those of the image. `tell`
    is called with the expected need in words.
    """
    limit_each = (default_memory_limit() if limit is None else limit) // machines
    if steps is not None:
        needed = held_bytes(netlist, steps, queues.filled, rams=rams, as_bits=as_bits)
    else:
        needed = {}
    beside += _bytes_of_entry_copies(netlist, queues.lent | queues.between)
    apart = {name: needed.pop(name) for name in queues.lent if name in needed}
    if apart:
        lent_bytes = sum(apart.values())
        needed["parameters in the image's file"] = min(
            lent_bytes, limit_each // SHARE_OF_LENT + sum(nlargest(2, apart.values()))
        )
    total = sum(needed.values()) + beside
    suffix = ""
    if machines > 1:
        suffix = f" for each of {machines} machines side by side"
    whose = ""
    if limit is None:
        whose = f" ({SHARE:.0%} of the memory that is available now)"
    copies = ""
    if beside:
        copies = f" and {size_text(beside)} of host copies beside them"
    words = (
        f"this run holds at least {size_text(total - beside)} in queues and rams{copies}, the memory limit{suffix} is "
        f"{size_text(limit_each)}{whose}"
    )
    if total > limit_each:
        largest = sorted(needed, key=lambda name: -needed[name])[:_NAMED]
        named = ", ".join(f"{name} {size_text(needed[name])}" for name in largest)
        fix = "Give smaller parameters, or a higher limit (--memory-limit)"
        raise UnsupportedError(f"{words}. The largest: {named}. {fix}")
    tell(words)
    return limit_each


def held_bytes(
    netlist: Netlist, steps: ProgramWalk, filled: Collection[str] = (), *, rams: bool = True, as_bits: bool = False
) -> dict[str, int]:
    """Return the bytes of tiles that each queue and ram holds, at least, after the programs of this walk, by name.

    A host-fed queue: the entries that are read. A host-fed ram: all, where `rams` or it is in `filled`. An op-fed
    queue: the entries that its graph writes, at most what it holds; a ram one of them. Static rams on the same buffers
    count once, by the name of the largest (NETLIST 1.10).
    """
    owner = {op.name: graph.name for graph in netlist.graphs.values() for op in graph.ops}
    dynamic = netlist.dynamic
    largest: dict[object, tuple[int, str]] = {}
    for queue in netlist.queues.values():
        shared = queue.is_ram and queue.name not in dynamic
        if shared:
            place = (queue.target_device, queue.loc, queue.buffers)
        else:
            place = queue.name
        count = _count_entries(queue, steps, owner, rams or queue.name in filled) * entry_bytes(queue, as_bits=as_bits)
        largest[place] = max(largest.get(place, (0, queue.name)), (count, queue.name))
    return {name: count for count, name in largest.values()}


def _bytes_of_entry_copies(netlist: Netlist, apart: Collection[str]) -> int:
    """Return the bytes that the host's copies of the largest entry take beyond PART_BYTES each while it is pushed or
    popped; 0 where no entry is larger than that. Queues in `apart` do not count: they are moved in parts or not at
    all."""
    largest = max((entry_bytes(queue) for queue in netlist.queues.values() if queue.name not in apart), default=0)
    return max(0, largest - PART_BYTES) * _ENTRY_COPIES


def entry_bytes(queue: Queue, *, as_bits: bool = False) -> int:
    """Return the bytes of one entry in the emulator's memory: float32 tiles of 32x32, or the bits of the queue's
    format."""
    return prod(queue.blocking.shape) * (stored_tile_bytes(queue.df) if as_bits else TILE_ELEMENTS * 4)


def _count_entries(queue: Queue, steps: ProgramWalk, owner: Mapping[str, str], rams: bool) -> int:
    """Return how many entries a queue or ram holds at least after the programs of a walk. `owner`: the graph of each op
    by the op's name; `rams`: a host-fed ram is filled."""
    if queue.host_fed:
        if not queue.is_ram:
            return steps.entries.get(queue.name, 0)
        return queue.entries if rams else 0
    written = steps.graph_inputs.get(owner.get(queue.input, ""), 0)
    return min(written, 1 if queue.is_ram else queue.entries)


@dataclass(frozen=True, slots=True)
class RunChoice:
    """The caller's choices for a run: `programs` (all, in file order, without any), `parameters` ("$name": value;
    others are as the harness gives them), `machine`, how each machine computes, the netlist's `image`; `all_read`:
    queues between its epochs are read out, too."""

    programs: Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    machine: Machine = field(default_factory=Machine)
    image: "DeviceImage | None" = None
    all_read: bool = False


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run that is ready to start. `values` are those of all parameters; `steps` is what the programs are going to do,
    None where they fail without data; `limit` is the bytes of each machine, and `machine` has it with the other options
    of a machine."""

    netlist: Netlist
    image: "DeviceImage | None"
    bodies: Sequence[Program]
    config: TestConfig
    values: dict[str, str]
    steps: ProgramWalk | None
    limit: int
    machine: Machine

    @property
    def programs(self) -> list[tuple[str, Mapping[str, str]]]:
        """Names of programs with their parameters, in the order of the run."""
        return [(body.name, self.values) for body in self.bodies]

    def feed(self, inputs: "Path | None", seed: int) -> "Feed":
        """Return the source of the run's inputs: tensors of a folder or an .npz file `inputs` (None: none), generated
        ones for the other queues. Raises HostError for a path that is neither."""
        from buda_emu.emulator.inputs.feed import Feed

        archive = None
        if inputs is not None and is_archive_of_inputs(inputs):
            archive = inputs
        files = None
        if inputs is not None and archive is None:
            from buda_emu.emulator.inputs.reference import DirectoryFiles

            files = DirectoryFiles.for_netlist(inputs, self.netlist.path, self.limit, "inputs")
        return Feed(
            netlist=self.netlist,
            config=self.config,
            programs=self.bodies,
            parameters=self.values,
            seed=seed,
            reference=files,
            archive=archive,
            image=self.image,
            limit=self.limit,
        )


def prepare_run(
    netlist: Netlist,
    chosen: RunChoice,
    *,
    machines: int = 1,
    rams: bool = True,
    as_bits: bool = False,
    beside: int = 0,
    progress: Report = do_nothing,
    foretell: Callable[[str], None] | None = None,
) -> PreparedRun:
    """Select the programs, complete their parameters, and check that they can run and fit in memory, before any data is
    made. `machines`, `rams`, `as_bits` and `beside` are those of `require_memory`; `foretell` gets the expected need of
    memory in words, by default `progress`.

    Raises HostError (an unknown program or parameter), NetlistError (a certain failure), UnsupportedError (not
    emulated, or too little memory), ProgramError.
    """
    image = chosen.image
    bodies = select_programs(netlist, chosen.programs)
    config = read_test_config(netlist.path, netlist.sections)
    args = {**image_args(image), **config.args}
    values = {**default_parameters(bodies, args), **check_parameters(bodies, chosen.parameters)}
    require_runnable(netlist, bodies)
    progress(Activity("walking the programs", "preparing"))  # loops of millions of rounds take seconds
    steps = try_walk(netlist, bodies, values)
    limit = require_memory(
        netlist,
        steps,
        memory_of(chosen.machine),
        machines=machines,
        rams=rams,
        as_bits=as_bits,
        beside=beside + host_copies(image),
        queues=image_queues(image, all_read=chosen.all_read),
        tell=foretell or (lambda words: progress(Activity(words, "preparing"))),
    )
    return PreparedRun(
        netlist=netlist,
        image=image,
        bodies=bodies,
        config=config,
        values=values,
        steps=steps,
        limit=limit,
        machine=with_memory(chosen.machine, limit),
    )
