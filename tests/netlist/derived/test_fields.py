"""NETLIST 1.3 "Derived per queue", 1.5, 11.1 A2."""

import pytest

from buda_emu.netlist.build import build
from buda_emu.netlist.model import Execute, Netlist
from buda_emu.netlist.reader import read_document
from buda_emu.netlist.yaml_reader import read_tree
from netlist.netlist_texts import GRAPHS, NETLIST, PROGRAMS, edited

OP = GRAPHS.split("copy: ")[1]


def built(text: str) -> Netlist:
    """The netlist, whatever the rules say of it."""
    document = read_document(read_tree(text), "net.yaml", None)
    assert not document.diagnostics
    return build(document)


def test_a_queue_has_the_input_count_of_the_graph_that_consumes_it() -> None:
    netlist = built(NETLIST.replace("input_count: 1", "input_count: 2"))
    assert netlist.queues["src"].input_count == 2


def test_a_queue_that_nothing_consumes_has_that_of_its_producer() -> None:
    assert built(NETLIST.replace("input_count: 1", "input_count: 2")).queues["dst"].input_count == 2


def test_a_host_queue_that_nothing_consumes_has_none() -> None:
    lonely = NETLIST.replace("  dst:", NETLIST.splitlines()[2].replace("src", "lonely") + "\n  dst:")
    assert built(lonely).queues["lonely"].input_count == -1


def test_a_ram_of_one_entry_has_one() -> None:
    text = edited("type: queue, entries: 2", "type: ram, entries: 1").replace("input_count: 1", "input_count: 2")
    assert built(text).queues["src"].input_count == 1
    assert built(text.replace("entries: 1", "entries: 2", 1)).queues["src"].input_count == 2


def test_the_last_graph_that_consumes_a_queue_wins() -> None:
    second = (
        GRAPHS.replace("graphs:\n", "").replace("fwd", "again").replace("copy", "copy2").replace("count: 1", "count: 7")
    )
    text = NETLIST.replace(PROGRAMS, second + PROGRAMS).replace("type: queue, entries", "type: ram, entries")
    assert built(text).queues["src"].input_count == 7


def chained(tile: str, tms: str, op_type: str = "exp", attributes: str = "{m_k: 1}") -> Netlist:
    """src (of that tile) -> copy (with those TMs on its input)."""
    text = edited("entries: 2", f"tile_dim: {tile}, entries: 2")
    return built(text.replace("type: nop", f"type: {op_type}, attributes: {attributes}, input_0_tms: {tms}"))


@pytest.mark.parametrize(
    ("tile", "tms", "expected"),
    [
        ("[32, 32]", "[]", (32, 32)),
        ("[16, 32]", "[]", (16, 32)),
        ("[8, 32]", "[]", (8, 32)),
        ("[32, 32]", "[transpose]", (32, 32)),
        ("[16, 32]", "[transpose]", (32, 16)),
        ("[32, 16]", "[transpose]", (16, 32)),
        ("[16, 32]", "[transpose, hslice: 1, transpose]", (16, 32)),
        ("[8, 32]", "[transpose]", (0, 0)),
        ("[8, 32]", "[transpose, transpose]", (0, 0)),
    ],
)
def test_tile_dims_of_an_input(tile: str, tms: str, expected: tuple[int, int]) -> None:
    assert chained(tile, tms).ops["copy"].input_tile_dims == (expected,)


def test_a_producer_in_another_graph_counts_as_full_tiles() -> None:
    graphs = GRAPHS.replace("type: nop", "type: nop, tile_dim: [16, 32]")
    other = OP.replace("inputs: [src]", "inputs: [copy]")
    text = NETLIST.replace(GRAPHS, graphs)
    same = text.replace(PROGRAMS, f"    copy2: {other}" + PROGRAMS)
    apart = text.replace(PROGRAMS, f"  bwd:\n    target_device: 1\n    input_count: 1\n    copy2: {other}" + PROGRAMS)
    assert built(same).ops["copy2"].input_tile_dims == ((16, 32),)
    assert built(apart).ops["copy2"].input_tile_dims == ((32, 32),)


@pytest.mark.parametrize(
    ("op_type", "tile", "tms", "vector"),
    [
        ("exp", "[32, 32]", "[]", "rc"),
        ("exp", "[32, 16]", "[]", "c"),
        ("exp", "[16, 32]", "[]", "r"),
        ("exp", "[1, 32]", "[]", "r"),
        ("exp", "[16, 32]", "[transpose]", "c"),
        ("nop", "[16, 32]", "[]", "rc"),
        ("nopp", "[16, 32]", "[]", "rc"),
    ],
)
def test_the_default_vector_mode_follows_the_tile_of_input_0(op_type: str, tile: str, tms: str, vector: str) -> None:
    assert chained(tile, tms, op_type).ops["copy"].vector == vector


def test_a_written_vector_mode_is_kept() -> None:
    assert chained("[16, 32]", "[]", attributes="{vector: rc}").ops["copy"].vector == "rc"
    assert chained("[16, 32]", "[]", attributes="{vector: nonsense}").ops["copy"].vector == "r"  # NETLIST 11.2 B2


def autoincs(text: str) -> tuple[str, str, str]:
    (execute,) = [item for item in built(text).programs["run"].instructions if isinstance(item, Execute)]
    (src,) = execute.queue_settings
    return src.rd_ptr_autoinc, src.global_rdptr_autoinc, src.global_wrptr_autoinc


def test_autoincrements_have_defaults_where_they_are_not_written() -> None:
    assert autoincs(NETLIST) == ("1", "0", "1")
    assert autoincs(edited("type: queue", "type: ram")) == ("0", "0", "0")
    assert autoincs(edited("zero: false", "zero: false, rd_ptr_autoinc: 0, global_wrptr_autoinc: $x")) == (
        "0",
        "0",
        "$x",
    )


def test_settings_of_an_unknown_queue_are_left_alone() -> None:
    assert autoincs(edited("queue_settings: {src", "queue_settings: {nope")) == ("", "", "")
