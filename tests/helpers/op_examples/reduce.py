"""Examples of reduce."""

from op_examples.example import Example, make_call, operand


def reductions(type: str) -> list[Example]:
    shape = (4, 2, 3)
    return [
        Example(
            f"{dim} of {kind}, {where}", make_call(type, [at], attributes={"type": "max", "dim": dim, "z": 2}), (kind,)
        )
        for dim in ("r", "c", "rc", "z")
        for kind in ("adversarial", "plain", "bits")
        for where, at in (("in place", operand(shape)), ("mapped", operand(shape, 1, -2.0)))
    ]
