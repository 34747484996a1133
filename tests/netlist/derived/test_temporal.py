"""NETLIST 1.8."""

from buda_emu.netlist.build import temporal_graphs
from buda_emu.netlist.model import Execute, Graph, Op, Program, Queue


def graph(name: str, device: int, **ops: tuple[str, ...]) -> Graph:
    """A graph whose ops are written as name=inputs."""
    return Graph(
        name=name, target_device=device, ops=tuple(Op(name=op, graph=name, inputs=inputs) for op, inputs in ops.items())
    )


def groups(*graphs: Graph, execute: str = "", queues: str = "", arch: str = "wormhole_b0") -> list[tuple[str, ...]]:
    """The temporal graphs; `execute` names graphs in order, programs apart by |."""
    programs = [
        Program(name=str(number), instructions=tuple(Execute(graph=name) for name in body.split()))
        for number, body in enumerate(execute.split("|"))
    ]
    known = {name: Queue(name=name) for name in queues.split()}
    result = temporal_graphs({item.name: item for item in graphs}, programs, known, arch)
    assert [item.id for item in result] == list(range(len(result)))
    return [item.graphs for item in result]


A, B, C = graph("a", 0, x=("q",)), graph("b", 1, y=("x",)), graph("c", 2, z=("y",))


def test_graphs_apart_are_temporal_graphs_of_their_own() -> None:
    assert groups(graph("a", 0), graph("b", 0), graph("c", 1)) == [("a",), ("b",), ("c",)]


def test_an_op_that_feeds_another_chip_ties_its_graph() -> None:
    assert groups(A, B) == [("a", "b")]
    assert groups(A, B, C) == [("a", "b", "c")]
    assert groups(C, B, A) == [("c", "b", "a")]


def test_a_queue_between_does_not_tie() -> None:
    assert groups(A, B, queues="q x") == [("a",), ("b",)]


def test_the_same_chip_does_not_tie() -> None:
    assert groups(A, graph("b", 0, y=("x",))) == [("a",), ("b",)]


def test_groups_move_as_a_whole() -> None:
    # d reads b and c, which belong to two groups until then
    left = [graph("a", 0, x=()), graph("b", 1, y=("x",))]
    right = [graph("c", 2, z=())]
    assert groups(*left, *right, graph("d", 3, w=("y", "z"))) == [("a", "b", "c", "d")]


def test_ids_are_compacted_in_order() -> None:
    assert groups(graph("a", 0, x=()), graph("p", 5), graph("b", 1, y=("x",)), graph("q", 6)) == [
        ("p",),
        ("a", "b"),
        ("q",),
    ]


def test_back_to_back_executes_on_other_chips_are_merged() -> None:
    one, two, three = graph("a", 0), graph("b", 1), graph("c", 0)
    assert groups(one, two, execute="a b") == [("a", "b")]
    assert groups(one, three, execute="a c") == [("a",), ("c",)]
    assert groups(one, two, three, execute="a b c") == [("a", "b"), ("c",)]


def test_back_to_back_executes_are_not_merged_on_grayskull() -> None:
    assert groups(graph("a", 0), graph("b", 1), execute="a b", arch="grayskull") == [("a",), ("b",)]


def test_the_previous_execute_carries_over_to_the_next_program() -> None:
    assert groups(graph("a", 0), graph("b", 1), execute="a | b") == [("a", "b")]


def test_an_unknown_graph_is_passed_over() -> None:
    assert groups(graph("a", 0), graph("b", 1), execute="a nope b") == [("a", "b")]
