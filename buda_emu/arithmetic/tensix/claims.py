"""What is not claimed of the vector unit and the packer: rules that rest on documents or inference, not on comparison.

All else in `buda_emu.arithmetic.tensix` was compared bit for bit with the public simulator, on Wormhole B0 and
Blackhole (DEVICE_NUMERICS 6.3, 9, 10).
"""

from dataclasses import dataclass
from typing import Final

from buda_emu.arithmetic.tensix.registers import Core

_ALL: Final[tuple[Core, ...]] = ("grayskull", "wormhole_b0", "blackhole")


@dataclass(frozen=True, slots=True)
class Caveat:
    """A statement of what is not claimed: the cores it holds for, the unit, what is open, and the section that says
    so."""

    cores: tuple[Core, ...]
    unit: str
    text: str
    section: str


NOT_CLAIMED: Final[tuple[Caveat, ...]] = (
    Caveat(
        ("grayskull",),
        "vector unit",
        "the arithmetic is Wormhole's with the constants of Grayskull's kernels: its own is not known",
        "3.4",
    ),
    Caveat(("grayskull",), "dropout", "the generator is Wormhole's, Grayskull has another one", "3.4"),
    Caveat(("grayskull",), "packer", "the rules are Wormhole's", "6.3"),
    Caveat(_ALL, "unpacker", "Bfp8, Bfp4 and Bfp2 come from documents", "1.2, 9"),
    Caveat(_ALL, "max pool", "of family A it is by analogy with family B", "2.6"),
    Caveat(
        _ALL,
        "elementary functions",
        "which products and sums are one multiply-add was read in the compiler's source; if it is different, "
        "a step moves by about one unit of fp32, exp by up to 256",
        "6.3, 10",
    ),
    Caveat(
        _ALL,
        "sine, cosine",
        "the chip rounds the quotient by pi at random; here to nearest. On the chip the error may reach 4.5e-4 and "
        "1.8e-3, in approximate mode 7.5e-2 and 0.21",
        "6.3",
    ),
    Caveat(_ALL, "dropout", "which values are dropped depends on the core's place, taken as (0, 0)", "6.3"),
    Caveat(_ALL, "sigmoid, gelu_derivative", "table 2 of LUT16 and its sign come from documents", "3.2"),
    Caveat(_ALL, "fused ops", "the cast of a 32-bit dest that becomes an operand of family A was read", "2.8"),
    Caveat(_ALL, "identity matmul", "that it spills after each strip is inferred", "6.2"),
    Caveat(_ALL, "packer", "stochastic rounding is not modelled", "4.7"),
    Caveat(_ALL, "packer", "Bfp8, Bfp4, Bfp2 and Lf8 outputs come from documents, by analogy with family B", "4.5"),
    Caveat(_ALL, "packer", "UInt16 from an integer op is clamped by analogy with UInt8", "4.2"),
    Caveat(_ALL, "packer", "Float16 from a 16-bit Dst of family B was read only", "4.1, 9"),
    Caveat(("grayskull", "wormhole_b0"), "packer", "outputs of family A from a 32-bit Dst were read only", "4.1, 9"),
    Caveat(
        _ALL,
        "packer relu",
        "where Dst and output have exponents of different widths the threshold is in the bits of the output's family, "
        "though it is compared with Dst's",
        "4.3",
    ),
    Caveat(
        _ALL,
        "packer relu",
        "of integers only clearing negatives is known; a threshold is inferred: its integer part is compared "
        "with the number, as for floats",
        "4.3",
    ),
)
"""In the order of a table that a user reads."""


def caveats(core: Core) -> tuple[Caveat, ...]:
    """Return the caveats that apply to one core, in the order of `NOT_CLAIMED`."""
    return tuple(caveat for caveat in NOT_CLAIMED if core in caveat.cores)
