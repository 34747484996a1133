"""BackendConfig, BackendApi and how calls end (NETLIST 7.2, "Where an error surfaces")."""

import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from app.api.backend import small
from app.api.backend.front_end import opened
from app.api.backend.small import entries, machine, netlist, push, written
from buda_emu.app import backend_api as api
from shared_files import ROOT

OK = api.BackendStatusCode.Success
WRONG = api.BackendStatusCode.RuntimeError
LOOP = {"$p_loop_count": "1"}
GOLDEN = (api.BackendType.Golden, api.BackendDevice.Wormhole_B0)


# ---------------------------------------------------------------------------------------------------------- config
def test_config_defaults():
    config = api.BackendConfig(*GOLDEN)
    assert (config.type, config.device) == GOLDEN
    assert (config.mode, config.opt_level, config.output_dir) == (api.DeviceMode.CompileAndRun, 0, "tt_build/test_out")
    assert config.ignores_precision
    config.set_golden_ignore_df_precision(False)
    assert not config.ignores_precision
    assert not api.BackendConfig(api.BackendType.Silicon, api.BackendDevice.Grayskull).golden_ignore_df_precision
    golden = api.get_golden_config()  # NETLIST 12
    assert (golden.type, golden.device) == (api.BackendType.Golden, api.BackendDevice.Grayskull)
    assert golden.precision == "format"


def test_optimisation_level_of_the_environment(monkeypatch):
    monkeypatch.setenv("TT_BACKEND_OPT_LEVEL", "4")
    assert api.BackendConfig(*GOLDEN, opt_level=1).opt_level == 4
    monkeypatch.setenv("TT_BACKEND_OPT_LEVEL", "high")
    with pytest.raises(RuntimeError, match="'high' is not an integer"):
        api.BackendConfig(*GOLDEN)


def test_what_has_no_effect_is_said_once(tmp_path):
    config = api.BackendConfig(*GOLDEN)
    config.set_performance_trace_args("--level 1")
    config.set_runtime_args("--x")
    assert (config.performance_trace_args, config.runtime_args) == ("--level 1", "--x")
    with pytest.warns(api.BackendWarning) as said:
        backend = api.BackendApi(netlist(tmp_path), config)
    assert len(said) == 1
    for word in ("--level 1", "--x"):
        assert word in str(said[0].message)
    assert said[0].filename == __file__
    assert backend.initialize() == OK
    backend.finish()


@pytest.mark.parametrize("kind", ["Golden", "Silicon"])
def test_what_front_ends_always_pass_is_no_news(tmp_path, kind):
    """NETLIST 12. Warnings are errors here."""
    config = api.BackendConfig(
        getattr(api.BackendType, kind),
        api.BackendDevice.Wormhole_B0,
        api.DeviceMode.CompileAndRun,
        4,
        "tt_build/out",
        "tt_build/device_descs/wormhole_b0_0_0x0.yaml",
        "tt_build/cluster_desc.yaml",
    )
    config.set_golden_ignore_df_precision(True)
    config.set_performance_trace_args("")
    config.set_runtime_args(" --concurrent-mode")
    assert config.ignores_precision is (kind == "Golden")
    backend = api.BackendApi(netlist(tmp_path), config)
    assert backend.initialize() == OK
    backend.finish()


@pytest.mark.parametrize(
    ("args", "precision", "left"),
    [
        ("--precision device", "device", ""), ("--a b --precision=ideal -c", "ideal", "--a b -c"),
        ("--precision device --precision format", "format", ""), ("", None, ""), ("--x", None, "--x"),
        ("--concurrent-mode --precision ideal --x", "ideal", "--x"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [api.BackendType.Golden, api.BackendType.Silicon], ids=str)
def test_runtime_arguments_choose_the_precision(kind, args, precision, left):
    config = api.BackendConfig(kind, api.BackendDevice.Wormhole_B0)
    config.set_runtime_args(args)
    assert config.precision == precision or (precision is None and config.precision in ("ideal", "format"))
    assert config.ignores_precision is (config.precision == "ideal")
    assert (config.runtime_args, config.runtime_args_left) == (args, left)


@pytest.mark.parametrize("args", ["--precision exact", "--precision", "--precision="])
def test_a_precision_that_is_none(tmp_path, args):
    config = api.get_golden_config()
    config.set_runtime_args(args)
    with pytest.raises(RuntimeError, match=r"runtime arguments: --precision .* is not one of: format, ideal, device"):
        api.BackendApi(netlist(tmp_path), config)


# ----------------------------------------------------------------------------------------------------- constructor
def test_a_bad_netlist_is_an_exception(tmp_path):
    with pytest.raises(RuntimeError, match=r"none\.yaml"):
        api.BackendApi(tmp_path / "none.yaml", api.get_golden_config())
    with pytest.raises(RuntimeError, match="error"):
        api.BackendApi(written(tmp_path, "queues: {q: {type: qeue}}"), api.get_golden_config())


@pytest.mark.parametrize("kind", [api.BackendType.NoBackend, api.BackendType.from_string("StaticAnalyzer")], ids=str)
def test_a_type_that_runs_nothing(tmp_path, kind):
    with pytest.raises(RuntimeError, match="runs no netlist; types: Golden, Silicon"):
        api.BackendApi(netlist(tmp_path), api.BackendConfig(kind, api.BackendDevice.Invalid))


def test_architecture(tmp_path, monkeypatch):
    several = netlist(tmp_path, df="Float16", arch="[grayskull, wormhole_b0]")
    for device in (api.BackendDevice.Grayskull, api.BackendDevice.Invalid):
        assert api.BackendApi(several, api.BackendConfig(api.BackendType.Golden, device)) is not None
    with pytest.raises(RuntimeError, match="not for blackhole"):
        api.BackendApi(several, api.BackendConfig(api.BackendType.Golden, api.BackendDevice.Blackhole))
    monkeypatch.setenv("ARCH_NAME", "Blackhole")
    with pytest.raises(RuntimeError, match="not for blackhole"):
        api.BackendApi(several, api.get_golden_config())
    with pytest.warns(api.BackendWarning, match="for wormhole_b0, not for blackhole"):
        api.BackendApi(netlist(tmp_path), api.get_golden_config())


# -------------------------------------------------------------------------------------------------- initialisation
def test_initialize_fills_the_result(tmp_path):
    backend = api.BackendApi(netlist(tmp_path), api.get_golden_config())
    result = api.BackendCompileResult()
    assert result.success  # NETLIST 12: until somebody says otherwise
    assert backend.initialize(result) == OK
    assert (result.success, result.failure_type) == (True, api.BackendCompileFailure.Invalid)
    assert result.overlay_compile_result.failed_compile_results_per_epoch == []
    assert backend.initialize() == OK  # again
    backend.finish()
    assert backend.initialize() == WRONG


def test_parts_of_a_result():
    """Names, fields and first values (NETLIST 7.2, 12)."""
    result = api.BackendCompileResult()
    for part in (api.BackendBaseCompileResult(), result, result.fw_compile_result, result.overlay_compile_result):
        assert isinstance(part, api.BackendBaseCompileResult)
        assert (part.success, part.failure_type) == (True, api.BackendCompileFailure.Invalid)
        assert (part.failure_message, part.failure_target) == ("", "")
    assert isinstance(result.fw_compile_result, api.BackendFwCompileResult)
    assert isinstance(result.overlay_compile_result, api.BackendOverlayCompileResult)
    epoch = api.BackendCompileResultPerEpoch()
    assert (epoch.failure_type, epoch.failure_message) == (api.BackendCompileFailure.Invalid, "")
    assert (epoch.device_id, epoch.temporal_epoch_id, epoch.logical_core_x, epoch.logical_core_y) == (0, 0, 255, 255)
    assert (epoch.maximum_size_bytes, epoch.allocated_size_bytes, epoch.extra_size_bytes) == (0, 0, 0)


def test_what_the_device_refuses(tmp_path):
    path = netlist(tmp_path)
    path.write_text(path.read_text().replace("dram: [[0,", "dram: [[7,"))  # wormhole_b0 has six channels
    golden = opened(path)
    golden.finish()
    backend = api.BackendApi(path, api.BackendConfig(api.BackendType.Silicon, api.BackendDevice.Wormhole_B0))
    result = api.BackendCompileResult()
    assert backend.initialize(result) == WRONG
    assert not result.success
    assert result.failure_type == api.BackendCompileFailure.Net2Pipe
    assert result.failure_message.startswith("V151")
    assert result.failure_target.startswith(str(path))
    assert backend.run_program("p", LOOP) == WRONG
    assert push(backend.get_queue_descriptor("a"), entries(2)) == WRONG


def test_before_initialize_nothing_runs(tmp_path, caplog):
    backend = api.BackendApi(netlist(tmp_path), api.get_golden_config())
    desc = backend.get_queue_descriptor("a")
    assert push(desc, entries(2)) == WRONG
    for status in (backend.run_program("p", LOOP), backend.wait_for_idle(), backend.memory_barrier()):
        assert status == WRONG
    assert "initialize was not called" in caplog.text


# --------------------------------------------------------------------------------------------------------- running
@pytest.fixture(params=["Golden", "Silicon", "Versim", "Emulation", "Model"])
def any_kind(request, tmp_path):
    path = netlist(tmp_path)
    kind = getattr(api.BackendType, request.param)
    backend = api.BackendApi(path, api.BackendConfig(kind, api.BackendDevice.Wormhole_B0))
    assert backend.initialize() == OK
    yield backend, {name: backend.get_queue_descriptor(name) for name in "acow"}
    backend.finish()


def test_every_type_runs(any_kind):
    backend, descs = any_kind
    assert backend.get_programs() == ["p"]
    assert backend.memory_barrier() == OK
    data = entries(2)
    assert push(descs["c"], data[:1], ptr=0) == OK
    assert push(descs["a"], data) == OK
    assert backend.run_program("p", LOOP) == OK
    assert backend.wait_for_idle() == OK
    out = api.PytorchTensorDesc()
    assert api.get_output(descs["o"], out, False, 0, 0) == OK
    np.testing.assert_array_equal(np.asarray(out), data)
    assert backend.run_program("no such program", {}) == WRONG


def test_golden_reports_a_failed_program_and_goes_on(tmp_path, caplog):
    backend, descs = machine(tmp_path)
    assert backend.run_program("p", LOOP) == WRONG
    assert "never written" in caplog.text or "empty" in caplog.text
    assert backend.run_program("p", {}) == WRONG
    assert push(descs["c"], entries(1), ptr=0) == OK
    assert push(descs["a"], entries(2)) == OK
    assert backend.wait_for_idle() == OK
    assert backend.run_program("p", LOOP) == OK
    backend.finish()


def test_a_device_reports_a_failed_program_later_and_is_closed(tmp_path, caplog):
    backend, descs = machine(tmp_path, "Silicon")
    assert push(descs["a"], entries(2)) == OK
    assert backend.run_program("p", LOOP) == OK  # ram c was never written
    assert backend.wait_for_idle() == WRONG
    assert "program p failed, which closed the device" in caplog.text
    for status in (
        backend.wait_for_idle(),
        backend.run_program("p", LOOP),
        push(descs["a"], entries(2)),
        api.get_output(descs["o"], api.PytorchTensorDesc(), False, 10, 0),
        api.pop_output(descs["o"], False, 10),
    ):
        assert status == WRONG
    assert backend.finish() == OK


def test_a_device_waits_for_the_host(tmp_path):
    """Programs are queued, wait for pushes, and for room in a full output queue."""
    backend, descs = machine(tmp_path, "Silicon")
    data = entries(2)
    assert push(descs["c"], data[:1], ptr=0) == OK
    for _ in range(3):
        assert backend.run_program("p", {"$p_loop_count": "2"}) == OK
    found = []
    for number in range(3):  # both queues hold two batches
        assert push(descs["a"], data + number, timeout=20) == OK
    for number in range(3, 9):
        out = api.PytorchTensorDesc()
        assert api.get_output(descs["o"], out, False, 20, 0) == OK
        found.append(np.asarray(out).copy())
        assert api.pop_output(descs["o"], False, 20) == OK
        if number < 6:
            assert push(descs["a"], data + number, timeout=20) == OK
    assert backend.wait_for_idle() == OK
    np.testing.assert_array_equal(np.stack(found), np.stack([entries(2) + n for n in range(6)]))
    backend.finish()


def test_a_device_gives_up_waiting_in_the_end(tmp_path, monkeypatch):
    from buda_emu.app.api.backend import machine as module

    monkeypatch.setattr(module, "HOST_WAIT", 0.1)
    backend, descs = machine(tmp_path, "Silicon")
    assert push(descs["c"], entries(1), ptr=0) == OK
    assert backend.run_program("p", LOOP) == OK
    assert backend.wait_for_idle() == WRONG
    backend.finish()


def test_compile_only_runs_nothing(tmp_path, caplog):
    config = api.BackendConfig(*GOLDEN, api.DeviceMode.CompileOnly)
    backend = api.BackendApi(netlist(tmp_path), config)
    assert backend.initialize() == OK
    assert backend.run_program("p", LOOP) == WRONG
    assert "CompileOnly" in caplog.text
    assert backend.finish() == OK


# ------------------------------------------------------------------------------------------------------------- end
def test_a_finished_backend_answers(any_kind):
    backend, descs = any_kind
    out = api.PytorchTensorDesc()
    assert backend.finish() == OK
    for status in (
        backend.run_program("p", LOOP),
        backend.wait_for_idle(),
        backend.memory_barrier(),
        backend.initialize(),
        push(descs["a"], entries(2), timeout=10),
        api.get_output(descs["o"], out, False, 10, 0),
        api.pop_output(descs["o"], False, 10),
    ):
        assert status == WRONG
    with pytest.raises(RuntimeError, match="is finished"):
        backend.get_queue_descriptor("a")
    assert backend.finish() == OK
    api.release_backend_ptr(backend)


def test_finish_ends_a_program_that_waits_and_calls_that_wait(tmp_path):
    backend, descs = machine(tmp_path, "Silicon")
    assert push(descs["c"], entries(1), ptr=0) == OK
    assert backend.run_program("p", LOOP) == OK
    statuses = []
    out = api.PytorchTensorDesc()
    calls = [
        lambda: api.get_output(descs["o"], out, False, 60, 0),
        lambda: api.pop_output(descs["o"], False, 60),
        backend.wait_for_idle,
    ]
    threads = [threading.Thread(target=lambda call=call: statuses.append(call())) for call in calls]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    start = time.monotonic()
    assert backend.finish() == OK
    for thread in threads:
        thread.join(20)
    assert time.monotonic() - start < 20
    assert statuses == [WRONG] * 3


def test_a_process_ends_though_a_program_waits(tmp_path, child_environment):
    script = f"""
import pathlib, sys
sys.path[:0] = {[str(ROOT / "tests"), str(ROOT / "tests/helpers")]!r}
from app.api.backend.small import entries, machine, push
backend, descs = machine(pathlib.Path({str(tmp_path)!r}), "Silicon")
push(descs["c"], entries(1), ptr=0)
print(backend.run_program("p", {{"$p_loop_count": "1"}}))
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=child_environment, capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.split() == ["BackendStatusCode.Success"]
    assert done.stderr == ""


def test_release_and_cache(tmp_path):
    backend, descs = machine(tmp_path)
    api.clear_backend_param_cache()
    api.release_backend_ptr(backend)
    assert push(descs["a"], entries(2)) == WRONG


def test_an_unknown_queue(tmp_path):
    backend, _ = machine(tmp_path)
    with pytest.raises(RuntimeError, match="no queue 'nothing'; queues: "):
        backend.get_queue_descriptor("nothing")
    backend.finish()


def test_two_types_on_one_netlist_do_not_meet(tmp_path):
    path = netlist(tmp_path)
    golden, silicon = opened(path), opened(path, "Silicon")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert push(golden.get_queue_descriptor("a"), entries(2)) == OK
        assert push(silicon.get_queue_descriptor("a"), entries(4)) == OK
    out = api.PytorchTensorDesc()
    assert api.pop_output(golden.get_queue_descriptor("a"), False, 0) == OK
    assert api.get_output(golden.get_queue_descriptor("a"), out, False, 0, 0) == WRONG
    golden.finish()
    assert api.get_output(silicon.get_queue_descriptor("a"), out, False, 0, 0) == OK
    silicon.finish()
    assert tuple(out.shape[1:]) == small.SHAPE


# ----------------------------------------------------------------------------------------------------- full caches
@pytest.mark.parametrize(("kind", "status"), [("Golden", WRONG), ("Silicon", OK)])
def test_a_pointer_one_past_its_last_use(tmp_path, kind, status):
    """NETLIST 12: the reference refuses, silicon only adds to a header."""
    content = netlist(tmp_path).read_text()
    content = content.replace("var: {$c_zero: 0}", "var: {$c_zero: 0, $at: 1}").replace(
        "w: {prologue: false, epilogue: false, zero: false, rd_ptr_global: $c_zero, wr_ptr_global: $c_zero",
        "w: {prologue: false, epilogue: false, zero: false, rd_ptr_global: $c_zero, wr_ptr_global: $at",
    )
    assert "$at}" in content
    path = written(tmp_path, content.replace("- endloop", "- varinst: [$at, add, $at, 1]\n    - endloop"))
    backend = api.BackendApi(path, api.BackendConfig(getattr(api.BackendType, kind), api.BackendDevice.Wormhole_B0))
    assert backend.initialize() == OK
    data = entries(2)
    assert push(backend.get_queue_descriptor("c"), data[:1], ptr=0) == OK
    assert push(backend.get_queue_descriptor("a"), data) == OK
    ended = [backend.run_program("p", LOOP), backend.wait_for_idle()]
    assert (WRONG in ended) is (status == WRONG)
    backend.finish()
