"""Greedy generation by GPT-2 small and T5-small (random weights, seeded) beside torch's, and its pace: modelled and
emulated.

python3 benchmarks/generating.py --only gpt2
python3 benchmarks/generating.py --cuts
python3 benchmarks/generating.py --tokens 4 --precision device
"""

import argparse
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch

import buda_emu as be
from buda_emu.compiler.search import cuts, refine
from buda_emu.compiler.search.starts import searched_decisions
from buda_emu.compiler.target import ONE_BY_ONE
from conditions import conditions

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from gpt import GPT
from t5 import T5, Decode, Encode

TOKENS = 50


def sharpened(module):
    """With larger weights, so that the likeliest token is not a close call between equals."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2 if parameter.dim() > 1 else 1)
    return module.eval()


def gpt2(layers=12):
    """Compiled; what torch generates and what the netlist does, each as a function of the count; and its decoder."""
    torch.manual_seed(0)
    model = GPT(50257, 768, 12, layers, 1024)
    model.head.weight = model.tokens.weight
    sharpened(model)
    prompt = torch.randint(0, 50257, (20,)).tolist()
    made = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()))
    return (
        made,
        lambda count: model.greedy(prompt, count),
        lambda count, precision: made.generate(prompt, count, precision=precision),
        "",
    )


def t5(layers=6):
    """The same of T5-small; its encoder runs once."""
    torch.manual_seed(0)
    model = sharpened(T5(32128, 512, 8, layers, 64, 128))
    encode = Encode(model).eval()
    decode = Decode(model).eval()
    made = be.compile_programs(
        {
            "encode": be.Program(encode, encode.example(), encode.keeps()),
            "decode": be.Program(decode, decode.example(), decode.keeps()),
        }
    )
    source = torch.randint(0, 32128, (64,)).tolist()

    def generate(count, precision):
        made(np.asarray([source]), program="encode", precision=precision)
        return made.generate([0], count, program="decode", precision=precision)

    return made, lambda count: model.greedy(source, [0], count), generate, "decode"


@contextmanager
def old_cuts():
    """Epochs that end where they would if loading one took no time, and none for the longest way of a single input."""
    load = cuts.epoch_load
    single = refine.single_input_decisions
    cuts.epoch_load = lambda _: (0.0, 0.0)
    refine.single_input_decisions = lambda table, *_: [searched_decisions(table, ONE_BY_ONE, refine.FULL)]
    try:
        yield
    finally:
        cuts.epoch_load = load
        refine.single_input_decisions = single


def steps_per_second(made, program):
    """Modelled: the program's step, then the host link for the one row of scores that the next token is picked of."""
    perf = made.perf(program)
    part = made.parts[program or next(iter(made.parts))]
    (output,) = (item for item in made.io.outputs if item.label in part.outputs)
    row = output.view[-1] * np.dtype(np.float16).itemsize
    return 1 / (1 / perf.inputs_per_second + row / perf.run.host_rate)


def beside_old_cuts(name, make, layers):
    """Print the modelled pace of one step, loads counted, with epochs cut without and with them."""
    paces = []
    for how in (old_cuts(), nullcontext()):
        with how:
            made, *_, program = make(*layers)
        paces.append(steps_per_second(made, program))
        print(f"{name}: {made.placement.epochs} epochs of all programs, {paces[-1]:.1f} steps per second", flush=True)
    print(f"{name}: {paces[1] / paces[0]:.2f} times the old cuts, loads counted in both")


def main():
    """Print what was found of each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("gpt2", "t5"), help="one of the models")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--layers", type=int, help="fewer layers than the model has")
    parser.add_argument("--precision", default="ideal", choices=("ideal", "format", "device"))
    parser.add_argument("--cuts", action="store_true", help="old cuts beside new ones instead, modelled")
    given = parser.parse_args()
    print(conditions())
    for name, make in (("gpt2", gpt2), ("t5", t5)):
        if given.only not in (None, name):
            continue
        if given.cuts:
            beside_old_cuts(name, make, [given.layers] if given.layers else [])
            continue
        begin = time.process_time()
        made, theirs, ours, program = make(*([given.layers] if given.layers else []))
        pace = steps_per_second(made, program)
        seconds = time.process_time() - begin
        print(f"{name}: {seconds:.0f} s to compile, modelled {pace:.1f} decode steps per second", flush=True)
        expected = theirs(given.tokens)
        ours(1, given.precision)  # kernels, plans and parameters
        made.reset()
        begin = time.process_time()
        wall = time.perf_counter()
        found = ours(given.tokens, given.precision)
        seconds = time.process_time() - begin
        wall = time.perf_counter() - wall
        same = next((n for n, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b), len(found))
        print(
            f"{name}: {same} of {len(expected)} tokens equal to torch's in precision {given.precision}, emulated "
            f"{len(found) / wall:.2f} tokens per second ({seconds / len(found):.2f} s of processor time for each)",
            flush=True,
        )


if __name__ == "__main__":
    main()
