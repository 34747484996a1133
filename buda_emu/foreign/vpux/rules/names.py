"""Rules on text that cannot be read, on names that nothing defines, and on types of operands."""

from collections.abc import Iterator

from buda_emu.foreign.vpux.model import Op, Symbol, Type, Use
from buda_emu.foreign.vpux.program import Program, callee, split_symbol
from buda_emu.foreign.vpux.rules.book import BOOK, finding
from buda_emu.support.checker import Finding
from buda_emu.support.checker.suggest import near

BOOK.declare(
    "X001", "error", "the text cannot be read", stage="text", source="VPUX 3, 7",
    fix="the part of the file between two lines `// -----` that holds this text is left out",
)  # fmt: skip


@BOOK.rule(
    "X002", "error", "a value, kernel function or runtime kernel is used and not defined", stage="emulator",
    source="VPUX 7", fix="define it before it is used, kernels in a module @VPU.SW of an enclosing module",
)  # fmt: skip
def check_defined(program: Program) -> Iterator[Finding]:
    """Report values, kernel functions and runtime kernels that are used and not defined (X002). Values are left out
    where a skipped op may have defined them."""
    function = program.function
    names = _list_names(program)
    is_complete = not function.has_unknown_ops
    for op in program.ops:
        if is_complete and op.name != "VPUIP.SW.Kernel.run":
            yield from _check_values(program, op, names)
        if op.name == "VPUIP.SW.Kernel":
            yield from _check_callee(program, op)
    for name in ("VPURT.SW.Runtime", "VPURT.Graph"):
        for _, op in function.module_ops(name):
            symbol = runtime_symbol(op.attributes)
            if symbol is not None and function.kernel(symbol) is None:
                yield finding(program, op, f"no runtime kernel {symbol} is declared")


def _check_callee(program: Program, op: Op) -> Iterator[Finding]:
    """Yield a finding where the kernel function that an op calls is not declared."""
    symbol = op.attributes.get("callee")
    if isinstance(symbol, Symbol) and callee(program.function, op) is None:
        yield finding(program, op, f"no kernel function {symbol} is declared")


def _list_names(program: Program) -> list[str]:
    """Return the names of the results of all ops, then those of the function's arguments."""
    names: list[str] = []
    for op in program.ops:
        names += [value.name for value in op.results]
    return names + [argument.name for argument in program.function.arguments]


def _check_values(program: Program, op: Op, names: list[str]) -> Iterator[Finding]:
    """Yield a finding for each operand of an op that is not defined; `names` are those that are, for the hint."""
    for use in op.uses():
        if use.value is None:
            yield finding(program, op, f"{use.name} is not defined", _suggest_name(use, names))


@BOOK.rule(
    "X051", "error", "a value is used with another type than it is defined with", stage="emulator", source="VPUX 3",
    fix="write the type of its definition, or view the buffer as another one",
)  # fmt: skip
def check_types(program: Program) -> Iterator[Finding]:
    """Report operands whose type is written otherwise than that of the value (X051); MLIR has one type for each value.
    Runs of kernels are left out: X036 is about them."""
    for op in program.ops:
        if op.name == "VPUIP.SW.Kernel.run":
            continue
        for use in op.uses():
            if use.value is None or use.written is None or use.value.type is None:
                continue
            difference = _difference(use.written, use.value.type)
            if difference:
                yield finding(program, op, f"{use.name} has another {difference} here than where it is defined")


def _difference(written: Type, defined: Type) -> str:
    """Return in a word how the type of an operand differs from that of its value; "" where it does not, and for the
    kinds and memories of distributed buffers, whose parts a kernel may take one by one."""
    if written.shape != defined.shape:
        return "shape"
    if written.element_name != defined.element_name:
        return "type of elements"
    if (written.order, written.strides) != (defined.order, defined.strides):
        return "layout"
    memory = written.space, written.space_index
    if written.kind == defined.kind and memory != (defined.space, defined.space_index):
        return "memory"
    return ""


def runtime_symbol(attributes: object) -> Symbol | None:
    """Return the management kernel that VPURT.SW.Runtime or the old VPURT.Graph names, None where it names none."""
    match attributes:
        case {"entryPoint": Symbol() as symbol}:
            return split_symbol(symbol)
        case {"act_shaves": {"runtime": Symbol() as symbol}}:
            return split_symbol(symbol)
        case _:
            return None


def _suggest_name(use: Use, names: list[str]) -> str:
    """Return a hint with the defined name that is nearest to that of an operand; "" for none."""
    return near(use.name, names)
