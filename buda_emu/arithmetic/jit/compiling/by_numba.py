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
from buda_emu.arithmetic.jit.llvm_code import Builder, Value
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
    """Emit into an LLVM module the functions of numba's runtime that the code of kernels calls; those without a caller
    are dropped when the module is linked."""
    _emit_memory(module)
    _define_function(module, "numba_attempt_nocopy_reshape", ir.FunctionType(_WORD, _RESHAPE), _emit_reshape)


def _emit_memory(module: Any) -> None:
    """Emit into an LLVM module the memory functions of numba's runtime (nrt.cpp), on malloc and free of the C library.

    A block begins with numba's MemInfo, whose count of references numba's code keeps: a new block has one owner. When
    the count drops to 0 the block is freed.
    """
    void = ir.VoidType()
    info = ir.LiteralStructType([_SIZE, _POINTER, _POINTER, _POINTER, _SIZE])
    malloc = cgutils.get_or_insert_function(module, ir.FunctionType(_POINTER, [_SIZE]), "malloc")
    free = cgutils.get_or_insert_function(module, ir.FunctionType(void, [_POINTER]), "free")

    def allocate(builder: Builder, size: Value, alignment: Value) -> Value:
        """Emit the allocation of a block: a MemInfo of one owner, then `size` bytes at a multiple of `alignment`. The
        value is the address of the MemInfo; the emitted function returns a null pointer where there is no memory."""
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

    def allocate_with_alignment(builder: Builder, size: Value, alignment: Value) -> Value:
        """Emit the allocation of a block for an alignment that the caller passes, a 32-bit number of bytes."""
        return allocate(builder, size, builder.zext(alignment, _SIZE))

    def allocate_block(builder: Builder, size: Value) -> Value:
        """Emit the allocation of a block with the alignment that suits any vector of 128 bits."""
        return allocate(builder, size, _SIZE(_ALIGNMENT))

    _define_function(module, "NRT_MemInfo_alloc", ir.FunctionType(_POINTER, [_SIZE]), allocate_block)
    _define_function(module, "NRT_MemInfo_alloc_safe", ir.FunctionType(_POINTER, [_SIZE]), allocate_block)
    _define_function(
        module, "NRT_MemInfo_alloc_aligned", ir.FunctionType(_POINTER, [_SIZE, _WORD]), allocate_with_alignment
    )
    _define_function(
        module, "NRT_MemInfo_alloc_safe_aligned", ir.FunctionType(_POINTER, [_SIZE, _WORD]), allocate_with_alignment
    )

    def allocate_bytes(builder: Builder, size: Value) -> Value:
        """Emit the allocation of bytes without a MemInfo in front."""
        return builder.call(malloc, [size])

    def release(builder: Builder, block: Value) -> None:
        """Emit the release of a block, or of bytes without a MemInfo."""
        builder.call(free, [block])

    _define_function(module, "NRT_Allocate", ir.FunctionType(_POINTER, [_SIZE]), allocate_bytes)
    _define_function(module, "NRT_Free", ir.FunctionType(void, [_POINTER]), release)
    _define_function(module, "NRT_MemInfo_call_dtor", ir.FunctionType(void, [_POINTER]), release)


def _emit_reshape(builder: Builder, *arguments: Value) -> Value:
    """Emit the body of numba's function for a reshape without a copy: it stores the strides, in bytes, of the new shape
    in C order, and returns 1, which stands for success. The old array is contiguous: numba refuses any other."""
    count, shape, strides, item_bytes = arguments[3:7]
    stride = cgutils.alloca_once_value(builder, item_bytes)
    with cgutils.for_range(builder, count) as loop:
        axis = builder.sub(builder.sub(count, loop.index), _SIZE(1))
        step = builder.load(stride)
        builder.store(step, builder.gep(strides, [axis]))
        builder.store(builder.mul(step, builder.load(builder.gep(shape, [axis]))), stride)
    return _WORD(1)


def _define_function(module: Any, name: str, kind: Any, emit: Callable[..., Value | None]) -> None:
    """Define the function `name` of the LLVM type `kind` in the module. emit(builder, *parameters) makes its body and
    returns its result, None for a function without one."""
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
    """Compile a kernel for arguments of the same kinds as these, and return machine code for `loading.load`: the length
    of the entry point's name, 4 bytes little-endian, the name, and an object file. Raises numba's errors for a function
    that cannot be compiled, and InternalError for one that needs more of numba's runtime than there is."""
    for room in INTRINSICS:
        import_module(room)
    dispatcher = _dispatcher_of(kernel)
    kinds = tuple(map(numba.typeof, arguments))
    dispatcher.compile(kinds)
    compiled = dispatcher.overloads[kinds]
    context: Any = cpu_target.target_context
    symbol = f"{ENTRY}_{os.urandom(12).hex()}"
    library = context.codegen().create_library(symbol)
    module = library.create_ir_module(symbol)
    emit_entry_point(context, module, symbol, compiled.fndesc, shares=kernel.shares)
    emit_runtime(module)
    return (
        len(symbol).to_bytes(4, "little")
        + symbol.encode()
        + _link_object_file(context.codegen(), module, compiled, symbol)
    )


def _link_object_file(codegen: Any, module: Any, compiled: Any, symbol: str) -> bytes:
    """Link the entry point `symbol`, in `module`, with its kernel, `compiled`, and return the object file. All names
    but the entry point's become internal. Raises InternalError where the code still needs functions of numba's
    runtime."""
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


def _dispatcher_of(function: Helper) -> Any:
    """Return numba's dispatcher of a kernel or helper, which compiles it; it is made once and kept in the object."""
    if function.dispatcher is None:
        njit: Any = numba.njit
        compiled = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=_Compiler)
        function.dispatcher = compiled(function.py_func)
        function.dispatcher.get_call_template = partial(_resolve_call, function.dispatcher.get_call_template)
    return function.dispatcher


def _resolve_call(call_template: Callable[..., Any], kinds: Iterable[Any], kws: Any) -> Any:
    """Call numba's `call_template` with the types of the arguments, a constant's replaced by the general one: for a
    constant True or 0 numba would compile a function once more."""
    return call_template(tuple(map(types.unliteral, kinds)), kws)


@typeof_impl.register(Helper)
def _typeof_helper(value: Helper, _context: Any) -> Any:
    """Return numba's type of a helper or kernel that a kernel refers to; numba calls it when it meets one."""
    return types.Dispatcher(_dispatcher_of(value))


# ---------------------------------------------------------------------------------------------- numba, but for its end
class _Library(JITCodeLibrary):
    """The optimised LLVM code of one function, for its callers to link. numba would make machine code of each function
    by itself, too."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Optimise the functions that the module defines. numba does so for declared ones, too, and to begin with one
        takes longer than most passes.

        The code of intrinsics, which is internal, is left out as well: it is optimised with the rest later.
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
    """The step that makes LLVM code of a typed function, in place of numba's `NativeLowering`."""

    _name = "buda_emu_lowering"

    def run_pass(self, state: Any) -> Literal[True]:
        """Lower a function to LLVM code without making machine code of it, and make it known to its callers."""
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        done = super().run_pass(state)
        entry = list[Any]().copy  # stands for the function: a built-in one, as numba asks for, and like no other
        state.targetctx.insert_user_function(entry, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=entry)
        return done


class _NoLifetimes(FunctionPass):
    """A base of steps that replace numba's and leave out its analysis of where variables live, which only generators
    need."""

    def run_pass(self, state: Any) -> Any:
        """Rewrite the function; a generator goes through numba's own step instead, with its analysis."""
        if state.func_ir.is_generator:
            return super().run_pass(state)  # pyright: ignore[reportAbstractUsage]
        state.func_ir = self.rewrite(state.func_ir)
        return True

    def rewrite(self, function: Any) -> Any:
        """Return numba's intermediate form of the function as the step changes it."""
        raise NotImplementedError


def _rebuild_definitions(function: Any) -> Any:
    """Return the function itself, after numba's table of where each variable is defined was made anew from its
    blocks."""
    function._definitions = build_definitions(function.blocks)
    return function


@register_pass(mutates_CFG=True, analysis_only=False)
class _Processing(_NoLifetimes, untyped_passes.IRProcessing):
    """numba's first step on its intermediate form, without lifetimes."""

    _name = "buda_emu_processing"

    def rewrite(self, function: Any) -> Any:
        """Return the function with its control flow in numba's canonical form, which later steps expect."""
        function.blocks = canonicalize_cfg(function.blocks)
        return function


@register_pass(mutates_CFG=True, analysis_only=False)
class _SingleAssignments(_NoLifetimes, untyped_passes.ReconstructSSA):
    """numba's step to static single assignment, without lifetimes."""

    _name = "buda_emu_single_assignments"

    def rewrite(self, function: Any) -> Any:
        """Return the function with each variable assigned once."""
        return _rebuild_definitions(reconstruct_ssa(function))


@register_pass(mutates_CFG=True, analysis_only=False)
class _NoPhis(_NoLifetimes, PreLowerStripPhis):
    """numba's step that removes phi nodes before code is made, without lifetimes."""

    _name = "buda_emu_no_phis"

    def rewrite(self, function: Any) -> Any:
        """Return the function with assignments in place of phi nodes."""
        return _rebuild_definitions(self._strip_phi_nodes(function))


_OWN: Final = {
    NativeLowering: _Lowering,
    PreLowerStripPhis: _NoPhis,
    untyped_passes.IRProcessing: _Processing,
    untyped_passes.ReconstructSSA: _SingleAssignments,
}
"""Steps in place of numba's."""


class _Passes(PassManager):
    """Runs numba's steps one after the other, and, other than numba's class, keeps no record of the arguments of
    each."""

    def _runPass(  # noqa: N802 # pyright: ignore[reportIncompatibleVariableOverride]
        self, _index: int, pss: Any, internal_state: Any
    ) -> None:
        """Run one step, `pss`, on the state of a compilation, and let it set up and clean up."""
        pss.analysis = self._analysis
        pss.run_initialization(internal_state)
        pss.run_pass(internal_state)
        pss.run_finalizer(internal_state)


class _Types(Context):
    """numba's typing context without the rules by which operators work on whole arrays: numba would try these for
    numbers, too, and kernels have no such expressions."""

    def __init__(self, context: Context) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.__dict__ = context.__dict__  # what either learns, both know

    def _lookup_global(self, gv: Any) -> Any:
        """Return numba's type of a global object, an operator's without its rules for whole arrays."""
        return _without_array_rules(super()._lookup_global(gv))


_own_types: Final = cache(_Types)


@cache
def _without_array_rules(kind: Any) -> Any:
    """Return numba's type of a function with its rules for operators on whole arrays replaced by one that refuses
    arrays; any other type, or a function without such rules, as it is."""
    if type(kind) is not types.Function:
        return kind
    templates: list[Any] = list(kind.templates)
    for number, rule in enumerate(templates):
        if issubclass(rule, NumpyRulesArrayOperator):
            templates[number] = _make_refusing_rule(kind.typing_key)
    if templates != list(kind.templates):
        return types.Function(templates)
    return kind


def _make_refusing_rule(operation: Any) -> type[AbstractTemplate]:
    """Return a typing rule for an operator that raises InternalError where an operand is a whole array."""

    class Refusal(AbstractTemplate):
        key = operation

        def generic(self, args: Any, _kws: Any) -> None:
            """Raise InternalError for arrays; return None, which means no match, for other operands."""
            if any(isinstance(kind, types.Array) for kind in args):
                operands = ", ".join(map(str, args))
                raise InternalError(
                    f"{operation.__name__} of {operands}: an expression on whole arrays in a kernel: write a loop"
                )

    return Refusal


class _Compiler(CompilerBase):
    """numba's compiler with this module's typing context and steps."""

    def __init__(self, typingctx: Any, *others: Any) -> None:
        super().__init__(typingctx, *others)
        self.state.typingctx = _own_types(typingctx)
        self.state.targetctx = self.state.targetctx.subtarget(typing_context=self.state.typingctx)

    def define_pipelines(self) -> list[Any]:
        """Return one sequence of steps: numba's without those that kernels do not need, some replaced by this
        module's."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state).passes
        passes = _Passes("buda_emu")
        passes.passes = [(_OWN.get(step, step), why) for step, why in steps if step not in _LEFT_OUT]
        passes.finalize()
        return [passes]
