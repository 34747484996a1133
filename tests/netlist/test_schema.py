import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from buda_emu.netlist.fields import FUSED_FIELDS, GRAPH_FIELDS, OP_FIELDS, QUEUE_FIELDS, SETTING_FIELDS, SUB_OP_FIELDS
from buda_emu.netlist.schema import schema, text
from buda_emu.spec.attributes import ATTRIBUTES
from buda_emu.spec.ops import OP_TYPES
from netlist.netlist_texts import DEVICES, FUSED, NETLIST, edited
from shared_files import CORPUS, NO_CORPUS

BIG = 12_000  # bytes; jsonschema needs up to seconds for a larger netlist


@cache
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(schema())
    return jsonschema.Draft202012Validator(schema())


def with_text_keys(value: Any) -> Any:
    """YAML data as JSON could hold it: keys are texts."""
    if isinstance(value, dict):
        return {"null" if key is None else str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, list) else value


def problems(source: str) -> list[str]:
    data = with_text_keys(yaml.load(source, yaml.CSafeLoader))
    return [f"{list(error.absolute_path)}: {error.message}" for error in validator().iter_errors(data)]


def test_the_schema_file_is_what_the_tables_say(root: Path) -> None:
    assert (root / "schemas" / "netlist.schema.json").read_text(encoding="utf-8") == text()
    assert json.loads(text()) == json.loads(json.dumps(schema()))


def test_every_field_stands_in_the_schema_with_its_description() -> None:
    definitions = schema()["$defs"]
    for table, name in (
        (QUEUE_FIELDS, "queue"),
        (GRAPH_FIELDS, "graph"),
        (OP_FIELDS, "op"),
        (FUSED_FIELDS, "fused_op"),
        (SUB_OP_FIELDS, "scheduled_op"),
    ):
        properties = definitions[name]["properties"]
        assert set(properties) == set(table)
        assert all(properties[field].get("description") for field in table)
    execute = definitions["instruction"]["anyOf"][1]["properties"]["execute"]
    assert set(execute["properties"]["queue_settings"]["additionalProperties"]["properties"]) == set(SETTING_FIELDS)


def test_every_attribute_is_legal_for_exactly_its_op_types() -> None:
    for op_type in OP_TYPES:
        group = next(
            item["then"]["properties"]["attributes"]["$ref"].rsplit("/")[-1]
            for item in schema()["$defs"]["op"]["allOf"][1:]
            if op_type in item["if"]["properties"]["type"]["enum"]
        )
        legal = set(schema()["$defs"][group]["properties"])
        expected = {name for name, spec in ATTRIBUTES.items() if spec.types is None or op_type in spec.types} - {
            "inputs"
        }
        assert legal == expected


def test_a_small_netlist_is_valid() -> None:
    assert problems(NETLIST + FUSED) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (DEVICES, ""),
        ("arch: [", "arch: [nope, "),
        ("queues:", "quues:"),
        ("entries: 2", "entrys: 2"),
        ("entries: 2, ", ""),
        ("entries: 2", "entries: two"),
        ("entries: 2", "entries: 0"),
        ("type: queue", "type: qeue"),
        ("df: Float16_b", "df: Float17"),
        ("mblock: [2, 1]", "mblock: [2]"),
        (", dram: [[0, 0x20000000]]", ""),
        ("0x20000000", "-1"),
        ("type: nop", "type: nopp"),
        ("type: nop", "type: nop, foo: 1"),
        ("type: nop", "type: nop, attributes: {}"),
        ("type: nop", "type: nop, attributes: {l1_acc: true}"),
        ("type: nop", "type: matmul, attributes: {l1_acc: maybe}"),
        ("type: nop", "type: nop, input_0_tms: [foo]"),
        ("type: nop", "type: nop, input_0_tms: [hslice: {8}]"),
        ("type: nop", "type: nop, input_0_pad: {x: 1}"),
        ("grid_loc: [0, 0], ", ""),
        ("math_fidelity: HiFi3", "math_fidelity: HiFi5"),
        ("input_count: 1", "input_count: 0"),
        ("- endloop", "- endprogram"),
        ("- loop: $p_count", "- lop: $p_count"),
        ("incwrap", "decwrap"),
        ("graph_name", "graph"),
        ("prologue", "prolog"),
        ("type: add", "type: splice"),
        ("output: output", "output: output, foo: 1"),
        ("type: add", "type: add, attributes: {slope: 0.1}"),
        ("[input0, input0]", "[in0, input0]"),
    ],
)
def test_obvious_mistakes_are_not_valid(old: str, new: str) -> None:
    assert problems(edited(old, new, NETLIST + FUSED))


def accepted(small: bool) -> list[Any]:
    if not CORPUS.is_dir():
        return [pytest.param("", marks=pytest.mark.skip(reason=NO_CORPUS))]
    rows = [line.split("\t") for line in (CORPUS / "verdicts.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    paths = [CORPUS / "netlists" / row[0] for row in rows if row[1] == "accept"]
    return [path for path in paths if (path.stat().st_size < BIG) == small]


def test_accepted_netlists_of_the_corpus_are_valid(corpus: Path) -> None:
    paths = accepted(small=True)
    assert len(paths) > 300
    assert {str(path): found for path in paths if (found := problems(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.slow
def test_large_accepted_netlists_of_the_corpus_are_valid(corpus: Path) -> None:
    for path in accepted(small=False):
        assert problems(path.read_text(encoding="utf-8")) == [], path
