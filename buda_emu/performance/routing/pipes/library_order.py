"""Orders that follow from libstdc++, with which net2pipe is built: of its hash tables, and of what it sorts.

The table of queues' names decides which of a DRAM channel's ports a queue's buffer is given where a channel has
several, and so the NoCs of the pipes that read and write it; the table of a chip's Ethernet channels which link is
taken first.
`std::sort` is not stable: what is equal changes places.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_T = TypeVar("_T")

_MASK: Final = (1 << 64) - 1
_FACTOR: Final = 0xC6A4A7935BD1E995
_SEED: Final = 0xC70F6907
_SIZES: Final = (1, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933)
"""Numbers of buckets: the table is made again with the next one when it is full."""


def hashed(name: str) -> int:
    """MurmurHash2 in 64 bits, as libstdc++ hashes strings."""
    data = name.encode()
    value = _SEED ^ (len(data) * _FACTOR & _MASK)
    whole = len(data) & ~7
    for start in range(0, whole, 8):
        word = int.from_bytes(data[start : start + 8], "little") * _FACTOR & _MASK
        value = (value ^ (word ^ word >> 47) * _FACTOR & _MASK) * _FACTOR & _MASK
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 47) * _FACTOR & _MASK
    return value ^ value >> 47


def in_table_order(names: Iterable[str]) -> list[str]:
    """`names`, inserted one by one, in the order in which the table is walked. ValueError for more than it is made for
    here (172,933)."""
    return table_order(names, hashed)


def table_order(keys: Iterable[_T], value_of: Callable[[_T], int]) -> list[_T]:
    """The same of any keys; `value_of`: a key's hash, of an integer itself."""
    order: list[tuple[_T, int]] = []
    sizes = iter(_SIZES)
    size = next(sizes)
    buckets: dict[int, list[tuple[_T, int]]] = {}
    for count, key in enumerate(keys, 1):
        if count > size or size == 1:
            order = _walked(buckets)
            size = next(sizes, 0)
            if not size:
                raise ValueError(f"more than {_SIZES[-1]} names")
            buckets = {}
            for item in order:
                buckets.setdefault(item[1] % size, []).append(item)
        value = value_of(key)
        buckets.setdefault(value % size, []).append((key, value))
    return [key for key, _ in _walked(buckets)]


def _walked(buckets: dict[int, list[tuple[_T, int]]]) -> list[tuple[_T, int]]:
    """Buckets that were filled last come first, and in each what was put in last."""
    return [item for bucket in reversed(buckets.values()) for item in reversed(bucket)]


_ALREADY_SMALL: Final = 16
"""Parts of so many are left to the insertion sort at the end, which is stable."""


def sorted_as_vendor(items: Iterable[_T], key: Callable[[_T], float]) -> list[_T]:
    """What `std::sort` makes of them: parts around pivots, then an insertion sort. (Its heap sort, for parts that stay
    too uneven, is not followed.)"""
    made = list(items)
    keys = [key(one) for one in made]
    parts = [(0, len(made))]
    while parts:
        first, end = parts.pop()
        while end - first > _ALREADY_SMALL:
            cut = _parted(made, keys, first, end)
            parts.append((cut, end))
            end = cut
    order = sorted(range(len(made)), key=keys.__getitem__)
    return [made[one] for one in order]


def _parted(items: list[_T], keys: list[float], first: int, end: int) -> int:
    """Exchange what is not less than the median of three with what is not more; where the second part begins."""

    def swap(one: int, other: int) -> None:
        items[one], items[other] = items[other], items[one]
        keys[one], keys[other] = keys[other], keys[one]

    a = first + 1
    b = first + (end - first) // 2
    c = end - 1
    if keys[a] < keys[b]:
        swap(first, b if keys[b] < keys[c] else c if keys[a] < keys[c] else a)
    else:
        swap(first, a if keys[a] < keys[c] else c if keys[b] < keys[c] else b)
    left = first + 1
    right = end
    while True:
        while keys[left] < keys[first]:
            left += 1
        right -= 1
        while keys[first] < keys[right]:
            right -= 1
        if left >= right:
            return left
        swap(left, right)
        left += 1
