import pytest

from buda_emu.netlist.load import check_text
from buda_emu.netlist.model import Buffer, Queue
from netlist.netlist_texts import DEVICES, NETLIST, PROGRAMS, QUEUES, edited, found, rules


def queue(old: str, new: str, arch: str | None = None) -> Queue:
    """The first queue after an edit of its text."""
    result = check_text(edited(old, new), arch=arch)
    assert result.netlist is not None, result.diagnostics
    return result.netlist.queues["src"]


def test_every_field_is_read() -> None:
    more = "layout: flat, ublock_order: c, tile_dim: [32, 32], input_tms: [], read_ports: [2], entries: 2"
    src = queue("entries: 2", more)
    assert (src.name, src.written_name, src.input, src.type, src.entries) == ("src", "src", "HOST", "queue", 2)
    assert (src.df, src.target_device, src.loc, src.layout) == ("Float16_b", 0, "dram", "flat")
    assert src.buffers == (Buffer(0, 0x20000000),)
    assert src.read_ports == (2,)
    assert src.write_ports == ()
    assert src.blocking.shape == (1, 2, 2)
    assert src.blocking.ublock_order == "c"
    assert src.host_fed
    assert not src.is_ram


@pytest.mark.parametrize(
    ("old", "new", "rule", "text"),
    [
        ("grid_size: [1, 1]", "grid_size: [1]", "V003", "[1]"),
        ("mblock: [2, 1]", "mblock: 2", "V003", "2"),
        ("ublock: [1, 2]", "ublock: [1, 2, 3]", "V003", "[1, 2, 3]"),
        ("ublock: [1, 2]", "ublock: [1, b]", "V180", "b"),
        ("dram: [[0, 0x20000000]]", "dram: []", "V004", "[]"),
        (", dram: [[0, 0x20000000]]", "", "V004", "loc"),
        ("loc: dram, dram", "loc: host, dram", "V004", "loc"),
        ("[[0, 0x20000000]]", "[0x20000000]", "V185", "0x20000000"),
        ("[[0, 0x20000000]]", "[[0]]", "V185", "[0]"),
        ("0x20000000", "-5", "V180", "-5"),
        ("0x20000000", "0x100000000", "V180", "0x100000000"),
        ("loc: dram, dram: [[0, 0x20000000]]", "loc: host, host: [[0]]", "V185", "[0]"),
        ("loc: dram, dram: [[0, 0x20000000]]", "loc: host, host: [[0, 1, 2]]", "V185", "[0, 1, 2]"),
        ("entries: 2", "write_ports: [3], entries: 2", "V006", "[3]"),
        ("entries: 2", "read_ports: [1, 1], entries: 2", "V006", "[1, 1]"),
        ("entries: 2", "tile_dim: [8, 8], entries: 2", "V007", "[8, 8]"),
        ("entries: 2", "tile_dim: [32], entries: 2", "V007", "[32]"),
        ("entries: 2", "tile_dim: 32, entries: 2", "V007", "32"),
        ("entries: 2", "entrys: 2", "V008", "entrys"),
        ("entries: 2", "<<: {entries: 2}", "V008", "<<"),
        ("df: Float16_b", "df: float16_b", "V010", "float16_b"),
        ("df: Float16_b", "df: Tf32", "V010", "Tf32"),
        ("entries: 2", "entries: 2.0", "V180", "2.0"),
        ("entries: 2", "entries: ", "V180", ""),
        ("entries: 2", "entries: [2]", "V180", "[2]"),
        ("entries: 2", "alias: [a], entries: 2", "V105", "[a]"),
        ("entries: 2", "? [a]\n  : 1, entries: 2", "V184", "[a]"),
        ("entries: 2", "input_tms: [foo], entries: 2", "V038", "foo"),
    ],
)  # fmt: skip
def test_a_malformed_field_is_reported_once_at_its_place(old: str, new: str, rule: str, text: str) -> None:
    (finding,) = found(edited(old, new))
    assert finding.rule == rule
    assert finding.text.strip() in (text, text + ",")
    assert finding.diagnostic.message.startswith("queue src: ")


def test_hints_name_the_nearest_word() -> None:
    assert found(edited("entries: 2", "entrys: 2"))[0].diagnostic.hint == "did you mean 'entries'?"
    assert found(edited("df: Float16_b", "df: float16_b"))[0].diagnostic.hint == "did you mean 'Float16_b'?"
    assert found(edited("entries: 2", "entries: 2.0"))[0].diagnostic.hint == "write 2"
    assert found(edited("entries: 2", "entries: 1_000"))[0].diagnostic.hint == "write 1000"
    assert found(edited("entries: 2", "entries: 08"))[0].diagnostic.hint == "a leading 0 means octal"


def test_host_allocations_may_leave_out_the_channel() -> None:
    src = queue("loc: dram, dram: [[0, 0x20000000]]", "loc: host, host: [0x1000]")
    assert src.buffers == (Buffer(0, 0x1000),)
    src = queue("loc: dram, dram: [[0, 0x20000000]]", "loc: host, host: [[1, 0x1000]]")
    assert src.buffers == (Buffer(1, 0x1000),)


def test_the_allocation_list_may_stand_before_loc() -> None:
    assert queue("loc: dram, dram: [[0, 0x20000000]]", "dram: [[0, 8]], loc: dram").buffers == (Buffer(0, 8),)


def test_the_list_for_the_other_location_is_not_read() -> None:
    assert queue("dram: [[", "host: nonsense, dram: [[").buffers == (Buffer(0, 0x20000000),)


def test_loc_written_twice_reads_the_first_list_twice() -> None:
    # NETLIST 11.3 C1
    assert rules(edited("loc: dram, dram: [[0,", "loc: dram, loc: dram, dram: [[0,")) == ["V015"]
    assert queue("dram: [[0, 0x20000000]]", "dram: [[0, 8]], dram: [[0, 16]]").buffers == (Buffer(0, 8),)


def test_a_repeated_field_is_overwritten() -> None:
    assert queue("entries: 2", "entries: 3, entries: 4").entries == 4
    assert rules(edited("entries: 2", "entries: 2, entries: 0")) == ["V012"]


def test_a_third_value_of_a_dram_pair_or_tile_dim_is_ignored() -> None:
    assert queue("0x20000000]", "0x20000000, 7]").buffers == (Buffer(0, 0x20000000),)
    assert queue("entries: 2", "tile_dim: [32, 32, 1], entries: 2").blocking.tile_dim == (32, 32)


def test_rules_of_one_architecture() -> None:
    assert rules(edited("0x20000000", "0x20000020"), "blackhole") == ["V005"]
    assert rules(edited("0x20000000", "0x20000020"), "wormhole_b0") == []
    assert rules(edited("entries: 2", "read_ports: [1], entries: 2"), "grayskull") == ["V006"]
    tile = NETLIST.replace("entries: 2", "tile_dim: [16, 32], entries: 2")
    tile = tile.replace("type: nop", "type: nop, tile_dim: [16, 32]")
    assert rules(tile, "grayskull") == ["V007", "V007", "V007"]
    assert rules(tile, "wormhole_b0") == []


def test_rules_of_one_architecture_know_only_what_stands_before() -> None:
    # NETLIST 11.3 C3
    late = NETLIST.replace(DEVICES, "").replace(PROGRAMS, DEVICES + PROGRAMS).replace("0x20000000", "0x20000020")
    assert rules(late, "blackhole") == []


def test_ports_of_a_host_queue_are_not_looked_at() -> None:
    text = edited("loc: dram, dram: [[0, 0x20000000]]", "read_ports: [9], loc: host, host: [0x1000]")
    assert rules(text, "grayskull") == []


def test_a_duplicate_name_is_reported_where_it_stands_again() -> None:
    (finding,) = found(NETLIST.replace(QUEUES, QUEUES + QUEUES.splitlines()[1] + "\n"))
    assert (finding.rule, finding.text, finding.diagnostic.line) == ("V009", "src", 5)
    assert "line 3" in finding.diagnostic.message


def test_nothing_is_a_queue_without_fields() -> None:
    assert set(rules(edited("  src:", "  extra:\n  src:"))) >= {"V016"}


@pytest.mark.parametrize("body", ["5", "[1]"])
def test_a_queue_needs_a_map(body: str) -> None:
    assert rules(edited("  src:", f"  extra: {body}\n  src:")) == ["V184"]


def test_what_is_wrong_with_one_queue_says_nothing_about_its_readers() -> None:
    assert rules(edited("type: queue, entries: 2, grid_size: [1, 1], t: 1", "typ: queue, t: 1")) == ["V008"]


def test_several_findings_are_reported_in_order() -> None:
    text = NETLIST.replace("entries: 2", "entries: x, foo: 1")
    places = [(item.rule, item.diagnostic.line) for item in found(text)]
    assert places == [("V180", 3), ("V008", 3), ("V180", 4), ("V008", 4)]
