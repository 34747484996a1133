"""StrideDescriptor: how a convolution's activations are rearranged before they are tilized (NETLIST 7.2)."""

from collections.abc import Iterable, Sequence


class StrideDescriptor:
    """`stride`: of the convolution, -1 for none. `xy_offsets`: places (x, y) of the kernel's window."""

    def __init__(self) -> None:
        self.stride: int = -1
        self.xy_offsets: list[tuple[int, int]] = []

    def __getstate__(self) -> tuple[list[tuple[int, int]], int]:
        return list(self.xy_offsets), self.stride

    def __setstate__(self, state: tuple[Sequence[Iterable[int]], int]) -> None:
        offsets, self.stride = state
        self.xy_offsets = [(x, y) for x, y in offsets]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StrideDescriptor) and self.__getstate__() == other.__getstate__()

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it changes

    def __repr__(self) -> str:
        return f"StrideDescriptor(stride={self.stride}, xy_offsets={self.xy_offsets})"
