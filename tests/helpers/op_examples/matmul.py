"""Examples of dense and identity matmuls, and of depthwise."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from buda_emu.emulator.ops.base import Operand, PlannedOp
from buda_emu.spec.blocking import Blocking
from op_examples.encoding import random_encodings
from op_examples.example import VALUES, Example, adversarial, make_call, operand

SHAPE = (2, 1, 2)
RESULT = (2, 1, 3)
TINY_TILES = [((16, 32), (32, 32), (16, 32)), ((1, 32), (32, 32), (1, 32)), ((32, 32), (32, 16), (32, 16))]


def products(type: str) -> list[Example]:
    return dense(type) + identities(type)


def dense(type: str) -> list[Example]:
    def call(*operands: Operand, tile_dim: tuple[int, int] = (32, 32), **others: Any) -> PlannedOp:
        transpose, vector = others.pop("transpose", False), others.pop("vector", "rc")
        attributes = {"m_k": 2, "u_kt": 1, **others}
        return make_call(type, operands, tile_dim, attributes=attributes, transpose=transpose, vector=vector)

    def pair(first: int | None = None, second: int | None = None) -> tuple[Operand, Operand]:
        return operand(SHAPE, first, 0.5), operand((2, 2, 3), second, -1.5)

    def integer(*operands: Operand) -> list[Operand]:
        return [Operand(one.map, label="Int8") for one in operands]

    bias, scale = operand(RESULT, 5, 2.0), operand(RESULT, 6, 0.25)
    odd, plain, whole = ["adversarial"] * 4, ["plain"] * 4, ["small integers"] * 4
    found = [
        ("in place", call(*pair()), odd),
        ("plain", call(*pair()), plain),
        ("mapped", call(*pair(1, 2)), odd),
        ("transposed", call(*pair(1, 2), transpose=True), odd),
        ("more weights than needed", call(operand(SHAPE), operand((3, 2, 3), 3)), plain),
        ("larger", call(operand((1, 6, 5), 1), operand((1, 5, 3), 2), m_k=1, u_kt=5), plain),
        ("accumulate all", call(*pair(1, 2), accumulate=True, z=2), odd),
        ("accumulate", call(operand((4, 1, 2), 3), operand((5, 2, 3), 4), accumulate=True, z=2), odd),
        ("bias", call(*pair(), bias, bias=True), odd),
        ("integer bias", call(*integer(*pair(), bias), bias=True), odd),
        ("accumulate, bias", call(*pair(), operand((1, 1, 3)), accumulate=True, z=2, bias=True), plain),
        ("requant", call(*pair(), scale, requant=True, zero_point=3.0), odd),
        ("dequant", call(*pair(), scale, dequant=True, zero_point=-2.5), odd),
        ("requant of integers", call(*integer(*pair()), scale, requant=True), whole),
        ("integers too great to requantise", call(*integer(*pair()), scale, requant=True), odd),
        ("bias, requant", call(*pair(), bias, scale, requant=True, bias=True, zero_point=1.0), odd),
        ("integer bias, dequant", call(*integer(*pair(), bias), scale, dequant=True, bias=True), odd),
        ("word without meaning", call(*pair(), sfpu_op="invalid"), plain),
    ]
    found += [
        (f"gelu {vector}", call(*pair(), bias, sfpu_op="gelu", bias=True, vector=vector), odd)
        for vector in ("rc", "r", "c")
    ]
    for in0, in1, out in TINY_TILES:
        left, right = Operand(pair(1)[0].map, in0), Operand(pair(1, 2)[1].map, in1)
        for transpose in (False, True):
            tiny = call(left, right, bias, bias=True, tile_dim=out, transpose=transpose)
            found.append((f"tiles {in0} by {in1}, transpose {transpose}", tiny, odd))
    return [Example(name, made, tuple(kinds[: len(made.operands)])) for name, made, kinds in found]


def sparse_weights(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Mostly zeros of both signs: rows with no, one, or more elements."""
    zeros = rng.choice(np.array([0.0, -0.0], np.float32), shape)
    return np.where(rng.integers(0, 40, shape) == 0, adversarial(rng, shape), zeros)


VALUES["sparse weights"] = sparse_weights


def identity_call(type: str, operands: list[Operand], blocking: Blocking, **attributes: Any) -> PlannedOp:
    transpose = attributes.pop("transpose", False)
    written = {"identity": True, "sparse_tile_ptr_bits": 6, **attributes}
    return make_call(type, operands, blocking=blocking, attributes=written, out_df="Float16_b", transpose=transpose)


def identities(type: str) -> list[Example]:
    one_core = Blocking((1, 1), 2, (2, 1), (2, 3), "r")
    cores = Blocking((2, 4), 2, (3, 1), (1, 1), "r")
    code = operand((1, 1, 2))
    code = Operand(code.map, label="RawUInt32")
    codes = Operand(operand((1, 2, 2)).map, label="RawUInt32")
    one = [operand((1, 1, 3), 1), operand((2, 6, 3), 2, 0.75), code]
    several = [operand((2, 4, 12)), operand((1, 4, 4), 3), codes]
    tiny = [Operand(one[0].map, (32, 16)), Operand(one[1].map, (16, 32)), code]
    # A padded weight is not a tile of the source; a pad that is not finite cannot leave zeros of the weights out.
    padded = [operand((1, 1, 3), 7, 0.5), operand((2, 6, 3), 8, float("inf")), code]
    bias = operand((2, 4, 3), 4)
    found = [
        ("one core", identity_call(type, one, one_core, m_k=6, u_kt=2)),
        ("cores", identity_call(type, several, cores, m_k=1, u_kt=4, fracture_factor=2, sparse_ublock_idx_bits=2)),
        ("bias", identity_call(type, [*one, bias], one_core, m_k=6, u_kt=2, bias=True)),
        ("gelu", identity_call(type, one, one_core, m_k=6, u_kt=2, sfpu_op="gelu")),
        ("tiny, transposed", identity_call(type, tiny, one_core, m_k=6, u_kt=2, transpose=True)),
        ("padded", identity_call(type, padded, one_core, m_k=6, u_kt=2)),
    ]
    examples: list[Example] = []
    for name, made in found:
        VALUES[f"encoding: {name}"] = partial(random_encodings, made)
        for weights, acts in (("sparse weights", "plain"), ("sparse weights", "adversarial"), ("plain", "plain")):
            kinds = (weights, acts, f"encoding: {name}", "adversarial")
            examples.append(Example(f"identity {name}, {weights}, {acts}", made, kinds[: len(made.operands)]))
    return examples


def depthwises(type: str) -> list[Example]:
    def call(*operands: Operand, tile_dim: tuple[int, int] = (32, 32), **attributes: Any) -> PlannedOp:
        return make_call(type, operands, tile_dim, attributes={"m_k": 3, "u_kt": 1, **attributes})

    odd = ("adversarial",) * 3
    data, weights, bias = operand((2, 2, 6), 1, 1.5), operand((2, 3, 2), 2, -0.5), operand((2, 2, 2), 3)
    tiny = Operand(data.map, (8, 32))
    return [
        Example("in place", call(operand((2, 2, 6)), operand((2, 3, 2))), odd[:2]),
        Example("plain", call(operand((1, 1, 3)), operand((2, 3, 1))), ("plain", "plain")),
        Example("mapped", call(data, weights), odd[:2]),
        Example("bias", call(data, weights, bias, bias=True), odd),
        Example("tiny tiles", call(tiny, weights, bias, bias=True, tile_dim=(8, 32)), odd),
    ]
