"""One netlist from its text to a verdict, and everything that can go wrong on the way."""

import io
import shlex
from dataclasses import replace

import numpy as np
import pytest

from buda_emu.emulator.inputs.reference import ContentFiles
from buda_emu.netlist.load import check_text
from buda_emu.support.errors import InternalError
from buda_emu.testing.verify.runs import run_case as compare_outputs
from buda_emu.testing.verify.runs.collect import Case, Settings, unfinished_result
from buda_emu.testing.verify.runs.run_case import run_case
from report.results import nop
from small_netlists import execute, fifo_settings, graph, op, program, queue, text


def judged(content, reference=None, defaults=None, **settings):
    return run_case(Case("net.yaml", "net.yaml", content.encode(), reference, defaults, Settings(**settings)))


def given(**arrays):
    """Tensors from outside."""
    contents = {}
    for name, array in arrays.items():
        stream = io.BytesIO()
        np.save(stream, np.asarray(array, np.float32))
        contents[f"{name}.npy"] = stream.getvalue()
    return ContentFiles("there", contents)


def filled(value, entries=1):
    return np.full((entries, 1, 32, 32), value, np.float32)


def two_outputs(config=""):
    """Queue a, by n1 into `one`, by n2 into `x_e2e_y`, whose format cannot hold the value."""
    body = text(
        [queue("a"), queue("one", "n1"), queue("x_e2e_y", "n2", df="Float16_b")],
        [graph("g", op("n1", "nop", ["a"]), op("n2", "nop", ["a"], loc=(0, 1), out_df="Float16_b"))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    stimulus = "stimulus-config: {type: Constant, constant_value: 1.00390625}"  # 1 + 2**-8
    return f"{body}test-config: {{{stimulus}{config}}}\n"


def test_a_result_says_everything_of_its_test():
    result = judged(nop(), seed=4, compare="strict")
    assert (result.netlist, result.status, result.message) == ("net.yaml", "failed", "")
    assert (result.arch, result.precision, result.expected, result.compare, result.seed) == (
        "wormhole_b0",
        "device",
        "ideal",
        "strict",
        4,
    )
    assert (result.programs, dict(result.parameters), dict(result.not_compared)) == (("p",), {}, {})
    (used,) = result.inputs
    assert (used.queue, used.format, used.shape, used.source) == ("a", "Float32", (1, 1, 32, 32), "test-config")
    (output,) = result.outputs
    assert (output.queue, output.kind, output.format, output.shape) == ("o", "queue", "Float16_b", (1, 1, 32, 32))
    figures = output.figures
    assert (output.expected_from, output.passed, figures.tiles, figures.bad_tiles) == ("ideal", False, 1, 1)
    assert 0 < output.figures.mean_error < output.figures.max_error < 2**-7
    assert result.failed_outputs == (output,)
    assert 0 < result.seconds < 60
    assert result.command == "buda-emu test net.yaml --compare strict --seed 4"
    assert (output.figures.detail, result.ops, result.first_bad, result.stopped) == (None, (), None, None)


def test_by_path_and_by_content_are_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.yaml").write_text(nop())
    by_path = run_case(Case("net.yaml", "net.yaml"))
    assert replace(by_path, seconds=0) == replace(judged(nop()), seconds=0)


def test_threads_change_nothing():
    assert replace(judged(nop(), machine={"threads": 2}), seconds=0) == replace(
        judged(nop(), machine={"threads": 1}), seconds=0
    )


# ------------------------------------------------------------------------------------------- which outputs count
def test_e2e_queues_are_not_compared():
    result = judged(two_outputs(", comparison-config: {type: Exact}"))
    assert (result.status, [output.queue for output in result.outputs]) == ("passed", ["one"])
    assert result.not_compared == {"x_e2e_y": "it links graphs (e2e in its name)"}


def test_io_config_says_which_are_compared():
    result = judged(two_outputs(", comparison-config: {type: Exact}, io-config: {outputs: [x_e2e_y]}"))
    assert (result.status, [output.queue for output in result.outputs]) == ("failed", ["x_e2e_y"])
    assert result.not_compared == {"one": "io-config does not list it"}


def test_io_config_may_list_what_is_no_output():
    result = judged(two_outputs(", io-config: {outputs: [a]}"))
    assert result.status == "skipped"
    assert result.message.startswith("nothing to compare: a: io-config lists it, but the host feeds it, not an op; ")
    result = judged(two_outputs(", io-config: {outputs: [one, two]}"))
    assert [output.queue for output in result.outputs] == ["one"]
    assert result.not_compared["two"] == "io-config lists it, but there is no such queue"


def test_one_bad_output_fails_the_netlist():
    result = judged(two_outputs(", comparison-config: {type: Exact}, io-config: {outputs: [one, x_e2e_y]}"))
    assert result.status == "failed"
    assert [(output.queue, output.passed) for output in result.outputs] == [("one", True), ("x_e2e_y", False)]


def test_a_netlist_that_runs_nothing_has_nothing_to_compare():
    body = text([queue("a"), queue("o", "n")], [graph("g", op("n", "nop", ["a"]))], [program("p", "var: {$c_zero: 0}")])
    result = judged(body)
    assert (result.status, result.message) == ("skipped", "nothing to compare: o: it holds no entries")


# --------------------------------------------------------------------------------------------------- expectations
def test_expected_tensors_from_outside():
    result = judged(nop(), given(a=filled(0.5), o=filled(0.5)))
    assert (result.status, result.expected) == ("passed", "there")
    assert result.outputs[0].expected_from == "o.npy"
    result = judged(nop(), given(a=filled(0.5), o=filled(0.75)))
    figures = result.outputs[0].figures
    assert (result.status, figures.max_error, figures.mean_error) == ("failed", 0.25, 0.25)
    assert judged(nop(), given(o=filled(0.5))).inputs[0].source == "test-config"
    assert judged(nop(), given(a=filled(0.5))).outputs[0].expected_from == "ideal"


def test_the_first_entries_are_compared_where_there_are_more():
    result = judged(nop(), given(a=filled(0.5), o=filled(0.5, 3)))
    assert result.status == "passed"
    assert result.outputs[0].expected_from == "o.npy (first 1 of 1 observed, 3 expected entries)"
    result = judged(nop(), given(a=filled(0.5), o=filled(0.5, 0)))
    assert (result.status, result.message) == ("rejected", "o.npy holds no entries for output o")


def test_defaults_give_way_to_the_netlist():
    loose = ("d.yaml", b"test-config: {comparison-config: {type: AllClose, atol: 1, rtol: 0}}")
    assert judged(nop(), None, loose).status == "failed"
    result = judged(nop().replace("comparison-config: {type: Exact}, ", ""), None, loose)
    assert (result.status, result.outputs[0].comparison.atol) == ("passed", 1.0)
    assert result.command == "buda-emu test net.yaml --defaults d.yaml"


# ------------------------------------------------------------------------------------------------------ precisions
def square(**settings):
    """Where the expected results came from, and how far the square of a number that LoFi cuts is from them."""
    body = text(
        [queue("a"), queue("o", "n")],
        [graph("g", op("n", "multiply", ["a", "a"]).replace("HiFi4", "LoFi"))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    (output,) = judged(
        f"{body}test-config: {{stimulus-config: {{type: Constant, constant_value: 1.2345}}}}\n", **settings
    ).outputs
    return output.expected_from, output.figures.max_error


@pytest.mark.parametrize("per_op", [False, True])
def test_both_precisions_can_be_chosen(per_op):
    source, error = square(per_op=per_op)
    assert (source, 0.01 < error < 0.1) == ("ideal", True)  # LoFi
    source, reference_error = square(per_op=per_op, precision="format")
    assert (source, 0 < reference_error < 0.001) == ("ideal", True)  # formats only
    assert square(per_op=per_op, expected="format") == ("format", pytest.approx(error, abs=reference_error))
    assert square(per_op=per_op, precision="format", expected="format") == ("format", 0)
    assert square(per_op=per_op, precision="ideal", expected="format") == ("format", reference_error)


@pytest.mark.parametrize("per_op", [False, True])
def test_what_the_device_refuses_is_told_with_the_way_out(per_op):
    body = nop("Fp8_e4m3")
    result = judged(body, per_op=per_op)
    assert (result.status, result.outputs) == ("unsupported", ())
    first, hint = result.message.splitlines()
    assert first.startswith("op n: Fp8_e4m3 is a format of blackhole, which wormhole_b0 does not have")
    assert hint == "precision device does not run it; --precision format tests what the reference computes instead"
    assert judged(body, per_op=per_op, precision="format").outputs


@pytest.mark.parametrize("per_op", [False, True])
def test_what_the_checker_refuses_as_well_is_told_with_the_checker(per_op):
    body = nop("Float16_b").replace("out_df: Float16_b", "out_df: Bfp8_b")
    assert "V079" in {item.rule for item in check_text(body).diagnostics}
    result = judged(body, per_op=per_op)
    assert result.status == "unsupported"
    assert result.message.splitlines()[-1] == "the chip refuses it, too: `buda-emu check --strict` shows where (V079)"
    assert judged(body, per_op=per_op, precision="format").outputs


@pytest.mark.parametrize("per_op", [False, True])
def test_no_way_out_is_told_where_there_is_none(per_op):
    body = text(
        [queue("a"), queue("o", "n")],
        [graph("g", op("n", "topk", ["a", "a"], more=", attributes: {k: 5, sort: max}"))],
        [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
    )
    for precision in ("device", "format"):
        result = judged(body, per_op=per_op, precision=precision)
        assert (result.status, result.message) == ("unsupported", "op n: topk with k 5, which is not a power of two")


@pytest.mark.parametrize("per_op", [False, True])
def test_stochastic_rounding_is_told(per_op):
    body = nop().replace("math_fidelity: HiFi4", "math_fidelity: HiFi4, attributes: {stoch_rnd_mode: all}")
    expected = ("op n asks for stochastic rounding, which is not modelled: it rounds to nearest",)
    assert judged(body, per_op=per_op).warnings == expected
    assert judged(body, per_op=per_op, precision="format").warnings == ()


# -------------------------------------------------------------------------------------------------- what goes wrong
@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (MemoryError(), "unsupported", "not enough memory"),
        (MemoryError("3 GiB"), "unsupported", "not enough memory: 3 GiB"),
        (InternalError("a rule is broken"), "error", "a rule is broken\nTraceback"),
        (ZeroDivisionError("a bug"), "error", "ZeroDivisionError: a bug\nTraceback"),
    ],
)
def test_nothing_is_raised(error, status, words, monkeypatch):
    def explode(*_arguments, **_more):
        raise error

    monkeypatch.setattr(compare_outputs, "compare", explode)
    result = judged(nop())
    assert result.status == status
    assert result.message.startswith(words)
    assert ("Traceback" in result.message) is (status == "error")
    assert result.command == "buda-emu test net.yaml"


def test_ctrl_c_goes_on_to_the_caller(monkeypatch):
    def interrupt(*_arguments, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(compare_outputs, "compare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        judged(nop())


def test_a_program_that_stops_says_where():
    result = judged(nop(broken=True))
    assert (result.status, result.stopped["kind"]) == ("stopped", "loop")
    assert "loop count 0 is 0" in result.message


def test_an_op_that_cannot_be_run():
    result = judged(nop().replace("type: Uniform", "type: sparse_encoding"))
    assert (result.status, result.outputs) == ("unsupported", ())


# ------------------------------------------------------------------------------------------------------- settings
def test_every_setting_but_those_without_effect_is_in_the_command():
    settings = Settings(
        precision="ideal",
        expected="format",
        compare="strict",
        seed=9,
        arch="wormhole_b0",
        programs=("p", "q r"),
        parameters=(("$at", "1"), ("$b", "x y")),
        machine={"threads": 8},
        per_op=True,
        detail=True,
        threshold=0.5,
    )
    case = Case("a b.yaml", "a b.yaml", None, ContentFiles("the dir", {}), ("d.yaml", b""), settings)
    assert shlex.split(case.command()) == [
        "buda-emu",
        "test",
        "a b.yaml",
        "--precision",
        "ideal",
        "--expected",
        "format",
        "--compare",
        "strict",
        "--seed",
        "9",
        "--arch",
        "wormhole_b0",
        "--threshold",
        "0.5",
        "--program",
        "p",
        "--program",
        "q r",
        "--param",
        "at=1",
        "--param",
        "b=x y",
        "--reference",
        "the dir",
        "--defaults",
        "d.yaml",
    ]
    assert settings.as_json()["parameters"] == (("$at", "1"), ("$b", "x y"))


def test_a_case_whose_process_gave_nothing():
    result = unfinished_result(
        Case("a.yaml", "a.yaml", None, given(), None, Settings(seed=2)), "timeout", "too long", 3.0
    )
    assert (result.status, result.message, result.seconds, result.seed) == ("timeout", "too long", 3.0, 2)
    assert (result.expected, result.command) == ("there", "buda-emu test a.yaml --seed 2 --reference there")


def test_other_architectures_are_skipped():
    assert judged(nop(), arch="grayskull").message == "it is for wormhole_b0, not grayskull"
    assert judged(nop(), arch="wormhole_b0").status == "failed"


def test_what_pictures_and_the_per_op_table_need():
    result = judged(nop(), detail=True, per_op=True, threshold=1.0)
    detail = result.outputs[0].figures.detail
    assert detail.tile_error.shape == (1, 1)
    assert sum(count for _, count in detail.histogram) == 1024
    assert [one.name for one in result.ops] == ["n"]
    assert (result.first_bad.op, result.first_bad.index) == ("n", 0)
    plain = judged(nop())
    without_detail = replace(result.outputs[0].figures, detail=None)
    assert replace(result.outputs[0], figures=without_detail) == plain.outputs[0]
    assert 0 < result.ops[0].max_error <= plain.outputs[0].figures.max_error  # as held, and as the host reads it


def test_an_op_may_have_a_reference_of_its_own():
    result = judged(nop("Float32"), given(a=filled(0.5), n=filled(0.75)), per_op=True)
    assert (result.ops[0].expected_from, result.ops[0].max_error) == ("reference", 0.25)
    assert result.status == "passed"  # the output o has none: it is held against the ideal run


@pytest.mark.parametrize(
    ("reference", "said"),
    [(1.00390625, "; float32 throughout agrees with it: it is the formats"),
     (3.0, "; float32 throughout differs from it, too: it is not the formats")],
)  # fmt: skip
def test_a_reference_that_float32_meets_or_not(reference, said):
    """Float16_b cannot hold 1 + 2**-8."""
    strict = ", comparison-config: {type: AllClose, atol: 0.0001, rtol: 0.0001}, io-config: {outputs: [one, x_e2e_y]}"
    result = judged(two_outputs(strict), given(x_e2e_y=filled(reference), one=filled(1.00390625)))
    outputs = {output.queue: output for output in result.outputs}
    assert outputs["one"].passed
    assert outputs["one"].reason == ""
    assert outputs["x_e2e_y"].reason.endswith(said)
