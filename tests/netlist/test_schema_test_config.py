"""The schema of the test-config section: what real netlists say passes, what the reader refuses does not."""

import jsonschema
import pytest
import yaml

from buda_emu.netlist.schema import schema
from netlist.test_schema import with_text_keys
from shared_files import CORPUS, NO_CORPUS


def validator():
    whole = schema()
    return jsonschema.Draft202012Validator({**whole["properties"]["test-config"], "$defs": whole["$defs"]})


def accepts(text):
    return validator().is_valid(yaml.safe_load(text))


@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
def test_every_real_section_passes():
    check, seen = validator(), 0
    for path in sorted(CORPUS.rglob("netlists/**/*.yaml")):
        text = path.read_text()
        if "\ntest-config:" in text:
            section = yaml.load(text[text.index("\ntest-config:") :], yaml.CSafeLoader)["test-config"]
            assert list(check.iter_errors(with_text_keys(section))) == [], path
            seen += 1
    assert seen > 100


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("stimulus-config: {type: uniform, uniform_lower_bound: 0, uniform_upper_bound: 1e-3}", True),
        ("stimulus-config: {type: Unifrom}", False),
        ("stimulus-config: {colour: 1}", False),
        ("stimulus-config: {type: Step, overrides: {q: {type: STEPROWWISE, set_tile_rows: [1, 32]}}}", True),
        ("stimulus-config: {type: Step, overrides: {q: {set_tile_rows: [0, 32]}}}", False),
        ("stimulus-config: {type: Step, overrides: {}}", False),
        ("comparison-config: {type: ALLCLOSEHW, check_pcc: 0.9, verbosity: concise, method: TilizedTensor}", True),
        ("comparison-config: {type: AllClose, check_tile_col_range: [1, 2]}", False),
        ("comparison-config: {type: AllClose, atol: much}", False),
        ("io-config: {outputs: [a, b.c]}", True),
        ("io-config: {outputs: a}", False),
        ("test-args: {microbatch_count: 2, other: word}", True),
        ("anything: else", True),
    ],
)
def test_fields_and_words(text, good):
    assert accepts(text) == good
