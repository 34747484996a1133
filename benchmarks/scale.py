"""Decoder blocks at growing widths: what docs/run/scale.md extrapolates from.

    python benchmarks/scale.py 512 1024 2048

Of each width, for 32 tokens in Bfp8_b on wormhole_b0: parameters, bytes of the image, seconds of processor time to
compile, modelled cycles of all epochs without their loading, epochs, and seconds of processor time to emulate an input,
with all that a process does once, on one thread.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))
import buda_emu as be
from buda_emu.app.api.run_netlist import run_netlist

TOKENS = 32


class Block(torch.nn.Module):
    """A decoder block with the proportions of Llama-3-70B: heads of 128, keys and values for an eighth of them, and 3.5
    times the width inside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 128
        self.kv = max(1, self.heads // 8)
        self.inside = width * 7 // 2
        self.q, self.o = (torch.nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (torch.nn.Linear(width, 128 * self.kv, bias=False) for _ in range(2))
        self.gate, self.up = (torch.nn.Linear(width, self.inside, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(self.inside, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return hidden states [1, tokens, width] for such states."""
        q = self.q(x).reshape(1, TOKENS, self.heads, 128).transpose(1, 2)
        k, v = (
            layer(x).reshape(1, TOKENS, self.kv, 128).repeat_interleave(self.heads // self.kv, 2).transpose(1, 2)
            for layer in (self.k, self.v)
        )
        scores = torch.softmax(q @ k.transpose(-1, -2) / 128**0.5, -1)
        x = x + self.o((scores @ v).transpose(1, 2).reshape(1, TOKENS, -1))
        return x + self.down(torch.nn.functional.silu(self.gate(x)) * self.up(x))


def main() -> None:
    """Measure each width, and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("widths", type=int, nargs="+")
    args = parser.parse_args()
    print("width  parameters  image bytes  compile s  cycles  epochs  emulate s")
    for width in args.widths:
        torch.manual_seed(0)
        block = Block(width).eval()
        count = sum(parameter.numel() for parameter in block.parameters())
        start = time.process_time()
        model = be.compile(
            block, (torch.zeros(1, TOKENS, width),), arch="wormhole_b0", df="Bfp8_b", effort="low", microbatch=1
        )
        took = time.process_time() - start
        with tempfile.TemporaryDirectory() as folder:
            image = be.load_image(model.save(folder)[1])
            size = Path(image.path).stat().st_size
            timed = be.perf(image.path, parameters={"$p_loop_count": "1"})
            cycles = sum(epoch.timing.total for epoch in timed.epochs)
            seconds: list[float] = []
            for _ in range(2):
                start = time.process_time()
                run_netlist(image.for_inputs, image=image, parameters={"$p_loop_count": "1"}, threads=1)
                seconds.append(time.process_time() - start)
        row = f"{width:5} {count:11} {size:12} {took:10.1f} {cycles:8.0f} {len(timed.epochs):6} {min(seconds):8.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
