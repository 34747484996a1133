"""The language of conditions: what it means, and that nothing else is taken."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.app.debugger.expressions import (
    PAIR_FUNCTIONS,
    POINTER_FUNCTIONS,
    TENSOR_FUNCTIONS,
    Binary,
    Number,
    Tensor,
    Unary,
    evaluate,
    parse,
    parse_tensor,
)
from buda_emu.support.errors import HostError


class Values:
    """A scope of a few tensors."""

    def __init__(self, **tensors):
        self.tensors = {name: np.asarray(values, np.float32) for name, values in tensors.items()}

    def tensor(self, reference, *, ideal=False):
        return self.tensors[reference.name] + (1 if ideal else 0)

    def pointer(self, queue, which):  # noqa: ARG002
        return {"rd": 1, "wr": 5, "local": 2, "occupancy": 4}[which]

    def variable(self, name):
        return {"$i": 7, "$rd_ptr": 3}[name]

    def word(self, name):
        return {"input": 2, "inputs": 4, "instruction": 9}[name]


SCOPE = Values(q=[[1.0, -3.0], [0.0, np.nan]], r=[1.0, np.inf])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("-2 - -3", 1), ("7 % 4", 3), ("1 / 0 > 1e30", 1), ("1e-3", 0.001),
        ("$i == 7 and $rd_ptr < 4", 1), ("not $i == 7 or 0", 0), ("not not 5", 1), ("1 < 2 and 2 < 3 or 1 / 0 < 0", 1),
        ("nan(q)", 1), ("inf(op:r)", 1), ("zeros(queue:q) == 1", 1), ("absmax(q) > 2", 0), ("min('q') != 0", 1),
        ("rd(q) + wr(q) + local(q) + occupancy(q)", 12), ("input == 2 and inputs == 4 and instruction == 9", 1),
        ("maxdiff(r, r) > 0", 0), (".5 + 1.", 1.5),
    ],
)  # fmt: skip
def test_values(text, value):
    assert evaluate(parse(text), SCOPE) == value


def test_a_nan_compares_as_numbers_do():
    assert evaluate(parse("absmax(q) == absmax(q)"), SCOPE) == 0


def test_pcc_against_ideal():
    scope = Values(a=np.arange(100), b=-np.arange(100.0))
    assert evaluate(parse("pcc(a, ideal)"), scope) == pytest.approx(1)
    assert evaluate(parse("pcc(ideal, b) > 0.99 and pcc(a, b) < -0.99"), scope) == 1


def test_sizes_must_agree():
    with pytest.raises(HostError, match="4 and 2 elements"):
        evaluate(parse("pcc(q, r)"), SCOPE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("absmx(q)", "did you mean 'absmax'"), ("absmax(q", "')' is missing"), ("absmax(q) >", "missing at the end"),
        ("absmax q", "is not a number"), ("", "missing at the end"), ("1 + ", "missing at the end"),
        ("pcc(q)", "two tensors"), ("pcc(ideal, ideal)", "two tensors"), ("absmax(ideal2, q)", "one tensor"),
        ("1 2", "too much"), ("q[1]", "is not a number"), ("absmax(q[x])", "a slot is a number"),
        ("__import__('os')", "no function '__import__'"), ("q.__class__", "is not a number"), ("1; 2", "means nothing"),
        ("absmax(3)", "name of a queue or op"), ("1 < 2 < 3", "too much"), ("(" * 60 + "1" + ")" * 60, "more than 50"),
        ("-" * 60 + "1", "more than 50"), ("not " * 60 + "1", "more than 50"),
    ],
)  # fmt: skip
def test_wrong_expressions_are_refused(text, said):
    with pytest.raises(HostError) as error:
        parse(text)
    assert said in str(error.value)
    assert "column" in str(error.value)


def test_tensors():
    assert parse_tensor("op:exp") == Tensor("exp", "op")
    assert parse_tensor("encoder.0[3]") == Tensor("encoder.0", "", 3)
    assert parse_tensor("queue:'a-b'[2]") == Tensor("a-b", "queue", 2)
    assert str(parse_tensor("queue:x[2]")) == "queue:x[2]"
    with pytest.raises(HostError, match="too much"):
        parse_tensor("a b")


def test_precedence():
    assert parse("-1 + 2") == Binary("+", Unary("-", Number(1.0)), Number(2.0))


@given(st.text(alphabet="absmaxnq()[]<>=!+-*/%$.,'01 9eorandt:", max_size=40))
def test_any_text_parses_or_is_refused(text):
    with suppress(HostError):
        parse(text)


def test_every_function_has_a_description():
    assert all(text for text, _ in (*TENSOR_FUNCTIONS.values(), *PAIR_FUNCTIONS.values()))
    assert all(POINTER_FUNCTIONS.values())
