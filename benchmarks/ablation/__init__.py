"""What each part of the search for a placement gains and costs: `python -m benchmarks.ablation`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the benchmarks beside this one import each other by bare names
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
