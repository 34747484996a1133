"""All rule files. Importing them registers their checks."""

from buda_emu.netlist.rules import (
    aliases,
    constants,
    flow,
    formats,
    fused,
    fused_formats,
    fused_life,
    fused_sizes,
    fused_tms,
    graphs,
    habits,
    integers,
    memory,
    ops,
    pipes,
    placement,
    program_habits,
    programs,
    queues,
    shapes,
    tiles,
    untilize,
)

SUBJECTS = (
    queues, aliases, ops, graphs, untilize, tiles, formats, integers,
    fused, fused_tms, fused_life, fused_sizes, fused_formats, programs,
    pipes, shapes, placement, memory, constants, habits, flow, program_habits,
)  # fmt: skip
