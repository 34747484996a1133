"""What words of the language are said to mean, once each."""

import pytest

from buda_emu.app.editor.hover import about_word
from buda_emu.netlist.fields import SECTIONS


def heads(word, section):
    """The bold beginnings of what is said."""
    return [text.split("**")[1] for text in about_word(word, section)]


@pytest.mark.parametrize(
    ("word", "section", "expected"),
    [
        *((section, section, [section]) for section in SECTIONS),
        ("inputs", "graphs", ["inputs"]),  # a field and an attribute
        ("m_k", "graphs", ["attribute m_k"]),
        ("m_k", "fused_ops", ["attribute m_k"]),
        ("m_k", "queues", []),
        ("matmul", "graphs", ["op type matmul"]),
        ("matmul", "programs", []),
        ("execute", "programs", ["execute"]),
        ("execute", "graphs", []),
        ("Bfp8_b", "queues", ["format Bfp8_b"]),
        ("wormhole_b0", "devices", ["wormhole_b0"]),
        ("nothing", "graphs", []),
    ],
)
def test_a_word_of_a_section(word, section, expected):
    assert heads(word, section) == expected


def test_an_attribute_names_the_op_types_that_may_have_it():
    (said,) = about_word("m_k", "graphs")
    assert said.endswith("; on all op types")
    (said,) = about_word("num_columns", "graphs")
    assert said.rpartition("; on ")[2].split(", ") == ["matmul", "fused_op"]
