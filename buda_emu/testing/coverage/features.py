"""Features of the netlist language: all that the tables of `spec` list, and those that one netlist exercises."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, product
from typing import Final

from buda_emu.netlist import rules
from buda_emu.netlist.build import check_text
from buda_emu.netlist.model import (
    Allocate,
    Deallocate,
    Declare,
    EndLoop,
    Execute,
    Loop,
    Netlist,
    Op,
    Pad,
    Param,
    Queue,
    QueueSettings,
    Tm,
    VarInst,
)
from buda_emu.netlist.rules import registry
from buda_emu.netlist.yaml_reader import UnreadableError, decode
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.blocking import LEGAL_TILE_DIMS
from buda_emu.spec.formats import NETLIST_FORMATS
from buda_emu.spec.ops import OP_TYPES, OpType
from buda_emu.spec.precision import FIDELITIES
from buda_emu.spec.varinst import OPCODES

TMS: Final = (
    "broadcast r", "broadcast c", "broadcast z", "hslice", "hstack", "vslice", "vstack", "transpose", "pad",
    "input pad", "input unpad", "tile_broadcast r", "tile_broadcast c", "on a queue",
)  # fmt: skip
GRIDS: Final = ("one core", "row", "column", "rectangle", "transposed")
INSTRUCTIONS: Final = (
    "var", "staticvar", "param", "loop", "loop in a loop", "execute", "allocate_queue", "deallocate_queue",
    *(f"varinst {name}" for name in OPCODES),
)  # fmt: skip
SETTINGS: Final = (
    "prologue", "epilogue", "zero", "read_only", "variable pointer", "literal pointer", "rd_ptr_autoinc",
    "global_rdptr_autoinc", "global_wrptr_autoinc",
)  # fmt: skip
QUEUES: Final = (
    "from the host", "of an op", "between graphs", "ram of the host", "ram of an op", "in host memory", "flat",
    "several views", "wraps", "several buffers", *(f"tile {high}x{wide}" for high, wide in LEGAL_TILE_DIMS),
)  # fmt: skip
STRUCTURE: Final = (
    "several graphs", "several programs", "several chips", "graph on a list of chips", "temporal graph", "fused op",
    "fused op of several schedules", "gradient op", "untilized output", "several inputs of an epoch",
)  # fmt: skip


@cache
def lists() -> Mapping[str, tuple[str, ...]]:
    """Return the names of all features of the language that a netlist can exercise, by subject. Features that the
    reference refuses are left out."""
    running = [op for op in OP_TYPES.values() if op.runs and OP_TYPES.is_own(op.name)]
    multiplying = [op.name for op in running if op.has("multiplies")]
    return {
        "op types": tuple(op.name for op in running),
        "attributes": tuple(_attribute_names(running)),
        "results in a format": tuple(NETLIST_FORMATS[: NETLIST_FORMATS.index("RawUInt8")]),
        "operands in a format": NETLIST_FORMATS,
        "queues in a format": NETLIST_FORMATS,
        "fidelities": tuple(f"{name} {word}" for name, word in product(multiplying, FIDELITIES)),
        "TMs": TMS,
        "grids": GRIDS,
        "instructions": INSTRUCTIONS,
        "queue settings": SETTINGS,
        "queues": QUEUES,
        "structure": STRUCTURE,
        "op types in fused ops": tuple(op.name for op in running if op.in_fused),
    }


def _attribute_names(op_types: Iterable[OpType]) -> Iterator[str]:
    """Yield the features of attributes of these op types: `OP ATTRIBUTE`, or `OP ATTRIBUTE=WORD` for each word of an
    attribute that has words, if the attribute has a meaning on the op type."""
    for op in op_types:
        for name, spec in ATTRIBUTES.items():
            without_effect = spec.everywhere and not spec.has_effect
            if without_effect or not spec.is_legal_on(op.name) or not _has_meaning(name, op.name):
                continue
            if spec.words and name != "sfpu_op":
                yield from (f"{op.name} {name}={word}" for word in spec.words)
            else:
                yield f"{op.name} {name}"


_INNER_DIMENSION: Final[Mapping[str, tuple[str, ...]]] = {
    "m_k": ("matmul", "depthwise", "reduce"),
    "u_kt": ("matmul", "reduce"),
}
"""Op types on which sizes of the inner dimension may have several values."""


def _has_meaning(name: str, op_type: str) -> bool:
    """Return whether an attribute has a meaning on an op type."""
    if name == "vector":
        return OP_TYPES[op_type].has("vector unit")
    if name.startswith("relu"):
        return not OP_TYPES[op_type].has("sub-ops")
    if name in _INNER_DIMENSION:
        return op_type in _INNER_DIMENSION[name]
    return ATTRIBUTES[name].acts(op_type)


_NO_PAD: Final = Pad()


def features(netlist: Netlist) -> dict[str, frozenset[str]]:
    """Return the features that a netlist exercises, by subject; only names that are in the lists."""
    names = lists()
    return {subject: frozenset(find(netlist)) & frozenset(names[subject]) for subject, find in _FINDERS.items()}


def _all_ops(netlist: Netlist) -> Iterator[Op]:
    """Yield all ops of a netlist, graph by graph."""
    for graph in netlist.graphs.values():
        yield from graph.ops


def _attribute_features(netlist: Netlist) -> Iterator[str]:
    """Yield `OP ATTRIBUTE`, or `OP ATTRIBUTE=WORD` for an attribute with words, for each attribute that an op of the
    netlist states."""
    for op in _all_ops(netlist):
        for name in op.attributes.given:
            value = getattr(op.attributes, name)
            if ATTRIBUTES[name].words and name != "sfpu_op":
                yield f"{op.type} {name}={value}"
            else:
                yield f"{op.type} {name}"


def _fidelity_features(netlist: Netlist) -> Iterator[str]:
    """Yield `OP FIDELITY` for each op; all variants of HiFi2 count as HiFi2."""
    for op in _all_ops(netlist):
        if op.math_fidelity.startswith("HiFi2"):
            word = "HiFi2"
        else:
            word = op.math_fidelity
        yield f"{op.type} {word}"


def _tm_features(netlist: Netlist) -> Iterator[str]:
    """Yield the names of TMs of ops, sub-ops and queues, and of the padding and unpadding of operands."""
    for op in _all_ops(netlist):
        yield from map(_tm_feature, chain.from_iterable(op.input_tms))
        yield from ("input pad" for pad in op.input_pad if pad != _NO_PAD)
        yield from ("input unpad" for pad in op.input_unpad if pad != _NO_PAD)
    for fused in netlist.fused_ops.values():
        for step in chain.from_iterable(fused.schedules):
            yield from map(_tm_feature, chain.from_iterable(step.input_tms))
    if any(queue.input_tms for queue in netlist.queues.values()):
        yield "on a queue"


def _tm_feature(tm: Tm) -> str:
    """Return the name of the feature that a TM is: its own name, for a broadcast with the axis."""
    if tm.name in ("broadcast", "tile_broadcast"):
        return f"{tm.name} {tm.args[0]}"
    return tm.name


def _grid_features(netlist: Netlist) -> Iterator[str]:
    """Yield for each op the name of the form of its grid of cores (such as "row"), and "transposed" if it is."""
    for op in _all_ops(netlist):
        rows, cols = op.blocking.grid_size
        yield {(True, True): "one core", (True, False): "row", (False, True): "column"}.get(
            (rows == 1, cols == 1), "rectangle"
        )
        if op.grid_transpose:
            yield "transposed"


def _instruction_features(netlist: Netlist) -> Iterator[str]:
    """Yield the names of the instructions of all programs; a loop inside of a loop has a name of its own."""
    for program in netlist.programs.values():
        depth = 0
        for step in program.instructions:
            match step:
                case Declare():
                    yield step.kind
                case Param():
                    yield "param"
                case VarInst():
                    yield f"varinst {step.opcode}"
                case Loop():
                    depth += 1
                    yield "loop" if depth == 1 else "loop in a loop"
                case EndLoop():
                    depth -= 1
                case Execute():
                    yield "execute"
                case Allocate():
                    yield "allocate_queue"
                case Deallocate():
                    yield "deallocate_queue"


def _queue_setting_features(netlist: Netlist) -> Iterator[str]:
    """Yield the names of features that the queue settings of all executes have."""
    for program in netlist.programs.values():
        for step in program.instructions:
            if isinstance(step, Execute):
                for setting in step.queue_settings:
                    yield from _features_of_setting(setting, netlist.queues.get(setting.queue))


def _features_of_setting(setting: QueueSettings, queue: Queue | None) -> Iterator[str]:
    """Yield the names of features that the settings of one queue in an execute have: flags that are set, "variable
    pointer" or "literal pointer", and increments of pointers that differ from the default (1, 0, 1 for a queue, 0 for a
    ram). `queue` is None where the netlist does not have it."""
    for name in ("prologue", "epilogue", "zero", "read_only"):
        if getattr(setting, name).lower() not in ("false", "0", ""):
            yield name
    pointers = (setting.rd_ptr_global, setting.rd_ptr_local, setting.wr_ptr_global)
    yield "variable pointer" if any("$" in text for text in pointers) else "literal pointer"
    if queue is not None and queue.is_ram:
        defaults = ("0", "0", "0")
    else:
        defaults = ("1", "0", "1")
    names = ("rd_ptr_autoinc", "global_rdptr_autoinc", "global_wrptr_autoinc")
    for name, default in zip(names, defaults, strict=True):
        if getattr(setting, name) not in (default, ""):
            yield name


def _queue_features(netlist: Netlist) -> Iterator[str]:
    """Yield the names of features of each queue and ram, then "several views" if rams share memory, and "wraps" if a
    program wraps pointers."""
    read = set(chain.from_iterable(op.inputs for op in _all_ops(netlist)))
    views: Counter[tuple[object, ...]] = Counter()
    for queue in netlist.queues.values():
        yield from _features_of_queue(queue, read)
        if queue.is_ram:
            views[queue.target_device, queue.loc, queue.buffers] += 1
    if any(count > 1 for count in views.values()):
        yield "several views"
    steps = chain.from_iterable(program.instructions for program in netlist.programs.values())
    if any(isinstance(step, VarInst) and step.opcode == "incwrap" for step in steps):
        yield "wraps"


def _features_of_queue(queue: Queue, read: set[str]) -> Iterator[str]:
    """Yield the names of features of one queue or ram; `read` has the names of all queues and ops that ops read."""
    yield _writer_feature(queue, read)
    if queue.loc == "host":
        yield "in host memory"
    if queue.layout == "flat":
        yield "flat"
    if queue.blocking.cells > 1:
        yield "several buffers"
    high, wide = queue.blocking.tile_dim
    yield f"tile {high}x{wide}"


def _writer_feature(queue: Queue, read: set[str]) -> str:
    """Return the name of the feature that says who writes a queue or ram and, for a queue that an op writes, whether
    ops read it."""
    if queue.is_ram:
        if queue.host_fed:
            return "ram of the host"
        return "ram of an op"
    if queue.host_fed:
        return "from the host"
    if queue.name in read:
        return "between graphs"
    return "of an op"


def _structure_features(netlist: Netlist) -> Iterator[str]:
    """Yield the names of features of the netlist as a whole."""
    conditions: Mapping[str, bool] = {
        "several graphs": len(netlist.graphs) > 1,
        "several programs": len(netlist.programs) > 1,
        "several chips": len({graph.target_device for graph in netlist.graphs.values()}) > 1,
        "graph on a list of chips": any(op.name != op.written_name for op in _all_ops(netlist)),
        "temporal graph": any(len(temporal.graphs) > 1 for temporal in netlist.temporal_graphs),
        "fused op": any(op.has("sub-ops") for op in _all_ops(netlist)),
        "fused op of several schedules": any(len(fused.schedules) > 1 for fused in netlist.fused_ops.values()),
        "gradient op": any(op.gradient_op for op in _all_ops(netlist)),
        "untilized output": any(op.untilize_output for op in _all_ops(netlist)),
        "several inputs of an epoch": any(graph.input_count > 1 for graph in netlist.graphs.values()),
    }
    yield from (name for name, holds in conditions.items() if holds)


_FINDERS: Final[Mapping[str, Callable[[Netlist], Iterator[str]]]] = {
    "op types": lambda netlist: (op.type for op in _all_ops(netlist)),
    "attributes": _attribute_features,
    "results in a format": lambda netlist: (op.out_df for op in _all_ops(netlist)),
    "operands in a format": lambda netlist: chain.from_iterable(op.in_df for op in _all_ops(netlist)),
    "queues in a format": lambda netlist: (queue.df for queue in netlist.queues.values()),
    "fidelities": _fidelity_features,
    "TMs": _tm_features,
    "grids": _grid_features,
    "instructions": _instruction_features,
    "queue settings": _queue_setting_features,
    "queues": _queue_features,
    "structure": _structure_features,
    "op types in fused ops": lambda netlist: _step_types(netlist),
}
"""Functions that find the features of a netlist by subject; op types of other packages are in no list."""


def _step_types(netlist: Netlist) -> Iterator[str]:
    """Yield the op types of all sub-ops of fused ops."""
    for fused in netlist.fused_ops.values():
        yield from (step.type for step in chain.from_iterable(fused.schedules))


@cache
def asked_of_objects() -> tuple[str, ...]:
    """Return the ids of the rules that the checker tests on objects of a netlist, so that it is known which of them a
    netlist passes; the other rules are found broken while something is read or made."""
    return tuple(sorted({check.rule.id for check in chain.from_iterable(kind.all for kind in registry.EVERY_KIND)}))


@cache
def found_by_check() -> tuple[str, ...]:
    """Return the ids of the rules that `check` finds broken without `--strict`."""
    return tuple(name for name in rules.RULES if name not in rules.NOT_CHECKED | rules.ROUTED)


def outcomes(text: bytes, path: str, arch: str | None) -> Mapping[str, tuple[str, ...]]:
    """Check the text of a netlist. Return the ids of the rules that were tested and hold ("rules passed"), and of those
    that it breaks ("rules broken"). `path` is the name in findings."""
    asked: set[str] = set()
    try:
        arch_name = None
        if arch is not None:
            arch_name = arch.lower()
        _, _, diagnostics = check_text(decode(text), path, arch_name, strict=False, asked=asked)
    except UnreadableError as error:
        diagnostics = [error.diagnostic(path)]
    broken = {diagnostic.rule for diagnostic in diagnostics}
    return {"rules passed": tuple(sorted(asked - broken)), "rules broken": tuple(sorted(broken))}
