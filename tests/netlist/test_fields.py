import pytest

from buda_emu.netlist.fields import FUSED_FIELDS, GRAPH_FIELDS, OP_FIELDS, QUEUE_FIELDS, SUB_OP_FIELDS, Field
from buda_emu.netlist.rules import RULES

FIELDS = [
    field for table in (QUEUE_FIELDS, GRAPH_FIELDS, OP_FIELDS, FUSED_FIELDS, SUB_OP_FIELDS) for field in table.values()
]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_field_describes_itself(field: Field) -> None:
    assert field.doc
    assert not field.doc.endswith(".")
    assert field.rule in ("", *RULES)
    assert bool(field.words) == (field.kind in ("word", "loc", "fidelity"))
    if field.kind in ("text", "word", "pair", "texts", "names"):
        assert field.rule  # these kinds have none of their own
