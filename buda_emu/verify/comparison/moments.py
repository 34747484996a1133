"""Correlation of two streams of numbers that are never all held (float64, the same for any number of threads)."""

import numpy as np
from numpy.typing import NDArray

from buda_emu.records import dataclass


@dataclass(slots=True)
class Moments:
    """Counts, means and central sums of pairs (a, b). Blocks are merged pairwise exactly as they come, so the same
    blocks in the same order give the same bits."""

    count: int = 0
    mean_a: float = 0.0
    mean_b: float = 0.0
    square_a: float = 0.0
    square_b: float = 0.0
    product: float = 0.0

    def add(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
        """A block of finite pairs."""
        count = a.size
        if not count:
            return
        mean_a, mean_b = float(a.mean()), float(b.mean())
        da, db = a - mean_a, b - mean_b
        self._merge(count, mean_a, mean_b, float((da * da).sum()), float((db * db).sum()), float((da * db).sum()))

    def _merge(
        self, count: int, mean_a: float, mean_b: float, square_a: float, square_b: float, product: float
    ) -> None:
        total = self.count + count
        weight = self.count * count / total
        off_a, off_b = mean_a - self.mean_a, mean_b - self.mean_b
        self.square_a += square_a + off_a * off_a * weight
        self.square_b += square_b + off_b * off_b * weight
        self.product += product + off_a * off_b * weight
        self.mean_a += off_a * count / total
        self.mean_b += off_b * count / total
        self.count = total

    def pcc(self) -> float | None:
        """Pearson's correlation; 1 for two equal constants, None where a side is constant and they differ."""
        if not self.count:
            return None
        scale = (self.square_a * self.square_b) ** 0.5
        if scale > 0:
            return max(-1.0, min(1.0, self.product / scale))
        same = self.mean_a == self.mean_b and self.square_a == self.square_b == 0
        return 1.0 if same else None
