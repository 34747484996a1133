"""Whatever is done to a valid netlist, a check answers with findings: no exception, every place in the file."""

import json
import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buda_emu.netlist.load import check_text
from buda_emu.netlist.yaml_reader import read_tree
from buda_emu.support.checker.render import as_github, as_json, render
from mutations import Tree, mutated, text_of, tree_of
from netlist.netlist_texts import FUSED, NETLIST

ARCHS = ("grayskull", "wormhole", "wormhole_b0", "blackhole", None, "nope")


def answers(text: str, arch: str | None) -> None:
    """Check a text and everything that can be done with the findings."""
    lines = text.count("\n") + 1
    for strict in (False, True):
        result = check_text(text, "net.yaml", arch, strict=strict)
        assert result.ok == (result.netlist is not None)
        assert result.ok != any(item.severity == "error" for item in result.diagnostics)
        for item in result.diagnostics:
            assert 1 <= item.line <= lines
            assert re.fullmatch(r"V\d{3}", item.rule)
            assert item.message
        render(result.diagnostics)
        as_github(result.diagnostics)
        json.dumps(as_json(result.diagnostics))


SMALL = tree_of(read_tree(NETLIST + FUSED))


@settings(max_examples=100, deadline=None)
@given(mutated(SMALL), st.sampled_from(ARCHS))
def test_a_mutated_netlist_gets_findings(tree: Tree, arch: str | None) -> None:
    answers(text_of(tree), arch)


def test_the_netlist_survives_being_written_again() -> None:
    assert check_text(text_of(SMALL)).ok


# Valid mutants of the corpus: one netlist for each kind of op.
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_netlist_of_the_corpus_gets_findings(corpus: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted((corpus / "mutants").glob("*_valid_*.yaml"))))
    tree = tree_of(read_tree(path.read_text(encoding="utf-8")))
    answers(text_of(data.draw(mutated(tree))), data.draw(st.sampled_from(ARCHS)))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, len(NETLIST + FUSED)), st.integers(0, 12), st.text(max_size=4))
def test_a_text_with_a_hole_gets_findings(start: int, length: int, new: str) -> None:
    text = NETLIST + FUSED
    answers(text[:start] + new + text[start + length :], None)
