"""Sparse matrices of row moves: y = M x, entry by entry, in plain numpy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.compiler.graph.graph import Array

Index = NDArray[np.int64]
Weight = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sparse:
    """A sparse matrix of `shape` (outputs, inputs): entry k adds `weight[k]` times input `col[k]` to output `row[k]`.
    Entries are ordered by row, then by column."""

    shape: tuple[int, int]
    row: Index
    col: Index
    weight: Weight

    @staticmethod
    def of(shape: tuple[int, int], row: Any, col: Any, weight: Any = 1.0) -> "Sparse":
        """Build a matrix from entries in any order; entries of weight 0 are dropped."""
        row = np.asarray(row, np.int64).ravel()
        col = np.asarray(col, np.int64).ravel()
        weight = np.broadcast_to(np.asarray(weight, np.float32), row.shape)
        nonzero = np.flatnonzero(weight)
        order = nonzero[np.lexsort((col[nonzero], row[nonzero]))]
        return Sparse((int(shape[0]), int(shape[1])), row[order], col[order], weight[order])

    @property
    def is_within(self) -> bool:
        """True if the rows, columns and weights are equally many and all entries lie inside of the shape."""
        parts = (self.row, self.col, self.weight)
        sizes = {part.shape for part in parts}
        return (
            len(sizes) == 1
            and self.row.ndim == 1
            and all(
                part.dtype.kind == "i" and bool(((part >= 0) & (part < limit)).all())
                for part, limit in zip(parts, self.shape, strict=False)
            )
        )

    @staticmethod
    def gather(index: Any, inputs: int) -> "Sparse":
        """Build the matrix that copies input index[i] to output i; a negative index gives 0."""
        index = np.asarray(index, np.int64).ravel()
        rows = np.flatnonzero(index >= 0)
        return Sparse.of((index.size, inputs), rows, index[rows])

    @staticmethod
    def dense(matrix: Array) -> "Sparse":
        """Build a matrix from a dense one."""
        row, col = np.nonzero(matrix)
        return Sparse.of((matrix.shape[0], matrix.shape[1]), row, col, matrix[row, col])

    def to_dense(self) -> NDArray[np.float32]:
        """Return the matrix as a dense float32 array."""
        matrix = np.zeros(self.shape, np.float32)
        np.add.at(matrix, (self.row, self.col), self.weight)
        return matrix

    def after(self, first: "Sparse") -> "Sparse":
        """Return the product of this matrix and `first`, so that applying it equals applying `first` and then this
        one."""
        begin = np.searchsorted(first.row, np.arange(first.shape[0] + 1))
        counts = (begin[1:] - begin[:-1])[self.col]
        left_entry = np.repeat(np.arange(self.col.size), counts)
        offset = np.arange(left_entry.size) - np.repeat(np.cumsum(counts) - counts, counts)
        entry = begin[self.col[left_entry]] + offset
        product = Sparse.of(
            (self.shape[0], first.shape[1]),
            self.row[left_entry],
            first.col[entry],
            self.weight[left_entry] * first.weight[entry],
        )
        return product.merge_duplicates()

    def merge_duplicates(self) -> "Sparse":
        """Return the matrix with the weights of entries at the same row and column added up."""
        repeats = (self.row[1:] == self.row[:-1]) & (self.col[1:] == self.col[:-1])
        if not repeats.any():
            return self
        begin = np.flatnonzero(np.concatenate([[True], ~repeats]))
        return Sparse.of(self.shape, self.row[begin], self.col[begin], np.add.reduceat(self.weight, begin))

    def transpose(self) -> "Sparse":
        """Return the transposed matrix."""
        return Sparse.of((self.shape[1], self.shape[0]), self.col, self.row, self.weight)

    def apply(self, array: Array) -> Array:
        """Return the matrix times the first dimension of an array. The result is float32, except that a matrix which
        only copies keeps the element type."""
        if np.all(self.weight == 1) and (self.row.size < 2 or np.all(self.row[1:] != self.row[:-1])):
            out = np.zeros((self.shape[0], *array.shape[1:]), array.dtype)
            out[self.row] = array[self.col]
            return out
        out = np.zeros((self.shape[0], *array.shape[1:]), np.float32)
        np.add.at(out, self.row, self.weight.reshape(-1, *[1] * (array.ndim - 1)) * array[self.col])
        return out
