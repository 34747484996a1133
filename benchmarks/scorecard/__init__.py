"""Every public silicon figure beside the model, and the fit of its transfers: `python -m benchmarks.scorecard`."""

import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT / "benchmarks"), str(_ROOT / "tools")]  # what lies there is imported by bare names
