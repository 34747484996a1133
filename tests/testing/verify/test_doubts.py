"""Reasons to doubt a verdict that is "passed"."""

from io import BytesIO

import numpy as np
import pytest

from buda_emu.emulator.inputs.reference import ContentFiles, DirectoryFiles
from buda_emu.testing.verify.runs.collect import Case, Settings, mark_shared_references
from buda_emu.testing.verify.runs.run_case import run_case
from report.results import nop


def npy(array):
    """The bytes of a .npy file."""
    stream = BytesIO()
    np.save(stream, np.asarray(array, np.float32))
    return stream.getvalue()


def run_with(files, *, shared=False, content=None):
    """Test a netlist whose op copies queue a to queue o, with these tensor files."""
    reference = ContentFiles("ref", files)
    text = content or nop().replace("type: Exact", "type: AllClose, atol: 0.1, rtol: 0.1")
    return run_case(
        Case("net.yaml", "net.yaml", text.encode(), reference, settings=Settings(), shares_reference=shared)
    )


def entries(count):
    return npy(np.full((count, 1, 32, 32), 0.5))


def test_a_reference_that_fits_leaves_no_doubt():
    result = run_with({"a.npy": entries(1), "o.npy": entries(1)})
    assert (result.status, result.doubts) == ("passed", ())


def test_tensors_of_other_netlists_are_no_doubt():
    assert run_with({"a.npy": entries(1), "o.npy": entries(1), "weights.npy": entries(1)}).doubts == ()


def test_a_name_that_is_nearly_one_of_the_netlist_is():
    content = nop().replace("type: Exact", "type: AllClose, atol: 0.1, rtol: 0.1")
    content = content.replace(" o: {", " outputs: {")
    result = run_with({"a.npy": entries(1), "output.npy": entries(1)}, content=content)
    (doubt,) = result.doubts
    assert result.status == "passed"
    assert doubt == "reference: output.npy of ref belongs to no queue or op of the netlist (did you mean 'outputs'?)"


@pytest.mark.parametrize("files", [{}, {"weights.npy": entries(1)}])
def test_a_folder_without_any_tensor_of_the_netlist_is_refused_unless_others_use_it(files):
    text = "reference: ref has no tensor for a queue or op of the netlist"
    result = run_with(files)
    assert (result.status, result.message) == ("rejected", text)
    result = run_with(files, shared=True)
    assert (result.status, result.doubts) == ("passed", (f"{text}: all inputs and expected outputs are generated",))


@pytest.mark.parametrize(("expected", "observed", "words"), [(2, 1, "1 of 2 entries"), (1, 1, "")])
def test_entries_that_are_not_compared_are_counted(expected, observed, words):
    result = run_with({"a.npy": entries(observed), "o.npy": entries(expected)})
    assert result.outputs[0].uncompared_entries == expected - observed
    assert all(words in doubt for doubt in result.doubts)
    assert bool(result.doubts) == bool(words)


@pytest.mark.parametrize(
    ("value", "words"), [(0, "every value is zero on both sides"), (np.inf, "no value is finite on either side")]
)
def test_values_that_tell_nothing_are_a_doubt(value, words):
    tensor = npy(np.full((1, 1, 32, 32), value))
    assert run_with({"a.npy": tensor}).doubts == (f"o: {words}, so the comparison shows nothing",)
    assert run_with({"a.npy": tensor, "o.npy": entries(1)}).doubts == ()


def test_cases_share_a_reference_where_its_folder_is_the_same(tmp_path):
    (tmp_path / "own").mkdir()
    names = ("x.yaml", "y.yaml", "own.yaml")
    cases = [Case(name, name, reference=DirectoryFiles.for_netlist(tmp_path, name)) for name in names]
    assert [case.shares_reference for case in mark_shared_references(cases)] == [True, True, False]
    assert not mark_shared_references(cases[:1])[0].shares_reference


def test_a_key_that_looks_like_a_misspelt_section_is_a_doubt():
    content = nop().replace("comparison-config", "comparision-config")
    assert content != nop()
    result = run_with({"a.npy": entries(1)}, content=content)
    (doubt,) = result.doubts
    assert result.status == "passed"
    assert "nobody reads 'comparision-config': it is ignored (did you mean 'comparison-config'?)" in doubt


def test_a_netlist_that_the_chip_refuses_is_in_doubt_in_its_precision_alone():
    """An op far outside of the grid: emulated all the same, and no chip has that core."""
    near = nop().replace("type: Exact", "type: AllClose, atol: 0.1, rtol: 0.1")
    far = near.replace("grid_loc: [0, 0]", "grid_loc: [0, 77]")
    assert far != near
    for precision, count in (("device", 1), ("format", 0), ("ideal", 0)):
        case = Case("net.yaml", "net.yaml", far.encode(), None, settings=Settings(precision=precision))
        result = run_case(case)
        assert result.status == "passed"
        assert len(result.doubts) == count
        assert all("refuses the netlist: V150: op" in doubt for doubt in result.doubts)


def pattern(scale=1.0, shift=0.0):
    return npy(np.random.default_rng(0).standard_normal((1, 1, 32, 32)).astype(np.float32) * scale + shift)


def compared_by(words):
    return nop().replace("type: Exact", words)


@pytest.mark.parametrize("words", ["type: AllClose, check_pct: 0", "type: AllCloseHw, check_pct: 0, check_pcc: 0"])
def test_a_comparison_that_leaves_every_check_out_is(words):
    result = run_with({"a.npy": pattern(), "o.npy": pattern(9)}, content=compared_by(words))
    assert result.status == "passed"
    assert result.doubts == ("o: check_pct and check_pcc leave every check out, so any output passes",)


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (pattern(0.5), "o: observed values are 1.99 times the expected ones"),
        (pattern(4), "o: observed values are 0.249 times the expected ones"),
        (pattern(1, 8), "o: observed values are the expected ones plus -8"),
        (pattern(1.1, 0.1), None),
    ],
)
def test_a_correlation_of_values_on_another_scale_is(expected, text):
    """The vendor's default comparison looks at nothing but the correlation."""
    words = "type: AllCloseHw, check_pct: 0, check_pcc: 0.98"
    result = run_with({"a.npy": pattern(), "o.npy": expected}, content=compared_by(words))
    assert result.status == "passed"
    assert [doubt.partition(":")[0] + ":" + doubt.split(":")[1] for doubt in result.doubts] == ([text] if text else [])


def test_an_override_of_no_queue_is():
    content = compared_by("type: AllClose, atol: 9, rtol: 0, overrides: {oo: {type: Exact}}")
    result = run_with({"a.npy": pattern(), "o.npy": pattern()}, content=content)
    (doubt,) = result.doubts
    assert "override 'oo' matches the name of no queue" in doubt
