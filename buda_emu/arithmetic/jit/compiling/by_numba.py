"""Compiles a kernel to machine code, by numba: imported only if a kernel, or new kinds of arguments, are not kept yet.

The machine code stands by itself. Of numba's runtime it brings along what it needs, it refers to the C
library, to CPython's C functions and to `loading.OBJECTS`, and all that it defines but its entry point is its own.
"""

import os
from collections.abc import Callable, Iterable
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, Literal

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils, types, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.registry import cpu_target
from numba.core.ssa import reconstruct_ssa
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import InlineOverloads, NativeLowering, NopythonRewrites, PreLowerStripPhis
from numba.core.typing.context import Context
from numba.core.typing.npydecl import NumpyRulesArrayOperator
from numba.core.typing.templates import AbstractTemplate
from numba.extending import typeof_impl

from buda_emu.arithmetic.jit.compiling.entry_point import emit_entry_point
from buda_emu.arithmetic.jit.intrinsics import Builder, Value
from buda_emu.arithmetic.jit.machine_code.loading import ENTRY
from buda_emu.arithmetic.jit.sources import INTRINSICS, Helper
from buda_emu.support.errors import InternalError
from buda_emu.support.garbage import no_collections

_POINTER: Final = ir.IntType(8).as_pointer()
_WORD: Final = ir.IntType(32)
_SIZE: Final = ir.IntType(64)
_SIZES: Final = _SIZE.as_pointer()
_RESHAPE: Final = [_SIZE, _SIZES, _SIZES, _SIZE, _SIZES, _SIZES, _SIZE, _WORD]
_INFO_BYTES: Final = 48  # no less than numba's MemInfo has
_ALIGNMENT: Final = 16  # bytes: a smaller one might not suit vectors of 128 bits


def emit_runtime(module: Any) -> None:
    """Emit the functions of numba's runtime; unused ones are left out in the end."""
    _emit_memory(module)
    _define(module, "numba_attempt_nocopy_reshape", ir.FunctionType(_WORD, _RESHAPE), _reshape)


def _emit_memory(module: Any) -> None:
    """Emit the memory functions of numba's runtime (nrt.cpp) on the C library.

    A block begins with numba's MemInfo, whose count of references the code of numba keeps: that of one owner when it is
    made. When the count drops to none the block is freed.
    """
    void = ir.VoidType()
    info = ir.LiteralStructType([_SIZE, _POINTER, _POINTER, _POINTER, _SIZE])
    malloc = cgutils.get_or_insert_function(module, ir.FunctionType(_POINTER, [_SIZE]), "malloc")
    free = cgutils.get_or_insert_function(module, ir.FunctionType(void, [_POINTER]), "free")

    def allocate(builder: Builder, size: Value, alignment: Value) -> Value:
        """Emit a block for `size` bytes at a multiple of `alignment`, with a MemInfo of one owner in front; the address
        of that is the result."""
        before = builder.add(_SIZE(_INFO_BYTES), alignment)
        total = builder.add(size, before)
        with builder.if_then(builder.icmp_unsigned("<", total, size), likely=False):
            builder.ret(_POINTER(None))
        block = builder.call(malloc, [total])
        with builder.if_then(builder.icmp_unsigned("==", block, _POINTER(None)), likely=False):
            builder.ret(_POINTER(None))
        first = builder.ptrtoint(builder.gep(block, [before]), _SIZE)
        data = builder.inttoptr(builder.sub(first, builder.urem(first, alignment)), _POINTER)
        held = builder.bitcast(block, info.as_pointer())
        for number, value in enumerate((_SIZE(1), _POINTER(None), _POINTER(None), data, size)):
            builder.store(value, builder.gep(held, [_WORD(0), _WORD(number)]))
        return block

    def allocate_for_vectors(builder: Builder, size: Value, alignment: Value) -> Value:
        """Emit the allocation with an alignment of 32 bits."""
        return allocate(builder, size, builder.zext(alignment, _SIZE))

    def allocate_block(builder: Builder, size: Value) -> Value:
        """Emit the allocation with the usual alignment."""
        return allocate(builder, size, _SIZE(_ALIGNMENT))

    _define(module, "NRT_MemInfo_alloc", ir.FunctionType(_POINTER, [_SIZE]), allocate_block)
    _define(module, "NRT_MemInfo_alloc_safe", ir.FunctionType(_POINTER, [_SIZE]), allocate_block)
    _define(module, "NRT_MemInfo_alloc_aligned", ir.FunctionType(_POINTER, [_SIZE, _WORD]), allocate_for_vectors)
    _define(module, "NRT_MemInfo_alloc_safe_aligned", ir.FunctionType(_POINTER, [_SIZE, _WORD]), allocate_for_vectors)

    def allocate_bytes(builder: Builder, size: Value) -> Value:
        """Emit the allocation of bytes without a MemInfo."""
        return builder.call(malloc, [size])

    def release(builder: Builder, block: Value) -> None:
        """Emit the release of a block."""
        builder.call(free, [block])

    _define(module, "NRT_Allocate", ir.FunctionType(_POINTER, [_SIZE]), allocate_bytes)
    _define(module, "NRT_Free", ir.FunctionType(void, [_POINTER]), release)
    _define(module, "NRT_MemInfo_call_dtor", ir.FunctionType(void, [_POINTER]), release)


def _reshape(builder: Builder, *arguments: Value) -> Value:
    """Emit the strides of the new shape, in bytes. The old array is contiguous: numba refuses any other."""
    count, shape, strides, item_bytes = arguments[3:7]
    stride = cgutils.alloca_once_value(builder, item_bytes)
    with cgutils.for_range(builder, count) as loop:
        axis = builder.sub(builder.sub(count, loop.index), _SIZE(1))
        step = builder.load(stride)
        builder.store(step, builder.gep(strides, [axis]))
        builder.store(builder.mul(step, builder.load(builder.gep(shape, [axis]))), stride)
    return _WORD(1)


def _define(module: Any, name: str, kind: Any, emit: Callable[..., Value | None]) -> None:
    """Define the function `name` of type `kind` in the module; `emit` makes its body and returns its result."""
    function = ir.Function(module, kind, name)
    builder: Builder = ir.IRBuilder(function.append_basic_block())
    result = emit(builder, *function.args)
    if result is None:
        builder.ret_void()
    else:
        builder.ret(result)


_C_LIBRARY: Final = {
    "malloc", "free", "memcpy", "memmove", "memset", "sqrt", "sqrtf", "fma", "fmaf", "fmod", "fmodf", "floor", "floorf",
    "ceil", "ceilf", "trunc", "truncf", "rint", "rintf", "round", "roundf",
}  # fmt: skip
"""Functions of it whose results are the same everywhere."""
_LEFT_OUT: Final = {
    InlineOverloads,
    NopythonRewrites,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.InlineClosureLikes,
    untyped_passes.InlineInlinables,
    untyped_passes.LiteralPropagationSubPipelinePass,
    untyped_passes.LiteralUnroll,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.WithLifting,
}
"""Steps of numba's for what no kernel has: closures, comprehensions, `with`, `literally`, what is inlined by numba,
expressions on whole arrays, of which numba makes loops: to look for them takes long, and kernels have their own."""


@global_compiler_lock
@no_collections()  # numba makes very many objects that live as long as the process
def machine_code(kernel: Helper, arguments: Iterable[Any]) -> bytes:
    """Compile a kernel for arguments of these kinds, and return machine code for `loading.load`."""
    for room in INTRINSICS:
        import_module(room)
    dispatcher = _dispatcher(kernel)
    kinds = tuple(map(numba.typeof, arguments))
    dispatcher.compile(kinds)
    compiled = dispatcher.overloads[kinds]
    context: Any = cpu_target.target_context
    symbol = f"{ENTRY}_{os.urandom(12).hex()}"
    library = context.codegen().create_library(symbol)
    module = library.create_ir_module(symbol)
    emit_entry_point(context, module, symbol, compiled.fndesc, shares=kernel.shares)
    emit_runtime(module)
    return len(symbol).to_bytes(4, "little") + symbol.encode() + _object(context.codegen(), module, compiled, symbol)


def _object(codegen: Any, module: Any, compiled: Any, symbol: str) -> bytes:
    """Return the object file of the entry point `symbol` with its kernel, `compiled`, linked in. Raises InternalError
    where it still needs functions of numba's runtime."""
    linked = llvm.parse_assembly(str(module))
    linked.link_in(compiled.library._get_module_for_linking(), preserve=True)
    for global_value in (*linked.functions, *linked.global_variables):
        if not global_value.is_declaration and global_value.name != symbol:
            global_value.linkage = "internal"
    builder = llvm.create_pass_builder(codegen._tm, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_always_inliner_pass()
    passes.run(linked, builder)
    linked.verify()
    declared = {global_value.name for global_value in linked.functions if global_value.is_declaration}
    foreign = {name for name in declared - _C_LIBRARY if not name.startswith(("llvm.", "Py"))}
    if foreign:
        raise InternalError(f"kernel {compiled.fndesc.qualname} needs {', '.join(sorted(foreign))} of numba's runtime")
    return codegen._tm.emit_object(linked)


def _dispatcher(function: Helper) -> Any:
    """Return numba's dispatcher of a function, made at the first call."""
    if function.dispatcher is None:
        njit: Any = numba.njit
        compiled = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_Compiler)
        function.dispatcher = compiled(function.py_func)
        function.dispatcher.get_call_template = partial(_resolve_call, function.dispatcher.get_call_template)
    return function.dispatcher


def _resolve_call(call_template: Callable[..., Any], kinds: Iterable[Any], kws: Any) -> Any:
    """Call a template with the general types of arguments: numba would compile a function again for a constant True or
    0."""
    return call_template(tuple(map(types.unliteral, kinds)), kws)


@typeof_impl.register(Helper)
def _typeof_helper(value: Helper, _context: Any) -> Any:
    """Tell numba the type of a helper that a kernel refers to."""
    return types.Dispatcher(_dispatcher(value))


# ---------------------------------------------------------------------------------------------- numba, but for its end
class _Library(JITCodeLibrary):
    """The optimised code of one function, for others to link: numba would make machine code of each by itself, too."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Optimise defined functions only, which numba does for declared ones, too: to begin with one takes longer than
        most passes.

        Nor does the code of intrinsics need these passes before it is optimised with the rest.
        """
        codegen: Any = self._codegen
        ll_module.data_layout = codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration and function.linkage != llvm.Linkage.internal:
                passes, builder = codegen._function_pass_manager()
                passes.run(function, builder)

    def _finalize_final_module(self) -> None:
        """End the work on the module without making machine code."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    _name = "buda_emu_lowering"

    def run_pass(self, state: Any) -> Literal[True]:
        """Lower a function without machine code of its own, and make it known to its callers."""
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        done = super().run_pass(state)
        entry = list[Any]().copy  # stands for the function: a built-in one, as numba asks for, and like no other
        state.targetctx.insert_user_function(entry, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=entry)
        return done


class _NoLifetimes(FunctionPass):
    """A base of numba's steps that leaves out the analysis of where variables live: only generators need it."""

    def run_pass(self, state: Any) -> Any:
        """Change the function, and analyse lifetimes for generators only."""
        if state.func_ir.is_generator:
            return super().run_pass(state)  # pyright: ignore[reportAbstractUsage]
        state.func_ir = self.rewrite(state.func_ir)
        return True

    def rewrite(self, function: Any) -> Any:
        """Return the function as the step changes it."""
        raise NotImplementedError


def _with_definitions(function: Any) -> Any:
    """Return the function with its definitions of variables built again."""
    function._definitions = build_definitions(function.blocks)
    return function


@register_pass(mutates_CFG=True, analysis_only=False)
class _Processing(_NoLifetimes, untyped_passes.IRProcessing):
    _name = "buda_emu_processing"

    def rewrite(self, function: Any) -> Any:
        """Return the function with a control flow in the form that later steps expect."""
        function.blocks = canonicalize_cfg(function.blocks)
        return function


@register_pass(mutates_CFG=True, analysis_only=False)
class _SingleAssignments(_NoLifetimes, untyped_passes.ReconstructSSA):
    _name = "buda_emu_single_assignments"

    def rewrite(self, function: Any) -> Any:
        """Return the function with each variable assigned once."""
        return _with_definitions(reconstruct_ssa(function))


@register_pass(mutates_CFG=True, analysis_only=False)
class _NoPhis(_NoLifetimes, PreLowerStripPhis):
    _name = "buda_emu_no_phis"

    def rewrite(self, function: Any) -> Any:
        """Return the function with assignments in place of phi nodes."""
        return _with_definitions(self._strip_phi_nodes(function))


_OWN: Final = {
    NativeLowering: _Lowering,
    PreLowerStripPhis: _NoPhis,
    untyped_passes.IRProcessing: _Processing,
    untyped_passes.ReconstructSSA: _SingleAssignments,
}
"""Steps in place of numba's."""


class _Passes(PassManager):
    """Numba's steps, run one after the other, without a record of the arguments of each."""

    def _runPass(  # noqa: N802 # pyright: ignore[reportIncompatibleVariableOverride]
        self, _index: int, pss: Any, internal_state: Any
    ) -> None:
        """Run one step."""
        pss.analysis = self._analysis
        pss.run_initialization(internal_state)
        pss.run_pass(internal_state)
        pss.run_finalizer(internal_state)


class _Types(Context):
    """Numba's typing context without the rules of operators on whole arrays, which it would try for numbers, too."""

    def __init__(self, context: Context) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.__dict__ = context.__dict__  # what either learns, both know

    def _lookup_global(self, gv: Any) -> Any:
        """Return numba's type of a global, without rules for whole arrays."""
        return _without_arrays(super()._lookup_global(gv))


_own_types: Final = cache(_Types)


@cache
def _without_arrays(kind: Any) -> Any:
    """Return a function type without the rules of operators on whole arrays."""
    if type(kind) is not types.Function:
        return kind
    templates: list[Any] = list(kind.templates)
    for number, rule in enumerate(templates):
        if issubclass(rule, NumpyRulesArrayOperator):
            templates[number] = _refusal(kind.typing_key)
    if templates != list(kind.templates):
        return types.Function(templates)
    return kind


def _refusal(operation: Any) -> type[AbstractTemplate]:
    """Return a rule for an operator that raises InternalError for whole arrays in a kernel."""

    class Refusal(AbstractTemplate):
        key = operation

        def generic(self, args: Any, _kws: Any) -> None:
            """Raise InternalError for arrays; no rule for other operands."""
            if any(isinstance(kind, types.Array) for kind in args):
                operands = ", ".join(map(str, args))
                raise InternalError(
                    f"{operation.__name__} of {operands}: an expression on whole arrays in a kernel: write a loop"
                )

    return Refusal


class _Compiler(CompilerBase):
    def __init__(self, typingctx: Any, *others: Any) -> None:
        super().__init__(typingctx, *others)
        self.state.typingctx = _own_types(typingctx)
        self.state.targetctx = self.state.targetctx.subtarget(typing_context=self.state.typingctx)

    def define_pipelines(self) -> list[Any]:
        """Return numba's steps without those that kernels do not need, some in this module's form."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state).passes
        passes = _Passes("buda_emu")
        passes.passes = [(_OWN.get(step, step), why) for step, why in steps if step not in _LEFT_OUT]
        passes.finalize()
        return [passes]
