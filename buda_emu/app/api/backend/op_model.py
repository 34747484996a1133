"""Cycles of one op as the vendor's model gives them (NETLIST 7.2, 7.3; PERF 2)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from buda_emu.app.api.backend.enums import DataFormat, format_word
from buda_emu.app.api.backend.status import say
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import BudaError, HostError

if TYPE_CHECKING:
    from buda_emu.performance.timing.op.call import OpCall

_VERSIONS: Final = {"grayskull": 2, "wormhole_b0": 3, "blackhole": 1}
_WIDTH: Final = {"Float16": 2, "Float16_b": 2, "Float32": 4}  # PERF 2, binary: the factor d


@dataclass(slots=True)
class OpModelDesc:
    """One op on one core; sizes in tiles. `op_attr` is the dimension of a reduce. `math_fidelity` may be an enum."""

    type: str = ""
    arch: str = ""
    data_format: Any = DataFormat.Invalid
    math_fidelity: Any = "Invalid"
    t: int = 0
    mblock_m: int = 0
    mblock_n: int = 0
    ublock_rt: int = 0
    ublock_ct: int = 0
    mblock_k: int = 0
    ublock_kt: int = 0
    sparse_indices: int = 0
    sparse_nz_ublocks: int = -1
    sparse_nz_strips: int = -1
    approx_mode: bool = False
    op_attr: str = ""
    reduce_z: int = 0
    version: int = 1
    vector_mode: str = "rc"
    l1_accumulate: bool = False


def get_op_model_execution_cycles(desc: OpModelDesc) -> int:
    """Cycles for one input, an integer of at least 1. Raises RuntimeError where the vendor's model does."""
    from buda_emu.performance.timing.op.vendor import vendor_cycles

    try:
        return vendor_cycles(_call(desc))
    except BudaError as error:
        raise RuntimeError(f"get_op_model_execution_cycles: {error}") from error


def get_op_model_param(desc: OpModelDesc, name: str) -> int:
    """One weight of the set that the op takes, cut to an integer. An unknown name: 0, and a warning (NETLIST 12).

    Raises RuntimeError where `get_op_model_execution_cycles` does.
    """
    from buda_emu.performance.timing.op import vendor

    try:
        call = _call(desc)
        vendor.vendor_cycles(call)  # what has no cycles has no weights
        weights = vendor.weights_of(call)
    except BudaError as error:
        raise RuntimeError(f"get_op_model_param: {error}") from error
    if name not in weights:
        say(f"get_op_model_param: {desc.type} has no {name}, so it is 0; it has {', '.join(weights)}")
        return 0
    return int(weights[name])


def _call(desc: OpModelDesc) -> "OpCall":
    """The op as the cost model takes it. Raises HostError or UnsupportedError."""
    from buda_emu.performance.timing.op.call import OpCall
    from buda_emu.performance.timing.op.vendor import has_weights

    declared = OP_TYPES.get(desc.type)
    arch = str(desc.arch).lower()
    word = format_word(desc.data_format)
    if arch not in _VERSIONS or not 1 <= desc.version <= _VERSIONS[arch]:
        raise HostError(f"there is no version {desc.version} of the parameters of {arch!r}")
    sparse = desc.type == "matmul" and desc.sparse_indices > 0
    counted = desc.sparse_nz_ublocks >= 0 and desc.sparse_nz_strips >= 0
    if sparse and not counted and arch == "wormhole_b0":
        arch = "wormhole"  # the same tables, and the formula that needs no counts (PERF 2, sparse V1)
    call = OpCall(
        op_type="nop" if declared and declared.runs and not has_weights(desc.type) else desc.type,
        arch=arch,
        t=desc.t,
        mblock_m=desc.mblock_m,
        mblock_n=desc.mblock_n,
        ublock_rt=desc.ublock_rt,
        ublock_ct=desc.ublock_ct,
        m_k=desc.mblock_k,
        u_kt=desc.ublock_kt,
        in0_df=word,
        out_df=word,
        fidelity=getattr(desc.math_fidelity, "name", desc.math_fidelity),
        approximate=bool(desc.approx_mode),
        vector_mode=desc.vector_mode.lower(),  # pyright: ignore[reportArgumentType] - checked there
        reduce_dim=(desc.op_attr or "r") if declared and declared.has("reduces") else "",  # pyright: ignore[reportArgumentType]
        z=desc.reduce_z,
        l1_acc=bool(desc.l1_accumulate),
        sparse=sparse,
        nz_tiles=desc.sparse_indices if sparse else 0,
        nz_ublocks=(desc.sparse_nz_ublocks if counted else 1) if sparse else 0,
        nz_strips=(desc.sparse_nz_strips if counted else 1) if sparse else 0,
    )
    return _at_version(call, desc.version)


def _at_version(call: "OpCall", version: int) -> "OpCall":
    """An op that takes, from the newest tables, what the asked version of them has (PERF 2).

    Wormhole_b0 got sets for integers and quantization with version 3, and both chips got maximum with version 2.
    Types without a set take nop's; blackhole's only version has them all.
    """
    if call.arch == "blackhole":
        return call
    integers = call.out_df in ("Int8", "Int32")
    if call.op_type == "maximum" and version < 2:
        call = replace(call, op_type="nop")
    if call.arch != "grayskull" and version < 3:
        if OP_TYPES[call.op_type].family == "quantization":
            call = replace(call, op_type="nop", ublock_ct=call.ublock_ct * _WIDTH.get(call.out_df, 1))
        if integers:
            call = replace(call, out_df="Lf8")  # a format that no set asks for
    return call
