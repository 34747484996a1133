"""A tiny GPT learns a few sentences on the emulated chip, letter by letter, and then goes on writing, with its caches.

python3 examples/write_text.py --picture text.svg
"""

import argparse
from pathlib import Path

import torch
from torch import nn

import buda_emu as be
from gpt import GPT
from lines import write_lines

TEXT = """a tile has thirty two rows and thirty two columns. a queue holds tiles in memory. an op reads its queues, and
writes the next one. a graph is a set of ops on the cores of a chip. an epoch runs one graph. a program runs epochs. """
TEXT = " ".join(TEXT.split()) + " "
LETTERS = sorted(set(TEXT))
LENGTH = 96
BATCH = 6
STEPS = 400
RATE = 0.01
WIDTH = 64
LAYERS = 1
WRITTEN = 88


class Learning(nn.Module):
    """The model without caches, scores as cross entropy takes them."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, letters, positions):
        return self.model(letters, positions).transpose(1, 2)


def main(arguments=None):
    """Learn, then write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--precision", default="ideal", choices=("ideal", "format", "device"))
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    codes = torch.tensor([LETTERS.index(letter) for letter in TEXT * 2])
    model = GPT(tokens=len(LETTERS), width=WIDTH, heads=4, layers=LAYERS, length=LENGTH)
    places = torch.arange(LENGTH)[None].repeat(BATCH, 1)
    random = torch.Generator().manual_seed(1)

    def batch():
        starts = torch.randint(0, len(TEXT), (BATCH,), generator=random).tolist()
        cut = torch.stack([codes[start : start + LENGTH + 1] for start in starts])
        return (cut[:, :-1], places), cut[:, 1:]

    x, y = batch()
    training = be.compile_training(
        Learning(model), x, loss="cross_entropy", optimizer="adam", learning_rate=lambda step: RATE / (1 + step / 200)
    )
    losses = []
    for step in range(options.steps):
        x, y = batch()
        losses.append(training.train_step(x, y, precision=options.precision))
        if step % 50 == 0:
            print(f"step {step:4} loss {losses[-1]:.3f}", flush=True)
    learned = Learning(model)
    training.load_into(learned)
    model.eval()
    writer = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()))
    prompt = "a queue "
    continuation = writer.generate([LETTERS.index(letter) for letter in prompt], WRITTEN, precision=options.precision)
    print(prompt + "|" + "".join(LETTERS[code] for code in continuation))
    if options.picture:
        write_lines(options.picture, "Training loss of a tiny GPT", [("training loss", {options.precision: losses})])


if __name__ == "__main__":
    main()
