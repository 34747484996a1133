#!/usr/bin/env python3
"""Train a small classifier of digits on an emulated chip, in the manner of a front end (PyBUDA and its kin).

A netlist has a forward, a backward and an optimizer program; the host pushes tensors, runs programs and pops results.
numpy trains the same model in float32, with the same first weights and the same minibatches. The exit code is 0 if the
chip classifies held-out digits as well as numpy does, less one percent at most.

train.yaml        the netlist: layers, gradients and the step, all computed by its ops
backend.py        the calls of a front end
digits.py         the data set
float_model.py    the model in numpy
curve.py          the picture of losses and accuracies
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from backend import Backend
from curve import Point, write_curve
from digits import CLASSES, Floats, Integers, draw
from float_model import FloatModel

NETLIST = Path(__file__).with_name("train.yaml")
ARCHS = ("wormhole_b0", "blackhole")
TILE = 32
MICROBATCH = 64  # samples in an entry of a queue: the rows of x in the netlist
MICROBATCHES = 4  # entries of a minibatch
MINIBATCH = MICROBATCH * MICROBATCHES
TRAINING = 4096
HELD_OUT = 2048  # samples
RATE = 0.5
TOLERANCE = 0.01  # of accuracy
SEED = 1


class Machine(Protocol):
    """The calls that the training loop needs. `Backend` has them, and so does `buda_emu.Emulator`."""

    def push(self, queue: str, array: Floats, /) -> object:
        """Put entries [entries, t, rows, cols] into a queue, or one into a ram."""
        ...

    def run(self, program: str, params: Mapping[str, Any], /) -> object:
        """Run a program, or have it run."""
        ...

    def pop(self, queue: str, count: int, /) -> Floats:
        """Wait for entries of a queue and take them out."""
        ...


# --- The training loop: the same for every machine -----------------------------------------------------------------


def load_parameters(machine: Machine, first: FloatModel, rate: float = RATE) -> None:
    """First weights, and the constants of the netlist. Tensors are whole tiles: what is not used is 0."""
    machine.push("w1", _entries(first.w1, 1))
    machine.push("b1", _entries(np.tile(first.b1, (TILE, 1)), 1))
    machine.push("w2", _entries(_wide(first.w2), 1))
    machine.push("b2", _entries(np.tile(_wide(first.b2, -1000), (TILE, 1)), 1))  # softmax gives the other classes 0
    machine.push("ones", np.ones((1, 1, TILE, TILE), np.float32))
    machine.push("rate", np.full((1, 1, TILE, TILE), rate / MINIBATCH, np.float32))  # gradients are sums over samples


def train_minibatch(machine: Machine, pixels: Floats, labels: Integers) -> float:
    """One step of gradient descent, with the gradients of four microbatches added up. The mean loss before it."""
    machine.push("x", _entries(pixels, MICROBATCHES))
    machine.push("labels", _entries(np.eye(TILE, dtype=np.float32)[labels], MICROBATCHES))
    machine.run("run_fwd", {"$p_loop_count": MICROBATCHES})
    machine.run("run_bwd", {"$p_loop_count": MICROBATCHES, "$p_zero_grad": True})
    machine.run("run_opt", {})
    # Programs follow each other on the device whether we look or not.
    likelihood = machine.pop("loss", MICROBATCHES)[:, 0, 0, 0]
    return -float(likelihood.sum()) / MINIBATCH


def classify(machine: Machine, pixels: Floats) -> Integers:
    """The classes that the device's parameters give, 16 entries at a time."""
    classes: list[Integers] = []
    for first in range(0, len(pixels), 16 * MICROBATCH):
        batch = pixels[first : first + 16 * MICROBATCH]
        entries = len(batch) // MICROBATCH
        machine.push("x_eval", _entries(batch, entries))
        machine.run("run_eval", {"$p_loop_count": entries})
        scores = machine.pop("scores", entries).reshape(len(batch), TILE)
        classes.append(scores[:, :CLASSES].argmax(axis=1))
    return np.concatenate(classes)


def minibatches(epoch: int) -> Iterator[Integers]:
    """The samples of each minibatch. The order of an epoch depends on its number only, so training can be resumed."""
    order = np.random.default_rng((SEED, epoch)).permutation(TRAINING)
    yield from order.reshape(-1, MINIBATCH)


def train_epoch(machine: Machine, pixels: Floats, labels: Integers, epoch: int) -> float:
    """All training samples once; their mean loss."""
    return float(np.mean([train_minibatch(machine, pixels[batch], labels[batch]) for batch in minibatches(epoch)]))


def _entries(rows: Floats, count: int) -> Floats:
    """Rows as `count` entries of a queue: [entries, t, rows, cols], t is 1."""
    return rows.reshape(count, 1, len(rows) // count, -1)


def _wide(values: Floats, fill: float = 0) -> Floats:
    """The last axis filled up to a tile."""
    missing = [(0, 0)] * (values.ndim - 1) + [(0, TILE - values.shape[-1])]
    return np.pad(values, missing, constant_values=fill)


# --- Device and numpy side by side ---------------------------------------------------------------------------------


def compare(backend: Backend, epochs: int) -> Iterator[Point]:
    """Train both and say after each epoch how they stand. numpy goes first: it takes a moment."""
    pixels, labels = draw(TRAINING, seed=SEED)
    held_out, digits = draw(HELD_OUT, seed=SEED + 1)
    model = FloatModel.initial(SEED)
    load_parameters(backend, model)

    by_numpy: list[tuple[float, float]] = []
    for epoch in range(epochs):
        losses = [model.step(pixels[batch], labels[batch], RATE) for batch in minibatches(epoch)]
        by_numpy.append((float(np.mean(losses)), _accuracy(model.classify(held_out), digits)))

    for epoch, (numpy_loss, numpy_accuracy) in enumerate(by_numpy):
        loss = train_epoch(backend, pixels, labels, epoch)
        accuracy = _accuracy(classify(backend, held_out), digits)
        yield Point(
            epoch=epoch + 1,
            device_loss=loss,
            numpy_loss=numpy_loss,
            device_accuracy=accuracy,
            numpy_accuracy=numpy_accuracy,
        )


def _accuracy(predicted: Integers, expected: Integers) -> float:
    return float((predicted == expected).mean())


def show(points: Iterator[Point]) -> Iterator[Point]:
    """Print a line for each epoch."""
    print(f"{TRAINING} digits to learn in minibatches of {MICROBATCHES} x {MICROBATCH}, {HELD_OUT} held out")
    print("\n                 loss            accuracy\nepoch    device   numpy     device   numpy")
    for point in points:
        print(
            f"{point.epoch:5}    {point.device_loss:.4f}  {point.numpy_loss:.4f}"
            f"     {point.device_accuracy:6.2%}  {point.numpy_accuracy:6.2%}"
        )
        yield point


def main(arguments: list[str] | None = None) -> int:
    """0: as good as numpy; 1: not."""
    options = _parser().parse_args(arguments)
    start = time.perf_counter()
    backend = Backend(NETLIST, options.precision, options.arch)
    try:
        points = list(show(compare(backend, options.epochs)))
        backend.wait()
    finally:
        backend.close()
    seconds = time.perf_counter() - start

    last = points[-1]
    worse = last.numpy_accuracy - last.device_accuracy
    learned = worse <= TOLERANCE
    print(f"\naccuracy {last.device_accuracy:.2%}, numpy {last.numpy_accuracy:.2%}:", end=" ")
    print(f"{'within' if learned else 'NOT within'} {TOLERANCE:.0%}. {len(points)} epochs, seconds: {seconds:.3f}")
    if options.curve is not None:
        title = f"{NETLIST.name}: {options.arch}, precision {options.precision}"
        write_curve(options.curve, points, title)
    return 0 if learned else 1


class _Parser(argparse.ArgumentParser):
    """Its help begins with an example."""

    def format_help(self) -> str:
        return f"example: python examples/train.py --epochs 12 --curve curve.svg\n\n{super().format_help()}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="train.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=_positive, default=12, metavar="N", help="times through the data; default 12")
    parser.add_argument("--curve", type=_picture, metavar="FILE", help="write losses and accuracies: *.svg or *.json")
    parser.add_argument("--arch", choices=ARCHS, default=ARCHS[0], help=f"default {ARCHS[0]}")
    parser.add_argument(
        "--precision",
        choices=("format", "ideal", "device"),
        default="format",
        help="format (the default): tensors in their formats, as on the device; ideal: float32 throughout; device: the "
        "chip's own arithmetic",
    )
    return parser


def _positive(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not 1 or more")
    return int(word)


def _picture(word: str) -> Path:
    if Path(word).suffix not in (".svg", ".json"):
        raise argparse.ArgumentTypeError(f"{word} ends neither in .svg nor in .json")
    return Path(word)


if __name__ == "__main__":
    sys.exit(main())
