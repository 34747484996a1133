"""Whatever descriptors say, calls end with a status, and what was refused changed nothing (NETLIST 7.3)."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.api.backend.front_end import OK
from app.api.backend.small import SHAPE, entries, machine
from buda_emu.app import backend_api as api

FORMATS = [*api.DataFormat.__members__.values(), api.DataFormat(30), api.DataFormat(4), api.DataFormat(77)]
sizes = st.integers(0, 3) | st.sampled_from((32, 64, 2048, 4096, 1 << 40))
four = st.lists(sizes, min_size=4, max_size=4)
small = st.integers(-3, 5)


@pytest.fixture(scope="module")
def backend(tmp_path_factory):
    backend, descs = machine(tmp_path_factory.mktemp("machine"), quantise=True, unread="Int8")
    yield backend, descs
    backend.finish()


def pushed(desc, array, dim=4):
    tensor = api.PytorchTensorDesc(array, 4, api.DataFormat.Float32, dim, array.shape, array.strides)
    return api.push_input(desc, tensor, False, 0, 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(
    name=st.sampled_from("acowx"), word=st.sampled_from(FORMATS), itemsize=st.integers(0, 8), dim=small, shape=four,
    strides=four, one=st.booleans(), ptr=small, stride=st.integers(-1, 4), h=small, v=small, row_major=st.booleans(),
)  # fmt: skip
@example(
    name="a", word=api.DataFormat.Float16, itemsize=2, dim=0, shape=[0, 0, 1 << 40, 1 << 40], strides=[0] * 4,
    one=False, ptr=0, stride=0, h=0, v=0, row_major=False,
)  # fmt: skip
def test_calls_end(backend, name, word, itemsize, dim, shape, strides, one, ptr, stride, h, v, row_major):
    _, descs = backend
    desc = descs[name]
    desc.hstack_factor, desc.vstack_factor, desc.stack_row_major = h, v, row_major
    desc.s_descriptor.stride, desc.s_descriptor.xy_offsets = stride, [(0, 0), (1, 0)]
    memory = np.zeros(1 << 16, np.uint8)
    try:
        tensor = api.PytorchTensorDesc(memory, itemsize, word, dim, shape, strides)
    except RuntimeError:
        tensor = api.PytorchTensorDesc(memory)
        tensor.itemsize, tensor.format, tensor.dim, tensor.shape, tensor.strides = itemsize, word, dim, shape, strides
    statuses = [api.push_input(desc, tensor, one, 0, ptr)]
    try:
        packed = api.tilize_tensor(desc, tensor)
    except RuntimeError:
        packed = api.TilizedTensorDesc(1, 64, word)
        packed.data = memory[:64].reshape(1, 64)
    statuses.append(api.push_input(desc, packed, 0, ptr))
    statuses.append(api.get_output(desc, tensor, one, 0, ptr))
    if desc.io_type == api.IOType.Queue:
        while api.pop_output(desc, True, 0) == OK:
            pass
    assert {status.name for status in statuses} <= {"Success", "RuntimeError"}


def test_the_machine_is_as_it_was(backend):
    """Runs after the test above: the machine still takes and gives what it should."""
    machine, descs = backend
    for desc in descs.values():
        desc.s_descriptor = api.StrideDescriptor()
        desc.hstack_factor = desc.vstack_factor = 1
    data = entries(2)
    assert data.shape[1:] == SHAPE
    assert pushed(descs["c"], data[:1]) == OK
    assert pushed(descs["a"], data) == OK
    assert machine.run_program("p", {"$p_loop_count": "1"}) == OK
    out = api.PytorchTensorDesc()
    assert api.get_output(descs["o"], out, False, 0, 0) == OK
    np.testing.assert_array_equal(np.asarray(out), data)
