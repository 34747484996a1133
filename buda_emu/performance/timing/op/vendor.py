"""The vendor's op performance model, formula for formula (PERF 2): `model="vendor"`."""

import json
import struct
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from buda_emu.performance.timing.op.call import OpCall
from buda_emu.spec.ops import OP_TYPES
from buda_emu.support.errors import HostError

MOST: Final = 1 << 30
"""The result is clamped to it."""

_TABLE_ARCH: Final = {"wormhole": "wormhole_b0", "blackhole": "wormhole_b0"}  # identical parameter files
# Of the vendor's model: how much longer the tiles of a binary op take by the output's format, and the math of a sparse
# matmul by fidelity (PERF 2).
_WIDTH: Final = {"Float16": 2.0, "Float16_b": 2.0, "Float32": 4.0, "Tf32": 4.0}
_HIFI_STRETCH: Final = {"HiFi3": 1.2, "HiFi4": 1.7}

Weights = Mapping[str, float]

_PREDICATES: Final[Mapping[str, Callable[[OpCall], bool]]] = {
    "base": lambda call: True,  # noqa: ARG005 - the set of last resort
    "df_int8": lambda call: call.result_df == "Int8",
    "df_int32": lambda call: call.result_df == "Int32",
    "df_bfp": lambda call: call.result_df.startswith("Bfp"),
    "approx": lambda call: call.approximate,
    "vector_r": lambda call: call.vector_mode == "r",
    "vector_c": lambda call: call.vector_mode == "c",
    "l1_acc_en": lambda call: call.l1_acc,
    "dim_c": lambda call: call.reduce_dim == "c",
}


def vendor_cycles(call: OpCall) -> int:
    """Return the cycles of an op by the vendor's model, an integer from 1 to MOST.

    Raises HostError if that model raises an error: integers outside of wormhole_b0, a result of 0.
    """
    if call.result_df in ("Int8", "Int32") and call.arch not in ("wormhole_b0", "wormhole"):
        raise HostError(f"out_df: the vendor's model has no integers for {call.arch}")
    cycles = min(int(_cycles(call)), MOST)
    if cycles <= 0:
        raise HostError(f"op_type: the vendor's model gives no cycles for this {call.kind}")
    return cycles


def single(value: float) -> float:
    """Return `value` rounded to float32, the type in which the vendor's model computes."""
    return struct.unpack("f", struct.pack("f", value))[0]


@cache
def _tables() -> Mapping[str, Any]:
    """Return the content of data/vendor_op_model.json, read once."""
    text = (files("buda_emu.performance.timing") / "data" / "vendor_op_model.json").read_text(encoding="utf-8")
    return json.loads(text)


def has_weights(op_type: str) -> bool:
    """Return whether the tables for wormhole_b0 have sets of weights for an op type; the model uses those of nop for
    other types."""
    return op_type in _tables()["arch"]["wormhole_b0"]


def weights_of(call: OpCall) -> Weights:
    """Return the weights, by name, of the last set in the op type's list whose conditions all hold; types without a
    list use that of nop. Raises HostError if no set does."""
    sets = _tables()["arch"][_TABLE_ARCH.get(call.arch, call.arch)]
    if call.kind == "reduce_z":
        name = "reduce_z"
    elif call.sparse:
        name = call.kind
    else:
        name = call.op_type
    if name in ("datacopy", "ethernet_datacopy"):
        name = "nop"
    for entry in reversed(sets.get(name, sets["nop"])):
        if all(_PREDICATES[word](call) for word in entry["when"].split("/")):
            return {key: single(value) for key, value in entry["weights"].items()}
    raise HostError(f"op_type: the vendor's model has no parameters for {call.kind}")


def _cycles(call: OpCall) -> float:
    """Return the cycles by the formula of the op's kind."""
    if call.sparse:
        return _sparse_cycles(call)
    if call.op_type == "matmul" and call.arch == "grayskull":
        return _dense_cycles_on_grayskull(call)
    if call.has_inner:
        return _dense_cycles(call)
    return _eltwise_cycles(call)


def _float32_sum(*terms: float) -> float:
    """Return the sum of the terms, rounded to float32 after each."""
    total = 0.0
    for term in terms:
        total = single(total + single(term))
    return total


def _float32_product(*factors: float) -> float:
    """Return the product of the factors, rounded to float32 after each."""
    product = 1.0
    for factor in factors:
        product = single(product * single(factor))
    return product


def _eltwise_cycles(call: OpCall) -> float:
    """Return the cycles of an op without inner dimension: a weight for each ublock and each tile, for each t and z."""
    weights = weights_of(call)
    nu = call.mblock_m * call.mblock_n
    nt = call.mblock_m * call.mblock_n * call.ublock_tiles
    if OP_TYPES[call.op_type].is_binary and call.op_type != "maximum":
        width = _WIDTH.get(call.result_df, 1.0)
    else:
        width = 1.0
    rounds = 1
    extra = 0.0
    if call.kind == "reduce_z" and call.z > 1:
        rounds = call.z
        extra = weights["z_weight"]
    inner = _float32_sum(
        _float32_product(nu, weights["ublock_weight"]), _float32_product(nt, weights["tile_weight"], width), extra
    )
    return _float32_product(call.t * rounds, inner)


def _dense_cycles_on_grayskull(call: OpCall) -> float:
    """Return the cycles of a dense matmul on grayskull."""
    weights = weights_of(call)
    nu = call.mblock_m * call.mblock_n
    k = call.m_k
    return _float32_product(
        call.t,
        _float32_sum(
            _float32_product(k - 1, weights["m_k_weight"]),
            _float32_product(k * nu, weights["ublock_weight"]),
            _float32_product(k * nu * call.u_kt * call.ublock_tiles, weights["tile_weight"], call.phases),
        ),
    )


def _dense_cycles(call: OpCall) -> float:
    """Return the cycles of a dense matmul (elsewhere than on grayskull) or depthwise: tile products, spills of partial
    sums, and unpacking."""
    weights = weights_of(call)
    nu = call.mblock_m * call.mblock_n
    k = call.m_k
    kt = call.u_kt
    rt = call.ublock_rt
    ct = call.ublock_ct
    steps = k * nu
    return _float32_product(
        call.t,
        _float32_sum(
            _float32_product(steps * kt * rt * ct * call.phases, weights["math_tiles_weight"]),
            _float32_product((k - 1) * nu * rt * ct, weights["math_dest_spill_weight"]),
            _float32_product(steps, weights["unpack_ublocks_weight"]),
            _float32_product(steps * kt * rt * (1 + ct), weights["unpack_tiles_weight"]),
        ),
    )


def _sparse_cycles(call: OpCall) -> float:
    """Return the cycles of a sparse matmul, by the newer formula (v2) where the vendor's model has it, else by v1."""
    if _has_v2(call):
        return float(_sparse_cycles_v2(call))
    return _sparse_cycles_v1(call)


def _has_v2(call: OpCall) -> bool:
    """Return whether the vendor's model has the newer formula for this sparse matmul."""
    if call.arch != "wormhole_b0":
        return False
    if call.result_df in ("Float16", "Float16_b"):
        return call.fidelity != "LoFi"
    return call.result_df in ("Bfp8", "Bfp8_b") and call.fidelity == "LoFi"


def _sparse_cycles_v1(call: OpCall) -> float:
    """Return the cycles of a sparse matmul by the older formula: math, reload, pack and decoding one after the
    other."""
    w = weights_of(call)
    t = call.t
    m = call.mblock_m
    n = call.mblock_n
    k = call.m_k
    rt = call.ublock_rt
    ct = call.ublock_ct
    tiles = call.nz_tiles
    filled = tiles // (t * rt * ct)
    ublocks = max(t * k * m, filled)
    load = _float32_sum(w["reload_config"], _float32_product(w["reload"], ct * rt))
    reload = _float32_product(
        _float32_sum(_float32_product(ublocks, w["reload_wait_pop"]), _float32_product(filled, load)), n
    )
    if k > 1:
        reload_again = _float32_product(m * t, load)
    else:
        reload_again = 0.0
    pack = _float32_sum(
        _float32_product(w["pack_wait_push"], (ublocks - filled) * n),
        _float32_product(w["pack"], 2 * t * n * m * ct * rt),
    )
    decode = _float32_sum(
        _float32_product(tiles, w["nz_tile_decode"], 2 + n),
        _float32_product(ublocks, w["ublock_decode"]),
        _float32_product(filled, w["nz_ublock_decode"]),
    )
    math = _float32_product(tiles * n * ct, w["tile_weight"], call.phases)
    return _float32_sum(math, reload, reload_again, pack, decode)


def _sparse_cycles_v2(call: OpCall) -> int:
    """Return the cycles of a sparse matmul by the newer formula, with stages from a table."""
    w = weights_of(call)
    math, reload, pack = _stage_cycles(call)
    n = call.mblock_n
    ut = call.ublock_tiles
    tiles = call.nz_tiles
    decode = _float32_sum(
        _float32_product(call.nz_strips * call.mblock_m, w["v2_ublock_decode"]),
        _float32_product(call.nz_ublocks, w["v2_nz_ublock_decode"]),
        _float32_product(call.nz_strips, w["v2_nz_strip_decode"]),
    )
    stretched = int(_float32_product(tiles * n * call.ublock_ct * math, _HIFI_STRETCH.get(call.fidelity, 1.0)))
    if call.m_k > 1:
        reloads = call.nz_ublocks * n * ut * reload
    else:
        reloads = 0
    return int(decode) + stretched + reloads + call.t * n * call.mblock_m * ut * pack


def _stage_cycles(call: OpCall) -> tuple[int, int, int]:
    """Return the cycles of (math, reload, pack) of the table of sparse stages. A size that the table lacks uses the
    next smaller one. Raises ValueError for one below the smallest."""
    rows = _tables()["sparse_stages"]
    for name in ("ublock_rt", "ublock_ct", "u_kt"):
        size = max(row[name] for row in rows if row[name] <= getattr(call, name))
        rows = [row for row in rows if row[name] == size]
    math, reload, pack = rows[0]["LoFi" if call.fidelity == "LoFi" else "HiFi2"]
    return math, reload, pack
