"""The interface of every op implementation. One implementation for each word of `spec.ops.OP_TYPES`.

An op has two faces with the same bits: `reference`, plain numpy on materialised operands, which is the definition; and
`run`, numba kernels that read their operands through tile-index maps. A test holds them equal for every op.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import field
from importlib import import_module
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from buda_emu.arithmetic.tensor.tilemap import TileMap
from buda_emu.netlist.model import FusedOp
from buda_emu.spec.attributes import Attributes
from buda_emu.spec.blocking import FULL_TILE, Blocking, Shape
from buda_emu.spec.ops import OP_TYPES, OfOpType
from buda_emu.support.errors import InternalError, UnsupportedError
from buda_emu.support.moved import REMOVED_IN
from buda_emu.support.records import dataclass

T = TypeVar("T")


class Registry(Generic[T]):
    """The implementations by op type. `module` is the field of a declaration that names the file of its implementation,
    which is imported when such an op is first used, so that a run loads and compiles only the kernels it needs. `how`
    is added to the message about a type that has none."""

    def __init__(self, module: Literal["op", "device"], how: str = "") -> None:
        self._module = module
        self._how = how
        self._found: dict[str, T] = {}  # filled as modules are imported, read-only afterwards

    def implements(self, *types: str) -> Callable[[type[T]], type[T]]:
        """Return a class decorator that makes an instance of the class the implementation of these op types. Raises
        InternalError for a type that has one already."""

        def register(cls: type[T]) -> type[T]:
            """Make an instance of the class the implementation of the types. Raises InternalError for a type that has
            one already."""
            instance = cls()
            for name in types:
                if name in self._found:
                    raise InternalError(f"op type {name} is implemented twice{self._how}")
                self._found[name] = instance
            return cls

        return register

    def __getitem__(self, type: str) -> T:
        """Return the implementation of an op type, whose module is imported at the first request. Raises
        UnsupportedError for an unknown word, or one that the reference refuses."""
        instance = self._found.get(type)
        if instance is not None:
            return instance
        op_type = OP_TYPES.get(type)
        module: str = getattr(op_type, self._module, "")
        if not module:
            raise UnsupportedError(f"op type {type!r} cannot be run{self._how}")
        import_module(module)
        if type not in self._found:
            raise InternalError(f"op type {type} has no implementation{self._how}")
        return self._found[type]


Tiles: TypeAlias = NDArray[np.float32]
Relu: TypeAlias = tuple[str, float]
"""The pair of relu_mode and threshold (OPS 5, 6.13)."""


class Parallel(Protocol):
    """A function that splits `items` work items over threads: it calls `kernel(start, stop, *args)` on disjoint ranges
    that cover 0..items, and discards their results."""

    def __call__(self, kernel: Callable[..., Any], items: int, *args: Any) -> None:
        """Call the kernel on ranges that cover 0..items."""
        ...


def serial(kernel: Callable[..., Any], items: int, *args: Any) -> None:
    """Run the kernel once on all items, on the calling thread: a `Parallel` without threads."""
    kernel(0, items, *args)


@dataclass(frozen=True, slots=True)
class Work:
    """An argument that states how much a kernel computes, as bytes, where its arrays do not show it."""

    nbytes: int


@dataclass(frozen=True, slots=True)
class Operand:
    """One input of an op after unpad, TMs and pad (OPS 3 steps 2-4): the origin of each tile, and its format label.

    `map` leads from post-TM tile positions to tiles of the source tensor. `tile_dim` is the static tile dim of NETLIST
    1.5, `label` the format label of OPS 3.1 after step 5. `tile_broadcast` is "", "r", "c" or "rc" (fused ops only)."""

    map: TileMap
    tile_dim: tuple[int, int] = FULL_TILE
    label: str = "Float32"
    tile_broadcast: str = ""


@dataclass(frozen=True, slots=True)
class PlannedOp(OfOpType):
    """The static facts of one use of an op, which the plan knows before data flows."""

    name: str
    type: str
    attributes: Attributes
    blocking: Blocking
    operands: tuple[Operand, ...]
    transpose: bool = False  # in-tile transpose flag (OPS 7.4)
    vector: str = "rc"  # final vector mode (OPS 5.2)
    out_df: str = "Float32"
    intermed_df: str = "Float32"
    acc_df: str = "Float32"
    undefined_is_nan: bool = False  # where the reference aborts on an element (`Netlist.undefined_is_nan`)
    fused: FusedOp | None = field(default=None, compare=False)
    memo: dict[str, Any] = field(init=False, default_factory=dict[str, Any], compare=False, repr=False)
    """Values that an op has computed from operands that stay the same from run to run; it keeps these operands to
    compare them. The runtime clears it. A changed copy (`replace`) begins empty, here and in `fixed`."""
    fixed: dict[str | int, Any] = field(init=False, default_factory=dict[str | int, Any], compare=False, repr=False)
    """Values that an op has computed from the call alone, such as arguments of its kernels. Number keys are for
    operands."""


class Implementation(Protocol):
    """The behaviour of one op type: OPS 3 step 6 (and, for fused ops, relu and conversions of its sub-ops).

    Gradient accumulation, relu and output conversion of other ops are applied by the runtime (OPS 3 steps 7-9). Where a
    kernel can do one of the first two while it has a tile at hand, the implementation has `run_onto` or `run_relu`,
    too: see `buda_emu.emulator.ops.operands`.
    """

    def shape(self, call: PlannedOp) -> Shape:
        """Return the result's shape (t, R, C) in tiles from the post-TM operand shapes. Raises ProgramError, naming the
        op and the dims, where the reference would abort."""
        ...

    def label(self, call: PlannedOp) -> str:
        """Return the format label of the result before its output conversion (OPS 3.1, 3 step 9). By default it is that
        of operand 0."""
        return call.operands[0].label

    def reference(self, call: PlannedOp, inputs: Sequence[Tiles]) -> Tiles:
        """Compute the result by the definition. `inputs`: post-TM tensors float32[w, t, R, C, 32, 32], tile_broadcast
        not yet applied; operands of raw formats hold 32-bit words viewed as float32. Returns float32[w, t, R, C, 32,
        32]."""
        ...

    def run(self, call: PlannedOp, inputs: Sequence[Tiles], out: Tiles, parallel: Parallel) -> None:
        """Compute the result by the kernels. `inputs`: source tensors before TMs, float32[w or 1, tiles, 1024]
        C-contiguous (1: the same entry for every w); `out`: float32[w, tiles, 1024], contents undefined on entry.
        Raises ProgramError as `reference` does."""
        ...


OPS: Final = Registry[Implementation]("op")
implements = OPS.implements


def __getattr__(name: str) -> Any:
    """Return PlannedOp for its name before 1.0, `OpCall`, which packages of ops may still import, and warn with
    DeprecationWarning. Raises AttributeError for any other name."""
    if name != "OpCall":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    text = f"{__name__}.OpCall is now PlannedOp; the old name goes in {REMOVED_IN}"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return PlannedOp
