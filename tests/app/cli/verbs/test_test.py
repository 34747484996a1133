"""`buda-emu test`, in this process and, where that is the point, as a command with worker processes."""

import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest

from buda_emu.app.cli.main import main
from buda_emu.app.cli.verbs.test import exit_code
from buda_emu.report.machine_readable.schema import schema
from buda_emu.testing.verify.result import STATUSES, CaseResult
from buda_emu.testing.verify.runs.run_case import run_case
from report.results import nop
from report.unpacked import unpack_page
from shared_files import ROOT
from small_netlists import endless, execute, fifo_settings, graph, op, program, queue, text

GOOD = nop().replace("type: Exact", "type: AllClose, atol: 0.1, rtol: 0.1")
BAD = nop()  # its output loses bits and is compared with Exact
REJECTED = nop().replace("Float16_b", "Float99")
STOPPED = nop(broken=True)
BAD_CONFIG = nop().replace("uniform_upper_bound: 1", "uniform_upper_bound: high")
ALL = ["nets/bad.yaml", "nets/good.yaml", "nets/more/rejected.yaml", "nets/more/stopped.yaml"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Netlists of several fates in the working directory; what is remembered stays in it."""
    monkeypatch.setattr("buda_emu.support.caches.own_caches", lambda: tmp_path / "caches")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets/more").mkdir(parents=True)
    for name, content in zip(ALL, (BAD, GOOD, REJECTED, STOPPED), strict=True):
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.fixture
def in_process(monkeypatch):
    """Netlists run in this process, one after the other: a worker takes most of a second to start."""

    def run_all(cases, workers, *, timeout, on_result, maxfail, on_kernel):
        for number, case in enumerate(cases):
            on_result(number, result := run_case(case))
            maxfail = maxfail - 1 if maxfail and result.status not in ("passed", "skipped") else maxfail
            if maxfail == 0:
                break

    monkeypatch.setattr("buda_emu.app.cli.verbs.test.run_all", run_all)


@pytest.fixture
def results(in_process, folder, capsys):
    """Runs the command; gives its exit code, what it wrote with --json, and what it printed."""

    def run(*arguments):
        path = folder / "results.json"
        path.unlink(missing_ok=True)
        code = main(["test", *map(str, arguments), "--json", str(path)])
        return code, json.loads(path.read_text()) if path.exists() else None, capsys.readouterr()

    return run


def nothing_but_progress(err):
    """Lines of a test that takes long, and the one about kernels that nobody has needed before."""
    progress = re.compile(r"buda-emu: (\d+ of \d+ netlists?\b.* so far|compiled \d+ kernels? for this machine .*)")
    return all(map(progress.fullmatch, err.splitlines()))


def statuses(run):
    return {case["netlist"]: case["status"] for case in run["cases"]}


def without_seconds(value):
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key not in ("seconds", "from_cache")}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value


# ---------------------------------------------------------------------------------------------------- what is shown
def test_a_netlist_that_passes(results):
    code, run, printed = results("nets/good.yaml", "-n", "1")
    assert code == 0
    title, netlist, table, closing = printed.out.split("\n\n")
    assert title.splitlines()[0].endswith(": 1 netlist, 1 worker, precision device, expected ideal")
    assert title.splitlines()[1] == ". 100 %"
    assert netlist == "nets/good.yaml: passed"
    _, row, by = table.splitlines()
    cells = row.split()
    name, verdict, (df, shape), kind = cells[0], cells[1], cells[-2:], by.rpartition(" ")[2]
    assert (name, df, shape, kind, verdict) == ("o", "Float16_b", "1x1x32x32", "AllClose", "passed")
    assert closing.startswith("== 1 passed in ")
    assert printed.err == ""
    assert statuses(run) == {"nets/good.yaml": "passed"}


def test_netlists_that_do_not(results):
    code, run, printed = results("nets")
    assert code == 1
    assert list(statuses(run)) == ALL
    assert list(statuses(run).values()) == ["failed", "passed", "rejected", "stopped"]
    assert "F.RS 100 %" in printed.out
    assert "nets/bad.yaml: failed\n  o: PCC 0.99" in printed.out
    assert "first bad tile: entry 0, t 0, tile [0, 0]\n" in printed.out
    assert "    Exact, elements 0..127: 1" in printed.out
    assert "nets/good.yaml: passed" not in printed.out
    assert "'Float99'" in printed.out
    assert printed.out.splitlines()[-1].startswith("== 1 failed, 1 rejected, 1 stopped, 1 passed in ")


def test_summary_lines_can_be_pasted_back(results, folder):
    (folder / "nets/two words.yaml").write_text(BAD)
    _, run, printed = results("nets")
    lines = printed.out.partition("\nshort summary\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lines] == ["FAILED", "FAILED", "REJECTED", "STOPPED"]
    names = [shlex.split(line.partition(" - ")[0])[1] for line in lines]
    assert names == [name for name, status in statuses(run).items() if status != "passed"]
    assert list(statuses(results(*names)[1])) == names


def test_quiet_and_verbose(results):
    assert results("nets/good.yaml", "-q")[2].out.startswith("== 1 passed in ")
    quiet = results("nets/good.yaml", "nets/bad.yaml", "-q")[2].out
    assert quiet.startswith("\nnets/bad.yaml: failed\n")
    assert "output  " not in quiet
    verbose = results("nets/good.yaml", "nets/bad.yaml", "-v")[2].out
    assert "nets/good.yaml passed (" in verbose
    assert "nets/good.yaml: passed\n\noutput  " in verbose
    assert "100 %\n" not in verbose.splitlines()[1]


def test_marks_stand_in_lines_of_eighty(results, folder):
    for number in range(81):
        (folder / f"many{number:02}.yaml").write_text("graphs: [")
    lines = results("many*.yaml")[2].out.splitlines()
    assert lines[1:3] == ["R" * 80 + "  98 %", "R 100 %"]


def test_per_op(results):
    code, run, printed = results("nets/bad.yaml", "--per-op", "--threshold", "1")
    assert code == 1
    (op_result,) = run["cases"][0]["ops"]
    assert (op_result["name"], op_result["type"], op_result["format"]) == ("n", "nop", "Float16_b")
    assert "first op past the threshold: n (nop, graph g): " in printed.out
    assert run["cases"][0]["first_bad"]["inputs"][0]["name"] == "a"
    printed = results("nets/bad.yaml", "--per-op", "--threshold", "0.5")[2]
    assert "no op is past the threshold" in printed.out


# ------------------------------------------------------------------------------------------------------ precisions
def test_the_precisions_are_named_everywhere(results, folder):
    code, run, printed = results(
        "nets/bad.yaml",
        "--precision",
        "format",
        "--expected",
        "format",
        "--report",
        "report",
        "--junitxml",
        "junit.xml",
    )
    assert code == 0  # its output loses bits in both
    assert printed.out.splitlines()[0].endswith(", precision format, expected format")
    assert (run["settings"]["precision"], run["settings"]["expected"]) == ("format", "format")
    (case,) = run["cases"]
    assert (case["precision"], case["expected"], case["outputs"][0]["expected_from"]) == ("format",) * 3
    assert case["command"] == "buda-emu test nets/bad.yaml --precision format --expected format"
    for name in ("report.html", "report.md"):
        assert " s, precision format, expected format" in (folder / "report" / name).read_text()
    properties = ElementTree.parse(folder / "junit.xml").getroot().iter("property")
    assert [(one.get("name"), one.get("value")) for one in properties] == [
        ("precision", "format"),
        ("expected", "format"),
    ]
    assert (
        results("nets/bad.yaml", "--expected", "format")[2]
        .out.splitlines()[0]
        .endswith(", precision device, expected format")
    )


def test_what_the_device_refuses_names_the_op_and_the_option(results, folder):
    (folder / "net.yaml").write_text(nop("Fp8_e4m3"))  # wormhole_b0 has no such format
    code, _, printed = results("net.yaml")
    assert code == 3
    assert "net.yaml: unsupported\n  op n: Fp8_e4m3 is a format of blackhole" in printed.out
    assert "--precision format tests what the reference computes instead" in printed.out
    assert "\nUNSUPPORTED net.yaml - op n: Fp8_e4m3" in printed.out
    assert results("net.yaml", "--precision", "format")[0] == 1


def test_stochastic_rounding_is_reported(results, folder):
    asks = "math_fidelity: HiFi4, attributes: {stoch_rnd_mode: all}"
    (folder / "net.yaml").write_text(GOOD.replace("math_fidelity: HiFi4", asks))
    code, run, printed = results("net.yaml", "--report", "report")
    told = "op n asks for stochastic rounding, which is not modelled: it rounds to nearest"
    assert (code, run["cases"][0]["warnings"]) == (0, [told])
    assert f"warning: {told}\n" in printed.out
    assert told in unpack_page(folder / "report" / "report.html")
    assert told in (folder / "report" / "report.md").read_text()
    assert printed.err == ""


# ------------------------------------------------------------------------------------------------- which netlists
def test_files_folders_and_patterns(results):
    def chosen(*paths):
        return list(statuses(results(*paths)[1]))

    assert chosen("nets/good.yaml", "nets/more") == [ALL[1], ALL[2], ALL[3]]
    assert chosen("nets/*.yaml") == ALL[:2]
    assert chosen("nets/**/*.yaml", "nets/bad.yaml") == ALL
    assert chosen("nets", "-k", "more or good") == ALL[1:]
    assert chosen("nets", "-k", "MORE and not (stop or x)") == [ALL[2]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nets/god.yaml"], "nets/god.yaml: there is no such file (did you mean 'good.yaml'?)"),
        (["nets/*.yml"], "nets/*.yml: no file matches this pattern"),
        (["empty"], "empty: no netlist in this folder"),
        (["nets", "-k", "other"], "-k 'other' selects none of the netlists"),
        (["nets", "-k", "(good"], "-k '(good': a ( is not closed"),
        (["nets", "--reference", "nowhere"], "reference: nowhere is not a directory"),
        (["nets", "--defaults", "nowhere.yaml"], "nowhere.yaml: No such file or directory"),
        (["nets", "--report", "nets/good.yaml"], "nets/good.yaml: File exists"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_runs(results, folder, arguments, words):
    (folder / "empty").mkdir()
    code, run, printed = results(*arguments)
    assert (code, run, printed.out) == (2, None, "")
    assert printed.err == f"buda-emu: {words}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-n", "0"], ["-n", "two"], ["--timeout", "0"], ["--timeout", "nan"], ["--timeout", "inf"], ["--seed", "-1"],
        ["--arch", "tpu"], ["--precision", "half"], ["--compare", "some"], ["--param", "a"], ["--param", "=1"],
        ["--threshold", "x"], ["-n", "2", "--dask", "tcp://a:1"],
    ],
)  # fmt: skip
def test_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["test", "nets", *arguments])
    assert caught.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_stop_at_the_first(results):
    code, run, printed = results("nets/good.yaml", "nets", "-x")
    assert (code, statuses(run)) == (1, {"nets/good.yaml": "passed", "nets/bad.yaml": "failed"})
    assert printed.out.splitlines()[-1].startswith("== 1 failed, 1 passed in ")


def test_lf_selects_netlists_that_failed_last_time(results, folder):
    everything = results("nets", "--lf")
    assert list(statuses(everything[1])) == ALL
    assert ": 4 netlists, none of them failed last time, " in everything[2].out
    again = results("nets", "--lf")
    assert list(statuses(again[1])) == [ALL[0], ALL[2], ALL[3]]
    assert ": 3 netlists, 3 of them failed last time, " in again[2].out
    for name in (ALL[0], ALL[3]):
        (folder / name).write_text(GOOD)
    assert list(statuses(results("nets", "--lf")[1])) == [ALL[0], ALL[2], ALL[3]]
    assert list(statuses(results("nets", "--lf")[1])) == [ALL[2]]


# --------------------------------------------------------------------------------------------------- exit codes
@pytest.mark.parametrize(
    ("content", "status", "code", "words"),
    [
        (GOOD, "passed", 0, ""),
        (BAD, "failed", 1, ""),
        (REJECTED, "rejected", 2, "Float99"),
        ("graphs: [", "rejected", 2, "net.yaml:1:"),
        (BAD_CONFIG, "rejected", 2, "uniform_upper_bound"),
        (nop().replace("type: Exact", "type: Exactly"), "rejected", 2, "Exactly"),
        (nop().replace("type: Uniform", "type: sparse_encoding"), "unsupported", 3, "queue a: "),
        (STOPPED, "stopped", 4, "loop count 0 is 0"),
    ],
)
def test_statuses_and_exit_codes(results, folder, content, status, code, words):
    (folder / "net.yaml").write_text(content)
    got, run, printed = results("net.yaml")
    assert (got, statuses(run)) == (code, {"net.yaml": status})
    assert words in run["cases"][0]["message"]
    assert words in printed.out
    assert "Traceback" not in printed.out + printed.err


def test_a_bug_of_ours_is_an_error_with_its_traceback(results, monkeypatch):
    def explode(*_arguments):
        raise RuntimeError("a bug")

    monkeypatch.setattr("buda_emu.testing.verify.runs.run_case.read_test_config", explode)
    code, run, printed = results("nets/good.yaml")
    assert (code, statuses(run)) == (101, {"nets/good.yaml": "error"})
    assert run["cases"][0]["message"].startswith("RuntimeError: a bug\nTraceback ")
    assert "ERROR nets/good.yaml - RuntimeError: a bug\n" in printed.out


CODES = {
    "passed": 0, "skipped": 0, "failed": 1, "rejected": 2, "unsupported": 3, "stopped": 4, "timeout": 4,
    "crashed": 101, "error": 101,
}  # fmt: skip


def test_the_exit_code_is_that_of_the_worst():
    assert set(CODES) == set(STATUSES)
    assert exit_code([]) == 0
    for status, code in CODES.items():
        assert exit_code([CaseResult("a", "passed"), CaseResult("b", status)]) == code
        assert exit_code([CaseResult("a", status), CaseResult("b", "failed")]) == 1  # a mismatch goes before all
    worst_first = ["error", "crashed", "stopped", "timeout", "unsupported", "rejected", "passed"]
    for number, status in enumerate(worst_first):
        others = [CaseResult("x", other) for other in worst_first[number:]]
        assert exit_code(others[::-1]) == CODES[status]


# ------------------------------------------------------------------------------------ what is compared with what
def test_the_ideal_precision_and_the_seed(results):
    code, run, _ = results("nets/bad.yaml", "--precision", "ideal")
    assert (code, run["cases"][0]["precision"]) == (0, "ideal")
    errors = [results("nets/bad.yaml", "--seed", seed)[1]["cases"][0]["outputs"][0]["mean_error"] for seed in (5, 6, 5)]
    assert errors[0] == errors[2] != errors[1]


@pytest.fixture
def reference_tensors(folder):
    """Tensors from outside for `a` and `o`, exact in every format."""
    directory = folder / "reference"
    directory.mkdir()
    for name in ("a", "o"):
        np.save(directory / f"{name}.npy", np.full((1, 1, 32, 32), 0.5, np.float32))
    return directory


def test_strict_comparison(results, folder, reference_tensors):
    """The vendor's harness wants the share of elements in each of eight parts, the words mean all (NETLIST 5.3)."""
    (folder / "net.yaml").write_text(GOOD.replace("rtol: 0.1", "rtol: 0.1, check_pct: 0.95"))
    expected = np.load(reference_tensors / "o.npy")
    expected[0, 0, 0, :32] = 3  # 32 of 1024, but of the first 128
    np.save(reference_tensors / "o.npy", expected)
    assert results("net.yaml", "--reference", reference_tensors)[0] == 1
    code, run, _ = results("net.yaml", "--reference", reference_tensors, "--compare", "strict")
    assert (code, run["cases"][0]["compare"], run["cases"][0]["outputs"][0]["max_error"]) == (0, "strict", 2.5)


def test_tensors_from_outside(results, reference_tensors):
    code, run, _ = results("nets/bad.yaml", "--reference", reference_tensors)
    case = run["cases"][0]
    assert (code, case["status"]) == (0, "passed")
    sources = (case["inputs"][0]["source"], case["outputs"][0]["expected_from"], case["expected"])
    assert sources == ("a.npy", "o.npy", str(reference_tensors))
    np.save(reference_tensors / "o.npy", np.load(reference_tensors / "o.npy") + 1)
    assert results("nets/bad.yaml", "--reference", reference_tensors)[0] == 1
    np.save(reference_tensors / "o.npy", np.load(reference_tensors / "o.npy")[:, :, :16])
    code, run, _ = results("nets/bad.yaml", "--reference", reference_tensors)
    assert (code, statuses(run)) == (2, {"nets/bad.yaml": "rejected"})
    assert "o.npy has shape [1, 1, 16, 32], expected [entries, 1, 32, 32]" in run["cases"][0]["message"]


def test_each_netlist_has_its_own_folder_of_tensors(results, folder):
    values = np.zeros((1, 1, 32, 32), np.float32)
    for name, value in (("bad", 0), ("good", 5)):
        (folder / "reference" / name).mkdir(parents=True)
        np.save(folder / "reference" / name / "a.npy", values)
        np.save(folder / "reference" / name / "o.npy", values + value)
    _, run, _ = results("nets/bad.yaml", "nets/good.yaml", "--reference", folder / "reference")
    assert statuses(run) == {"nets/bad.yaml": "passed", "nets/good.yaml": "failed"}


def test_defaults_fill_what_a_netlist_leaves_open(results, folder):
    (folder / "net.yaml").write_text(nop().replace("comparison-config: {type: Exact}, ", ""))
    (folder / "exact.yaml").write_text("test-config: {comparison-config: {type: Exact}}\n")
    (folder / "other.yaml").write_text("comparison-config: {type: Exact}\n")
    assert results("net.yaml")[0] == 0
    code, run, _ = results("net.yaml", "--defaults", "exact.yaml")
    assert (code, run["cases"][0]["outputs"][0]["comparison"]["type"]) == (1, "Exact")
    assert run["cases"][0]["command"] == "buda-emu test net.yaml --defaults exact.yaml"
    code, run, _ = results("net.yaml", "--defaults", "other.yaml")
    assert code == 2
    assert "other.yaml: a defaults file has a test-config section" in run["cases"][0]["message"]


def test_architectures_and_programs(results):
    code, run, printed = results("nets/good.yaml", "--arch", "grayskull")
    assert (code, statuses(run)) == (2, {"nets/good.yaml": "skipped"})
    assert run["cases"][0]["message"] == "it is for wormhole_b0, not grayskull"
    assert printed.out.splitlines()[-1].startswith("== 1 skipped in ")
    assert printed.err == "buda-emu: nothing was tested: it is for wormhole_b0, not grayskull\n"
    code, run, _ = results("nets/good.yaml", "--program", "q")
    assert (code, run["cases"][0]["message"]) == (2, "no program q; programs: p")
    assert results("nets/good.yaml", "--program", "p")[1]["cases"][0]["programs"] == ["p"]


def test_parameters(results, folder):
    settings = fifo_settings("a", "$at", "$at")
    body = text(
        [queue("a", df="Float16_b"), queue("o", "n")],
        [graph("g", op("n", "nop", ["a"], df="Float16_b"))],
        [program("p", "param: [$at]", execute("g", settings))],
    )
    (folder / "net.yaml").write_text(body.replace("df: Float32", "df: Float16_b"))
    code, run, printed = results("net.yaml", "--param", "at=1")
    assert run["cases"][0]["parameters"] == {"$at": "1"}
    assert "--param at=1" in run["cases"][0]["command"]
    assert printed.err == ""
    code, run, printed = results("net.yaml", "--param", "att=1", "--param", "at=0")
    assert printed.err == "buda-emu: no tested program takes the parameter $att (did you mean '$at'?)\n"
    assert run["cases"][0]["parameters"] == {"$at": "0"}
    assert code == 2
    assert results("net.yaml", "--param", "att=1", "--shard", "1/1")[0] == 0  # another part may take it


def test_parameters_of_the_settings_are_for_the_netlists_that_take_them(results, folder):
    (folder / "buda-emu.toml").write_text('[test]\nparam = ["att=1"]\n')
    code, run, printed = results("nets/good.yaml")
    assert code == 0
    assert (
        printed.err
        == "buda-emu: no tested program takes the parameter $att; it is of the settings, `param` of [test]\n"
    )
    assert run["cases"][0]["command"] == "buda-emu test nets/good.yaml"
    code, _, printed = results("nets/good.yaml", "--param", "att=2")
    assert (code, printed.err) == (2, "buda-emu: no tested program takes the parameter $att\n")


def test_the_command_to_run_a_netlist_again_has_the_parameters_that_it_takes(results, folder):
    with_parameter = (folder / "nets" / "good.yaml").read_text().replace("  - p:\n", "  - p:\n    - param: [$at]\n")
    (folder / "nets" / "with.yaml").write_text(with_parameter)
    code, run, printed = results("nets/good.yaml", "nets/with.yaml", "--param", "at=1", "--seed", "3")
    assert (code, printed.err) == (0, "")
    assert [case["command"] for case in run["cases"]] == [
        "buda-emu test nets/good.yaml --seed 3",
        "buda-emu test nets/with.yaml --seed 3 --param at=1",
    ]


@pytest.mark.parametrize("arch", ["arch: wormhole_b0", "arch: [wormhole_b0, blackhole]"])
def test_a_netlist_for_other_architectures_is_skipped_with_its_reason(results, folder, arch):
    (folder / "nets/other.yaml").write_text(GOOD.replace("arch: wormhole_b0", arch))
    (folder / "nets/grey.yaml").write_text(GOOD.replace("wormhole_b0", "grayskull"))
    code, run, printed = results("nets/other.yaml", "nets/grey.yaml", "--arch", "grayskull")
    assert (code, statuses(run)) == (0, {"nets/other.yaml": "skipped", "nets/grey.yaml": "passed"})
    archs = arch.removeprefix("arch: ").strip("[]")
    assert f"\nshort summary\nSKIPPED nets/other.yaml - it is for {archs}, not grayskull\n" in printed.out


def test_a_part_of_the_netlists_may_be_skipped_whole(results):
    code, run, _ = results("nets/good.yaml", "--program", "q", "--shard", "1/1")
    assert (code, statuses(run)) == (0, {"nets/good.yaml": "skipped"})
    assert results("nets/good.yaml", "--program", "q", "--only-documents")[0] == 0  # of a hook: all that has changed


def test_a_comparison_that_shows_nothing_is_said_wherever_results_are_read(results, folder):
    zeros = GOOD.replace(
        "type: Uniform, uniform_lower_bound: 0, uniform_upper_bound: 1", "type: Constant, constant_value: 0"
    )
    (folder / "nets/zero.yaml").write_text(zeros)
    names = ("nets/good.yaml", "nets/zero.yaml")
    doubt = "o: every value is zero on both sides, so the comparison shows nothing"
    code, run, printed = results(*names, "-q", "--junitxml", "junit.xml", "--report", "report")
    assert (code, [case["doubts"] for case in run["cases"]]) == (0, [[], [doubt]])
    assert f"\nshort summary\nDOUBTFUL nets/zero.yaml - {doubt}\n\n== 2 passed in " in printed.out
    assert doubt in Path("junit.xml").read_text()
    assert doubt in Path("report/report.md").read_text()
    assert doubt in unpack_page(folder / "report/report.html")
    _, _, printed = results(*names, "--format", "github")
    assert printed.out == f"::warning file=nets/zero.yaml,title=test-doubtful::{doubt}\n"
    _, _, printed = results("nets/zero.yaml", "--format", "sarif")
    assert json.loads(printed.out)["runs"][0]["results"][0]["level"] == "warning"


def test_what_may_be_left_of_a_netlist_is_named(results, folder):
    (folder / "nets/empty.yaml").write_text("\n")
    (folder / "nets/truncated.yml").write_text("devices:\n  arch: worm")
    (folder / "nets/other.yaml").write_text("a: 1\n")
    _, run, printed = results("nets")
    assert list(statuses(run)) == ALL
    texts = [
        f"buda-emu: nets/{name} is left out: it is empty, or has a single section of a netlist\n"
        for name in ("empty.yaml", "truncated.yml")
    ]
    assert printed.err == "".join(texts)


def test_a_netlist_that_a_run_refuses_is_annotated_at_its_line(results, folder):
    (folder / "small.yaml").write_text(GOOD.replace("input_count: 1", "input_count: 3"))
    code, _, printed = results("small.yaml", "--format", "github")
    assert code == 2
    assert re.match(r"::error file=small\.yaml,line=\d+,col=\d+,endColumn=\d+,title=V208::", printed.out)


def test_results_are_not_written_over_a_netlist_nor_lost_at_the_end(in_process, folder, capsys):
    assert main(["test", "--json", "nets/good.yaml", "nets/bad.yaml"]) == 2
    assert capsys.readouterr().err == (
        "buda-emu: --json: nets/good.yaml is a document, which results are not written over\n"
    )
    assert (folder / "nets/good.yaml").read_text() == GOOD
    for option in ("--json", "--junitxml"):
        assert main(["test", "nets/good.yaml", option, "nowhere/results"]) == 2
        printed = capsys.readouterr()
        assert (printed.out, printed.err) == ("", "buda-emu: nowhere/results: there is no folder nowhere\n")


# ------------------------------------------------------------------------------------------------- what is written
def test_the_json_follows_its_schema(results):
    _, run, _ = results("nets", "--per-op")
    jsonschema.Draft202012Validator(schema()).validate(run)
    assert run["settings"]["paths"] == ["nets"]


def test_commands_of_the_results_run_the_same_again(results):
    _, run, _ = results("nets/bad.yaml", "--seed", "7", "--compare", "strict", "--threshold", "0.5")
    case = run["cases"][0]
    words = shlex.split(case["command"])
    assert words[:2] == ["buda-emu", "test"]
    assert without_seconds(results(*words[2:])[1]["cases"][0]) == without_seconds(case)


def test_junit(results, folder):
    path = folder / "junit.xml"
    (folder / "nets/skipped.yaml").write_text(GOOD.replace("wormhole_b0", "grayskull"))
    results("nets", "--junitxml", path, "--arch", "wormhole_b0")
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    (suite,) = root
    counts = {"tests": "5", "failures": "1", "errors": "2", "skipped": "1"}
    assert (suite.tag, {key: suite.get(key) for key in counts}) == ("testsuite", counts)
    cases = suite.findall("testcase")
    inside = {(case.get("classname"), case.get("name")): [child.tag for child in case] for case in cases}
    assert inside == {
        ("nets", "bad.yaml"): ["failure"],
        ("nets", "good.yaml"): [],
        ("nets", "skipped.yaml"): ["skipped"],
        ("nets.more", "rejected.yaml"): ["error"],
        ("nets.more", "stopped.yaml"): ["error"],
    }


def test_the_report_folder(results, folder):
    code, _, printed = results("nets/good.yaml", "--report", folder / "made/report")
    assert code == 0
    assert {"report.html", "report.md", "report.json"} <= {path.name for path in (folder / "made/report").iterdir()}
    assert f"report: {folder / 'made/report/report.html'}" in printed.out


def test_a_file_that_cannot_be_written_is_said(in_process, folder, capsys):
    assert main(["test", "nets/good.yaml", "--json", str(folder / "nowhere/results.json")]) == 2
    assert "nowhere" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ as a command
@pytest.fixture
def command(folder, child_environment):
    """Starts the command; what it remembers stays in the folder, what is compiled is shared with other tests."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "buda_emu", "test", *arguments, "--no-cache"],
            env=child_environment,
            cwd=folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def workers(process):
    """The processes of a command that run netlists."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (directory / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == process.pid and b"buda_emu.support.workers.child" in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
    return found


def first_result(process):
    """Wait for the first mark on the line of marks."""
    assert process.stdout.readline().startswith("buda-emu ")
    assert process.stdout.read(1) == "."


def test_one_worker_and_two_give_the_same_json(folder, capfd):
    runs = []
    for count in ("1", "2"):
        assert main(["test", "nets", "-n", count, "--json", "results.json", "--per-op", "--no-cache"]) == 1
        runs.append(without_seconds(json.loads((folder / "results.json").read_text())))
    assert runs[0] == runs[1]
    out, err = capfd.readouterr()
    assert " 1 worker," in out
    assert " 2 workers," in out
    assert nothing_but_progress(err)


def test_a_netlist_that_hangs_costs_its_timeout_only(folder, capfd):
    assert main(["test", "nets/good.yaml", "-n", "1"]) == 0  # its kernels are compiled: that may take longer
    (folder / "nets/hangs.yaml").write_text(endless())
    assert main(["test", "nets", "-n", "2", "-k", "good or hangs", "--timeout", "4", "--json", "results.json"]) == 4
    run = json.loads((folder / "results.json").read_text())
    assert statuses(run) == {"nets/good.yaml": "passed", "nets/hangs.yaml": "timeout"}
    assert "TIMEOUT nets/hangs.yaml - took longer than 4 s\n" in capfd.readouterr().out


def test_a_worker_killed_from_outside_is_reported_and_the_rest_completes(folder, command):
    (folder / "hangs.yaml").write_text(endless())
    process = command("nets/good.yaml", "hangs.yaml", "nets/bad.yaml", "-n", "1", "--json", "results.json")
    first_result(process)
    (worker,) = workers(process)
    os.kill(worker, signal.SIGKILL)
    out, _err = process.communicate(timeout=60)
    run = json.loads((folder / "results.json").read_text())
    assert statuses(run) == {"nets/good.yaml": "passed", "hangs.yaml": "crashed", "nets/bad.yaml": "failed"}
    assert "CRASHED hangs.yaml - its worker process died (signal SIGKILL)\n" in out
    assert process.returncode == 1


def test_ctrl_c_keeps_what_is_done(folder, command):
    (folder / "nets/hangs.yaml").write_text(endless())
    process = command("nets/good.yaml", "nets/hangs.yaml", "-n", "1", "--json", "results.json")
    first_result(process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "buda-emu: interrupted\n")
    assert re.fullmatch(r"== 1 passed in .* s, 1 netlist not run ==", out.splitlines()[-1])
    assert json.loads((folder / "results.json").read_text())["not_run"] == 1
    assert statuses(json.loads((folder / "results.json").read_text())) == {"nets/good.yaml": "passed"}


def test_a_time_limit_from_outside_keeps_what_is_done(folder, command):
    (folder / "nets/hangs.yaml").write_text(endless())
    process = command("nets/good.yaml", "nets/hangs.yaml", "-n", "1", "--json", "results.json", "--junitxml", "j.xml")
    first_result(process)
    process.terminate()
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (-signal.SIGTERM, "buda-emu: terminated\n")
    assert out.splitlines()[-1].startswith("== 1 passed in ")
    assert statuses(json.loads((folder / "results.json").read_text())) == {"nets/good.yaml": "passed"}
    suite = ElementTree.parse(folder / "j.xml").getroot()[0]
    assert suite.get("tests") == "1"
    assert {each.get("name"): each.get("value") for each in suite.iter("property")}["not_run"] == "1"


def test_the_examples_pass_on_two_workers(folder, command):
    process = command(str(ROOT / "netlists"), "-n", "2")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert nothing_but_progress(err)
    assert "...... 100 %" in out


def test_results_outlast_what_cannot_be_updated(monkeypatch, capsys):
    """A baseline or a coverage that cannot be written when the run is over costs no other output of it."""

    def fail(name, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(name))

    monkeypatch.setattr("buda_emu.report.baselines.write_file", fail)
    monkeypatch.setattr("buda_emu.app.cli.coverage.write_json", fail)
    command = ["test", "nets/good.yaml", "-n", "1", "--json", "results.json", "--junitxml", "results.xml"]
    for more in (["--baseline", "known.json", "--update-baseline"], ["--coverage", "coverage.json"]):
        assert main([*command, "--format", "json", *more]) == 2
        captured = capsys.readouterr()
        assert f"{more[1]}: No space left on device" in captured.err
        assert "1 passed" in captured.err
        assert json.loads(captured.out)["schema_version"] == 1
        for name in ("results.json", "results.xml"):
            Path(name).unlink()


@pytest.mark.parametrize("verb", ["check", "test", "perf"])
def test_a_baseline_that_cannot_be_updated_is_refused_before_the_work(verb, capsys):
    command = [verb, "nets/good.yaml", "--baseline", "none/known.json", "--update-baseline"]
    assert main(command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "buda-emu: none/known.json: there is no folder none\n"
