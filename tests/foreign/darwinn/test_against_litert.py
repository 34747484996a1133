"""Kernels against the reference kernels of ai-edge-litert, an independent implementation, on random models."""

import zlib

import numpy as np
import pytest

from buda_emu.foreign.darwinn import Twin
from buda_emu.foreign.darwinn.tflite import BUILTIN_OPERATORS
from buda_emu.foreign.darwinn.tflite import TENSOR_TYPE_NAMES as TENSOR_TYPES
from foreign.darwinn.random_operators import MAKERS

interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")


def reference(data):
    """Its interpreter with reference kernels: others of the same library round otherwise."""
    kernels = interpreter.OpResolverType.BUILTIN_REF
    made = interpreter.Interpreter(model_content=data, experimental_op_resolver_type=kernels)
    made.allocate_tensors()
    return made


def agree(name, seed):
    """Two runs, so that state counts, with random inputs."""
    r = np.random.default_rng([seed, zlib.crc32(name.encode())])
    data = MAKERS[name](r)
    other, twin = reference(data), Twin(data)
    for _ in range(2):
        feeds = {}
        for item in other.get_input_details():
            ends = np.iinfo(item["dtype"])
            feeds[item["name"]] = r.integers(ends.min, ends.max + 1, item["shape"]).astype(item["dtype"])
            other.set_tensor(item["index"], feeds[item["name"]])
        other.invoke()
        found = twin.run(feeds)
        for item in other.get_output_details():
            want = other.get_tensor(item["index"])
            assert found[item["name"]].dtype == want.dtype
            assert np.array_equal(found[item["name"]], want), (name, seed)


def test_names_are_those_of_the_schema():
    """A newer library may append names, and does not change any."""
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    operators = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
    types = {number: name.lower() for name, number in vars(schema.TensorType).items() if isinstance(number, int)}
    assert operators.items() >= BUILTIN_OPERATORS.items()
    assert types.items() >= TENSOR_TYPES.items()


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_random_cases(name):
    for seed in range(25):
        agree(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_many_random_cases(name):
    for seed in range(25, 1000):
        agree(name, seed)
