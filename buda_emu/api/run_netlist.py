"""Load a netlist, feed it, run its programs, read everything back: the main job in one call."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from buda_emu.api.report import ProgramSummary, RunReport, summarise
from buda_emu.errors import HostError
from buda_emu.netlist.model import Netlist
from buda_emu.netlist.test_config import read_test_config
from buda_emu.runtime.emulator import Emulator, Precision
from buda_emu.runtime.host_io import Readout
from buda_emu.verify.entries import chosen_programs, default_parameters, known_parameters, parameter_names
from buda_emu.verify.feed import push
from buda_emu.verify.inputs import InputBlock, default_inputs


def run_netlist(
    netlist: Netlist,
    *,
    inputs: Path | None = None,
    programs: Sequence[str] = (),
    parameters: Mapping[str, str] | None = None,
    precision: Precision = "format",
    readout: Readout = "host",
    threads: int = 1,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
    load_seconds: float = 0.0,
    version: str = "",
) -> RunReport:
    """Run `programs` (default: all, in file order) once each and report.

    `inputs`: a directory with `<queue>.npy` [entries, t, rows, cols] for each queue to push; without it the data comes
    from the test-config or a generator seeded by `seed` and the queue's name. `parameters` ("$name": value) replace the
    defaults. `progress` is told what happens. Raises HostError, NetlistError, ProgramError, UnsupportedError.
    """
    bodies = chosen_programs(netlist, programs)
    config = read_test_config(netlist.path, netlist.sections)
    values = {**default_parameters(bodies, config.args), **known_parameters(bodies, parameters or {})}
    with Emulator(netlist, precision, threads) as emulator:
        progress("inputs")
        start = time.perf_counter()
        blocks = _files(netlist, inputs) if inputs else default_inputs(netlist, config, bodies, values, seed)
        pushed = push(emulator, blocks, progress)
        push_seconds = time.perf_counter() - start
        ran: list[ProgramSummary] = []
        for body in bodies:
            progress(f"program {body.name}")
            start = time.perf_counter()
            emulator.run(body.name, values)
            own = {name: values[name] for name in parameter_names([body])}
            ran.append(ProgramSummary(body.name, own, time.perf_counter() - start))
        progress("outputs")
        arrays = emulator.outputs(readout=readout)
    queues = netlist.queues
    outputs = tuple(summarise(name, queues[name].type, queues[name].df, array) for name, array in arrays.items())
    return RunReport(
        netlist.path, netlist.arch_name, precision, readout, threads, seed, version, load_seconds, push_seconds, pushed,
        tuple(ran), outputs, arrays,
    )  # fmt: skip


def _files(netlist: Netlist, directory: Path) -> Iterator[InputBlock]:
    """Every `<queue>.npy` of a directory, in the netlist's order of queues."""
    if not directory.is_dir():
        raise HostError(f"inputs: {directory} is not a directory")
    files = {path.name.removesuffix(".npy"): path for path in sorted(directory.glob("*.npy"))}
    if not files:
        raise HostError(f"inputs: no .npy file in {directory}")
    for name in files:
        if name not in netlist.queues:
            raise HostError(f"inputs: {files[name]} belongs to no queue of {netlist.path}")
    for name in netlist.queues:
        if name in files:
            try:
                array = np.load(files[name], allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise HostError(f"inputs: {files[name]} is not a numpy array file: {error}") from None
            yield InputBlock(name, array, None, str(files[name]))
