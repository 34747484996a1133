"""Losses over 200 steps of trainings beside torch's float32 ones, how far torch in float64 is from those, and how far
gradients agree.

python3 benchmarks/training_curves.py --precision ideal --only MLP
python3 benchmarks/training_curves.py --picture training-curves.svg   # ideal and device: some ten minutes
python3 benchmarks/training_curves.py --pace   # modelled steps a second instead, first legal and found
"""

import argparse
import copy
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import buda_emu as be
from conditions import conditions

EXAMPLES = Path(__file__).parents[1] / "examples"
STEPS = 200
SPAN = 10  # steps whose mean loss is compared and drawn
LOOKED_AT = 5  # first steps whose gradients are compared, each at torch's parameters


class Residual(nn.Module):
    """Two convolutions with norms, and a way round them."""

    def __init__(self, channels):
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm = nn.BatchNorm2d(channels)
        self.last = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(x + self.last(self.second(torch.relu(self.norm(self.first(x))))))


class Attending(nn.Module):
    """A layer of a transformer over rows of 8 digits."""

    def __init__(self, width=16):
        super().__init__()
        self.table = nn.Embedding(10, width)
        self.places = nn.Parameter(0.02 * torch.randn(8, width))
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, 0.0, batch_first=True)
        self.head = nn.Linear(width, 10)

    def forward(self, digits):
        return self.head(self.layer(self.table(digits) + self.places)).transpose(1, 2)


class Encoders(nn.Module):
    """Two layers of BERT, narrow, and a class for each text."""

    def __init__(self, layers=2, width=128, places=64):
        super().__init__()
        self.table = nn.Embedding(1000, width)
        self.places = nn.Parameter(0.02 * torch.randn(places, width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 2)
        layer = nn.TransformerEncoderLayer(width, 2, 4 * width, 0.0, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens):
        return self.head(self.layers(self.norm(self.table(tokens) + self.places))[:, 0])


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
        nn.Conv2d(1, 6, 3, padding=1),
        Residual(6),
        nn.AvgPool2d(2),
        Residual(6),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 10),
    )
    yield "MLP, sgd", mlp, digits(32, (64,)), {"optimizer": "sgd", "learning_rate": 0.1}
    yield "ResNet, adam", resnet, digits(8, (1, 8, 8)), {"optimizer": "adam", "learning_rate": 0.003}
    yield "ResNet of 16, adam", resnet, digits(16, (1, 8, 8)), {"optimizer": "adam", "learning_rate": 0.002}
    yield "transformer, adamw", Attending(), sorting(16), {"optimizer": "adamw", "learning_rate": 0.003}


OWN = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def correlation(a, b):
    """Of two gradients; 1 where both are nothing."""
    a, b = (np.asarray(item, np.float64).ravel() for item in (a, b))
    return 1.0 if np.allclose(a, b, rtol=1e-5, atol=1e-7) else float(np.corrcoef(a, b)[0, 1])


def by_torch(module, batches, choices, dtype=torch.float32):
    """Torch's losses, and of the first steps its parameters and their gradients."""
    own = copy.deepcopy(module).to(dtype)
    optimizer = OWN[choices["optimizer"]](own.parameters(), lr=choices["learning_rate"])
    losses = []
    begun = []
    gradients = []
    for x, y in batches:
        x = x.to(dtype) if x.is_floating_point() else x
        if len(begun) < LOOKED_AT:
            begun.append({name: item.detach().numpy().copy() for name, item in own.named_parameters()})
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(own(x), y)
        loss.backward()
        losses.append(loss.item())
        if len(gradients) < LOOKED_AT:
            gradients.append({name: item.grad.numpy().copy() for name, item in own.named_parameters()})
        optimizer.step()
    return losses, begun, gradients


def compiled(module, batches, choices, formats):
    """The training's netlist."""
    return be.compile_training(module, (batches[0][0],), loss="cross_entropy", **choices, **formats)


def worst_gradient(training, batches, begun, gradients, precision):
    """The worst correlation of a parameter's gradient with torch's, both at torch's parameters."""
    worst = 1.0
    for (x, y), parameters, theirs in zip(batches, begun, gradients, strict=False):
        training.set_parameters(parameters)
        training.train_step(x, y, precision=precision)
        ours = training.gradients()
        worst = min(worst, *(correlation(ours[name], item) for name, item in theirs.items()))
    return worst


def trained(training, module, batches, precision):
    """The losses that the netlist gives, and those that torch finds with the netlist's parameters."""
    own = copy.deepcopy(module)
    said = []
    found = []
    for x, y in batches:
        training.load_into(own)
        with torch.no_grad():
            found.append(nn.functional.cross_entropy(copy.deepcopy(own)(x), y).item())
        said.append(training.train_step(x, y, precision=precision))
    return said, found


def means(losses):
    """Of each SPAN steps that follow each other."""
    span = min(SPAN, len(losses))
    return np.convolve(losses, np.full(span, 1 / span), "valid")


def apart(theirs, ours):
    """The largest difference of two curves of losses, relative."""
    return float(np.max(np.abs(means(ours) - means(theirs)) / np.abs(means(theirs))))


def paces(only):
    """A row for each training and number of microbatches: modelled steps a second of each effort."""
    print("| training | microbatches | first legal | found | times | epochs | CPU s to compile, low | found |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    all_cases: list[tuple[str, nn.Module, torch.Tensor, dict[str, Any]]] = [
        (name, module, batches[0][0], choices) for name, module, batches, choices in cases()
    ]
    torch.manual_seed(0)
    all_cases.append(("BERT, narrow, adamw", Encoders(), torch.randint(0, 1000, (4, 64)), {"optimizer": "adamw"}))
    for name, module, x, choices in all_cases:
        for count in (1, 4) if only in name else ():
            found = []
            for effort in ("low", "default"):
                begin = time.process_time()
                made = be.compile_training(
                    module, (x,), loss="cross_entropy", effort=effort, microbatches=count, **choices
                )
                found.append((made.perf().inputs_per_second, time.process_time() - begin, made.placement.epochs))
            (first, quick, _), (best, seconds, epochs) = found
            print(
                f"| {name} | {count} | {first:.0f} | {best:.0f} | {best / first:.2f} | {epochs} | {quick:.0f} | "
                f"{seconds:.0f} |",
                flush=True,
            )


def main():
    """Print a line for each training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", nargs="+", default=["ideal", "device"], choices=("ideal", "format", "device"))
    parser.add_argument("--only", default="", metavar="NAME", help="trainings whose name has this in it")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--df", default="Float16_b")
    parser.add_argument("--acc-df", default="")
    parser.add_argument("--optimizer-df", default="", help="of what the optimizer keeps and computes")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--pace", action="store_true", help="modelled steps a second instead")
    given = parser.parse_args()
    if given.pace:
        paces(given.only)
        return
    formats = {"df": given.df, "acc_df": given.acc_df, "optimizer_df": given.optimizer_df}
    print(conditions())
    print(f"losses: means of {SPAN} steps; gradients: the worst correlation of a parameter's in {LOOKED_AT} steps")
    panels = []
    for name, module, batches, choices in cases():
        if given.only not in name:
            continue
        batches = batches[: given.steps]
        theirs, begun, gradients = by_torch(module, batches, choices)
        curves = {"torch": means(theirs)}
        exact, *_ = by_torch(module, batches, choices, torch.float64)
        print(f"{name:20} torch in float64: losses {apart(theirs, exact):.3%} apart at most", flush=True)
        for precision in given.precision:
            begin = time.process_time()
            formats["chip_softmax"] = precision == "device"
            with_gradients = compiled(module, batches, choices, formats)
            worst = worst_gradient(with_gradients, batches, begun, gradients, precision)
            with_gradients.close()
            said, found = trained(compiled(module, batches, choices, formats), module, batches, precision)
            seconds = time.process_time() - begin
            curves[precision] = means(said)
            print(
                f"{name:20} {precision:7} {len(said)} steps, losses {apart(theirs, said):.3%} apart at most, by torch "
                f"{apart(theirs, found):.3%}, gradients {worst:.6f}, last loss {curves[precision][-1]:.4f}, torch "
                f"{curves['torch'][-1]:.4f}, {seconds:.0f} s",
                flush=True,
            )
        panels.append((name, curves))
    if given.picture:
        from lines import write_lines

        write_lines(given.picture, "Training losses of torch and of the emulated chip", panels)


if __name__ == "__main__":
    main()
