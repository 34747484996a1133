"""The fitted parameters of the op cost model, read once from `data/op_cost.json` (written by tools/fit_op_cost.py)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from buda_emu.errors import InternalError
from buda_emu.spec.formats import FORMATS
from buda_emu.timing.op.call import OpCall

Family = tuple[str, str, bool, bool, str]
"""What shares one set of weights: arch, kind, approximate, l1_acc, number classes `in->out`."""


@dataclass(frozen=True, slots=True)
class ParameterSet:
    """Weights of one family and where they come from. Errors are relative, on rows that the fit saw or did not see."""

    arch: str
    kind: str
    approximate: bool
    l1_acc: bool
    numbers: str
    in_dfs: tuple[str, ...]
    out_dfs: tuple[str, ...]
    phases: tuple[int, ...]
    ranges: Mapping[str, tuple[int, int]]
    weights: Mapping[str, Mapping[str, float]]
    rows: int
    fitted: Mapping[str, float]
    held_out: Mapping[str, float]

    @property
    def family(self) -> Family:
        """The key of this set."""
        return self.arch, self.kind, self.approximate, self.l1_acc, self.numbers

    @property
    def label(self) -> str:
        """How reports name this set."""
        marks = (" approximate" if self.approximate else "") + (" l1_acc" if self.l1_acc else "")
        return f"{self.arch} {self.kind}{marks} {'/'.join(self.out_dfs)}"


def number_class(df: str) -> str:
    """Formats that move alike: block formats, and others by kind and width."""
    spec = FORMATS[df]
    return "block" if spec.kind == "block" else f"{spec.kind}{spec.bits}"


def numbers_of(call: OpCall) -> str:
    """Number classes of data and result."""
    return f"{number_class(call.data_df)}->{number_class(call.result_df)}"


def family_of(call: OpCall) -> Family:
    """The family whose weights are the call's own, if it was measured."""
    return call.arch, call.kind, call.approximate, call.l1_acc, numbers_of(call)


def sizes_of(call: OpCall) -> dict[str, int]:
    """The sizes whose measured range is kept with a set: ublocks, tiles of one, inner dimension in tiles (of a sparse
    matmul: encoded tiles)."""
    inner = call.nz_tiles if call.sparse else max(call.z, 1) * max(call.m_k, 1) * max(call.u_kt, 1)
    return {"ublocks": call.ublocks, "ublock_tiles": call.ublock_tiles, "inner": inner}


@cache
def parameter_sets() -> Mapping[Family, ParameterSet]:
    """All sets, in the order of the file."""
    text = (files("buda_emu.timing") / "data" / "op_cost.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    if content["schema_version"] != 1:
        raise InternalError(f"op_cost.json has schema version {content['schema_version']}, not 1")
    sets = [_read(entry) for entry in content["sets"]]
    return {parameters.family: parameters for parameters in sets}


def _read(entry: dict[str, Any]) -> ParameterSet:
    fields = dict(entry)
    for name in ("in_dfs", "out_dfs", "phases"):
        fields[name] = tuple(fields[name])
    fields["ranges"] = {name: tuple(ends) for name, ends in fields["ranges"].items()}
    return ParameterSet(**fields)
