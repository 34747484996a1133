"""The order in which net2pipe takes the queues of a netlist: that of its hash table of their names.

It decides which of a DRAM channel's ports a queue's buffer is given where a channel has several, and so the NoCs of the
pipes that read and write it. The table is libstdc++'s `unordered_map<string, ...>`.
"""

from collections.abc import Iterable
from typing import Final

_MASK: Final = (1 << 64) - 1
_FACTOR: Final = 0xC6A4A7935BD1E995
_SEED: Final = 0xC70F6907
_SIZES: Final = (1, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933)
"""Numbers of buckets: the table is made anew with the next one when it is full."""


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
    order: list[tuple[str, int]] = []
    sizes = iter(_SIZES)
    size = next(sizes)
    buckets: dict[int, list[tuple[str, int]]] = {}
    for count, name in enumerate(names, 1):
        if count > size or size == 1:
            order = _walked(buckets)
            size = next(sizes, 0)
            if not size:
                raise ValueError(f"more than {_SIZES[-1]} names")
            buckets = {}
            for item in order:
                buckets.setdefault(item[1] % size, []).append(item)
        value = hashed(name)
        buckets.setdefault(value % size, []).append((name, value))
    return [name for name, _ in _walked(buckets)]


def _walked(buckets: dict[int, list[tuple[str, int]]]) -> list[tuple[str, int]]:
    """Buckets that were filled last come first, and in each what was put in last."""
    return [item for bucket in reversed(buckets.values()) for item in reversed(bucket)]
