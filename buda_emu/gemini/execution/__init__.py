"""Bytes: run a schedule on L2s and a DRAM, and compare with the network computed at once (facts GEMINI 6)."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from buda_emu.gemini.execution.seeded import Weights
    from buda_emu.gemini.model import IR

__all__ = ["Execution", "Mismatch", "execute"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a run differs from the network: `workload_id` is None for an output of the network, or a stop."""

    core: int | None
    workload_id: int | None
    layer: str
    message: str

    def __str__(self) -> str:
        where = "" if self.core is None else f"core {self.core} "
        where += "" if self.workload_id is None else f"workload {self.workload_id} "
        return f"{where}({self.layer}): {self.message}" if self.layer else f"{where}{self.message}"


@dataclass(frozen=True, slots=True, eq=False)
class Execution:
    """`outputs`: network outputs by layer, N C H W in their own type; `digests`: SHA-256 of their bytes in C order.
    `seeded`: layers whose weights were made from the seed, none being published."""

    mismatches: Sequence[Mismatch]
    outputs: "Mapping[str, NDArray[Any]]"
    seeded: Sequence[str]

    @property
    def ok(self) -> bool:
        """Every workload and every output has the bits of the un-tiled run."""
        return not self.mismatches

    @property
    def digests(self) -> dict[str, str]:
        """Of each output."""
        return {name: sha256(values.tobytes()).hexdigest() for name, values in self.outputs.items()}


def execute(
    ir: "IR",
    frontend: "str | os.PathLike[str] | Mapping[str, Any]",
    *,
    seed: int = 0,
    weights: "Mapping[str, Weights] | None" = None,
) -> Execution:
    """Run a schedule of dialect A on real bytes, and compare every workload with the un-tiled run.

    `frontend`: path or decoded object of the network. Weights that are not given as {layer: (int8 [K, C, R, S], scale
    [K], bias [K])} are made from the seed, and so are inputs. What goes wrong in the schedule is in `.mismatches`.
    Raises UnsupportedError for constructs that are not emulated (by name, dialect B among them), ScheduleError for a
    network that cannot be computed, ProgramError for a schedule that cannot be followed at all.
    """
    from buda_emu.gemini.execution.replay import replay

    return replay(ir, frontend, seed, weights)
