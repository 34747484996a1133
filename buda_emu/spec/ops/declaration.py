"""What is declared of an op type (OPS 1). Everything that treats ops alike asks these fields, no op by its name."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from buda_emu.support.records import dataclass

Family: TypeAlias = str
"""Op types that differ in little else than a function."""

Trait = Literal[
    "tile by tile",  # each element of the result is made of those at its place in the operands
    "keeps shape",  # operands have the result's shape, in tiles of its width
    "copies",  # its operand, bit by bit
    "keeps sums",  # partial sums lie in intermed_df
    "inner dimension",  # of m_k blocks of u_kt tiles: rows of cores share operand 0, columns operand 1
    "rows by columns",  # tile (r, c) of the result: row r of operand 0 by column c of operand 1
    "takes turns",  # slices of the result come of its operands in turns
    "clamps",  # what it packs, by a relu of its own attributes: known of it
    "reduces",  # the dimension `dim`, over z where that is z
    "multiplies",  # tiles in the FPU, as often as the math fidelity says
    "vector unit",  # computes it: vector modes and approximate_mode matter
    "sub-ops",  # a schedule of a fused op is run, each part with attributes of its own
    "Ethernet",  # runs on no worker core
    "reads flat data",  # operand 0: row-major, from a queue in DRAM
    "reads what was pushed",  # before the queue rounds it
    "row-wise index",  # operand 1 says which rows of operand 0
    "result indices",  # operand 1 numbers what is sorted
    "rounds to Int8",
    "takes positive numbers",
    "large at 0",  # its result for 0 is infinite, or far from those for other numbers
    "Int32 sums of floats",  # acc_df may be Int32 without integer operands
    "integers beside floats",  # among operands; rules of its own say which
    "integers are indices",  # not computed with
    "ends a fused op",  # as a sub-op it is the last one: the front end's search ends after it (FRONTEND 3.3)
    "no gradient",
    "sums gradients on grayskull",
    "gradient transposes",
    "one operand is kept",  # min_buffer_input may be 0 only
    "cut by its attributes",  # what each core does stands there, or in a definition that others share
]
ResultTile = Literal["least", "of the op", "of operand 0", "full"]
Group = Literal["matmul", "binary", "sfpu", "reduce", "fused", "move"]


@dataclass(frozen=True, slots=True)
class OnDevice:
    """What is claimed of an op's bits in precision "device" on Wormhole B0 and Blackhole (DEVICE_NUMERICS 9, 10).

    `exact`: formats of operands and results for which every unit on the way was compared bit for bit with the public
    simulator, and their order read in the public kernels; none where a part of the op itself was read or inferred.
    `open`: what was not compared, not counting other formats.
    """

    exact: tuple[str, ...] = ()
    open: str = ""


@dataclass(frozen=True, slots=True)
class OpType:
    """One op type. `inputs` = (least, most) accepted at load (NETLIST 11.1 A4).

    `op` and `device` name the modules that implement it: shape rule, format label, reference and kernels
    (`buda_emu.emulator.ops.base.Implementation`); its steps on the device
    (`buda_emu.emulator.ops.on_device.base.DeviceOp`). They are imported when a netlist uses the op. Without `op` the
    reference refuses the type.
    """

    name: str
    family: Family
    inputs: tuple[int, int]
    doc: str
    op: str = ""
    device: str = ""
    traits: tuple[Trait, ...] = ()
    attributes: tuple[str, ...] = ()  # beside those that every op may have
    late_z: tuple[str, str | bool] | None = None  # attribute and value that must stand before `z`
    in_fused: bool = False  # legal in a fused schedule (OPS 8.2)
    transposed: int | None = None  # operand whose tiles the transpose flag turns (OPS 7.4)
    transposes_on_grayskull: bool = True
    result_tile: ResultTile = "least"  # not blanked, on the device: the least of operand 0's and the op's (OPS 6)
    integers: tuple[str, ...] = ("Int8", "UInt8", "UInt16", "Int32", "RawUInt32")  # formats of integer operands (V102)
    integers_in_fused: tuple[str, ...] = ("Int8", "Int32")  # and of inputs of a fused op (V141)
    costs_as: str = "nop"  # whose cycles are nearest, where its own were not measured
    drawn_as: Group = "move"
    on_device: OnDevice = OnDevice()

    def has(self, trait: Trait) -> bool:
        """Whether the op type has a trait."""
        return trait in self.traits

    @property
    def runs(self) -> bool:
        """Whether the reference creates such ops."""
        return bool(self.op)

    @property
    def one_input(self) -> bool:
        """Whether it takes one input and no more."""
        return self.inputs == (1, 1)

    def transpose_refusal(self, index: int, arch: str = "", df: str = "") -> str:
        """Why operand `index` may not be transposed (NETLIST 1.6, OPS 7.4), "" where it may. `df` is the format of
        operand 0; "" stands for an architecture or a format that is not known."""
        if self.transposed is None:
            return f"{self.name} cannot transpose"
        if index != self.transposed and not self.one_input:
            return f"{self.name} transposes its input {self.transposed} only"
        if not self.transposes_on_grayskull and arch == "grayskull":
            return f"{self.name} cannot transpose on grayskull"
        return (
            f"{self.name} cannot transpose with an Int32 input 0" if self.has("tile by tile") and df == "Int32" else ""
        )

    @property
    def is_binary(self) -> bool:
        """The element-wise two-operand ops, the quantisation family included."""
        return self.inputs[0] == 2 and self.has("tile by tile")

    @property
    def inputs_text(self) -> str:
        """How many inputs it takes: `1`, `2+` or `1-8`."""
        least, most = self.inputs
        if least == most:
            return str(least)
        return f"{least}+" if most == ANY else f"{least}-{most}"


TILE_BY_TILE: tuple[Trait, ...] = ("tile by tile", "keeps shape")

ANY = 1 << 30
"""As many inputs as one likes."""

# Of family A the blocks were not compared (DEVICE_NUMERICS 1.2, 4.5), nor max pool of any of it (2.6).
WIDE = ("Float32", "Float16_b", "Bfp8_b", "Bfp4_b", "Bfp2_b")
FLOATS = (*WIDE, "Float16", "Lf8", "Fp8_e4m3")
INTEGERS = ("Int8", "UInt8", "Int32")
READ = OnDevice(open="its place among the units was inferred")


GROUP: Final = "buda_emu.emulator.ops"


class OpTypes(Mapping[str, OpType]):
    """Op types by name. Other packages are asked for a word that is not among the `own`, once: looking for them takes
    longer than a netlist of known ops."""

    def __init__(self, own: Iterable[OpType]) -> None:
        self._known = {op.name: op for op in own}
        self._own = frozenset(self._known)
        self._asked = False

    def find(self, name: str) -> OpType | None:
        """That of a word, None for one that is not an op type's: as `get`, but quick, for who asks all the time."""
        found = self._known.get(name)
        if found is None and not self._asked:
            self._ask()
            found = self._known.get(name)
        return found

    def __getitem__(self, name: str) -> OpType:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def is_own(self, name: str) -> bool:
        """Whether the op type comes with this package."""
        return name in self._own

    def _ask(self) -> None:
        from importlib.metadata import entry_points

        self._asked = True
        for point in entry_points(group=GROUP):
            if point.name not in self._known:
                self._known[point.name] = _declared(point.name, point.load())


def _declared(name: str, found: object) -> OpType:
    if not isinstance(found, OpType) or found.name != name:
        raise TypeError(f"entry point {name} of {GROUP} is not an OpType of that name, but {found!r}")
    return found
