"""A classifier of digits trained with torch, and on the emulated chip in two formats.

python3 examples/learn_digits.py --picture digits.svg
"""

import argparse
import copy
from pathlib import Path

import torch
from torch import nn

import buda_emu as be
from digits import draw
from lines import write_lines

BATCH = 64
STEPS = 200
RATE = 0.2
FORMATS = ("Float16_b", "Bfp8_b")


def network():
    """64 pixels, 32 hidden units, 10 digits."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def main(arguments=None):
    """Train three times and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args(arguments)
    pixels, labels = (torch.from_numpy(array) for array in draw(BATCH * options.steps, seed=1))
    batches = list(zip(pixels.split(BATCH), labels.split(BATCH), strict=True))
    held_out = [torch.from_numpy(array) for array in draw(2048, seed=2)]
    first = network()

    def accuracy(net):
        with torch.no_grad():
            return (net(held_out[0]).argmax(1) == held_out[1]).float().mean().item()

    net = copy.deepcopy(first)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    losses = {"torch": []}
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses["torch"].append(loss.item())
    reached = {"torch": accuracy(net)}
    for df in FORMATS:
        net = copy.deepcopy(first)
        training = be.compile_training(net, (batches[0][0],), loss="cross_entropy", learning_rate=RATE, df=df)
        losses[df] = [training.train_step(x, y, precision="device") for x, y in batches]
        training.load_into(net)
        reached[df] = accuracy(net)
    for name, values in losses.items():
        end = sum(values[-20:]) / len(values[-20:])
        print(f"{name:10} loss {values[0]:.3f} -> {end:.3f}, held-out digits told apart: {reached[name]:.1%}")
    if options.picture:
        smooth = {name: _smooth(values) for name, values in losses.items()}
        write_lines(options.picture, "Training loss of a digit classifier", [("training loss", smooth)])


def _smooth(values, share=0.15):
    smoothed = [values[0]]
    for value in values[1:]:
        smoothed.append(smoothed[-1] + share * (value - smoothed[-1]))
    return smoothed


if __name__ == "__main__":
    main()
