"""Orders that follow from libstdc++, with which net2pipe is built: the order of its hash tables, and of `std::sort`.

The table of queues' names decides which port of a DRAM channel with several ports a queue's buffer gets, and so the
NoCs of the pipes that read and write it. The table of a chip's Ethernet channels decides which link is taken first.
`std::sort` is not stable: equal entries change places.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final, TypeVar

_T = TypeVar("_T")

_MASK: Final = (1 << 64) - 1  # 64 bits
_FACTOR: Final = 0xC6A4A7935BD1E995  # of MurmurHash2
_SEED: Final = 0xC70F6907  # libstdc++'s
_SIZES: Final = (1, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933)
"""Numbers of buckets: the table is made again with the next one when it is full."""


def hash_name(name: str) -> int:
    """Return the hash of a string by MurmurHash2 in 64 bits, as libstdc++ computes it."""
    data = name.encode()
    value = _SEED ^ (len(data) * _FACTOR & _MASK)
    whole_words = len(data) & ~7
    for start in range(0, whole_words, 8):
        word = int.from_bytes(data[start : start + 8], "little") * _FACTOR & _MASK
        value = (value ^ (word ^ word >> 47) * _FACTOR & _MASK) * _FACTOR & _MASK
    if whole_words < len(data):
        value = (value ^ int.from_bytes(data[whole_words:], "little")) * _FACTOR & _MASK
    value = (value ^ value >> 47) * _FACTOR & _MASK
    return value ^ value >> 47


def in_table_order(names: Iterable[str]) -> list[str]:
    """Return `names` in the order in which libstdc++ iterates over a hash table into which they were inserted one by
    one. Raises ValueError for more than 172,933 names."""
    return table_order(names, hash_name)


def table_order(keys: Iterable[_T], value_of: Callable[[_T], int]) -> list[_T]:
    """Return keys in the order in which libstdc++ iterates over a hash table into which they were inserted one by one;
    `value_of` returns a key's hash (for an integer, itself). Raises ValueError for more than 172,933 keys."""
    order: list[tuple[_T, int]] = []
    sizes = iter(_SIZES)
    size = next(sizes)
    buckets: dict[int, list[tuple[_T, int]]] = {}
    for count, key in enumerate(keys, 1):
        if count > size or size == 1:
            order = _walk_table(buckets)
            size = next(sizes, 0)
            if not size:
                raise ValueError(f"more than {_SIZES[-1]} names")
            buckets = {}
            for entry in order:
                buckets.setdefault(entry[1] % size, []).append(entry)
        value = value_of(key)
        buckets.setdefault(value % size, []).append((key, value))
    return [key for key, _ in _walk_table(buckets)]


def _walk_table(buckets: dict[int, list[tuple[_T, int]]]) -> list[tuple[_T, int]]:
    """Return all entries (key, hash) of the buckets in the order in which libstdc++ iterates over them: the bucket that
    was opened last comes first, and in each the entry that was inserted last."""
    return list(chain.from_iterable(reversed(bucket) for bucket in reversed(buckets.values())))


_ALREADY_SMALL: Final = 16
"""Parts of so many are left to the insertion sort at the end, which is stable."""


def sort_as_vendor(items: Iterable[_T], key: Callable[[_T], float]) -> list[_T]:
    """Return the items in the order of their keys, equal ones in the order in which `std::sort` leaves them, which is
    not stable. Its heap sort, for parts that stay too uneven, is not reproduced."""
    ordered = list(items)
    keys = [key(item_index) for item_index in ordered]
    parts = [(0, len(ordered))]
    while parts:
        first, end = parts.pop()
        while end - first > _ALREADY_SMALL:
            cut = _partition(ordered, keys, first, end)
            parts.append((cut, end))
            end = cut
    order = sorted(range(len(ordered)), key=keys.__getitem__)
    return [ordered[item_index] for item_index in order]


def _partition(items: list[_T], keys: list[float], first: int, end: int) -> int:
    """Exchange, in place, entries from `first` to `end` around the median of three, as `std::sort` does, and return the
    begin of the second part. `keys` changes with `items`."""

    def swap(left_index: int, right_index: int) -> None:
        """Exchange two entries and their keys."""
        items[left_index], items[right_index] = items[right_index], items[left_index]
        keys[left_index], keys[right_index] = keys[right_index], keys[left_index]

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
