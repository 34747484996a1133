"""Damages of JSON files that the package writes and reads again, drawn at random."""

import json
import random
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, -2, 1 << 62, 1 << 70, -(1 << 70), 1.5, 1e308, "", "x", "<b>", "\0", "NaN", [], [[]],
    [None], [-1], [1, 2, 3], {}, {"a": 1}, {"schema_version": 1},
)  # fmt: skip
TEXTS: tuple[bytes, ...] = (
    b"", b"5", b"null", b"[1,2]", b"{", b"}", b'"', b"\xff\xfe", b"\0", b"NaN", b'{"a": Infinity}', b"[" * 5000,
    b'{"a":' * 5000, b'{"a": 1, "a": 2}', b"1" * 5000, b"-", b"{}", b"[]", b'{"a": 1e999}', b"\xef\xbb\xbf{}",
)  # fmt: skip


def damaged(data: bytes, draw: random.Random) -> bytes:
    """A JSON document with one damage: of its bytes, or of a value somewhere in it."""
    kind = draw.randrange(6)
    if kind == 0:
        return draw.choice(TEXTS)
    if kind == 1:
        return data[: draw.randrange(len(data))]
    if kind == 2:
        place = draw.randrange(len(data))
        return data[:place] + bytes([draw.randrange(256)]) + data[place + 1 :]
    value = json.loads(data)
    if not _damage_value(value, draw):
        return draw.choice(TEXTS)
    text = json.dumps(value).encode()
    return text.replace(b'"NaN"', b"NaN") if draw.random() < 0.5 else text


def _damage_value(value: Any, draw: random.Random) -> bool:
    """Change one value, or take one away, at a random depth. False where there is none."""
    while isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = draw.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and draw.random() < 0.7:
            value = inner
            continue
        if draw.random() < 0.3:
            del value[key]
        elif isinstance(value, dict) and draw.random() < 0.1:
            value[f"{key}x"] = value.pop(key)
        else:
            value[key] = draw.choice(VALUES)
        return True
    return False
