"""A model of TensorFlow comes by way of tf2onnx (docs/compile/compile.md)."""

from typing import Any

import numpy as np
import pytest

import buda_emu as be

tf2onnx: Any = pytest.importorskip("tf2onnx", reason="tf2onnx is not installed")
tensorflow: Any = pytest.importorskip("tensorflow", reason="tensorflow is not installed")


def test_gives_what_tensorflow_gives():
    layers = tensorflow.keras.layers
    model = tensorflow.keras.Sequential(
        [layers.Input((16, 16, 3)), layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(10)]
    )
    converted, _ = tf2onnx.convert.from_keras(model)
    x = np.random.default_rng(0).standard_normal((1, 16, 16, 3)).astype(np.float32)
    (found,) = be.compile(converted, (x,))(x)
    np.testing.assert_allclose(found, model(x).numpy(), rtol=1e-3, atol=1e-4)
