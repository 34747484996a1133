"""Examples of the copies, the two-operand ops and the SFPU functions."""

from typing import Any

from op_examples.example import Example, make_call, operand

SHAPE = (2, 1, 2)
TINY_TILES = [((16, 32), (16, 32)), ((1, 32), (32, 32)), ((32, 32), (32, 16)), ((8, 32), (4, 32))]


def copies(type: str) -> list[Example]:
    found = [
        Example("in place", make_call(type, [operand(SHAPE)]), ("bits",), same_nans=True),
        Example("mapped", make_call(type, [operand(SHAPE, 1)]), ("bits",), same_nans=True),
        Example("padded", make_call(type, [operand(SHAPE, 2, -1.5)]), ("bits",), same_nans=True),
        Example("transposed", make_call(type, [operand(SHAPE, 3, 2.5)], transpose=True), ("bits",), same_nans=True),
    ]
    for in_dim, out_dim in TINY_TILES:
        tiny = make_call(type, [operand(SHAPE, 4, tile_dim=in_dim)], out_dim, transpose=out_dim == (32, 16))
        found.append(Example(f"tile {in_dim} to {out_dim}", tiny, ("adversarial",)))
    return found


def binaries(type: str, attributes: dict[str, Any] | None = None) -> list[Example]:
    def call(*operands: Any, **others: Any) -> Any:
        return make_call(type, operands, attributes=attributes or {}, **others)

    odd = ("adversarial", "adversarial")
    found = [
        Example("in place", call(operand(SHAPE), operand(SHAPE)), odd),
        Example("mapped", call(operand(SHAPE, 1), operand(SHAPE, 2)), odd),
        Example("padded", call(operand(SHAPE, 3, 0.0), operand(SHAPE, 4, -3.25)), odd),
        Example("transposed", call(operand(SHAPE, 5, 1.5), operand(SHAPE, 6), transpose=True), odd),
        Example("other shape", call(operand((1, 2, 3)), operand((1, 2, 3), 7)), ("plain", "plain")),
    ]
    found += [
        Example(f"tile_broadcast {dim}", call(operand(SHAPE, 8), operand(SHAPE, 9, 0.5, tile_broadcast=dim)), odd)
        for dim in ("r", "c", "rc")
    ]
    found += [
        Example(
            f"tile {in_dim} to {out_dim}",
            call(operand(SHAPE, 4, tile_dim=in_dim), operand(SHAPE, tile_dim=in_dim), tile_dim=out_dim),
            odd,
        )
        for in_dim, out_dim in TINY_TILES
    ]
    return found


def quantizations(type: str) -> list[Example]:
    return [
        Example(f"{example.id}, zero point {zero_point}", example.call, example.values)
        for zero_point in (0.0, 3.7)
        for example in binaries(type, {"zero_point": zero_point})
    ]


_DOMAINS = {"sqrt": "not negative", "reciprocal": "invertible"}
_ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "dropout": [{}, {"p": 0.0}, {"p": 0.3}, {"p": 1.0}],
    "power": [{}, {"exp": -2}, {"exp": 1}, {"exp": 3}],
    "lrelu": [{}, {"slope": 0.3}],
}


def sfpus(type: str) -> list[Example]:
    kind = (_DOMAINS.get(type, "adversarial"),)
    found: list[Example] = []
    for attributes in _ATTRIBUTES.get(type, [{}]):
        name = ", ".join(f"{key} {value}" for key, value in attributes.items())
        for vector in ("rc", "r", "c"):
            call = make_call(type, [operand(SHAPE, 1, 1.5)], attributes=attributes, vector=vector)
            found.append(Example(f"vector {vector} {name}", call, kind))
    found.append(Example("transposed", make_call(type, [operand(SHAPE, 2)], transpose=True, vector="r"), kind))
    found.append(Example("nothing accepted", make_call(type, [operand(SHAPE)]), ("bits",)))
    for in_dim, out_dim in TINY_TILES:
        call = make_call(type, [operand(SHAPE, 4, tile_dim=in_dim)], out_dim, vector="r" if in_dim[1] == 32 else "c")
        found.append(Example(f"tile {in_dim} to {out_dim}", call, kind))
    return found
