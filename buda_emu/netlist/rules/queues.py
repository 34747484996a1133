"""Rules on one queue: its sizes, words and allocations, and the op that feeds it (NETLIST 2: V012-V016, V067, V070)."""

from functools import partial

from buda_emu.checker.suggest import near
from buda_emu.netlist.model import Queue
from buda_emu.netlist.rules.context import Context, size_problem, written
from buda_emu.netlist.rules.registry import TWICE, Finding, Findings, queue_check

LOCATIONS = ("dram", "host")
QUEUE_TMS = ("broadcast", "hslice", "hstack", "vslice", "vstack")


@queue_check("V012", basic=True)
def sizes(_: Context, queue: Queue) -> Findings:
    """NETLIST 1.3: sizes have no defaults."""
    blocking = queue.blocking
    sizes = {"t": blocking.t, "entries": queue.entries, "mblock": blocking.mblock, "ublock": blocking.ublock}
    for key, value in sizes.items():
        if what := size_problem(queue, key, value):
            yield Finding(queue.at(key), what)
    if what := size_problem(queue, "target_device", queue.target_device, least=0):
        yield Finding(queue.at("target_device"), what)
    if blocking.ublock_order not in ("r", "c"):
        text = written(queue, "ublock_order")
        yield Finding(queue.at("ublock_order"), f"ublock_order '{text}' is unknown", "write r or c")


@queue_check("V013", basic=True)
def words(_: Context, queue: Queue) -> Findings:
    """NETLIST 1.3: df and type have no defaults, layout is tilized."""
    if not queue.df:
        yield Finding(queue.at("df"), "df is missing", "add the format, such as `df: Float16_b`")
    for key, value, known in (("type", queue.type, ("queue", "ram")), ("layout", queue.layout, ("tilized", "flat"))):
        if value not in known:
            text = written(queue, key) or value
            what = f"unknown {key} '{text}'" if text else f"{key} is missing"
            yield Finding(queue.at(key), what, near(text, known) or f"write {known[0]} or {known[1]}")


@queue_check("V014", basic=True)
def grid(_: Context, queue: Queue) -> Findings:
    """NETLIST 1.3 grid_size."""
    if what := size_problem(queue, "grid_size", queue.blocking.grid_size):
        yield Finding(queue.at("grid_size"), what)


@queue_check("V015", basic=True)
def allocations(_: Context, queue: Queue) -> Findings:
    """One buffer for each grid cell (NETLIST 1.3; 11.3 C2: an unknown `loc` reads no allocations)."""
    cells = queue.blocking.cells
    if min(queue.blocking.grid_size) < 1 or len(queue.buffers) == cells:
        return
    if queue.loc not in LOCATIONS:
        text = written(queue, "loc") or queue.loc
        what = f"unknown loc '{text}': no allocations are read" if text else "loc is missing: no allocations are read"
        yield Finding(queue.at("loc"), what, near(text, LOCATIONS) or "write `loc: dram` or `loc: host`")
        return
    rows, columns = queue.blocking.grid_size
    yield Finding(
        queue.at(queue.loc),
        f"{_count(len(queue.buffers), 'allocation')} for a grid of {rows} x {columns} = {cells}",
        f"list one {'[channel, address]' if queue.loc == 'dram' else 'address'} for each grid cell, row by row",
    )


@queue_check("V016", basic=True, unless=TWICE)
def input_exists(ctx: Context, queue: Queue) -> Findings:
    """NETLIST 11.1 A3: before graphs are expanded, `input` is an op, or an op with "." and the queue's device."""
    if queue.host_fed or _known_before_expansion(queue, ctx.names_before_expansion):
        return
    if not queue.input:
        yield Finding(queue.at("input"), "input is missing", "write `input: HOST` or the name of the op that feeds it")
        return
    names = ctx.names_before_expansion
    base, dot, _ = queue.input.rpartition(".")
    if dot and base in names:
        why = "host memory counts as the first device's" if queue.loc == "host" else ""
        what = f"is fed by {queue.input} but its target_device is {queue.target_device}"
        yield Finding(queue.at("input"), what, why)
        return
    hint = "HOST is written in capitals" if queue.input.upper() == "HOST" else partial(near, queue.input, names)
    yield Finding(queue.at("input"), f"is fed by '{queue.input}', which is no op", hint)


@queue_check("V070", basic=True, unless=("V016",))
def one_producer(ctx: Context, queue: Queue) -> Findings:
    """After expansion the feeding op must still be there (NETLIST 1.7); op names are unique, so never two."""
    if not queue.host_fed and queue.input not in ctx.ops:
        what = f"no op '{queue.input}' after expansion over devices"
        yield Finding(queue.at("input"), what, partial(_copies, ctx, queue.input))


@queue_check("V018")
def tms_of_queue(_: Context, queue: Queue) -> Findings:
    """OPS 7.2: a queue re-blocks and repeats tiles, it does not change them."""
    for tm in queue.input_tms:
        if tm.name not in QUEUE_TMS:
            yield Finding(tm.mark, f"input_tms of a queue cannot {tm.name}", f"queues have {', '.join(QUEUE_TMS)}")


@queue_check("V067")
def tile_of_producer(ctx: Context, queue: Queue) -> Findings:
    """NETLIST 2, tile-dim rules."""
    producer = None if queue.host_fed or queue.input in ctx.broken else ctx.ops.get(queue.input)
    if producer is not None and producer.blocking.tile_dim != queue.blocking.tile_dim:
        yield Finding(
            queue.at("tile_dim"),
            f"tile_dim {list(queue.blocking.tile_dim)}, op {producer.name} writes tiles of "
            f"{list(producer.blocking.tile_dim)}",
            f"write `tile_dim: {list(producer.blocking.tile_dim)}`",
        )


def _copies(ctx: Context, name: str) -> str:
    copies = [op.name for op in ctx.ops.values() if op.written_name == name]
    return f"it is now {', '.join(copies[:4])}: give the queue the same list of devices" if copies else ""


def _known_before_expansion(queue: Queue, names: frozenset[str]) -> bool:
    suffix = f".{queue.target_device}"
    return queue.input in names or (queue.input.endswith(suffix) and queue.input.removesuffix(suffix) in names)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
