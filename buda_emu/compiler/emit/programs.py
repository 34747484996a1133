"""The programs of a placed graph: loops, pointers and queue settings (FRONTEND 5, 6)."""

from collections.abc import Iterator
from typing import Any

from buda_emu.compiler.emit.yaml_text import flow
from buda_emu.compiler.place.placer import Placement, Queue

LOOP = "$p_loop_count"
ZERO = "$p_zero_grad"


def program_name(program: str) -> str:
    """FRONTEND 5: run_fwd_0, run_bwd_0, run_opt_0."""
    return f"run_{program}"


def graph_name(program: str, epoch: int) -> str:
    """FRONTEND 5."""
    return f"{program}_{epoch}_temporal_epoch_{epoch}"


def programs_text(placement: Placement) -> Iterator[str]:
    """All of them, in the order in which they run."""
    last = {name: program for program, epochs in placement.programs.items() for epoch in epochs
            for name in placement.read_by(epoch)}  # fmt: skip
    for program in placement.programs:
        yield from _program(placement, program, last)


def _program(placement: Placement, program: str, last: dict[str, str]) -> Iterator[str]:
    """One loop; all queues advance together at its end.

    What a later program reads, too, keeps its entries until that one is done: here its global pointer stays for the
    whole loop at the entries that were there at the beginning.
    """
    epochs = placement.programs[program]
    reads = {epoch: placement.read_by(epoch) for epoch in epochs}
    moving = [placement.queues[name] for names in reads.values() for name in names if _moves(placement.queues[name])]
    wrap = max((2 * queue.entries for queue in moving), default=2)
    held = any(last[queue.name] != program for queue in moving)
    sums = [store for store in placement.tiles.stores.values()
            if store.accumulate and placement.ops[store.op].op.program == program]  # fmt: skip
    yield f"  - {program_name(program)}:"
    params = [*([LOOP] if moving else []), *([ZERO] if sums else [])]
    if params:
        yield f"    - param: [{', '.join(params)}]"
    yield f"    - var: {{$c_zero: 0, $c_microbatch_size: 1{', $v_zero_grad: 0' if sums else ''}}}"
    if moving:
        yield f"    - staticvar: {{$lptr: 0, $gptr: 0{', $gptr_held: 0, $gptr_next: 0' if held else ''}}}"
    if held:
        yield "    - varinst: [$gptr_held, set, $gptr_next]"
    if sums:
        yield f"    - varinst: [$v_zero_grad, set, {ZERO}]"
    if moving:
        yield f"    - loop: {LOOP}"
    for epoch in epochs:
        yield f"    -   execute: {{graph_name: {graph_name(program, epoch)}, queue_settings: {{"
        written = [store.queue for store in placement.tiles.stores.values() if placement.ops[store.op].epoch == epoch]
        adds = {store.queue for store in sums}
        settings = {name: _setting(placement.queues[name], last[name] != program) for name in reads[epoch]}
        settings |= {name: _written(name in adds) for name in written}
        yield ",\n".join(f"          {name}: {flow(fields)}" for name, fields in settings.items()) + "}}"
    if sums:
        yield "    -   varinst: [$v_zero_grad, set, 0]"
    if moving:
        for pointer in ("$gptr", "$lptr"):
            yield f"    -   varinst: [{pointer}, incwrap, $c_microbatch_size, {wrap}]"
        yield "    - endloop"
    if held:
        yield f"    - varinst: [$gptr_next, incwrap, {LOOP}, {wrap}]"


def _moves(queue: Queue) -> bool:
    return queue.role in ("input", "between")


def _written(adds: bool) -> dict[str, Any]:
    """A ram that an op of the epoch writes; a sum is kept in L1 from input to input (NETLIST V162)."""
    kept = {"prologue": adds, "epilogue": adds, "zero": "$v_zero_grad" if adds else False}
    return {**kept, "rd_ptr_global": "$c_zero", "wr_ptr_global": "$c_zero"}


def _setting(queue: Queue, held: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"prologue": queue.role == "constant" and queue.layout == "tilized" and _kept(queue),
                              "epilogue": False, "zero": False}  # fmt: skip
    if queue.type == "ram":
        return {**fields, "rd_ptr_global": "$c_zero", "wr_ptr_global": "$c_zero"}
    if queue.role == "constant":
        return {**fields, "rd_ptr_autoinc": 0, "rd_ptr_local": "$c_zero", "rd_ptr_global": "$c_zero"}
    return {**fields, "rd_ptr_local": "$lptr", "rd_ptr_global": "$gptr_held" if held else "$gptr"}


def _kept(queue: Queue) -> bool:
    """Whether it is held in L1: the tiles and words of a picker must be."""
    return queue.df.startswith("RawUInt") or queue.df.startswith("Bfp2")
