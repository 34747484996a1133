"""Data-parallel netlists: what has a list of chips becomes one copy for each chip (NETLIST 1.7, 11.1 A3)."""

from collections.abc import Iterator, Mapping

from buda_emu.netlist.model import Allocate, Buffer, Deallocate, Execute, Graph, Instruction, Op, Program, Queue
from buda_emu.netlist.reader import Document
from buda_emu.netlist.sizes import align_up, entry_bytes
from buda_emu.netlist.sourced import evolve
from buda_emu.netlist.yaml_reader import UnreadableError
from buda_emu.spec.archs import ARCHS, Arch

MAX_COPIES = 200_000  # the largest cluster in circulation has 33 chips


def expand(document: Document) -> None:
    """Replace what has a list of chips by its copies, in place. Copies share the source of their original.

    Raises UnreadableError when there would be more copies than any machine runs.
    """
    if not document.queue_devices and not document.graph_devices:
        return
    _check_size(document)
    ops = {op.name: op for graph in document.graphs.values() for op in graph.ops}
    arch = ARCHS[document.arch_name]
    queues = document.queues
    instances = {
        name: tuple(f"{name}.{device}" for device in devices) for name, devices in document.queue_devices.items()
    }
    document.queues = {
        copy.name: copy for queue in queues.values() for copy in _queue_copies(queue, document, ops, arch)
    }
    graphs = document.graphs
    document.graphs = {copy.name: copy for graph in graphs.values() for copy in _graph_copies(graph, document)}
    document.programs = {
        name: evolve(program, instructions=_instructions(program, document, instances))
        for name, program in document.programs.items()
    }


def _check_size(document: Document) -> None:
    copies = sum(len(devices) for devices in document.queue_devices.values()) + sum(
        len(devices) * len(document.graphs[name].ops) for name, devices in document.graph_devices.items()
    )
    if copies > MAX_COPIES:
        raise UnreadableError(
            f"the target_device lists ask for {copies:,} copies of queues and ops, {MAX_COPIES:,} at most"
        )


def _queue_copies(queue: Queue, document: Document, ops: Mapping[str, Op], arch: Arch) -> Iterator[Queue]:
    devices = document.queue_devices.get(queue.name)
    if devices is None:
        yield queue
        return
    producer = ops.get(queue.input)
    headers = queue.host_fed or producer is None or not producer.untilize_output
    size = entry_bytes(queue, arch, headers) * queue.entries + arch.alignment
    for device in devices:
        # Host memory is the first chip's: the copies of all others lie one buffer further.
        moved = align_up(size, arch.alignment) if queue.loc == "host" and device != devices[0] else 0
        yield evolve(
            queue,
            name=f"{queue.name}.{device}",
            target_device=devices[0] if queue.loc == "host" else device,
            input=queue.input if queue.host_fed else f"{queue.input}.{device}",
            buffers=tuple(Buffer(buffer.channel, buffer.address + moved) for buffer in queue.buffers),
        )


def _graph_copies(graph: Graph, document: Document) -> Iterator[Graph]:
    devices = document.graph_devices.get(graph.name)
    if devices is None:
        yield graph
        return
    for device in devices:
        name = f"{graph.name}.{device}"
        ops = tuple(
            evolve(
                op,
                name=f"{op.name}.{device}",
                graph=name,
                target_device=device,
                inputs=tuple(f"{source}.{device}" for source in op.inputs),
                forked_dram_inputs=tuple(
                    (f"{queue}.{device}", f"{fork}.{device}") for queue, fork in op.forked_dram_inputs
                ),
            )
            for op in graph.ops
        )
        yield evolve(graph, name=name, target_device=device, ops=ops)


def _instructions(
    program: Program, document: Document, instances: Mapping[str, tuple[str, ...]]
) -> tuple[Instruction, ...]:
    result: list[Instruction] = []
    for instruction in program.instructions:
        if isinstance(instruction, Execute):
            result.extend(_executes(instruction, document, instances))
        elif isinstance(instruction, Allocate | Deallocate):
            names = tuple(copy for name in instruction.queues for copy in instances.get(name, (name,)))
            result.append(evolve(instruction, queues=names))
        else:
            result.append(instruction)
    return tuple(result)


def _executes(execute: Execute, document: Document, instances: Mapping[str, tuple[str, ...]]) -> Iterator[Execute]:
    devices = document.graph_devices.get(execute.graph)
    if devices is None:
        # A graph on one chip with queues on several: their settings are given to every copy.
        settings = tuple(
            evolve(setting, queue=copy)
            for setting in execute.queue_settings
            for copy in instances.get(setting.queue, (setting.queue,))
        )
        yield evolve(execute, queue_settings=settings)
        return
    for device in devices:
        settings = tuple(evolve(setting, queue=f"{setting.queue}.{device}") for setting in execute.queue_settings)
        yield evolve(execute, graph=f"{execute.graph}.{device}", queue_settings=settings)
