"""The programs of a placed graph: loops, pointers and queue settings (FRONTEND 5, 6)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from buda_emu.compiler.emit.yaml_text import flow
from buda_emu.compiler.place.placer import Placement, Queue

LOOP = "$p_loop_count"
ZERO = "$p_zero_grad"


class Cache(NamedTuple):
    """The parameters of a program that writes caches: where it begins, and two loops that move on from there."""

    write_index: str = "$p_cache_write_index"
    inner_count: str = "$p_inner_loop_count"
    inner_increment: str = "$p_inner_increment"
    outer_count: str = "$p_outer_loop_count"
    outer_increment: str = "$p_outer_increment"


CACHE: Final = Cache()


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
    held = any(last[queue.name] != program for queue in moving)
    stores = [store for store in placement.tiles.stores.values() if placement.ops[store.op].op.program == program]
    sums = {store.queue for store in stores if store.accumulate}
    slots = max((placement.tiles.states[store.queue].slots for store in stores), default=1)
    own = {placed.op.name for placed in placement.ops.values() if placed.op.program == program}
    fed = any(queue.input not in own for queue in moving)
    form = _Form(bool(moving), fed, held, bool(sums), slots, max((2 * queue.entries for queue in moving), default=2))
    yield f"  - {program_name(program)}:"
    yield from form.begin()
    for epoch in epochs:
        forks = ", ".join(name for name in reads[epoch] if placement.queues[name].role == "fork")
        if forks:  # NETLIST V127
            yield f"    -   allocate_queue: [{forks}]"
        yield f"    -   execute: {{graph_name: {graph_name(program, epoch)}, queue_settings: {{"
        settings = {name: _setting(placement.queues[name], last[name] != program) for name in reads[epoch]}
        for store in stores:
            if placement.ops[store.op].epoch == epoch:
                state = placement.tiles.states[store.queue]
                settings[state.written] = _written(store.accumulate, state.slots > 1)
        yield ",\n".join(f"          {name}: {flow(fields)}" for name, fields in settings.items()) + "}}"
        if forks:
            yield f"    -   deallocate_queue: [{forks}]"
    yield from form.end()


@dataclass(frozen=True, slots=True)
class _Form:
    """What stands around the executes of a program. `moving`: whether queues advance; `fed`: by the host or another
    program, so that there may be many rounds; `held`: some are kept for a later program; `sums`: gradients are added
    up; `slots` of a cache, of which each round writes one."""

    moving: bool
    fed: bool
    held: bool
    sums: bool
    slots: int
    wrap: int

    def begin(self) -> Iterator[str]:
        params = [*(CACHE if self.slots > 1 else (LOOP,) if self.fed else ()), *((ZERO,) if self.sums else ())]
        if params:
            yield f"    - param: [{', '.join(params)}]"
        more = (", $v_zero_grad: 0" if self.sums else "") + (", $v_cache_write_index: 0" if self.slots > 1 else "")
        yield f"    - var: {{$c_zero: 0, $c_microbatch_size: 1{more}}}"
        if self.moving:
            more = ", $gptr_held: 0, $gptr_next: 0" if self.held else ""
            yield f"    - staticvar: {{$lptr: 0, $gptr: 0{more}}}"
        if self.held:
            yield "    - varinst: [$gptr_held, set, $gptr_next]"
        if self.sums:
            yield f"    - varinst: [$v_zero_grad, set, {ZERO}]"
        if self.slots > 1:
            yield f"    - varinst: [$v_cache_write_index, set, {CACHE.write_index}]"
            yield f"    - loop: {CACHE.outer_count}"
            yield f"    - loop: {CACHE.inner_count}"
        elif self.fed:
            yield f"    - loop: {LOOP}"

    def end(self) -> Iterator[str]:
        if self.sums:
            yield "    -   varinst: [$v_zero_grad, set, 0]"
        if self.moving:
            for pointer in ("$gptr", "$lptr"):
                yield f"    -   varinst: [{pointer}, incwrap, $c_microbatch_size, {self.wrap}]"
        if self.slots > 1:
            for increment in (CACHE.inner_increment, CACHE.outer_increment):
                yield f"    -   varinst: [$v_cache_write_index, incwrap, {increment}, {self.slots}]"
                yield "    - endloop"
        elif self.fed:
            yield "    - endloop"
        if self.held:
            yield f"    - varinst: [$gptr_next, incwrap, {LOOP}, {self.wrap}]"


def _moves(queue: Queue) -> bool:
    return queue.role in ("input", "between")


def _written(adds: bool, in_slots: bool) -> dict[str, Any]:
    """A ram that an op of the epoch writes; a sum is kept in L1 from input to input (NETLIST V162)."""
    fields: dict[str, Any] = {"prologue": adds, "epilogue": adds, "zero": "$v_zero_grad" if adds else False}
    if in_slots:
        fields["read_only"] = False
    index = "$v_cache_write_index" if in_slots else "$c_zero"
    return {**fields, "rd_ptr_global": "$c_zero", "wr_ptr_global": index}


def _setting(queue: Queue, held: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"prologue": queue.role == "constant" and queue.layout == "tilized" and _kept(queue),
                              "epilogue": False, "zero": False}  # fmt: skip
    if queue.alias:
        fields["read_only"] = True  # NETLIST 1.10
    if queue.type == "ram":
        return {**fields, "rd_ptr_global": "$c_zero", "wr_ptr_global": "$c_zero"}
    if queue.role == "fork":  # empty whenever it is allocated
        return {**fields, "rd_ptr_local": "$c_zero", "rd_ptr_global": "$c_zero"}
    if queue.role == "constant":
        return {**fields, "rd_ptr_autoinc": 0, "rd_ptr_local": "$c_zero", "rd_ptr_global": "$c_zero"}
    return {**fields, "rd_ptr_local": "$lptr", "rd_ptr_global": "$gptr_held" if held else "$gptr"}


def _kept(queue: Queue) -> bool:
    """Whether it is held in L1: the tiles and words of a picker must be."""
    return queue.df.startswith("RawUInt") or queue.df.startswith("Bfp2")
