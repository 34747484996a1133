"""The model of train.yaml in float32 numpy: what the emulated device is measured against."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from digits import CLASSES, SIDE, Floats, Integers

HIDDEN = 64


@dataclass(slots=True)
class FloatModel:
    """Two dense layers with tanh between: w1 [64, 64], b1 [64], w2 [64, 10], b2 [10]."""

    w1: Floats
    b1: Floats
    w2: Floats
    b2: Floats

    @classmethod
    def initial(cls, seed: int) -> "FloatModel":
        """Weights of a normal distribution that keeps the size of what passes through; biases of 0."""
        stream = np.random.default_rng(seed)
        w1 = stream.standard_normal((SIDE * SIDE, HIDDEN), np.float32) / np.float32(SIDE)
        w2 = stream.standard_normal((HIDDEN, CLASSES), np.float32) / np.float32(HIDDEN**0.5)
        return cls(w1, np.zeros(HIDDEN, np.float32), w2, np.zeros(CLASSES, np.float32))

    def parameters(self) -> Iterator[tuple[str, Floats]]:
        """Names and values."""
        yield from (("w1", self.w1), ("b1", self.b1), ("w2", self.w2), ("b2", self.b2))

    def scores(self, pixels: Floats) -> tuple[Floats, Floats]:
        """The hidden layer, and a score for each class."""
        a = np.tanh(pixels @ self.w1 + self.b1)
        return a, a @ self.w2 + self.b2

    def classify(self, pixels: Floats) -> Integers:
        """The class with the highest score, for each row."""
        return self.scores(pixels)[1].argmax(axis=1)

    def step(self, pixels: Floats, labels: Integers, rate: float) -> float:
        """One step of gradient descent on one minibatch; the mean loss before it."""
        a, scores = self.scores(pixels)
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = -np.log(p[rows, labels]).mean()

        delta = p.copy()  # of the loss at the scores
        delta[rows, labels] -= 1
        grad_h = delta @ self.w2.T * (1 - a * a)
        step = np.float32(rate / len(labels))
        self.w2 -= step * (a.T @ delta)
        self.b2 -= step * delta.sum(axis=0)
        self.w1 -= step * (pixels.T @ grad_h)
        self.b1 -= step * grad_h.sum(axis=0)
        return float(loss)
