"""What one op, or one edge, needs."""

from buda_emu.performance.routing.pipes.model import PipeGraph
from buda_emu.performance.routing.streams.route import route
from pipe_parts import around, between
from small_pipes import Pipes


def _graph() -> PipeGraph:
    """`first` on two cores feeds `second` and `third`, gathered; its intermediate buffer shares a packer's L1."""
    pipes = Pipes()
    intermediate = pipes.intermediate(0, 0)
    packers = [
        pipes.packer(0, 0, op="first", buffer_space_shared=intermediate, is_scatter=True, replicate=2),
        pipes.packer(0, 1, op="first"),
    ]
    pipes.pipe([*packers, packers[0] + 4], [pipes.unpacker(1, 0, op="second")], (1, 0))
    pipes.pipe(packers, [pipes.unpacker(2, 0, op="third")], (2, 0))
    pipes.pipe([pipes.packer(2, 0, op="third")], [pipes.queue("out")], (2, 0))
    return pipes.graph


def test_an_edge_alone() -> None:
    part = between(_graph(), "first", "second")
    assert len(part.pipes) == 1
    cores = {core.place[1:3]: core for core in route(part, "grayskull").cores}
    assert {place: core.extra_streams for place, core in cores.items()} == {(0, 0): 0, (0, 1): 0, (1, 0): 2}
    assert [stream.kind for stream in cores[0, 0].streams] == ["packer", "intermediate"]


def test_all_edges_of_an_op() -> None:
    part = around(_graph(), "first")
    assert len(part.pipes) == 2
    needs = {core.place[1:3]: core.extra_streams for core in route(part, "grayskull").cores}
    assert needs == {(0, 0): 1, (0, 1): 1, (1, 0): 2, (2, 0): 2}


def test_an_op_that_nothing_feeds() -> None:
    part = around(_graph(), "third")
    assert {pipe.id for pipe in part.pipes} == {pipe.id for pipe in _graph().pipes[1:]}
    assert not route(part, "grayskull").refusals
