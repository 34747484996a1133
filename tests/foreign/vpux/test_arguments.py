"""Argument buffers: what is packed comes back, in both forms and both groupings."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buda_emu.foreign.vpux.arguments import WINDOW_ARGUMENTS, TensorArg, pack, unpack
from buda_emu.support.errors import HostError

tensors = st.builds(
    lambda shape, order, dtype, address, location: TensorArg(
        tuple(shape), tuple(item for item in order if item < len(shape)), dtype, None, location, address
    ),
    st.lists(st.integers(1, 100), min_size=1, max_size=5),
    st.permutations(range(5)),
    st.sampled_from(["f16", "f32", "ui8", "si32", "si64"]),
    st.integers(0, (1 << 32) - 1),
    st.sampled_from(["CMX_NN", "DDR"]),
)


@given(st.lists(tensors, max_size=4), st.booleans(), st.sampled_from([0, 64, 4096]))
def test_tensors_come_back(given_tensors: list[TensorArg], grouped: bool, offset: int) -> None:
    inputs = len(given_tensors) // 2 if grouped else None
    for abi in (32, 36):
        scalars = [7, -3, 0.5] if abi == 36 else [("i64", 7), ("i64", -3), ("f32", 0.5)]
        data = pack(given_tensors, scalars, abi, offset=offset, inputs=inputs)
        back = unpack(data, len(given_tensors), ("i64", "i64", "f32"), abi, offset=offset)
        assert back["scalars"] == [7, -3, 0.5]
        for tensor, found in zip(given_tensors, back["tensors"], strict=True):
            shape, strides = tensor.memory()
            assert found["dims"] == list(reversed(shape))
            assert found["strides"] == list(reversed(strides))
            assert found["order"] == tensor.dims_order.kernel_code
            assert found["dtype"] == tensor.dtype
            assert found["address"] == tensor.address
            assert found["dims_address"] >= WINDOW_ARGUMENTS + offset


def test_scalars_of_today_are_wide_and_booleans_sign_extended() -> None:
    assert pack([], [True, False, 2, (3, [4])]) == struct.pack("<5q", -1, 0, 2, 3, 4)
    assert pack([], [0.1]) == struct.pack("<f", 0.1)
    assert pack([], [("f16", 6.0), ("ui8", 255)], abi=32) == struct.pack("<eB", 6.0, 255)


def test_a_dynamic_tensor_finds_its_dims_elsewhere_and_they_still_stand_in_the_area() -> None:
    tensor = TensorArg((1, 3), None, "f16", dynamic=True, dims_address=0x1F000100)
    data = pack([tensor])
    (found,) = unpack(data, 1)["tensors"]
    assert (found["static"], found["dims_address"], found["dims"]) == (False, 0x1F000100, None)
    assert data[36:44] == struct.pack("<2i", 3, 1)


def test_quantised_types_are_bytes_on_one_architecture_and_undefined_on_the_other() -> None:
    tensor = TensorArg((1,), None, "!quant.uniform<u8:f16, 0.5:114>")
    assert [struct.unpack_from("<I", pack([tensor], arch=arch), 20)[0] for arch in ("37XX", "40XX")] == [7, 16]


@pytest.mark.parametrize(
    "call",
    [
        lambda: pack([TensorArg((1,), None, "f17")]),
        lambda: pack([TensorArg((1, 2), (0, 0))]),
        lambda: pack([TensorArg((1, 2), None, "f16", (16,))]),
        lambda: pack([TensorArg((1,), None, address=1 << 32)]),
        lambda: pack([TensorArg((1,), None, location="L2")]),
        lambda: pack([TensorArg((1 << 40,))]),
        lambda: pack([], [1 << 70]),
        lambda: pack([], [3], abi=32),
        lambda: pack([], [("none", 3)], abi=32),
        lambda: pack([], abi=40),  # pyright: ignore[reportArgumentType]
        lambda: unpack(b"", 1),
        lambda: unpack(bytes(8), 0, ["string"]),
    ],
)
def test_what_cannot_be_packed_or_read(call: object) -> None:
    with pytest.raises(HostError):
        call()  # type: ignore[operator]
