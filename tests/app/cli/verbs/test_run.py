import io
import json
import os
import re
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from buda_emu.app.api.report import summarise
from buda_emu.app.cli.kernels import compiled_line
from buda_emu.app.cli.main import main
from small_netlists import execute, fifo_settings, graph, op, program, queue, text

NETLIST = "netlists/matmul.yaml"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def inputs(tmp_path):
    stream = np.random.default_rng(1)
    directory = tmp_path / "in"
    directory.mkdir()
    shapes = {"activations": (2, 1, 128, 256), "weights": (1, 1, 256, 192), "bias": (1, 1, 32, 192)}
    for name, shape in shapes.items():
        np.save(directory / f"{name}.npy", stream.standard_normal(shape).astype(np.float32))
    return directory


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def run(root, *arguments, netlist=NETLIST):
    return main(["run", str(root / netlist), "--threads", "1", *map(str, arguments)])


def test_prints_what_ran_and_what_came_out(root, capsys):
    assert run(root) == 0
    title, inputs, programs, outputs = capsys.readouterr().out.strip().split("\n\n")
    assert title == f"{root / NETLIST}: wormhole_b0, precision format, readout host, 1 thread"
    assert inputs == "3 inputs from test-config"
    assert programs.splitlines()[1].split()[:2] == ["run_fwd", "-"]
    name, kind, df, shape, low, high, mean = outputs.splitlines()[1].split()
    assert (name, kind, df, shape) == ("out", "queue", "Float16_b", "2x1x128x192")
    assert 0 == float(low) < float(mean) < float(high)


def test_quiet(root, capsys):
    assert run(root, "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_files_in_and_out(root, inputs, tmp_path, capsys):
    assert run(root, "--inputs", inputs, "--outputs", tmp_path / "made" / "out", "--precision", "ideal") == 0
    out = np.load(tmp_path / "made" / "out" / "out.npy")
    arrays = {path.stem: np.load(path).astype(np.float64) for path in inputs.iterdir()}
    expected = np.maximum(arrays["activations"] @ arrays["weights"] + arrays["bias"][:, :, :1], 0)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    assert out.dtype == np.float32
    assert names(tmp_path / "made" / "out") == ["out.npy"]
    capsys.readouterr()


def test_the_json_report(root, tmp_path, capsys):
    path = tmp_path / "report.json"
    assert run(root, "--json", path, "--outputs", tmp_path, "--seed", "7") == 0
    report = json.loads(path.read_text())
    assert report["schema_version"] == 1
    assert (report["arch"], report["precision"], report["seed"], report["threads"]) == ("wormhole_b0", "format", 7, 1)
    assert [program["name"] for program in report["programs"]] == ["run_fwd"]
    (output,) = report["outputs"]
    array = np.load(tmp_path / "out.npy")
    assert output["shape"] == list(array.shape)
    assert output["max"] == float(array.max())
    assert output["sha256"] == summarise("o", "queue", "Float32", array).sha256
    assert {entry["queue"] for entry in report["inputs"]} == {"activations", "weights", "bias"}
    capsys.readouterr()


def test_written_files_have_ordinary_permissions(root, tmp_path, capsys):
    plain = tmp_path / "plain"
    plain.touch()
    assert run(root, "--outputs", tmp_path, "-q") == 0
    assert stat.S_IMODE((tmp_path / "out.npy").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    capsys.readouterr()


def test_the_same_seed_gives_the_same_outputs(root, tmp_path, capsys):
    outputs = []
    for seed in (0, 0, 1):
        assert run(root, "--outputs", tmp_path, "--seed", seed, "-q") == 0
        outputs.append(np.load(tmp_path / "out.npy"))
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])
    capsys.readouterr()


def test_raw_and_host_readings_differ(root, tmp_path, capsys):
    for readout in ("raw", "host"):
        assert run(root, "--outputs", tmp_path / readout, "--readout", readout, "-q") == 0
    raw, host = (np.load(tmp_path / readout / "out.npy") for readout in ("raw", "host"))
    assert not np.array_equal(raw, host)
    assert np.array_equal(host.view(np.uint32) & 0xFFFF, np.zeros_like(host, np.uint32))  # bfloat16
    np.testing.assert_allclose(raw, host, rtol=2**-7, atol=1e-6)
    capsys.readouterr()


def test_another_architecture(root, capsys):
    assert run(root, "--arch", "Grayskull") == 0
    assert ": grayskull," in capsys.readouterr().out


@pytest.mark.parametrize("name", ["p_loop_count", "$p_loop_count"])
def test_parameters_and_programs(name, root, capsys):
    arguments = ["--program", "run_fwd", "--param", f"{name}=1"]
    assert run(root, *arguments, netlist="netlists/two_chips.yaml") == 0
    shown = capsys.readouterr().out
    assert "$p_loop_count=1" in shown
    assert "2x1x64x128" in shown  # one loop of two inputs


def test_parameters_default_to_the_test_args(root, capsys):
    assert run(root, netlist="netlists/two_chips.yaml") == 0
    assert "$p_loop_count=2" in capsys.readouterr().out


def refusal_line(root, capsys, *arguments, netlist=NETLIST):
    """The single line of complaint of a run that ends with exit code 2."""
    assert run(root, *arguments, netlist=netlist) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    return line


def test_an_unknown_program(root, capsys):
    assert "no program 'fwd'; programs: run_fwd" in refusal_line(root, capsys, "--program", "fwd")


def test_an_unknown_parameter(root, capsys):
    line = refusal_line(root, capsys, "--param", "p_lop_count=1", netlist="netlists/two_chips.yaml")
    assert "$p_lop_count (did you mean '$p_loop_count'?); parameters: $p_loop_count" in line


def test_inputs_that_are_no_directory(root, tmp_path, capsys):
    assert "is not a directory" in refusal_line(root, capsys, "--inputs", tmp_path / "none")


def test_inputs_without_files(root, tmp_path, capsys):
    assert "no .npy, .npz, .safetensors or .bin file" in refusal_line(root, capsys, "--inputs", tmp_path)


def test_inputs_for_a_queue_that_does_not_exist(root, inputs, capsys):
    (inputs / "weights.npy").rename(inputs / "wieghts.npy")
    said = refusal_line(root, capsys, "--inputs", inputs)
    assert "wieghts.npy belongs to no queue" in said
    assert "did you mean 'weights'?" in said


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_inputs_of_one_file(kind, root, inputs, tmp_path, capsys):
    """As from a file for each queue; t may be left out where it is 1."""
    assert run(root, "--inputs", inputs, "--outputs", tmp_path / "one") == 0
    arrays = {path.stem: np.load(path)[:, 0] for path in inputs.iterdir()}
    whole = tmp_path / "whole"
    whole.mkdir()
    if kind == "npz":
        np.savez(whole / "all.npz", **arrays)
    else:
        pytest.importorskip("safetensors.numpy").save_file(arrays, whole / "all.safetensors")
    assert run(root, "--inputs", whole, "--outputs", tmp_path / "other") == 0
    assert np.array_equal(np.load(tmp_path / "one" / "out.npy"), np.load(tmp_path / "other" / "out.npy"))
    np.save(whole / "weights.npy", arrays["weights"])
    (archive,) = whole.glob("all.*")
    assert f"3 inputs from {archive}\n" in capsys.readouterr().out
    assert "weights is in" in refusal_line(root, capsys, "--inputs", whole)


def test_files_of_what_ops_fill_are_not_pushed(root, inputs, capsys):
    np.save(inputs / "out.npy", np.zeros(3))
    np.save(inputs / "product.npy", np.zeros(3))  # an op
    assert run(root, "--inputs", inputs) == 0
    assert "inputs: not pushed, since ops fill them: out, product" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"junk", b"\x93NUMPY\x01\x00"], ids=["empty", "junk", "cut"])
def test_inputs_that_are_no_arrays(content, root, inputs, capsys):
    (inputs / "weights.npy").write_bytes(content)
    assert "weights.npy is not a numpy array file" in refusal_line(root, capsys, "--inputs", inputs)


def test_inputs_that_hold_objects(root, inputs, capsys):
    np.save(inputs / "weights.npy", np.array([{"a": 1}], object), allow_pickle=True)
    assert "weights.npy is not a numpy array file" in refusal_line(root, capsys, "--inputs", inputs)


def test_inputs_of_the_wrong_shape(root, inputs, capsys):
    np.save(inputs / "weights.npy", np.zeros((1, 1, 32, 32), np.float32))
    assert "weights.npy has shape [1, 1, 32, 32], expected [entries, 1, 256, 192]" in refusal_line(
        root, capsys, "--inputs", inputs
    )


def test_an_input_that_is_missing_fails_the_program(root, inputs, tmp_path, capsys):
    (inputs / "activations.npy").unlink()
    assert run(root, "--inputs", inputs, "--outputs", tmp_path / "out") == 4
    shown = capsys.readouterr().err
    assert "activations" in shown
    assert "run_fwd" in shown
    assert "Traceback" not in shown
    assert names(tmp_path / "out") == []


def test_an_output_directory_that_cannot_be(root, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert "file" in refusal_line(root, capsys, "--outputs", tmp_path / "file" / "out")


def test_a_queue_name_that_leaves_the_directory(root, tmp_path, capsys):
    text = (root / NETLIST).read_text()
    assert text.count("\n  out:") == 1
    netlist = tmp_path / "net.yaml"
    netlist.write_text(text.replace("\n  out:", "\n  ../out:"))
    out = tmp_path / "out"
    assert main(["run", str(netlist), "--outputs", str(out)]) == 2
    assert "cannot be a file name" in capsys.readouterr().err
    assert names(out) == []
    assert names(tmp_path) == ["net.yaml", "out"]


def test_a_failed_write_leaves_nothing_behind(root, tmp_path, monkeypatch, capsys):
    def fails(stream, form):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array_header_1_0", fails)
    assert "No space left on device" in refusal_line(root, capsys, "--outputs", tmp_path)
    assert names(tmp_path) == []


def test_a_run_beyond_the_memory_limit_does_not_start(root, tmp_path, capsys):
    assert run(root, "--memory-limit", "500K", "--outputs", tmp_path) == 3
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("buda-emu: this run holds at least 664.0 KiB in queues and rams, the memory limit is 500.0")
    assert names(tmp_path) == []
    assert run(root, "--memory-limit", "1M") == 0
    assert "holds at least 664.0 KiB in queues and rams, the memory limit is 1.0 MiB\n" in capsys.readouterr().err
    assert run(root, "--memory-limit", "1M", "-q") == 0
    with pytest.raises(SystemExit):
        run(root, "--memory-limit", "much")
    assert "'much' is not a size" in capsys.readouterr().err


def test_a_first_run_says_what_it_compiled(tmp_path):
    for name in ("gather", "pack"):
        (tmp_path / f"{name}-0123.o").write_bytes(b"")
    text = compiled_line(["gather", "pack", "gather"], 4.26, tmp_path)
    assert text == (
        "buda-emu: compiled 3 kernels for this machine in 4.3 s (gather, pack); "
        f"kept in {tmp_path}, later runs take them from there; `buda-emu cache warm` does this beforehand"
    )
    (tmp_path / "pack-0123.o").unlink()  # as on a full disk
    assert compiled_line(["gather", "pack"], 4.26, tmp_path).endswith(
        f"(gather, pack); they could not be kept in {tmp_path}: is the disk full?"
    )
    unkept = compiled_line(["pack"], 0.5, None)
    assert unkept == "buda-emu: compiled 1 kernel for this machine in 0.5 s (pack); they could not be kept"


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_the_line_on_compilations_appears_only_after_compiling(root, child_environment, tmp_path):
    environment = {**child_environment, "XDG_CACHE_HOME": str(tmp_path)}
    errors = []
    for _ in range(2):
        # one thread: a run starts helpers, and so compiles their kernel, by how long the work takes
        command = [sys.executable, "-m", "buda_emu", "run", "--threads", "1", str(root / "netlists/softmax.yaml")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        errors.append(done.stderr)
    *slow, last = errors[0].splitlines()
    assert last.startswith("buda-emu: compiled ")
    assert f"; kept in {tmp_path}" in last
    assert all(line.endswith(" so far") for line in slow)  # of a machine that compiles for longer than ten seconds
    assert errors[1] == ""


def test_a_terminal_sees_the_inputs_done(root, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert run(root, netlist="netlists/training.yaml") == 0
    shown = stream.getvalue()
    assert re.search(r"\] 1/[0-9]+ inputs", shown)
    assert shown.endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("text", "said"),
    [("p_loop_count=0", "parameter $p_loop_count is 0: the loop of line"),
     ("p_loopcount=1", "no program takes the parameter $p_loopcount (did you mean '$p_loop_count'?)")],
)  # fmt: skip
def test_parameters_that_are_wrong_are_the_callers_fault(text, said, root, capsys):
    assert main(["run", str(root / "netlists" / "attention.yaml"), "--param", text]) == 2
    assert said in capsys.readouterr().err


def test_a_parameter_that_is_no_number_is_refused_before_anything_is_read(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "missing.yaml", "--param", "p_loop_count=abc"])
    assert ended.value.code == 2
    assert "parameter $p_loop_count: operand 'abc' is neither a number" in " ".join(capsys.readouterr().err.split())


def test_compiling_is_no_part_of_a_programs_time(root, monkeypatch):
    """A kernel that takes seconds to compile."""
    from contextlib import contextmanager

    import buda_emu as be
    from buda_emu.app.api import run_netlist as module
    from buda_emu.arithmetic.jit.kernel import Compilation

    found = []

    @contextmanager
    def compiling():
        yield found

    def run(*arguments):
        time.sleep(0.3)
        found.append(Compilation("slow", 0.3))

    monkeypatch.setattr(module, "compilations", compiling)
    monkeypatch.setattr(module.Emulator, "run", run)
    report = module.run_netlist(be.load(root / "netlists" / "matmul.yaml"))
    assert report.programs[0].seconds < 0.1


def test_all_shapes_that_stop_a_graph_are_listed(tmp_path, capsys):
    twice = ", input_0_tms: [broadcast: {c: 2}]"
    ops = [op("n", "nop", ["a"], more=twice), op("m", "nop", ["a"], loc=(0, 1), more=twice)]
    path = tmp_path / "net.yaml"
    path.write_text(
        text(
            [queue("a"), queue("o", "n"), queue("p", "m")],
            [graph("g", *ops)],
            [program("p", "var: {$c_zero: 0}", execute("g", fifo_settings("a")))],
        )
    )
    assert main(["check", str(path)]) == 0
    assert "of the warnings 2 refused by run" in capsys.readouterr().out.replace("`", "")
    assert main(["run", str(path)]) == 2
    shown = capsys.readouterr().err
    assert "op n:" in shown
    assert "op m:" in shown
    assert "2 errors" in shown
