"""Losses over 200 steps of three trainings beside torch's float32 ones, and how far gradients agree.

python3 benchmarks/training_curves.py --precision ideal
python3 benchmarks/training_curves.py --precision device --picture curves.svg
"""

import argparse
import copy
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import buda_emu as be
from conditions import conditions

EXAMPLES = Path(__file__).parents[1] / "examples"
STEPS = 200


class Residual(nn.Module):
    """Two convolutions with norms, and a way round them."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.last = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(x + self.last(self.second(torch.relu(self.norm(self.first(x))))))


class Attending(nn.Module):
    """A layer of a transformer over rows of 8 digits."""

    def __init__(self, width=16):
        super().__init__()
        self.table, self.places = nn.Embedding(10, width), nn.Parameter(0.02 * torch.randn(8, width))
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, 0.0, batch_first=True)
        self.head = nn.Linear(width, 10)

    def forward(self, digits):
        return self.head(self.layer(self.table(digits) + self.places)).transpose(1, 2)


def cases():
    """Name, module, batches and how it is trained."""
    sys.path.insert(0, str(EXAMPLES))
    from digits import draw

    def digits(count, shape):
        pixels, labels = (torch.from_numpy(item) for item in draw(count * STEPS, seed=1))
        return list(zip(pixels.reshape(-1, *shape).split(count), labels.split(count), strict=True))

    def sorting(count):
        rows = torch.randint(0, 10, (STEPS, count, 8))
        return list(zip(rows, rows.sort(2).values, strict=True))

    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(64, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 10))
    resnet = nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1), Residual(6), nn.AvgPool2d(2), Residual(6), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 10),
    )  # fmt: skip
    yield "MLP, sgd", mlp, digits(32, (64,)), {"optimizer": "sgd", "learning_rate": 0.1}
    yield "ResNet, adam", resnet, digits(8, (1, 8, 8)), {"optimizer": "adam", "learning_rate": 0.003}
    yield "transformer, adamw", Attending(), sorting(16), {"optimizer": "adamw", "learning_rate": 0.003}


OWN = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def correlation(a, b):
    """Of two gradients; 1 where both are nothing."""
    a, b = (np.asarray(item, np.float64).ravel() for item in (a, b))
    return 1.0 if np.allclose(a, b, rtol=1e-5, atol=1e-7) else float(np.corrcoef(a, b)[0, 1])


def trained(module, batches, choices, precision, df="Float16_b"):
    """Losses of torch and of the netlist, and the worst correlation of a gradient, each at torch's own parameters."""
    own = copy.deepcopy(module)
    optimizer = OWN[choices["optimizer"]](own.parameters(), lr=choices["learning_rate"])
    training = be.compile(module, (batches[0][0],), loss="cross_entropy", df=df, **choices)
    worst, theirs, ours = 1.0, [], []
    for step, (x, y) in enumerate(batches):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(own(x), y)
        loss.backward()
        ours.append(training.train_step(x, y, precision=precision))
        theirs.append(loss.item())
        if step < 5:
            found = training.gradients()
            for name, parameter in own.named_parameters():
                worst = min(worst, correlation(found[name], parameter.grad.numpy()))
        optimizer.step()
    return theirs, ours, worst


def apart(theirs, ours, span=10):
    """The largest difference of both curves, as means of `span` steps, relative."""
    means = [np.convolve(item, np.full(span, 1 / span), "valid") for item in (theirs, ours)]
    return float(np.max(np.abs(means[1] - means[0]) / np.abs(means[0])))


def main():
    """Print a line for each training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", default="ideal", choices=("ideal", "format", "device"))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    print(conditions())
    panels = []
    for name, module, batches, choices in cases():
        begin = time.process_time()
        theirs, ours, worst = trained(module, batches[: given.steps], choices, given.precision)
        seconds = time.process_time() - begin
        print(f"{name:20} {len(ours)} steps, losses {apart(theirs, ours):.3%} apart at most (means of 10 steps)")
        print(f"{'':20} worst gradient {worst:.6f}, last loss {ours[-1]:.4f}, torch {theirs[-1]:.4f}, {seconds:.0f} s")
        panels.append((name, {"torch": theirs, given.precision: ours}))
    if given.picture:
        from lines import write_lines

        write_lines(given.picture, "Training losses of torch and of the emulated chip", panels)


if __name__ == "__main__":
    main()
