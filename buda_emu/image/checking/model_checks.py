"""Whether the model's inputs and outputs, as `buda-emu compile` writes them, fit the queues of the netlist."""

from collections.abc import Collection, Iterator
from math import prod
from typing import Final

from buda_emu.checker.suggest import near
from buda_emu.checker.text import plural, shown
from buda_emu.image.mismatch import DEVICE, Mismatch
from buda_emu.image.model_io import KEY, ModelInput, ModelIo, ModelOutput
from buda_emu.netlist.model import Execute, Netlist, Queue

_RULE: Final = "image-queue"
_Found = Iterator[tuple[str, str]]  # the field of an input or output, and what is wrong with it


def model_mismatches(model: ModelIo, netlist: Netlist, tensors: Collection[str]) -> Iterator[Mismatch]:
    """Everything about `model` that the netlist does not have so. `tensors`: names of constants and parameters."""
    for place, label in enumerate(model.labels):
        if label in model.labels[:place]:
            yield Mismatch(DEVICE, _RULE, f"{shown(label)} occurs twice", steps=(KEY, "labels", place))
    if model.chip is not None:
        yield from _chip(model.chip, netlist)
    for part, items in (("inputs", model.inputs), ("outputs", model.outputs)):
        seen: set[str] = set()
        for place, item in enumerate(items):
            for field, problem in (*_queue(item, model, netlist, seen), *_own(item, model, netlist, tensors)):
                yield Mismatch(DEVICE, _RULE, problem, steps=(KEY, part, place, field))
            seen.add(item.queue)


def _queue(item: ModelInput | ModelOutput, model: ModelIo, netlist: Netlist, seen: Collection[str]) -> _Found:
    """What is asked of the queue of an input or output."""
    queue = netlist.queues.get(item.queue)
    if queue is None:
        hint = near(item.queue, netlist.queues)
        yield "queue", f"{shown(item.queue)} is not a queue of the netlist{f' ({hint})' if hint else ''}"
        return
    if item.queue in seen:
        yield "queue", f"queue {shown(item.queue)} occurs twice"
    if queue.host_fed != isinstance(item, ModelInput):
        yield "queue", f"queue {shown(item.queue)} is filled by {'the host' if queue.host_fed else f'op {queue.input}'}"
    if model.chip is not None and queue.target_device != model.chip:
        yield "queue", f"queue {shown(item.queue)} is on chip {queue.target_device}, the model on chip {model.chip}"


def _own(item: ModelInput | ModelOutput, model: ModelIo, netlist: Netlist, tensors: Collection[str]) -> _Found:
    """What is asked of an input or an output alone."""
    queue = netlist.queues.get(item.queue)
    if isinstance(item, ModelInput):
        yield from _input(item, model)
        if item.queue in tensors:
            yield "queue", f"queue {shown(item.queue)} holds a constant or parameter of the image"
        if queue is not None and item.extent != queue.blocking.element_shape:
            yield "extent", f"{list(item.extent)}, but queue {queue.name} takes {list(queue.blocking.element_shape)}"
    elif prod(item.view) != prod(item.shape):
        yield "view", f"{list(item.view)} has not the {prod(item.shape)} elements of shape {list(item.shape)}"
    if queue is not None:
        yield from _view(item, queue)


def _view(item: ModelInput | ModelOutput, queue: Queue) -> _Found:
    """The view is the leading part of an entry; words of indices lie in order instead."""
    extent = queue.blocking.element_shape
    if isinstance(item, ModelOutput):
        if extent[0] % item.slices:
            yield "slices", f"{extent[0]} along t of queue {queue.name} are not made of {item.slices} slices each"
            return
        extent = item.side_by_side(extent)
    words = isinstance(item, ModelInput) and item.indices
    if (
        prod(item.view) > prod(extent)
        if words
        else any(have > most for have, most in zip(item.view, extent, strict=True))
    ):
        yield "view", f"{list(item.view)} does not fit into an entry {list(extent)} of queue {queue.name}"


def _input(item: ModelInput, model: ModelIo) -> _Found:
    """What is asked of an input by itself and beside those of the same label."""
    known = model.labels if model.host is None else [name for step in model.host.programs for name in step.inputs]
    if item.label not in known:
        hint = near(item.label, known)
        yield "label", f"{shown(item.label)} is not one of the model's labels{f' ({hint})' if hint else ''}"
    first = next(other for other in model.inputs if other.label == item.label)
    for field in ("shape", "dtype"):
        mine, others = getattr(item, field), getattr(first, field)
        if mine != others:
            yield field, f"{shown(mine)}, but another queue of input {shown(item.label)} has {shown(others)}"
    if item.windows is not None and len(item.windows.perm) != len(item.shape):
        yield "windows", f"an order of {plural(len(item.windows.perm), 'dimension')} for shape {list(item.shape)}"
        return
    if item.windows is not None and item.indices:
        yield "windows", "indices have no windows"
    if item.from_end and not item.rows:
        yield "from_end", "indices are counted from the end of a table without rows"
    laid_out = item.laid_out
    beyond = [index for index in item.gather if index >= laid_out]
    if beyond:
        yield "gather", f"element {beyond[0]} of {laid_out}"
    if prod(item.view) != item.elements:
        yield "view", f"{list(item.view)} has not the {item.elements} elements that the host pushes"


def _chip(chip: int, netlist: Netlist) -> Iterator[Mismatch]:
    """A copy of the model stands on a chip by itself (NETLIST 1.7)."""
    steps = (KEY, "chip")
    graphs = {graph.name for graph in netlist.graphs.values() if graph.target_device == chip}
    if not graphs:
        known = ", ".join(map(str, sorted({graph.target_device for graph in netlist.graphs.values()})))
        yield Mismatch(DEVICE, _RULE, f"no graph of the netlist is on chip {chip}: they are on {known}", steps=steps)
        return
    there = {name for name, queue in netlist.queues.items() if queue.target_device == chip}
    ops = {op.name for name in graphs for op in netlist.graphs[name].ops}
    read = {source for name in graphs for op in netlist.graphs[name].ops for source in op.inputs}
    read |= {netlist.queues[name].input for name in there if not netlist.queues[name].host_fed}
    read |= {
        setting.queue
        for program in netlist.programs.values()
        for step in program.instructions
        if isinstance(step, Execute) and step.graph in graphs
        for setting in step.queue_settings
    }
    for name in sorted(read - there - ops):
        yield Mismatch(DEVICE, _RULE, f"chip {chip} is not a copy by itself: {shown(name)} is on another", steps=steps)
