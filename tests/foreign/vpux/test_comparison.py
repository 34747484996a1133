"""Two versions of a function: a wrong offset and a missing wait are found and named."""

import json
import re

import pytest

from buda_emu.app.cli.main import main
from buda_emu.foreign import vpux
from buda_emu.foreign.vpux.comparison import Comparison
from shared_files import SHARED
from vpux_documents import NETWORK, STORE, changed, document

GIVEN = SHARED / "vpux"
needs_given = pytest.mark.skipif(not GIVEN.is_dir(), reason=f"no data at {GIVEN}")


def compared(other: str, first: str = NETWORK) -> Comparison:
    return vpux.compare(document(first), document(other))


def test_equal_versions() -> None:
    found = compared(changed("<1024>", "<4096>"))
    assert found.output is None
    assert found.is_equal
    assert [item.buffer for item in found.causes] == ["%out"]


def test_wrong_offset_names_buffer_task_and_line() -> None:
    out = "%out = VPURT.DeclareBuffer <CMX_NN> [0] <1024>"
    wrong = changed(out, out.replace("1024", "512")).replace("inputs(%out", "inputs(%in")
    found = compared(wrong)
    assert found.output is not None
    assert not found.is_equal
    texts = [item.text for item in found.causes]
    assert texts[0].startswith("buffer %out (line 10) lies at CMX0 byte 512, not at CMX0 byte 1024")
    assert any(item.task == 2 and item.buffer == "%in" and item.line > 0 for item in found.causes)


def test_missing_wait_is_a_new_race() -> None:
    found = compared(changed("VPURT.Task waits(%b1 : !VPURT.Barrier) {", "VPURT.Task {"))
    races = [item for item in found.new_races if item.kind == "race"]
    assert not found.is_equal
    assert races
    assert [item.text for item in found.barriers] == [
        "barrier %b1 (line 12) has 1 producer and 0 consumers, not 1 and 1"
    ]


@pytest.fixture
def flows() -> list[str]:
    return re.split(r"(?m)^// -----.*$", (GIVEN / "own/flows.mlir").read_text())


def run_both(folder, first: str, second: str) -> int:
    (folder / "first.mlir").write_text(first)
    (folder / "second.mlir").write_text(second)
    return main(["vpux", "run", str(folder / "first.mlir"), "--compare", str(folder / "second.mlir")])


@needs_given
@pytest.mark.parametrize("split", [3, 6])
def test_a_missing_wait_in_the_given_files(split: int, flows: list[str], tmp_path, capsys) -> None:
    text = flows[split]
    wait = list(re.finditer(r" waits\([^)]*\)", text))[-1]
    assert run_both(tmp_path, text, text[: wait.start()] + text[wait.end() :]) == 1
    printed = capsys.readouterr().out
    assert re.search(r"warning\[X041\]: task \d+ \(VPUIP.* line \d+, %\w+ of line \d+\) and task \d+", printed)


@needs_given
def test_a_wrong_offset_in_the_given_files(flows: list[str], tmp_path, capsys) -> None:
    text = flows[2]
    assert "%c1 = VPURT.DeclareBuffer <CMX_NN> [1] <128>" in text
    assert run_both(tmp_path, text, text.replace("<CMX_NN> [1] <128>", "<CMX_NN> [1] <144>")) == 1
    printed = capsys.readouterr().out
    assert re.search(r"buffer %c1 \(line \d+\) lies at CMX1 byte 144, not at CMX1 byte 128", printed)
    assert re.search(r"task 1 \(VPUIP.NNDMA, line \d+\) reads other bytes than before in %c1 \(line \d+\)", printed)
    assert "output 0 differs first at byte" in printed


def test_commands(tmp_path, capsys) -> None:
    file = tmp_path / "net.mlir"
    file.write_text(NETWORK)
    bad = tmp_path / "bad.mlir"
    bad.write_text(changed("ConfigureBarrier<0>", "ConfigureBarrier<64>"))
    assert main(["vpux", "check", str(file)]) == 0
    assert main(["check", str(file)]) == 0
    assert main(["vpux", "check", str(bad), "--format", "json"]) == 2
    found = json.loads(capsys.readouterr().out.split("\n", 2)[2])
    assert (found["diagnostics"][0]["rule"], found["arch"]) == ("X028", "37XX")
    out, plain, trace = tmp_path / "o.npz", tmp_path / "r.json", tmp_path / "t.json"
    options = ["--out", str(out), "--json", str(plain), "--trace", str(trace), "--model"]
    assert main(["vpux", "run", str(file), *options]) == 0
    assert "assumed: dma_start 500" in capsys.readouterr().out
    content = json.loads(plain.read_text())
    assert content["schema_version"] == 1
    assert [item["duration"] for item in content["tasks"]] == [532, 2256, 532]
    assert {event["name"] for event in json.loads(trace.read_text())["traceEvents"]} >= {"CMX0 bytes", "process_name"}
    assert out.stat().st_size > 0
    assert main(["vpux", "args", str(file), "--task", "0"]) == 2
    assert main(["vpux", "args", str(file)]) == 0
    assert "scalars: [-1.0, 2.5]" in capsys.readouterr().out
    code = tmp_path / "code.bin"
    code.write_bytes(b"\1\2\3")
    assert main(["vpux", "serialize", str(file), "--code", f"activation_clamp={code}"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [item["position"] for item in made["kernel_data"]] == [0, 64, 64]
    assert made["kernel_data"][0]["bytes"] == "010203"
    assert made["runtime"] == {"kernel": 1, "stacks": [4096, 4096], "per": "shave"}
    assert main(["explain", "X014"]) == 0
    for words in (["--shape", "1x2", "--order", "NHVC"], ["--shape", "1xx"], ["--shape", "2", "--req", "0:aligned:3"]):
        assert main(["vpux", "layout", *words]) == 2
    capsys.readouterr()
    assert main(["vpux", "layout", "--shape", "1x16x49x1", "--order", "NHWC", "--index", "0,3,7,0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["address_bits"] == 1840


def test_outputs_that_no_task_writes_are_not_called_equal(tmp_path, capsys) -> None:
    unwritten = changed(STORE, "")
    assert run_both(tmp_path, unwritten, unwritten) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("DOUBTFUL: nothing was compared\n  no task writes output 0, in neither version")
    assert "outputs are equal" not in printed
    assert main(["vpux", "run", str(tmp_path / "first.mlir"), "--json", str(tmp_path / "run.json")]) == 0
    assert "  warning: no task writes it: it holds what the run began with" in capsys.readouterr().out
    assert list(json.loads((tmp_path / "run.json").read_text())["unwritten_outputs"]) == ["0"]


def test_an_output_that_is_written_has_no_warning(tmp_path, capsys) -> None:
    assert run_both(tmp_path, NETWORK, NETWORK) == 0
    assert capsys.readouterr().out.startswith("outputs are equal (1 array)\nmakespan")
    assert vpux.run(document(NETWORK)).unwritten_outputs == {}


def test_races_of_both_versions_are_shown(tmp_path, capsys) -> None:
    racing = changed("VPURT.Task waits(%b1 : !VPURT.Barrier) {", "VPURT.Task {")
    assert run_both(tmp_path, racing, racing) == 0
    assert re.search(r"^in both:\n  warning\[X041\]", capsys.readouterr().out, re.MULTILINE)
