"""A function as a program: the memory of its values, its barriers, its tasks and their units (VPUX 4)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from buda_emu.foreign.vpux.elements import Arch, find_arch
from buda_emu.foreign.vpux.layout import alloc_bits
from buda_emu.foreign.vpux.model import Function, Op, Symbol, Type, Use, Value
from buda_emu.foreign.vpux.reader.table import OPS

BARRIER_OPS = ("VPURT.ConfigureBarrier", "VPURT.DeclareVirtualBarrier", "VPURT.ConfigurePhysicalBarrier")
ALLOC_OPS = ("memref.alloc", "alloc")
SEQ = "SEQ"
"""The unit of what stands outside of tasks."""

CACHE_TASKS = ("CACHE_FLUSH", "CACHE_INVALIDATE", "CACHE_FLUSH_INVALIDATE", "CACHE_PREFETCH")
SECTION_MEMORY: Mapping[str, str] = {
    "NetworkInput": "DDR", "NetworkOutput": "DDR", "ProfilingOutput": "DDR", "Constant": "DDR", "DDR": "DDR",
    "CMX_NN": "CMX_NN", "CSRAM": "CSRAM", "Register": "Register", "MAC_Accumulators": "Register",
}  # fmt: skip
"""The memory that each section of VPURT.DeclareBuffer lies in."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Elements of a type, from a byte of a memory space on. A broadcast buffer lies in several spaces, of which the
    first is read."""

    spaces: tuple[str, ...]
    address: int
    type: Type
    name: str = ""

    def seen_as(self, type: Type | None) -> "Buffer":
        """Return a buffer at the same address with another type."""
        if type is None:
            return self
        return replace(self, type=type)


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier of the function; `number` is None for a virtual one. Producers and consumers are indices of tasks."""

    name: str
    number: int | None
    op: Op
    producers: tuple[int, ...]
    consumers: tuple[int, ...]

    @property
    def is_final(self) -> bool:
        """True when the barrier is marked as the last one."""
        return bool(self.op.attributes.get("isFinalBarrier"))


@dataclass(frozen=True, slots=True)
class Task:
    """One op on a unit. `waits` and `updates` are indices of barriers; `task` is its VPURT.Task, None for an op outside
    of tasks."""

    index: int
    unit: str
    op: Op
    task: Op | None
    waits: tuple[int, ...]
    updates: tuple[int, ...]


class Program:
    """A function on an architecture. Rules report what is wrong with it; here what is not understood is left out."""

    def __init__(self, function: Function, arch: str | Arch = "37XX") -> None:
        self.function = function
        if isinstance(arch, str):
            self.arch = find_arch(arch)
        else:
            self.arch = arch
        self.ops: tuple[Op, ...] = tuple(function.walk())
        self.buffers: dict[Value, Buffer] = {}
        self.names: dict[str, Value] = {}
        """The last value of each name that is a buffer."""
        self._locate()

    def ops_of(self, *names: str) -> Iterator[Op]:
        """Yield ops of these names in program order."""
        return (op for op in self.ops if op.name in names)

    def buffer(self, use: Use) -> Buffer | None:
        """Return the buffer of an operand, with the type that is written at it; None for an operand without memory."""
        if use.value is None:
            buffer = None
        else:
            buffer = self.buffers.get(use.value)
        has_layout = use.written is not None and use.written.is_laid_out
        if buffer is not None and has_layout:
            return buffer.seen_as(use.written)
        return buffer

    # ------------------------------------------------------------------------------------------------ the parts
    @cached_property
    def barrier_ops(self) -> tuple[Op, ...]:
        """Declarations of barriers in program order."""
        return tuple(self.ops_of(*BARRIER_OPS))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """Tasks in program order: VPURT.Tasks, and ops outside of them that move or compute."""
        numbers = {op.results[0]: n for n, op in enumerate(self.barrier_ops) if op.results}
        tasks: list[Task] = []

        def look(ops: Sequence[Op]) -> None:
            """Add the tasks among `ops` and those inside of task lists."""
            for op in ops:
                if op.name == "VPURT.Task":
                    if op.body:
                        waits, updates = (_indices(numbers, op.clause(word)) for word in ("waits", "updates"))
                        inner = op.body[0]
                        tasks.append(
                            Task(
                                index=len(tasks), unit=self.unit(inner), op=inner, task=op, waits=waits, updates=updates
                            )
                        )
                elif op.name == "VPURT.TaskList":
                    look(op.body)
                elif op.known and OPS[op.name].role in ("dma", "kernel", "sequential"):
                    tasks.append(Task(index=len(tasks), unit=SEQ, op=op, task=None, waits=(), updates=()))

        look(self.function.body or ())
        return tuple(tasks)

    @cached_property
    def barriers(self) -> tuple[Barrier, ...]:
        """Barriers with the tasks that update and await them."""
        producers: list[list[int]] = [[] for _ in self.barrier_ops]
        consumers: list[list[int]] = [[] for _ in self.barrier_ops]
        for task in self.tasks:
            for barrier in dict.fromkeys(task.updates):
                producers[barrier].append(task.index)
            for barrier in dict.fromkeys(task.waits):
                consumers[barrier].append(task.index)
        return tuple(
            Barrier(
                name=op.results[0].name if op.results else f"#{n}",
                number=None if op.name == "VPURT.DeclareVirtualBarrier" else op.integer("number", 0),
                op=op,
                producers=tuple(producers[n]),
                consumers=tuple(consumers[n]),
            )
            for n, op in enumerate(self.barrier_ops)
        )

    def unit(self, op: Op) -> str:
        """Return the unit that executes an op: a DMA queue or the SHAVEs of a tile (VPUX 4)."""
        if op.name == "VPUIP.SW.Kernel":
            return f"SHAVE_ACT:{op.integer('tile', 0)}"
        if not (op.known and OPS[op.name].role == "dma"):
            return op.name
        unit = f"DMA:{op.integer('port', 0)}"
        if self.arch.dma_channels:
            return f"{unit}:{self._channel(op)}"
        return unit

    def _channel(self, op: Op) -> str:
        """Return the channel of its port that a DMA uses, CMX or DDR: the declared one, or else that of its source."""
        chosen = op.attributes.get("channelType")
        if isinstance(chosen, int) and not isinstance(chosen, bool):
            return "CMX" if chosen == 1 else "DDR"
        source = next(iter(op.clause("inputs")), None)
        if source is None:
            buffer = None
        else:
            buffer = self.buffer(source)
        spaces = () if buffer is None else buffer.spaces
        if any("CMX" in name or name.startswith("Register") for name in spaces):
            return "CMX"
        return "DDR"

    @cached_property
    def abi(self) -> Literal[32, 36]:
        """Bytes of a tensor in argument buffers: 32 in the old dialect, 36 today (VPUX 6)."""
        old = ("VPURT.TaskList", "VPURT.ConfigurePhysicalBarrier", "constant")
        is_old = any(op.name in old for op in self.ops) or self.function.module_ops("VPURT.Graph")
        return 32 if is_old else 36

    @cached_property
    def _definitions(self) -> dict[Value, Op]:
        """The op that defines each value."""
        return {value: op for op in self.ops for value in op.results}

    def line_of(self, value: Value) -> int:
        """Return the line on which a value is defined; for an argument that of the function."""
        op = self._definitions.get(value)
        return self.function.document.line(self.function.offset if op is None else op.offset)

    def operand_at(self, op: Op, space: str, low: int, high: int) -> Use | None:
        """Return the first operand of an op that overlaps these bytes of a space, None where none does."""
        for use in op.uses():
            buffer = self.buffer(use)
            if buffer is None or space not in buffer.spaces or not buffer.type.is_laid_out:
                continue
            bits = alloc_bits(buffer.type.memory_shape, buffer.type.memory_strides, buffer.type.bits)
            if buffer.address < high and low < buffer.address + (bits + 7) // 8:
                return use
        return None

    # ------------------------------------------------------------------------------------------------ arguments
    @cached_property
    def outputs(self) -> tuple[Value, ...]:
        """The function's arguments that results are written to (VPUX 4, Memory)."""
        function = self.function
        arguments = function.arguments
        count = len(function.results)
        if not count:
            if len(arguments) == 2 and all(_is_no_tensor(value) for value in arguments):
                return arguments[1:]
            return ()
        if count > len(arguments) or not (len(arguments) > count or any(self.ops_of("VPURT.Task"))):
            return ()
        last = arguments[-count:]
        shapes = [value.type.shape if value.type is not None else None for value in last]
        if shapes == [of.shape for of in function.results]:
            return last
        return ()

    @cached_property
    def inputs(self) -> tuple[Value, ...]:
        """The function's arguments that are not outputs."""
        return self.function.arguments[: len(self.function.arguments) - len(self.outputs)]

    @cached_property
    def returned(self) -> tuple[Use, ...]:
        """The operands of the function's return; empty for one without values."""
        ends = [op for op in self.function.body or () if op.name in ("return", "func.return")]
        return ends[-1].clause("") if ends else ()

    # --------------------------------------------------------------------------------------------------- memory
    def _locate(self) -> None:
        """Place every value whose memory is known: arguments, constants, allocations, declared buffers, results."""
        for number, value in enumerate(self.inputs):
            self._place(value, (f"NetworkInput{number}",), 0)
        for number, value in enumerate(self.outputs):
            self._place(value, (f"NetworkOutput{number}",), 0)
        constants = allocations = results = 0
        for op in self.ops:
            if op.name == "const.Declare":
                self._place_result(op, (f"Const{constants}",), 0)
                constants += 1
            elif op.name in ALLOC_OPS:
                self._place_result(op, (f"Alloc{allocations}{_space_suffix(op)}",), 0)
                allocations += 1
            elif op.name == "VPURT.DeclareBuffer":
                self._place_result(op, declared_spaces(op), op.integer("offset", 0))
            elif op.name == "VPUIP.StaticAlloc":
                self._place_result(op, _static_spaces(op), op.integer("offset", 0))
            elif op.known:
                results += self._locate_results(op, results)

    def _locate_results(self, op: Op, fresh: int) -> int:
        """Place the results that are operands in another form, or views of them. Return 1 if memory for a new
        tensor, of number `fresh`, was placed, else 0."""
        role = OPS[op.name].role
        if role == "view":
            self._locate_view(op)
        elif role in ("dma", "kernel", "sequential"):
            targets = [self.buffer(use) for use in written_uses(op)]
            for value, target in zip(op.results, targets, strict=False):
                if target is not None:
                    self._place(value, target.spaces, target.address)
            if role == "sequential" and op.results and not targets:
                self._place(op.results[0], (f"Result{fresh}",), 0)
                return 1
        return 0

    def _locate_view(self, op: Op) -> None:
        """Place the result of a view at its output, or else at its input."""
        source = op.clause("outputs") or op.clause("inputs") or op.clause("")
        base = self.buffer(source[0]) if source else None
        if base is not None and op.results:
            if op.name == "VPUIP.SubView":
                offset = _view_offset(op, base)
            else:
                offset = 0
            self._place(op.results[0], base.spaces, base.address + offset)

    def _place_result(self, op: Op, spaces: tuple[str, ...], address: int) -> None:
        """Place the first result of an op, if it has one and there is a space for it."""
        if op.results and spaces:
            self._place(op.results[0], spaces, address)

    def _place(self, value: Value, spaces: tuple[str, ...], address: int) -> None:
        """Record the buffer of a value with a type at an address of memory spaces."""
        if value.type is not None:
            self.buffers[value] = Buffer(spaces, address, value.type, value.name)
            self.names[value.name] = value


def _is_no_tensor(value: Value) -> bool:
    """Return whether a value has a type that is no tensor."""
    return value.type is not None and value.type.kind != "tensor"


def written_uses(op: Op) -> tuple[Use, ...]:
    """Return the operands that an op writes, in the order of its results."""
    if op.name == "VPUIP.SW.Kernel":
        return op.clause("outputs") + op.clause("dynamicOutputShapes") + op.clause("profiling_data")
    if op.operands.get("outputs"):
        return op.clause("outputs")
    return op.clause("")[1:]


def read_uses(op: Op) -> tuple[Use, ...]:
    """Return the operands that an op reads."""
    if op.name == "VPUIP.SW.Kernel":
        return op.clause("inputs") + op.clause("dynamicInputShapes")
    if "inputs" in op.operands:
        return op.clause("inputs")
    return op.clause("")[:1]


def callee(function: Function, op: Op) -> Function | None:
    """Return the declaration of the function that a VPUIP.SW.Kernel calls, None where there is none. The old
    `@VPU.SW.f` is split into its parts."""
    symbol = op.attributes.get("callee")
    if not isinstance(symbol, Symbol):
        return None
    return function.kernel(split_symbol(symbol))


def split_symbol(symbol: Symbol) -> Symbol:
    """Return `@VPU.SW.f`, one name in the old dialect, in the form `@VPU.SW::@f`; other symbols are unchanged."""
    if len(symbol.path) > 1 or "." not in symbol.leaf:
        return symbol
    room, _, leaf = symbol.leaf.rpartition(".")
    return Symbol((room, leaf))


def entry_point(declaration: Function) -> str:
    """Return the name of a kernel: that of its entry, else that of its code without the suffix; "" if neither is a text
    (VPUX 3)."""
    entry = declaration.attributes.get("VPU.kernel_entry")
    if isinstance(entry, str):
        return entry
    code = declaration.attributes.get("VPU.kernel_code")
    if isinstance(code, str):
        return code.rpartition(".")[0] or code
    return ""


def is_cache_op(declaration: Function | None) -> bool:
    """Return whether the kernel is a cache operation, which touches no tensors."""
    if declaration is None:
        task_type = None
    else:
        task_type = declaration.attributes.get("VPU.task_type")
    return isinstance(task_type, Symbol) and task_type.leaf in CACHE_TASKS


def declared_spaces(op: Op) -> tuple[str, ...]:
    """Return the memory spaces of a VPURT.DeclareBuffer."""
    section = op.attributes.get("section")
    index = op.integers("index")
    if section == "DDR":
        return ("DDR",)
    if section != "CMX_NN":
        return (f"{section}{index[0] if index else 0}",)
    if index is None:
        of = op.types[0] if op.types else None
        if of is not None:
            clusters = of.traits.get("num_clusters")
        else:
            clusters = None
        if isinstance(clusters, int):
            index = tuple(range(min(clusters, 64)))
        else:
            index = (0,)
    return tuple(f"CMX{n}" for n in index)


def _space_suffix(op: Op) -> str:
    """Return the memory space of what an op allocates as part of a name, `@CMX_NN`; "" if its type has none."""
    if op.types and op.types[0].space:
        return f"@{op.types[0].space}"
    return ""


def _static_spaces(op: Op) -> tuple[str, ...]:
    """Return the memory spaces of a static allocation: DDR, or the CMX of each cluster that it is distributed over."""
    of = op.types[0] if op.types else None
    if of is None or of.space != "CMX_NN":
        return ("DDR",)
    clusters = of.traits.get("num_clusters")
    if of.is_distributed and isinstance(clusters, int):
        return tuple(f"CMX{n}" for n in range(min(clusters, 64)))
    return (f"CMX{of.space_index or 0}",)


def _view_offset(op: Op, base: Buffer) -> int:
    """Return the bytes from a buffer to a part of it; 0 where the layout is not known."""
    offsets = op.integers("offsets") or ()
    if not base.type.is_laid_out or base.type.order is None or len(offsets) != base.type.order.rank:
        return 0
    strides = base.type.memory_strides
    return sum(offset * step for offset, step in zip(base.type.order.to_memory(offsets), strides, strict=True)) // 8


def _indices(numbers: Mapping[Value, int], uses: Sequence[Use]) -> tuple[int, ...]:
    """Return the numbers of the values that are used, without those that have no number."""
    return tuple(numbers[use.value] for use in uses if use.value is not None and use.value in numbers)
