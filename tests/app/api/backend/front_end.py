"""A front end in the manner of PyBUDA: its call sequence as NETLIST 7.5 states it, in one process and in three."""

import multiprocessing as mp
from contextlib import suppress

import numpy as np

import buda_emu as be
from buda_emu.app import backend_api as api
from buda_emu.arithmetic.formats import host_widen
from buda_emu.emulator.inputs.default import default_inputs
from buda_emu.emulator.inputs.entries import default_parameters
from buda_emu.spec.formats import is_raw

OK = api.BackendStatusCode.Success
LATE = api.BackendStatusCode.TimeoutError
DTYPES = {"float32": "Float32", "uint32": "RawUInt32", "int32": "Int32", "int8": "Int8", "float16": "Float16"}


def describe(array, word=None, dim=4):
    """A descriptor of a numpy array of four dimensions."""
    word = api.get_format_from_string(word or DTYPES[array.dtype.name])
    return api.PytorchTensorDesc(array, array.itemsize, word, dim, array.shape, array.strides)


def widened(desc):
    """What get_output gave as float32 (uint32 for raw words), as Emulator.peek gives it."""
    word = "Float32" if desc.format == api.DataFormat.Float32 else desc.format.name
    elements = np.asarray(desc)
    elements = elements.view(np.uint16) if elements.dtype == np.float16 else elements
    return elements.astype(np.uint32) if is_raw(word) else host_widen(word, elements)


def job(path, arch=None, parameters=None):
    """Netlist, entries to push by queue, programs with their parameters: as the netlist's harness has them."""
    netlist = be.load(path, arch)
    bodies = [netlist.programs[name] for name in dict.fromkeys(netlist.program_order)]
    from buda_emu.netlist.test_config import read_test_config

    config = read_test_config(netlist.path, netlist.sections)
    values = {**default_parameters(bodies, config.args), **(parameters or {})}
    blocks = {}
    for block in default_inputs(netlist, config, bodies, values, 0):
        blocks.setdefault(block.queue, []).append(block.array)
    inputs = {name: np.concatenate(parts) for name, parts in blocks.items()}
    programs = [(body.name, values) for body in bodies]
    return netlist, inputs, programs


def plainly(netlist, inputs, programs, precision):
    """The same job by the plain Python API: {queue: entries as the host reads them}."""
    with be.Emulator(netlist, precision, threads=1) as emulator:
        for name, array in inputs.items():
            emulator.push(name, array)
        for program, parameters in programs:
            emulator.run(program, parameters)
        return emulator.outputs()


def opened(path, kind="Golden", *, quantise=False, device="wormhole_b0", args=""):
    """An initialised backend; `args` are those of its runtime."""
    config = api.BackendConfig(
        api.BackendType.from_string(kind),
        api.BackendDevice.from_string(device),
        api.DeviceMode.CompileAndRun,
        0,
        "tt_build/test_out",
        "",
        "",
    )
    if kind == "Golden":
        config.set_golden_ignore_df_precision(not quantise)
    config.set_runtime_args(args)
    backend = api.BackendApi(str(path), config)
    result = api.BackendCompileResult()
    assert backend.initialize(result) == OK, result
    assert result.success
    return backend


def push_all(descs, inputs, timeout=1):
    """Parameters, constants and activations, in pieces that a queue takes: one entry, or a batch."""
    for name, array in inputs.items():
        desc = descs[name]
        is_ram = desc.io_type == api.IOType.RandomAccess
        step = len(array) if is_ram and len(array) % desc.input_count == 0 else 1
        if not is_ram and desc.input_count <= len(array) and len(array) % desc.input_count == 0:
            step = desc.input_count
        for first in range(0, len(array), step):
            piece = np.ascontiguousarray(array[first : first + step])
            assert api.push_input(desc, describe(piece), step == 1, timeout, first if is_ram else -1) == OK, name


def get_with_retry(desc, one=False, tries=30):
    """What NETLIST 7.5 does, but thirty tries of one second: kernels may have to be compiled first."""
    out = api.PytorchTensorDesc()
    for _ in range(tries):
        status = api.get_output(desc, out, one, 1, 0)
        if status != LATE:
            break
    assert status == OK
    return out


def pop_all(desc, entries):
    """Read and pop that many entries of a queue; the slots of a ram."""
    if desc.io_type == api.IOType.RandomAccess:
        found = []
        for slot in range(entries):
            out = api.PytorchTensorDesc()
            assert api.get_output(desc, out, True, 1, slot) == OK
            found.append(widened(out).copy())
        return np.concatenate(found)
    found = []
    while sum(map(len, found)) < entries:
        out = get_with_retry(desc)
        found.append(widened(out).copy())
        assert api.free_tensor(out) == OK
        assert api.pop_output(desc, False, 1) == OK
    return np.concatenate(found)


def in_one_process(path, inputs, programs, entries, kind, **options):
    """The whole sequence in this process. `entries`: how many each output holds at the end."""
    backend = opened(path, kind, **options)
    names = [*inputs, *entries]
    descs = {name: backend.get_queue_descriptor(name) for name in names}
    for desc in descs.values():
        assert api.translate_addresses(desc) == OK
    push_all(descs, inputs)
    for program, parameters in programs:
        assert backend.run_program(program, parameters) == OK
    outputs = {name: pop_all(descs[name], count) for name, count in entries.items()}
    assert backend.wait_for_idle() == OK
    assert backend.finish() == OK
    api.clear_backend_param_cache()
    api.release_backend_ptr(backend)
    return outputs


def _pusher(descs, inputs, done):
    assert api.initialize_child_process("tt_build/test_out") == OK
    push_all(descs, inputs, timeout=30)
    assert api.finish_child_process() == OK
    done.put("pushed")


def _popper(descs, entries, done):
    assert api.initialize_child_process("tt_build/test_out") == OK
    outputs = {name: pop_all(descs[name], count) for name, count in entries.items()}
    assert api.finish_child_process() == OK
    done.put(outputs)


def _runner(path, programs, names, kind, options, handed, go, over, done):
    backend = opened(path, kind, **options)
    handed.put({name: backend.get_queue_descriptor(name) for name in names})
    go.wait(60)
    statuses = [backend.run_program(program, parameters).name for program, parameters in programs]
    statuses.append(backend.wait_for_idle().name)
    over.wait(60)
    statuses.append(backend.finish().name)
    done.put(statuses)


def in_three_processes(path, inputs, programs, entries, kind, *, at_once=False, **options):
    """A pusher, a runner and a popper, all spawned; the descriptors travel pickled. `at_once`: all three work at the
    same time; otherwise one after the other."""
    context = mp.get_context("spawn")
    handed, pushed, ran, popped = (context.Queue() for _ in range(4))
    go, over = context.Event(), context.Event()
    names = [*inputs, *entries]
    runner = context.Process(target=_runner, args=(path, programs, names, kind, options, handed, go, over, ran))
    runner.start()
    processes = [runner]
    try:
        descs = handed.get(timeout=60)
        pusher = context.Process(target=_pusher, args=({name: descs[name] for name in inputs}, inputs, pushed))
        popper = context.Process(target=_popper, args=({name: descs[name] for name in entries}, entries, popped))
        processes += [pusher, popper]
        pusher.start()
        if at_once:
            go.set()
        else:
            pushed.get(timeout=60)
            go.set()
        popper.start()
        outputs = popped.get(timeout=60)
        over.set()
        statuses = ran.get(timeout=60)
    finally:
        for process in processes:
            with suppress(AssertionError):  # never started
                process.join(5 if process.exitcode is None else 0)
                if process.is_alive():
                    process.kill()
    return outputs, statuses
