"""A transformer that learns to sort eight digits: trained on the emulated chip and by torch.

python3 examples/learn_to_sort.py                                            # a minute, precision ideal
python3 examples/learn_to_sort.py --precision ideal device --picture sort.svg   # some minutes
"""

import argparse
import copy
from pathlib import Path
from statistics import mean

import torch
from torch import nn

import buda_emu as be
from gpt import Block
from lines import write_lines

DIGITS = 10
LENGTH = 8
BATCH = 32
STEPS = 300
RATE = 0.01
LAYERS = 1
UNSEEN = 512


class Sorter(nn.Module):
    """Scores [batch, digits, places]: which digit stands at each place of the sorted row."""

    def __init__(self, width=32, heads=4, layers=LAYERS):
        super().__init__()
        self.digits = nn.Embedding(DIGITS, width)
        self.places = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, DIGITS)

    def forward(self, digits):
        x = self.digits(digits) + self.places
        for block in self.blocks:
            x, *_ = block(x, 0.0)
        return self.head(x).transpose(1, 2)


def rows(count, seed):
    """Rows of digits, and the same sorted."""
    digits = torch.randint(0, DIGITS, (count, LENGTH), generator=torch.Generator().manual_seed(seed))
    return digits, digits.sort(1).values


def main(arguments=None):
    """Train with torch and on the chip, and compare; show some rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--precision", nargs="+", default=["ideal"], choices=("ideal", "format", "device"))
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    first = Sorter()
    batches = [rows(BATCH, seed) for seed in range(options.steps)]
    unseen = rows(UNSEEN, 10**6)

    def right(net):
        with torch.no_grad():
            return (net(unseen[0]).argmax(1) == unseen[1]).all(1).float().mean().item()

    def rate(step):
        return RATE * (1 - step / options.steps)

    net = copy.deepcopy(first)
    optimizer = torch.optim.Adam(net.parameters())
    losses = {"torch": []}
    for step, (x, y) in enumerate(batches):
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses["torch"].append(loss.item())
    print(f"torch: loss {mean(losses['torch'][-20:]):.3f}, {right(net):.1%} of {UNSEEN} unseen rows sorted", flush=True)
    for precision in options.precision:
        net = copy.deepcopy(first)
        training = be.compile_training(
            net, (batches[0][0],), loss="cross_entropy", optimizer="adam", learning_rate=rate
        )
        losses[precision] = [training.train_step(x, y, precision=precision) for x, y in batches]
        training.load_into(net)
        print(
            f"{precision}: loss {mean(losses[precision][-20:]):.3f}, {right(net):.1%} of {UNSEEN} unseen rows sorted",
            flush=True,
        )
    with torch.no_grad():
        for row, sorted_row in zip(unseen[0][:3].tolist(), net(unseen[0][:3]).argmax(1).tolist(), strict=True):
            print(*row, "->", *sorted_row)
    if options.picture:
        write_lines(options.picture, "Training loss of a transformer that learns to sort", [("training loss", losses)])


if __name__ == "__main__":
    main()
