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


def sharpen(module):
    """Make the weights of a module larger, so that the likeliest token is not a close call between equals."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(2 if parameter.dim() > 1 else 1)
    return module.eval()


def gpt2(layers=12):
    """Return GPT-2 small compiled, functions that generate a number of tokens by torch and by the netlist, and the name
    of its decoder's program."""
    torch.manual_seed(0)
    model = GPT(tokens=50257, width=768, heads=12, layers=layers, length=1024)
    model.head.weight = model.tokens.weight
    sharpen(model)
    prompt = torch.randint(0, 50257, (20,)).tolist()
    compiled = be.compile_programs(be.Program(model, model.window(), keeps=model.keeps()))
    return (
        compiled,
        lambda count: model.greedy(prompt, count),
        lambda count, precision: compiled.generate(prompt, count, precision=precision),
        "",
    )


def t5(layers=6):
    """Return T5-small in the form of `gpt2`; its encoder runs once."""
    torch.manual_seed(0)
    model = sharpen(T5(tokens=32128, width=512, heads=8, layers=layers, source=64, length=128))
    encode = Encode(model).eval()
    decode = Decode(model).eval()
    compiled = be.compile_programs(
        {
            "encode": be.Program(encode, encode.example(), encode.keeps()),
            "decode": be.Program(decode, decode.example(), decode.keeps()),
        }
    )
    source = torch.randint(0, 32128, (64,)).tolist()

    def generate(count, precision):
        compiled(np.asarray([source]), program="encode", precision=precision)
        return compiled.generate([0], count, program="decode", precision=precision)

    return compiled, lambda count: model.greedy(source, [0], count), generate, "decode"


@contextmanager
def old_cuts():
    """Cut epochs as if loading took no time, and search no cut for the latency of a single input."""
    load = cuts.epoch_load
    single = refine.single_input_decisions
    cuts.epoch_load = lambda _: (0.0, 0.0)
    refine.single_input_decisions = lambda table, *_: [searched_decisions(table, ONE_BY_ONE, refine.FULL)]
    try:
        yield
    finally:
        cuts.epoch_load = load
        refine.single_input_decisions = single


def steps_per_second(compiled, program):
    """Return the modelled pace of decoding: a step of the program, then the host link for the one row of scores of
    which the next token is picked."""
    perf = compiled.perf(program)
    part = compiled.parts[program or next(iter(compiled.parts))]
    (output,) = (output for output in compiled.io.outputs if output.label in part.outputs)
    row = output.view[-1] * np.dtype(np.float16).itemsize
    return 1 / (1 / perf.inputs_per_second + row / perf.run.host_rate)


def beside_old_cuts(name, make, layers):
    """Print the modelled pace of one step, loads counted, with epochs cut without and with regard to loads."""
    paces = []
    for context in (old_cuts(), nullcontext()):
        with context:
            compiled, *_, program = make(*layers)
        paces.append(steps_per_second(compiled, program))
        print(
            f"{name}: {compiled.placement.epochs} epochs of all programs, {paces[-1]:.1f} steps per second", flush=True
        )
    print(f"{name}: {paces[1] / paces[0]:.2f} times the old cuts, loads counted in both")


def main():
    """Compile each model, and print its pace and how many tokens equal torch's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("gpt2", "t5"), help="one of the models")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--layers", type=int, help="fewer layers than the model has")
    parser.add_argument("--precision", default="ideal", choices=("ideal", "format", "device"))
    parser.add_argument("--cuts", action="store_true", help="old cuts beside new ones instead, modelled")
    args = parser.parse_args()
    print(conditions())
    for name, make in (("gpt2", gpt2), ("t5", t5)):
        if args.only not in (None, name):
            continue
        if args.cuts:
            beside_old_cuts(name, make, [args.layers] if args.layers else [])
            continue
        begin = time.process_time()
        compiled, generate_by_torch, generate_here, program = make(*([args.layers] if args.layers else []))
        pace = steps_per_second(compiled, program)
        seconds = time.process_time() - begin
        print(f"{name}: {seconds:.0f} s to compile, modelled {pace:.1f} decode steps per second", flush=True)
        expected = generate_by_torch(args.tokens)
        generate_here(1, args.precision)  # kernels, plans and parameters
        compiled.reset()
        begin = time.process_time()
        wall = time.perf_counter()
        tokens = generate_here(args.tokens, args.precision)
        seconds = time.process_time() - begin
        wall = time.perf_counter() - wall
        same = next((n for n, (a, b) in enumerate(zip(tokens, expected, strict=True)) if a != b), len(tokens))
        print(
            f"{name}: {same} of {len(expected)} tokens equal to torch's in precision {args.precision}, emulated "
            f"{len(tokens) / wall:.2f} tokens per second ({seconds / len(tokens):.2f} s of processor time for each)",
            flush=True,
        )


if __name__ == "__main__":
    main()
