"""Cycles of an op by the vendor's model, under the names of the backend module (NETLIST 7.2, 7.3; PERF 2)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from buda_emu.app.api.backend.enums import DataFormat, format_word
from buda_emu.app.api.backend.status import warn
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import BudaError, HostError

if TYPE_CHECKING:
    from buda_emu.performance.timing.op.call import OpCall

_NEWEST_VERSION: Final = {"grayskull": 2, "wormhole_b0": 3, "blackhole": 1}
_WIDTH: Final = {"Float16": 2, "Float16_b": 2, "Float32": 4}  # PERF 2, binary: the factor d


@dataclass(slots=True)
class OpModelDesc:
    """An op on one core, for the cost model; sizes are in tiles. `op_attr` is the dimension of a reduce.
    `math_fidelity` is a word, or a value of an enum."""

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
    """Return the cycles that an op takes for one input by the vendor's model, an integer of at least 1. Raises
    RuntimeError for an op, architecture or version that the model does not know."""
    from buda_emu.performance.timing.op.vendor import vendor_cycles

    try:
        return vendor_cycles(_op_call(desc))
    except BudaError as error:
        raise RuntimeError(f"get_op_model_execution_cycles: {error}") from error


def get_op_model_param(desc: OpModelDesc, name: str) -> int:
    """Return one weight of the set of parameters that the op uses, cut to an integer. An unknown name gives 0, with a
    warning (NETLIST 12). Raises RuntimeError for an op, architecture or version that the vendor's model does not
    know."""
    from buda_emu.performance.timing.op import vendor

    try:
        call = _op_call(desc)
        vendor.vendor_cycles(call)  # raises: an op without cycles has no weights
        weights = vendor.weights_of(call)
    except BudaError as error:
        raise RuntimeError(f"get_op_model_param: {error}") from error
    if name not in weights:
        warn(f"get_op_model_param: {desc.type} has no {name}, so it is 0; it has {', '.join(weights)}")
        return 0
    return int(weights[name])


def _op_call(desc: OpModelDesc) -> "OpCall":
    """Convert a description of an op into the record that the cost model takes. Raises HostError for an architecture or
    version without parameters, UnsupportedError for what the model cannot do."""
    from buda_emu.performance.timing.op.call import OpCall
    from buda_emu.performance.timing.op.vendor import has_weights

    arch = str(desc.arch).lower()
    if arch not in _NEWEST_VERSION or not 1 <= desc.version <= _NEWEST_VERSION[arch]:
        raise HostError(f"there is no version {desc.version} of the parameters of {arch!r}")
    op_type = desc.type
    declaration = OP_TYPES.get(desc.type)
    if declaration is not None and declaration.runs and not has_weights(desc.type):
        op_type = "nop"  # types without parameters of their own use those of nop
    is_sparse = _is_sparse(desc)
    if is_sparse and not _has_sparse_counts(desc) and arch == "wormhole_b0":
        arch = "wormhole"  # the same tables, and the formula that needs no counts (PERF 2, sparse V1)
    nonzero_tiles, nonzero_ublocks, nonzero_strips = _nonzero_counts(desc)
    word = format_word(desc.data_format)
    call = OpCall(
        op_type=op_type,
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
        reduce_dim=_reduce_dim(desc),  # pyright: ignore[reportArgumentType] - checked there
        z=desc.reduce_z,
        l1_acc=bool(desc.l1_accumulate),
        sparse=is_sparse,
        nz_tiles=nonzero_tiles,
        nz_ublocks=nonzero_ublocks,
        nz_strips=nonzero_strips,
    )
    return _call_at_version(call, desc.version)


def _reduce_dim(desc: OpModelDesc) -> str:
    """Return the dimension along which an op reduces, by default its rows; "" for an op that does not reduce."""
    declaration = OP_TYPES.get(desc.type)
    if declaration is not None and declaration.has("reduces"):
        return desc.op_attr or "r"
    return ""


def _is_sparse(desc: OpModelDesc) -> bool:
    """Return whether the op is a matmul with a sparse first operand."""
    return desc.type == "matmul" and desc.sparse_indices > 0


def _has_sparse_counts(desc: OpModelDesc) -> bool:
    """Return whether the caller has given the numbers of non-zero blocks and strips."""
    return desc.sparse_nz_ublocks >= 0 and desc.sparse_nz_strips >= 0


def _nonzero_counts(desc: OpModelDesc) -> tuple[int, int, int]:
    """Return the tiles, ublocks and strips of a sparse operand that are not zero; 0 each for a dense one."""
    if not _is_sparse(desc):
        return 0, 0, 0
    if not _has_sparse_counts(desc):
        return desc.sparse_indices, 1, 1
    return desc.sparse_indices, desc.sparse_nz_ublocks, desc.sparse_nz_strips


def _call_at_version(call: "OpCall", version: int) -> "OpCall":
    """Change an op so that the newest parameters give the cycles that those of `version` would give (PERF 2): a type or
    format whose set of weights came later uses the set that it had before. Wormhole_b0 got sets for integers and
    quantization with version 3, and both chips got one for maximum with version 2. Types without a set use that of nop;
    blackhole's only version has all sets."""
    if call.arch == "blackhole":
        return call
    integers = call.out_df in ("Int8", "Int32")
    if call.op_type == "maximum" and version < 2:
        call = replace(call, op_type="nop")
    if call.arch != "grayskull" and version < 3:
        if OP_TYPES[call.op_type].family == "quantization":
            call = replace(call, op_type="nop", ublock_ct=call.ublock_ct * _WIDTH.get(call.out_df, 1))
        if integers:
            call = replace(call, out_df="Lf8")  # a format that no set is specific to
    return call
