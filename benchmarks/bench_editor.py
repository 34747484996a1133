"""One keystroke in the language server beside a whole check: processor time on a large netlist, letters put in and
taken out at random places, half of them leaving a text that cannot be read.

    .venv/bin/python benchmarks/bench_editor.py NETLIST [--keystrokes 200]
"""

import argparse
import random
import statistics
import time
from pathlib import Path

from buda_emu.app.editor.text import OpenText
from buda_emu.app.editor.tree import TreeReader
from buda_emu.netlist.load import check_text


def measure(text: str, keystrokes: int) -> tuple[list[float], list[float]]:
    """Return the milliseconds of each keystroke, and of whole checks in between."""
    chosen = random.Random(1)
    reader = TreeReader()
    last = OpenText(text, "net.yaml", reader)
    last.findings  # noqa: B018 - the first reading is of a text that is opened
    typed = []
    checks = []
    for number in range(keystrokes):
        at = chosen.randrange(len(text))
        for version in (text[:at] + chosen.choice("ab1 ,{") + text[at:], text):
            start = time.process_time()
            last = OpenText(version, "net.yaml", reader, last.netlist)
            last.findings  # noqa: B018
            typed.append(1000 * (time.process_time() - start))
        if number % 10 == 0:
            start = time.process_time()
            check_text(text, "net.yaml")
            checks.append(1000 * (time.process_time() - start))
    return typed, checks


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("netlist", type=Path)
    parser.add_argument("--keystrokes", type=int, default=100)
    args = parser.parse_args()
    typed, checks = measure(args.netlist.read_text(), args.keystrokes)
    marks = statistics.quantiles(typed, n=20)
    print(f"keystroke: median {statistics.median(typed):.0f} ms, 95 % under {marks[-1]:.0f} ms")
    print(
        f"whole check: median {statistics.median(checks):.0f} ms; a keystroke takes "
        f"{statistics.median(typed) / statistics.median(checks):.2f} of it"
    )


if __name__ == "__main__":
    main()
