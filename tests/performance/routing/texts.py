"""Netlists of a few ops, as text: one graph on one chip, operands in Float16."""

import re
from collections.abc import Mapping, Sequence

Size = tuple[int, int]
ONE: Size = (1, 1)
TILE_BYTES = 0x1100  # the largest, in whole lines
_PLACES = re.compile(r"<(\d+) of (\d+)>")


def queue(
    name: str,
    source: str = "HOST",
    grid: Size = ONE,
    t: int = 1,
    mblock: Size = ONE,
    ublock: Size = ONE,
    *,
    df: str = "Float16",
    entries: int = 2,
    more: str = "",
    chip: int = 0,
) -> str:
    """A queue in DRAM; `netlist` says where its buffers lie."""
    tiles = t * mblock[0] * mblock[1] * ublock[0] * ublock[1]
    return (
        f"  {name}: {{type: queue, input: {source}, entries: {entries}, grid_size: {list(grid)}, t: {t}, "
        f"mblock: {list(mblock)}, ublock: {list(ublock)}, df: {df}, target_device: {chip}, loc: dram, "
        f"dram: <{grid[0] * grid[1]} of {entries * tiles + 1}>{more}}}"
    )


def op(
    name: str,
    type: str,
    inputs: Sequence[str],
    grid: Size = ONE,
    t: int = 1,
    mblock: Size = ONE,
    ublock: Size = ONE,
    *,
    at: Size = (0, 0),
    order: str = "r",
    buffers: int = 2,
    attributes: str = "",
    in_df: str = "",
    out_df: str = "Float16",
    more: str = "",
) -> str:
    """An op; `more`: fields such as TMs, after a comma."""
    formats = in_df or ", ".join(["Float16"] * len(inputs))
    return (
        f"    {name}: {{type: {type}, grid_loc: {list(at)}, grid_size: {list(grid)}, inputs: [{', '.join(inputs)}], "
        f"in_df: [{formats}], acc_df: Float16, out_df: {out_df}, intermed_df: {out_df}, ublock_order: {order}, "
        f"buf_size_mb: {buffers}, math_fidelity: HiFi3, untilize_output: false, t: {t}, mblock: {list(mblock)}, "
        f"ublock: {list(ublock)}{more}{f', attributes: {{{attributes}}}' if attributes else ''}}}"
    )


def netlist(
    queues: Sequence[str],
    ops: Sequence[str],
    arch: str = "wormhole_b0",
    *,
    kept: Sequence[str] = (),
    count: int = 1,
    others: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """A netlist whose one program runs its graph on chip 0 once, then those on `others`, which read no queue of the
    host. `kept`: queues that a prologue keeps in L1."""
    names = [line.split(":")[0].strip() for line in queues if "input: HOST" in line]
    settings = ", ".join(
        f"{name}: {{prologue: {str(name in kept).lower()}, epilogue: false, zero: false, rd_ptr_local: $0, "
        "rd_ptr_global: $0}"
        for name in names
    )
    free = 0x30000000 if arch == "grayskull" else 0x10000000

    def place(found: re.Match[str]) -> str:
        nonlocal free
        buffers, tiles = map(int, found.groups())
        begin, size = free, tiles * TILE_BYTES
        free += (buffers + 5) // 6 * size
        return "[" + ", ".join(f"[{one % 6}, {begin + one // 6 * size:#x}]" for one in range(buffers)) + "]"

    return "\n".join(
        [
            f"devices: {{arch: {arch}}}",
            "queues:",
            *(_PLACES.sub(place, line) for line in queues),
            "graphs:",
            "  main:",
            "    target_device: 0",
            f"    input_count: {count}",
            *ops,
            *(
                line
                for chip, ops in (others or {}).items()
                for line in (f"  chip{chip}:", f"    target_device: {chip}", f"    input_count: {count}", *ops)
            ),
            "programs:",
            "  - run:",
            "      - var: [$0]",
            f"      - execute: {{graph_name: main, queue_settings: {{{settings}}}}}",
            *(f"      - execute: {{graph_name: chip{chip}, queue_settings: {{}}}}" for chip in others or {}),
            "",
        ]
    )


def with_fused(text: str, steps: Sequence[str], inputs: int, intermediates: int, mblock: Size = ONE) -> str:
    """A netlist with the definition of its fused op, of one sub-op a schedule."""
    schedules = "\n".join(f"      - [{step}, mblock: {list(mblock)}, ublock: [1, 1]}}]" for step in steps)
    head = f"inputs: {inputs}\n    intermediates: {intermediates}"
    return text.replace("\ngraphs:", f"\nfused_ops:\n  0:\n    {head}\n    schedules:\n{schedules}\ngraphs:")
