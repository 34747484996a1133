import pytest

from buda_emu.netlist.reader import read_document
from buda_emu.netlist.yaml_reader import read_tree
from buda_emu.support.checker import checks
from netlist.netlist_texts import DEVICES, GRAPHS, NETLIST, PROGRAMS, QUEUES, edited, found, rules


def test_other_sections_are_kept_as_trees() -> None:
    document = read_document(read_tree(NETLIST + "test-config: {a: 1}\nfoo: 2\n"), "net.yaml", None)
    assert not document.diagnostics
    assert list(document.sections) == ["test-config", "foo"]


@pytest.mark.parametrize(
    ("section", "text"),
    [("queues", DEVICES + GRAPHS), ("graphs", DEVICES + QUEUES), ("programs", DEVICES + QUEUES + GRAPHS)],
)
def test_a_missing_section_is_reported_alone(section: str, text: str) -> None:
    text = text if section == "programs" else text + PROGRAMS
    (finding,) = found(text)
    assert (finding.rule, finding.diagnostic.message) == ("V011", f"the netlist has no {section}")


@pytest.mark.parametrize("empty", ["queues:", "queues: {}"])
def test_an_empty_section_is_missing(empty: str) -> None:
    assert rules(DEVICES + empty + "\n" + GRAPHS + PROGRAMS) == ["V011"]
    assert rules(DEVICES + QUEUES + GRAPHS + "programs: []\n") == ["V011"]


def test_a_misspelt_section_is_suggested() -> None:
    (finding,) = found(edited("queues:", "quues:"))
    assert (finding.rule, finding.diagnostic.hint) == ("V011", "is section 'quues' meant?")


@pytest.mark.parametrize("section", ["queues", "graphs", "fused_ops"])
def test_a_section_that_is_no_map_is_reported_alone(section: str) -> None:
    text = {"queues": DEVICES + GRAPHS, "graphs": DEVICES + QUEUES, "fused_ops": DEVICES + QUEUES + GRAPHS}[section]
    assert rules(text + f"{section}: [1]\n" + PROGRAMS)[0] == "V184"
    assert len(rules(text + f"{section}: [1]\n" + PROGRAMS)) == 1


def test_fused_ops_may_be_empty() -> None:
    assert rules(NETLIST + "fused_ops:\n") == []


def test_repeated_sections_are_both_read() -> None:
    # NETLIST 11.3 C1
    second = GRAPHS.replace("fwd", "other").replace("copy", "copy2").replace("grid_loc: [0, 0]", "grid_loc: [1, 1]")
    document = read_document(read_tree(NETLIST + second), "net.yaml", None)
    assert not document.diagnostics
    assert list(document.graphs) == ["fwd", "other"]


def test_queues_after_graphs_are_not_found() -> None:
    # NETLIST 11.3 C3
    (finding,) = found(DEVICES + GRAPHS + QUEUES + PROGRAMS)
    assert (finding.rule, finding.text, finding.diagnostic.hint) == ("V017", "[src]", "`queues` comes before `graphs`")


def test_a_key_must_be_a_word() -> None:
    assert rules(NETLIST + "? [a]\n: 1\n") == ["V184"]


def test_reading_stops_after_many_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MAX_FINDINGS", 5)
    many = "".join(f"  q{number}: 5\n" for number in range(100))
    assert rules(edited("queues:\n", "queues:\n" + many)) == ["V184"] * 6  # the last says so
