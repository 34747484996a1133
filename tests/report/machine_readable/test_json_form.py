"""report.json and `--json`: strict JSON, as the schema says."""

import json

import jsonschema

from buda_emu.report.machine_readable.json_form import as_json
from buda_emu.report.machine_readable.schema import schema, text
from report.results import finished_run


def test_the_schema_file_is_what_the_classes_say(root):
    assert (root / "schemas" / "report.schema.json").read_text() == text(), (
        "python -m buda_emu.report.machine_readable.schema > schemas/report.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(schema())


def test_results_are_strict_json_and_follow_the_schema():
    written = json.dumps(as_json(finished_run()), allow_nan=False)
    jsonschema.Draft202012Validator(schema()).validate(json.loads(written))
    assert json.loads(written)["schema_version"] == 1


def test_a_field_that_is_missing_or_of_another_kind_is_seen():
    good = as_json(finished_run())
    validator = jsonschema.Draft202012Validator(schema())
    for spoil in (
        lambda run: run.pop("cases"),
        lambda run: run["cases"][0].pop("status"),
        lambda run: run["cases"][0].update(status="fine"),
        lambda run: run["cases"][0]["outputs"][0].update(pcc="1"),
        lambda run: run.update(schema_version=2),
    ):
        spoilt = json.loads(json.dumps(good))
        spoil(spoilt)
        assert not validator.is_valid(spoilt)


def test_every_result_is_there():
    plain = as_json(finished_run())
    attention, _, lossy, rejected, stopped, crashed = plain["cases"]
    assert [op["name"] for op in attention["ops"]][:3] == ["q", "k", "v"]
    assert lossy["outputs"][0]["comparison"]["type"] == "Exact"
    assert lossy["outputs"][0]["first_bad_tile"] == {"entry": 0, "t": 0, "row": 0, "col": 0}
    assert "Float99" in rejected["message"]
    assert stopped["stopped"]["kind"] == "loop"
    assert crashed["outputs"] == []
