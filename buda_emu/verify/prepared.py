"""Programs of a netlist made ready to run: which, with which parameters, on which inputs, in how much memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from buda_emu.netlist.model import Netlist, Program
from buda_emu.netlist.testing.config import TestConfig, read_test_config
from buda_emu.records import dataclass
from buda_emu.verify.inputs.entries import Walked, chosen_programs, default_parameters, known_parameters
from buda_emu.verify.inputs.of_image import host_copies, image_args, is_archive_of_inputs, known_queues
from buda_emu.verify.memory_needed import foreseen, require_memory
from buda_emu.verify.preflight import require_runnable

if TYPE_CHECKING:
    from pathlib import Path

    from buda_emu.image.device_image import DeviceImage
    from buda_emu.verify.inputs.feed import Feed


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a caller names: `programs` (all, in file order, without any), `parameters` ("$name": value; others are as
    the harness gives them), `memory_limit` in bytes (None: a share of what is there), the netlist's `image`;
    `all_read`: queues between its epochs are read out, too."""

    programs: Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    memory_limit: int | None = None
    image: "DeviceImage | None" = None
    all_read: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """`values`: of all parameters; `steps`: what the programs are going to do, None where they fail without data;
    `limit`: bytes of each machine."""

    netlist: Netlist
    image: "DeviceImage | None"
    bodies: Sequence[Program]
    config: TestConfig
    values: dict[str, str]
    steps: Walked | None
    limit: int

    @property
    def programs(self) -> list[tuple[str, Mapping[str, str]]]:
        """Names with parameters, in the order of the run."""
        return [(body.name, self.values) for body in self.bodies]

    def feed(self, inputs: "Path | None", seed: int) -> "Feed":
        """Tensors of a folder or an .npz file, the others generated. Raises HostError."""
        from buda_emu.verify.inputs.feed import Feed

        archive = inputs if inputs is not None and is_archive_of_inputs(inputs) else None
        files = None
        if inputs is not None and archive is None:
            from buda_emu.verify.inputs.reference import DirectoryFiles

            files = DirectoryFiles.for_netlist(inputs, self.netlist.path, self.limit)
        return Feed(self.netlist, self.config, self.bodies, self.values, seed, files, archive, self.image, self.limit)


def prepared(
    netlist: Netlist,
    chosen: Chosen,
    *,
    machines: int = 1,
    rams: bool = True,
    as_bits: bool = False,
    beside: int = 0,
    progress: Callable[[str], None] = lambda _: None,
    foretell: Callable[[str], None] | None = None,
) -> Prepared:
    """The programs, ready to run. `machines`, `rams`, `as_bits`, `beside`: as `require_memory` takes them, `foretell`
    as its `tell`; without it that is progress.

    Raises HostError (an unknown program or parameter), UnsupportedError (what is not emulated; no room), ProgramError.
    """
    image = chosen.image
    bodies = chosen_programs(netlist, chosen.programs)
    config = read_test_config(netlist.path, netlist.sections)
    args = {**image_args(image), **config.args}
    values = {**default_parameters(bodies, args), **known_parameters(bodies, chosen.parameters)}
    require_runnable(netlist, bodies)
    progress("walking the programs")  # loops of millions of rounds take seconds
    steps = foreseen(netlist, bodies, values)
    limit = require_memory(
        netlist,
        steps,
        chosen.memory_limit,
        machines=machines,
        rams=rams,
        as_bits=as_bits,
        beside=beside + host_copies(image),
        known=known_queues(image, all_read=chosen.all_read),
        tell=foretell or progress,
    )
    return Prepared(netlist, image, bodies, config, values, steps, limit)
