"""The table of attributes, beside what OPS 1 and 6.14 say."""

import pytest

from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.ops import OP_TYPES, SFPU_TYPES

# OPS 1: the defaults that its table gives; all others are false, 0, or nothing.
DEFAULTS = {
    "sparse_ublock_idx_bits": -1, "fracture_factor": 1, "slope": 0.01, "granularity": "ublock",
    "stoch_rnd_mode": "none", "num_nz_strips": (0,), "min_buffer_input": -1, "dest_device": -1,
}  # fmt: skip
# OPS 1, marked with a star, and the last paragraph of that section.
WITHOUT_EFFECT = {
    "act_t", "approximate_mode", "dest_device", "egress_channels", "indices_len", "ingress_channels",
    "kernel_broadcast", "kernel_broadcast_per_t", "l1_acc", "min_buffer_input", "num_columns",
    "num_index_tiles", "num_nz_strips", "num_sparse_tiles", "seed", "sfpu_execution_thread", "single_tile",
    "srnd_fpu_en", "starting_row", "stoch_rnd_mode",
}  # fmt: skip


def test_defaults():
    for name, spec in ATTRIBUTES.items():
        if name in DEFAULTS:
            assert spec.default == DEFAULTS[name], name
        else:
            assert not spec.default, name


def test_what_changes_values():
    assert {name for name, spec in ATTRIBUTES.items() if not spec.has_effect} == WITHOUT_EFFECT


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("identity", {"matmul", "fused_op"}),
        ("num_index_tiles", {"matmul", "fused_op", "buffer"}),
        ("l1_acc", {"matmul", "depthwise"}),
        ("dim", {"reduce", "fused_op"}),
        ("z", {"reduce", "matmul", "fused_op"}),
        ("p", {"dropout", "fused_op"}),
        ("slope", {"lrelu", "fused_op"}),
        ("exp", {"power", "fused_op"}),
        ("granularity", {"splice"}),
        ("num_indices", {"embedding"}),
        ("requant", {"matmul"}),
        ("k", {"topk"}),
        ("sfpu_execution_thread", {"matmul", *SFPU_TYPES}),
    ],
)
def test_the_op_types_of_an_attribute(name, types):
    assert set(ATTRIBUTES[name].types or ()) == types
    assert types <= OP_TYPES.keys()
