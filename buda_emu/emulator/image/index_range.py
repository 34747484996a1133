"""Which indices an input of a model may hold: the host refuses all others, for which the device would read zeros, or
the memory behind a table."""

from dataclasses import dataclass

from buda_emu.emulator.image.arrays import Array, np
from buda_emu.emulator.image.fields import flag, integer_between, list_of, natural, optional, optional_field
from buda_emu.support.errors import HostError

NO_INDEX = 0xFFFFFFFF
"""The index word that reads a row of zeros (OPS 6.9)."""


@dataclass(frozen=True, slots=True)
class IndexRange:
    """The indices that elements of an input may be: those of `rows` rows (0: the number is not known), with `from_end`
    also negative ones, which count from the end, and `zero`, which stands for no row. `elements` are the numbers of the
    elements, in the flat input, that are indices; empty if all are."""

    rows: int = optional_field(natural, 0)
    from_end: bool = optional_field(flag, False)
    zero: int | None = optional_field(optional(integer_between(-(1 << 63), (1 << 63) - 1)))
    elements: tuple[int, ...] = optional_field(list_of(natural), ())

    @property
    def lowest(self) -> int:
        """The lowest index of a row."""
        return -self.rows if self.from_end else 0

    def reads_zeros(self, indices: "Array") -> "Array":
        """Return, for each index, whether it is the one that stands for no row."""
        if self.zero is None:
            return np.zeros(indices.shape, bool)
        return indices == self.zero

    def check(self, array: "Array", label: str) -> None:
        """Raise HostError if the input called `label` holds an index that is neither in range nor the one for no
        row."""
        flat = array.reshape(-1)
        if self.elements:
            flat = flat[list(self.elements)]
        indices = flat.astype(np.int64)
        wrong = (indices < self.lowest) | (indices >= (self.rows or NO_INDEX))
        unfit = indices[~self.reads_zeros(indices) & wrong]
        if unfit.size:
            hint = ""
            if self.lowest == 0 > unfit[0] and self.zero is None:
                hint = "; add the number of rows to an index that is counted from the end"
            raise HostError(f"input {label}: index {unfit[0]}: {self._range_text()}{hint}")

    def _range_text(self) -> str:
        """Return which indices the model takes, in words for a message."""
        upper_bound = f" to {self.rows - 1}" if self.rows else " on"
        if self.zero is None:
            ignored = ""
        else:
            ignored = f", and {self.zero} for none"
        return f"the model takes indices from {self.lowest}{upper_bound}{ignored}"
