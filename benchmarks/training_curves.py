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
    """Two convolutions with norms, and a skip connection around them."""

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
    """Two narrow layers of BERT, and a class for each text."""

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
    """Yield name, module, batches and training options of each case."""
    sys.path.insert(0, str(EXAMPLES))
    from digits import draw

    def digits(count, shape):
        pixels, labels = (torch.from_numpy(array) for array in draw(count * STEPS, seed=1))
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


OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def correlation(a, b):
    """Return the correlation of two gradients; 1 if they are equal, as two of zeros are."""
    a = np.asarray(a, np.float64).ravel()
    b = np.asarray(b, np.float64).ravel()
    return 1.0 if np.allclose(a, b, rtol=1e-5, atol=1e-7) else float(np.corrcoef(a, b)[0, 1])


def by_torch(module, batches, choices, dtype=torch.float32):
    """Return torch's losses and, for the first steps, its parameters and their gradients."""
    model = copy.deepcopy(module).to(dtype)
    optimizer = OPTIMIZERS[choices["optimizer"]](model.parameters(), lr=choices["learning_rate"])
    losses = []
    parameters = []
    gradients = []
    for x, y in batches:
        x = x.to(dtype) if x.is_floating_point() else x
        if len(parameters) < LOOKED_AT:
            parameters.append({name: parameter.detach().numpy().copy() for name, parameter in model.named_parameters()})
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.item())
        if len(gradients) < LOOKED_AT:
            gradients.append({name: parameter.grad.numpy().copy() for name, parameter in model.named_parameters()})
        optimizer.step()
    return losses, parameters, gradients


def compile_case(module, batches, choices, formats):
    """Return the compiled training of a case."""
    return be.compile_training(module, (batches[0][0],), loss="cross_entropy", **choices, **formats)


def worst_gradient(training, batches, parameters_by_step, gradients, precision):
    """Return the worst correlation of a parameter's gradient with torch's, both at torch's parameters."""
    worst = 1.0
    for (x, y), parameters, theirs in zip(batches, parameters_by_step, gradients, strict=False):
        training.set_parameters(parameters)
        training.train_step(x, y, precision=precision)
        ours = training.gradients()
        worst = min(worst, *(correlation(ours[name], gradient) for name, gradient in theirs.items()))
    return worst


def train(training, module, batches, precision):
    """Return the losses of the netlist, and those that torch computes with the netlist's parameters."""
    model = copy.deepcopy(module)
    losses = []
    losses_by_torch = []
    for x, y in batches:
        training.load_into(model)
        with torch.no_grad():
            losses_by_torch.append(nn.functional.cross_entropy(copy.deepcopy(model)(x), y).item())
        losses.append(training.train_step(x, y, precision=precision))
    return losses, losses_by_torch


def means(losses):
    """Return the mean loss of each SPAN consecutive steps."""
    span = min(SPAN, len(losses))
    return np.convolve(losses, np.full(span, 1 / span), "valid")


def largest_difference(theirs, ours):
    """Return the largest relative difference of two curves of losses."""
    return float(np.max(np.abs(means(ours) - means(theirs)) / np.abs(means(theirs))))


def paces(only):
    """Print a row for each training and number of microbatches: modelled steps a second at each effort."""
    print("| training | microbatches | first legal | found | times | epochs | CPU s to compile, low | found |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    all_cases: list[tuple[str, nn.Module, torch.Tensor, dict[str, Any]]] = [
        (name, module, batches[0][0], choices) for name, module, batches, choices in cases()
    ]
    torch.manual_seed(0)
    all_cases.append(("BERT, narrow, adamw", Encoders(), torch.randint(0, 1000, (4, 64)), {"optimizer": "adamw"}))
    for name, module, x, choices in all_cases:
        for count in (1, 4) if only in name else ():
            figures = []
            for effort in ("low", "default"):
                begin = time.process_time()
                training = be.compile_training(
                    module, (x,), loss="cross_entropy", effort=effort, microbatches=count, **choices
                )
                figures.append(
                    (training.perf().inputs_per_second, time.process_time() - begin, training.placement.epochs)
                )
            (first, quick, _), (best, seconds, epochs) = figures
            print(
                f"| {name} | {count} | {first:.0f} | {best:.0f} | {best / first:.2f} | {epochs} | {quick:.0f} | "
                f"{seconds:.0f} |",
                flush=True,
            )


def main():
    """Train each case, and print a line for each precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", nargs="+", default=["ideal", "device"], choices=("ideal", "format", "device"))
    parser.add_argument("--only", default="", metavar="NAME", help="trainings whose name has this in it")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--df", default="Float16_b")
    parser.add_argument("--acc-df", default="")
    parser.add_argument("--optimizer-df", default="", help="of what the optimizer keeps and computes")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--pace", action="store_true", help="modelled steps a second instead")
    args = parser.parse_args()
    if args.pace:
        paces(args.only)
        return
    formats = {"df": args.df, "acc_df": args.acc_df, "optimizer_df": args.optimizer_df}
    print(conditions())
    print(f"losses: means of {SPAN} steps; gradients: the worst correlation of a parameter's in {LOOKED_AT} steps")
    panels = []
    for name, module, batches, choices in cases():
        if args.only not in name:
            continue
        batches = batches[: args.steps]
        theirs, parameters, gradients = by_torch(module, batches, choices)
        curves = {"torch": means(theirs)}
        exact, *_ = by_torch(module, batches, choices, torch.float64)
        print(f"{name:20} torch in float64: losses {largest_difference(theirs, exact):.3%} apart at most", flush=True)
        for precision in args.precision:
            begin = time.process_time()
            formats["chip_softmax"] = precision == "device"
            with_gradients = compile_case(module, batches, choices, formats)
            worst = worst_gradient(with_gradients, batches, parameters, gradients, precision)
            with_gradients.close()
            losses, losses_by_torch = train(compile_case(module, batches, choices, formats), module, batches, precision)
            seconds = time.process_time() - begin
            curves[precision] = means(losses)
            ours_apart = largest_difference(theirs, losses)
            torch_apart = largest_difference(theirs, losses_by_torch)
            print(
                f"{name:20} {precision:7} {len(losses)} steps, losses {ours_apart:.3%} apart at most, by torch "
                f"{torch_apart:.3%}, gradients {worst:.6f}, last loss {curves[precision][-1]:.4f}, torch "
                f"{curves['torch'][-1]:.4f}, {seconds:.0f} s",
                flush=True,
            )
        panels.append((name, curves))
    if args.picture:
        from lines import write_lines

        write_lines(args.picture, "Training losses of torch and of the emulated chip", panels)


if __name__ == "__main__":
    main()
