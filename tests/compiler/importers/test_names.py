"""Names of models as names of netlists."""

import pytest

from buda_emu.compiler.graph.builder import host_name, safe_name


@pytest.mark.parametrize(
    ("text", "name", "kept"),
    [
        ("encoder.0.query", "encoder.0.query", "encoder.0.query"),
        ("/layer 1/Add:0", "layer_1_Add_0", "layer_1_Add_0"),
        ("1st", "v_1st", "v_1st"),
        ("on", "v_on", "on"),
        ("NaN", "v_NaN", "NaN"),
        ("_", "value", "_"),
        ("", "value", "value"),
        ("ä", "value", "value"),
    ],
)
def test_letters_that_a_netlist_has_and_no_word_of_yaml(text, name, kept):
    """What the host sees keeps the model's name where its letters allow."""
    assert safe_name(text) == name
    assert host_name(text) == kept
