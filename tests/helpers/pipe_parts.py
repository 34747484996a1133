"""Parts of a pipe graph, for who asks what one op, or one edge, needs."""

from collections.abc import Callable, Collection

from buda_emu.performance.routing.pipes.model import Buffer, Pipe, PipeGraph


def around(graph: PipeGraph, op: str) -> PipeGraph:
    """What moves tiles to and from `op` (or a queue): its buffers, the pipes that read or fill them, and what is at
    their other ends."""
    return _part(graph, lambda inputs, outputs: any(buffer.op == op for buffer in (*inputs, *outputs)), {op})


def between(graph: PipeGraph, producer: str, consumer: str) -> PipeGraph:
    """What moves tiles of `producer` to `consumer`, ops or queues, without relays' buffers on the way."""
    return _part(
        graph,
        lambda inputs, outputs: (
            any(buffer.op == producer for buffer in inputs) and any(buffer.op == consumer for buffer in outputs)
        ),
        (),
    )


_Wanted = Callable[[Collection[Buffer], Collection[Buffer]], bool]


def _part(graph: PipeGraph, wanted: _Wanted, ops: Collection[str]) -> PipeGraph:
    by_id = {buffer.id: buffer for buffer in graph.buffers}
    found = {number: buffer.id for buffer in graph.buffers for number in _numbers(buffer)}
    pipes = list[Pipe]()
    kept = {buffer.id for buffer in graph.buffers if buffer.op in ops}
    for pipe in graph.pipes:
        inputs = {found[id] for id in pipe.inputs} | {id for id in pipe.output_padding if id in by_id}
        outputs = {id for group in pipe.outputs for id in group}
        if wanted([by_id[id] for id in inputs], [by_id[id] for id in outputs]):
            pipes.append(pipe)
            kept |= inputs | outputs
    kept |= {by_id[id].buffer_space_shared for id in kept}
    return PipeGraph(graph.name, tuple(buffer for buffer in graph.buffers if buffer.id in kept), tuple(pipes))


def _numbers(buffer: Buffer) -> list[int]:
    """What stands for a buffer in `Pipe.inputs`: a scattered one has a number for each piece."""
    pieces = max(1, buffer.replicate) if buffer.is_scatter else 1
    return [buffer.id + piece * buffer.scatter_gather_num_tiles for piece in range(pieces)]
